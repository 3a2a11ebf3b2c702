"""ONNX files written by hand: as much of the format as a text encoder needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_FLOAT: Final = 1
_KINDS: Final = {"float32": 1, "uint8": 2, "int64": 7, "float16": 10}
_CONTRIB: Final = "com.microsoft"

Attribute = int | float | Sequence[int] | str


def integer(number: int, value: int) -> bytes:
    """Return one varint field of a protocol buffer."""
    return _varint(number << 3) + _varint(value & (1 << 64) - 1)


def block(number: int, value: bytes | str) -> bytes:
    """Return one length-delimited field of a protocol buffer."""
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


class Graph:
    """A graph that is put together node by node; each method returns the name of what it computes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._count = 0

    def constant(self, value: NDArray[np.generic]) -> str:
        """Add a tensor of the model's own."""
        name = self._name("c")
        dims = b"".join(integer(1, size) for size in value.shape)
        kind = integer(2, _KINDS[str(value.dtype)])
        self._parts.append(block(5, dims + kind + block(8, name) + block(9, np.ascontiguousarray(value).tobytes())))
        return name

    def ints(self, *values: int) -> str:
        """Add a vector of integers, as shapes and axes are."""
        return self.constant(np.array(values, dtype=np.int64))

    def node(self, kind: str, *inputs: str, contrib: bool = False, called: str | None = None, **how: Attribute) -> str:
        """Add an operation."""
        output = self._name("n") if called is None else called
        wired = b"".join(block(1, name) for name in inputs) + block(2, output) + block(4, kind)
        wired += b"".join(block(5, _attribute(name, value)) for name, value in how.items())
        self._parts.append(block(1, wired + (block(7, _CONTRIB) if contrib else b"")))
        return output

    def model(self, inputs: Iterable[str], outputs: Mapping[str, int], *, opset: int) -> bytes:
        """Return the file: inputs are integers by text and token; outputs, with their rank, are 32-bit floats."""
        body = [*self._parts, block(2, "encoder")]
        body += [block(11, _described(name, _KINDS["int64"], 2)) for name in inputs]
        body += [block(12, _described(name, _FLOAT, rank)) for name, rank in outputs.items()]
        sets = block(8, integer(2, opset)) + block(8, block(1, _CONTRIB) + integer(2, 1))
        return integer(1, 8) + block(7, b"".join(body)) + sets

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, int):
        return block(1, name) + integer(3, value) + integer(20, 2)
    if isinstance(value, float):
        return block(1, name) + _varint(2 << 3 | 5) + np.float32(value).tobytes() + integer(20, 1)
    if isinstance(value, str):
        return block(1, name) + block(4, value) + integer(20, 3)
    return block(1, name) + b"".join(integer(8, one) for one in value) + integer(20, 7)


def _described(name: str, kind: int, rank: int) -> bytes:
    shape = b"".join(block(1, block(2, f"{name}_{axis}")) for axis in range(rank))
    return block(1, name) + block(2, block(1, integer(1, kind) + block(2, shape)))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))
