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
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Final

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from muniment.events import names_in, open_blob, open_file, open_reading, read_file, seal_blob, typed

_MAGIC: Final = b"MNVECT1\n"
_PREFIX: Final = struct.Struct(">16sI12s")
_SEAL_BYTES: Final = 32
_ID_BYTES: Final = 16
_BESIDE: Final = ".anew"
_AT_ONCE: Final = 4_096
_SPREAD: Final = 4
"""Records to be read, for each that is asked for, up to which they are read in one go."""
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
        self._known = b""
        """How the file begins that was loaded, or appended to: its first record has a nonce of its own."""

    @property
    def path(self) -> Path:
        """Where the vectors are."""
        return self._path

    @property
    def identity(self) -> bytes:
        """What no other file of vectors begins with; empty while there is none."""
        return self._model + self._known if self._known else b""

    def load(self) -> KeptVectors:
        """Return what is in the file, still sealed; where the file is replaced later, what it was."""
        try:
            fd = open_file(self._path, os.O_RDONLY)
        except FileNotFoundError:
            self._known = b""
            return KeptVectors(None, len(self._head), self._dim, self._open)
        start = len(self._head) if os.pread(fd, len(self._head), 0) == self._head else os.fstat(fd).st_size
        self._known = os.pread(fd, _PREFIX.size, start)
        return KeptVectors(fd, start, self._dim, self._open)

    def is_replaced(self) -> bool:
        """Tell whether others made these vectors anew since they were loaded; not where they removed them all."""
        try:
            with open_reading(self._path) as file:
                data = file.read(len(self._head) + _PREFIX.size)
        except FileNotFoundError:
            return False
        found = data.removeprefix(self._head)
        return len(found) == _PREFIX.size and found != self._known

    def ids(self) -> set[bytes]:
        """Return the memories whose vectors still open."""
        return {identity for identity, _ in self._records()}

    def beside(self) -> VectorFile:
        """Return the file in which vectors of the same model are made anew."""
        made = copy(self)
        made._path, made._known = self._path.with_suffix(_BESIDE), b""
        return made

    def replace_by(self, other: VectorFile) -> None:
        """Put what was made beside in this one's place, at once, with what came here meanwhile."""
        with typed(self._path, self._path.name):
            fd = open_file(self._path, os.O_RDWR | os.O_CREAT)
            try:
                # Whoever is about to append waits, and finds the new file.
                fcntl.flock(fd, fcntl.LOCK_EX)
                made = other.ids()
                with other._path.open("ab") as file:
                    file.writelines(record for identity, record in self._records() if identity not in made)
                other._path.replace(self._path)
            finally:
                os.close(fd)

    def _records(self) -> Iterator[tuple[bytes, bytes]]:
        try:
            data = read_file(self._path)
        except FileNotFoundError:
            return
        if not data.startswith(self._head):
            return
        for at in range(len(self._head), len(data) - self._record_bytes + 1, self._record_bytes):
            record = data[at : at + self._record_bytes]
            if self._open(record) is not None:
                yield record[:_ID_BYTES], record

    def _open(self, record: bytes) -> bytes | None:
        identity, slot, nonce = _PREFIX.unpack_from(record)
        key = self._key(slot)
        return None if key is None else open_blob(key, nonce, record[_PREFIX.size :], self._context(identity))

    def append(self, vectors: Iterable[tuple[bytes, int, NDArray[np.float32]]]) -> None:
        """
        Keep (memory id, key slot, vector) records of what still has a key; not synced: a lost one is made again.

        Where others made the vectors anew since these were loaded, theirs stay.
        """
        made = [(v[0], record) for v in vectors if (record := self._format(*v))]
        if not made:
            return
        with typed(self._path, self._path.name):
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            fd = _locked(self._path)
            try:
                size = os.fstat(fd).st_size
                if size < len(self._head) or os.pread(fd, len(self._head), 0) != self._head:
                    os.ftruncate(fd, 0)
                    os.write(fd, self._head)
                else:
                    os.ftruncate(fd, size - (size - len(self._head)) % self._record_bytes)
                first = os.pread(fd, _PREFIX.size, len(self._head))
                theirs = self.ids() if first and first != self._known else set()
                os.write(fd, b"".join(record for identity, record in made if identity not in theirs))
                if not first or not self._known:
                    self._known = os.pread(fd, _PREFIX.size, len(self._head))
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


