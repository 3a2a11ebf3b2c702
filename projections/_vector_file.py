"""
Sealed vectors, kept by memory and model, so that a rebuild embeds nothing again and a forget rewrites nothing.

    header   b"MNVECT1\\n", u16 dimension, 32 bytes BLAKE3 of the model id
    record   16 bytes memory id, u32 key slot, 12 bytes nonce, 16 bytes commitment, sealed float16 vector

A vector is sealed under a key derived from its memory's own, and is unreadable from the moment that key is destroyed.
Records have one size; a torn one at the end is cut before the next is appended.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from pathlib import Path
from typing import Final

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from muniment.events import open_blob, seal_blob

_MAGIC: Final = b"MNVECT1\n"
_PREFIX: Final = struct.Struct(">16sI12s")
_SEAL_BYTES: Final = 32
_BESIDE: Final = ".anew"
SlotKey = Callable[[int], bytes | None]
"""The key of a slot, or None once it was destroyed. A vector sealed under what took its place could be read again."""


class VectorFile:
    """The vectors of one model in one store."""

    def __init__(self, directory: Path, model_id: str, dim: int, slot_key: SlotKey) -> None:
        self._model = blake3(model_id.encode()).digest()
        self._path = directory / f"vectors-{self._model.hex()[:16]}.bin"
        self._dim, self._slot_key = dim, slot_key
        self._head = _MAGIC + struct.pack(">H", dim) + self._model
        self._record_bytes = _PREFIX.size + 2 * dim + _SEAL_BYTES

    @property
    def path(self) -> Path:
        """Where the vectors are."""
        return self._path

    def load(self) -> dict[bytes, NDArray[np.float32]]:
        """Return the vectors that still open, by memory id; a later record of a memory replaces an earlier one."""
        return {identity: vector for identity, vector, _ in self._records()}

    def ids(self) -> set[bytes]:
        """Return the memories whose vectors still open."""
        return {identity for identity, _, _ in self._records()}

    def beside(self) -> VectorFile:
        """Return the file in which vectors of the same model are made anew."""
        made = copy(self)
        made._path = self._path.with_suffix(_BESIDE)
        return made

    def replace_by(self, other: VectorFile) -> None:
        """Put what was made beside in this one's place, at once, with what came here meanwhile."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Whoever is about to append waits, and finds the new file.
            fcntl.flock(fd, fcntl.LOCK_EX)
            made = other.ids()
            with other._path.open("ab") as file:
                file.writelines(record for identity, _, record in self._records() if identity not in made)
            other._path.replace(self._path)
        finally:
            os.close(fd)

    def _records(self) -> Iterator[tuple[bytes, NDArray[np.float32], bytes]]:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return
        if not data.startswith(self._head):
            return
        for at in range(len(self._head), len(data) - self._record_bytes + 1, self._record_bytes):
            identity, slot, nonce = _PREFIX.unpack_from(data, at)
            key = self._key(slot)
            if key is None:
                continue
            sealed = data[at + _PREFIX.size : at + self._record_bytes]
            plain = open_blob(key, nonce, sealed, self._context(identity))
            if plain is not None:
                record = data[at : at + self._record_bytes]
                yield identity, np.frombuffer(plain, dtype="<f2").astype(np.float32), record

    def append(self, vectors: Iterable[tuple[bytes, int, NDArray[np.float32]]]) -> None:
        """Keep (memory id, key slot, vector) records of what still has a key; not synced: a lost one is made again."""
        records = b"".join(self._format(identity, slot, vector) for identity, slot, vector in vectors)
        if not records:
            return
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        fd = _locked(self._path)
        try:
            size = os.fstat(fd).st_size
            if size < len(self._head) or os.pread(fd, len(self._head), 0) != self._head:
                os.ftruncate(fd, 0)
                os.write(fd, self._head)
            else:
                os.ftruncate(fd, size - (size - len(self._head)) % self._record_bytes)
            os.write(fd, records)
        finally:
            os.close(fd)

    def _format(self, identity: bytes, slot: int, vector: NDArray[np.float32]) -> bytes:
        key = self._key(slot)
        if key is None:
            return b""
        nonce = os.urandom(12)
        plain = vector.astype("<f2").tobytes()
        return _PREFIX.pack(identity, slot, nonce) + seal_blob(key, nonce, plain, self._context(identity))

    def _key(self, slot: int) -> bytes | None:
        key = self._slot_key(slot)
        return None if key is None else blake3(key, derive_key_context="muniment 2026 vector v1").digest()

    def _context(self, identity: bytes) -> bytes:
        return b"vector" + self._model + identity


def remove_vectors(directory: Path, *, keep: Path) -> None:
    """Remove the vectors of all models, finished or not, but those in one file."""
    for path in directory.glob("vectors-*"):
        if path != keep:
            path.unlink(missing_ok=True)


def remove_unfinished_vectors(directory: Path) -> None:
    """Remove what was to take the place of other vectors, and was never finished."""
    for path in directory.glob(f"vectors-*{_BESIDE}"):
        path.unlink(missing_ok=True)


def _locked(path: Path) -> int:
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            return fd
        os.close(fd)  # it was replaced while we waited


def rounded(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors as they will be read back, so that a fresh one and a kept one score the same."""
    return vectors.astype("<f2").astype(np.float32)
