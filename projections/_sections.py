"""
Sections: named runs of bytes in one sealed file, each unsealed when it is first asked for, a chunk at a time.

     0  8     b"MNSNAP1\\0"
     8  16    commitment to the key
    24        chunks of at most 64 KiB, sealed: 16 bytes longer. A section begins with a chunk of its own
              directory, sealed: {name: (first chunk, offset of it, length of the section)}
   -12  u64   offset of the directory
    -4  u32   length of the directory as it lies there

Integers outside the seals are big-endian, numbers in sections little-endian. A key seals one file and is never used
again, so chunk n has nonce n, and the directory the largest nonce.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol, TypeAlias, TypeVar

import msgspec
import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from muniment.events import ProjectionStale, duplicate, open_file
from muniment.events._seal import TAG_BYTES, commitment

CHUNK_BYTES: Final = 64 << 10
_MAGIC: Final = b"MNSNAP1\0"
_CONTEXT: Final = b"S" + _MAGIC
_HEAD_BYTES: Final = len(_MAGIC) + 16
_TRAILER: Final = struct.Struct(">QI")
_LAST_NONCE: Final = b"\xff" * 12
_CHUNKS_KEPT: Final = 256

Number = TypeVar("Number", np.uint8, np.uint32, np.uint64, np.int64)
Buffer: TypeAlias = bytes | bytearray | memoryview
Written: TypeAlias = Iterable[tuple[str, Iterable[Buffer]]]
"""Sections on their way out: each a name and its bytes, in pieces of any size."""


class Sections(Protocol):
    """Where sections are read from."""

    def array(self, name: str, kind: type[Number]) -> NDArray[Number]:
        """Return a whole section as numbers; empty when there is no such section."""
        ...

    def between(self, name: str, start: int, end: int) -> bytes:
        """Return some bytes of a section."""
        ...

    def again(self) -> Sections:
        """Return the same sections for another thread: one object serves one thread at a time."""
        ...


class PlainSections:
    """Sections in memory."""

    def __init__(self, written: Written = ()) -> None:
        self._data = {name: b"".join(pieces) for name, pieces in written}

    def array(self, name: str, kind: type[Number]) -> NDArray[Number]:
        """Return a whole section as numbers; empty when there is no such section."""
        return np.frombuffer(self._data.get(name, b""), kind)

    def between(self, name: str, start: int, end: int) -> bytes:
        """Return some bytes of a section."""
        return self._data.get(name, b"")[start:end]

    def again(self) -> Sections:
        """Return these: they never change."""
        return self


class SealedSections:
    """
    Sections of one sealed file, which may be renamed or removed while this is in use.

    Everything raises ProjectionStale when the bytes are not those that were written.
    """

    def __init__(self, path: Path, key: bytes, *, fd: int | None = None) -> None:
        """Open a file, or read on from a descriptor of it, which then belongs to this."""
        self._path, self._key = path, key
        self._cipher, self._name = AESGCM(key), path.name
        self._chunks: dict[int, bytes] = {}
        self._fd = -1
        try:
            self._fd = open_file(path, os.O_RDONLY) if fd is None else fd
            self._size = os.fstat(self._fd).st_size
        except OSError as error:
            raise ProjectionStale(name=self._name, detail=str(error)) from error
        if self._read(0, _HEAD_BYTES) != _MAGIC + commitment(key):
            raise self._stale("another key, or no snapshot")
        offset, length = _TRAILER.unpack(self._read(self._size - _TRAILER.size, _TRAILER.size))
        sealed = self._read(offset, length)
        plain = bytearray(max(0, length - TAG_BYTES))
        self._unseal(_LAST_NONCE, sealed, memoryview(plain))
        self._directory = _decode_directory(plain)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Release the file; nothing more can be read from it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def array(self, name: str, kind: type[Number]) -> NDArray[Number]:
        """Return a whole section as numbers; empty when there is no such section."""
        first, offset, length = self._directory.get(name, (0, 0, 0))
        found: NDArray[np.uint8] = np.empty(length, dtype=np.uint8)
        view = found.data
        for n, start in enumerate(range(0, length, CHUNK_BYTES)):
            end = min(start + CHUNK_BYTES, length)
            sealed = self._read(offset + n * (CHUNK_BYTES + TAG_BYTES), end - start + TAG_BYTES)
            self._unseal(_nonce(first + n), sealed, view[start:end])
        return found.view(kind)

    def between(self, name: str, start: int, end: int) -> bytes:
        """Return some bytes of a section."""
        first, offset, length = self._directory.get(name, (0, 0, 0))
        end = min(end, length)
        if start >= end:
            return b""
        number = start // CHUNK_BYTES
        if end <= (number + 1) * CHUNK_BYTES:
            at = number * CHUNK_BYTES
            return self._chunk(first, offset, length, number)[start - at : end - at]
        parts: list[bytes] = []
        while start < end:
            number = start // CHUNK_BYTES
            upto = min(end, (number + 1) * CHUNK_BYTES)
            at = number * CHUNK_BYTES
            parts.append(self._chunk(first, offset, length, number)[start - at : upto - at])
            start = upto
        return b"".join(parts)

    def again(self) -> Sections:
        """Return the same file for another thread, also when it was removed."""
        try:
            return SealedSections(self._path, self._key, fd=duplicate(self._fd, self._path))
        except OSError as error:
            raise self._stale(str(error)) from error

    def _chunk(self, first: int, offset: int, length: int, number: int) -> bytes:
        kept = self._chunks.pop(first + number, None)
        if kept is None:
            size = min(CHUNK_BYTES, length - number * CHUNK_BYTES)
            plain = bytearray(size)
            sealed = self._read(offset + number * (CHUNK_BYTES + TAG_BYTES), size + TAG_BYTES)
            self._unseal(_nonce(first + number), sealed, memoryview(plain))
            kept = bytes(plain)
            if len(self._chunks) >= _CHUNKS_KEPT:
                del self._chunks[next(iter(self._chunks))]
        self._chunks[first + number] = kept  # last again: the first is the one that was asked for longest ago
        return kept

    def _read(self, offset: int, length: int) -> bytes:
        if offset < 0 or offset + length > self._size:
            raise self._stale("it is short")
        data = os.pread(self._fd, length, offset)
        if len(data) != length:
            raise self._stale("it is short")
        return data

    def _unseal(self, nonce: bytes, sealed: bytes, into: memoryview) -> None:
        try:
            self._cipher.decrypt_into(nonce, sealed, _CONTEXT, into)
        except (InvalidTag, ValueError) as error:
            raise self._stale("a chunk does not unseal") from error

    def _stale(self, detail: str) -> ProjectionStale:
        return ProjectionStale(name=self._name, detail=detail)


class Repairing:
    """Sections that are made again when they turn out to be damaged: the answers stay the same."""

    def __init__(self, sections: Sections, repair: Callable[[], Sections]) -> None:
        self._sections, self._repair = sections, repair

    def array(self, name: str, kind: type[Number]) -> NDArray[Number]:
        """Return a whole section as numbers; empty when there is no such section."""
        try:
            return self._sections.array(name, kind)
        except ProjectionStale:
            self._sections = self._repair()
            return self._sections.array(name, kind)

    def between(self, name: str, start: int, end: int) -> bytes:
        """Return some bytes of a section."""
        try:
            return self._sections.between(name, start, end)
        except ProjectionStale:
            self._sections = self._repair()
            return self._sections.between(name, start, end)

    def again(self) -> Sections:
        """Return the same sections for another thread, made again as these are."""
        return Repairing(self._sections.again(), self._repair)


def write_sections(path: Path, key: bytes, written: Written) -> None:
    """Write a sealed file; the key must be fresh. Not durable: what is torn does not unseal, and is made again."""
    cipher = AESGCM(key)
    directory: dict[str, tuple[int, int, int]] = {}
    with path.open("wb") as file:
        file.write(_MAGIC + commitment(key))
        offset, number = _HEAD_BYTES, 0
        sealed = bytearray(CHUNK_BYTES + TAG_BYTES)
        for name, pieces in written:
            first, begin, length = number, offset, 0
            for chunk in _chunked(pieces):
                size = len(chunk) + TAG_BYTES
                view = memoryview(sealed)[:size]
                cipher.encrypt_into(_nonce(number), chunk, _CONTEXT, view)
                file.write(view)
                number, offset, length = number + 1, offset + size, length + len(chunk)
            directory[name] = (first, begin, length)
        last = cipher.encrypt(_LAST_NONCE, msgspec.msgpack.encode(directory), _CONTEXT)
        file.write(last + _TRAILER.pack(offset, len(last)))


def _chunked(pieces: Iterable[Buffer]) -> Iterator[Buffer]:
    waiting = bytearray()
    for piece in pieces:
        view = memoryview(piece).cast("B") if len(piece) else memoryview(b"")
        start = 0
        while len(waiting) + len(view) - start >= CHUNK_BYTES:
            taken = CHUNK_BYTES - len(waiting)
            if waiting:
                waiting += view[start : start + taken]
                yield waiting
                waiting = bytearray()
            else:
                yield view[start : start + taken]
            start += taken
        waiting += view[start:]
    if waiting:
        yield waiting


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "big")


def _decode_directory(plain: bytearray) -> Mapping[str, tuple[int, int, int]]:
    return _DIRECTORY.decode(plain)


_DIRECTORY: Final = msgspec.msgpack.Decoder(dict[str, tuple[int, int, int]])