class KeptVectors:
    """
    The records of a file, by the key slots of their memories; what nobody asks for is neither read nor opened.

    A slot is one memory's for ever. A later record of it replaces an earlier one.
    """

    def __init__(self, fd: int | None, start: int, dim: int, open_record: Callable[[bytes], bytes | None]) -> None:
        """Take over a descriptor of the file, whose records begin at `start`; None has none."""
        self._fd, self._start, self._dim, self._open = fd, start, dim, open_record
        self._size = _PREFIX.size + 2 * dim + _SEAL_BYTES
        self._released = None if fd is None else weakref.finalize(self, os.close, fd)
        slots = self._slots_in_order()
        # Of equal slots the last: reversed, it is the first, which is what `unique` names.
        self._slots, last = np.unique(slots[::-1], return_index=True)
        self._numbers = len(slots) - 1 - last

    def __len__(self) -> int:
        return len(self._slots)

    def close(self) -> None:
        """Release the file; nothing more opens."""
        self._fd = None
        if self._released is not None:
            self._released()

    def holds(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which of these slots have a record, whether it opens or not."""
        return self._found(slots)[1]

    def take(self, slots: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Yield, some at a time, which of these slots have a vector that still opens, and their vectors."""
        near, held = self._found(slots)
        wanted = np.flatnonzero(held)
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            opened = [self._open(record) for record in self._read(self._numbers[near[part]].tolist())]
            found = np.array([plain is not None for plain in opened], np.bool_)
            vectors = np.frombuffer(b"".join(plain for plain in opened if plain is not None), "<f2")
            yield part[found], vectors.reshape(-1, self._dim).astype(np.float32)

    def _found(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if not len(self):
            return np.zeros(len(slots), np.int64), np.zeros(len(slots), np.bool_)
        near = np.minimum(self._slots.searchsorted(slots), len(self) - 1)
        return near, self._slots[near] == slots

    def _slots_in_order(self) -> NDArray[np.int64]:
        if self._fd is None:
            return np.zeros(0, np.int64)
        layout = np.dtype({"names": ["slot"], "formats": [">u4"], "offsets": [16], "itemsize": self._size})
        count = (os.fstat(self._fd).st_size - self._start) // self._size
        slots = np.zeros(count, np.int64)
        for first in range(0, count, _AT_ONCE):
            records = self._between(first, min(first + _AT_ONCE, count))
            slots[first : first + _AT_ONCE] = np.frombuffer(records, layout)["slot"]
        return slots

    def _read(self, numbers: Sequence[int]) -> Iterator[bytes]:
        if not numbers:
            return
        size, first, end = self._size, min(numbers), max(numbers) + 1
        if end - first > _SPREAD * len(numbers):
            for number in numbers:
                yield self._between(number, number + 1)
            return
        records = self._between(first, end)
        for number in numbers:
            yield records[(number - first) * size : (number - first + 1) * size]

    def _between(self, first: int, end: int) -> bytes:
        size = (end - first) * self._size
        data = b"" if self._fd is None else os.pread(self._fd, size, self._start + first * self._size)
        # Somebody has cut the file since: what is not there opens as nothing.
        return data.ljust(size, b"\0")


def remove_vectors(directory: Path, *, keep: Path) -> None:
    """Remove the vectors of all models, finished or not, but those in one file."""
    for name in names_in(directory, "vectors-*"):
        if name != keep.name:
            (directory / name).unlink(missing_ok=True)


def remove_unfinished_vectors(directory: Path) -> None:
    """Remove what was to take the place of other vectors, and was never finished."""
    for name in names_in(directory, f"vectors-*{_BESIDE}"):
        (directory / name).unlink(missing_ok=True)


def _locked(path: Path) -> int:
    while True:
        fd = open_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            return fd
        os.close(fd)  # it was replaced while we waited


def rounded(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors as they will be read back, so that a fresh one and a kept one score the same."""
    return vectors.astype("<f2").astype(np.float32)
