"""
The signs of kept vectors, saved by chunk, so that a large scope opens only the vectors that a question comes near to.

A chunk holds those of the memories of 4096 consecutive events, of all large scopes, under a key of its own, which the
forget of any of them destroys. They follow from the vectors alone: what is lost, or is of other vectors, is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ._recall import Partition, Recall
from ._sections import Sections, Written
from ._vector_file import KeptVectors
from ._vectors import SIGNS_FROM, Bits, VectorIndex

LAYOUT: Final = 1
SAVED_AT_ONCE: Final = 256
"""Chunks, a million memories: each is a file that stays open until all of them have keys. The others wait."""


class Signs(NamedTuple):
    """The signs of some vectors by the key slots of their memories, ascending: a line a word, a column a vector."""

    slots: NDArray[np.int64]
    bits: Bits

    def written(self, of: bytes) -> Written:
        """Return the sections that `read_signs` reads; `of` is the identity of the file that keeps the vectors."""
        yield "of", [of]
        yield "slots", [self.slots.astype("<u4").tobytes()]
        yield "signs", [self.bits.astype("<u8").tobytes()]

    def among(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Tell of each slot whether its signs are here, and in which column."""
        if not len(self.slots):
            return np.zeros(len(slots), np.bool_), np.zeros(len(slots), np.int64)
        columns = np.minimum(self.slots.searchsorted(slots), len(self.slots) - 1)
        return self.slots[columns] == slots, columns


def read_signs(sections: Sections, of: bytes) -> Signs | None:
    """Return what was saved; None where it is of vectors in another file."""
    if sections.between("of", 0, len(of) + 1) != of:
        return None
    slots = sections.array("slots", np.uint32).astype(np.int64)
    return Signs(slots, sections.array("signs", np.uint64).reshape(-1, max(len(slots), 1)))


class SignShelf(Protocol):
    """Where signs are saved."""

    def signs(self, chunk: int, of: bytes) -> Signs | None:
        """Return the saved signs of one chunk, of the vectors in one file; None when there are none."""
        ...


class _Found(NamedTuple):
    """What a process has of a scope in one chunk: how many rows have signs, and how many were erased."""

    known: int
    erased: int


class SavedSigns:
    """What is saved of the signs of one file's vectors, as one process uses it; its owner holds a lock."""

    def __init__(self, shelf: SignShelf, kept: KeptVectors, identity: Callable[[], bytes]) -> None:
        """`kept` are the vectors; `identity` tells the file they are in, empty while there is none."""
        self._shelf, self._kept, self._identity = shelf, kept, identity
        self._saved: dict[tuple[str, int], _Found] = {}
        self._written: dict[tuple[str, int], _Found] = {}

    def lend(self, partition: Partition, vectors: VectorIndex) -> None:
        """Put in the saved signs of rows that lack a vector which is kept; it is opened when somebody asks for it."""
        rows, of = vectors.missing(len(partition.rows)), self._identity()
        if not _is_large(partition) or not len(rows) or not of:
            return
        slots = partition.rows.numbers_of("slot", rows)
        kept = self._kept.holds(slots)
        if partition.erased:
            kept &= ~np.isin(rows, sorted(partition.erased))
        rows, slots = rows[kept], slots[kept]
        for chunk, (first, end, erased) in partition.words.states().items() if len(rows) else ():
            part = slice(rows.searchsorted(first), rows.searchsorted(end))
            signs = self._shelf.signs(chunk, of) if part.start < part.stop else None
            if signs is None:
                continue
            there, columns = signs.among(slots[part])
            bits = signs.bits[:, columns[there]]
            vectors.put_sealed(rows[part][there], slots[part][there], bits, self._kept.take)
            self._saved[partition.scope, chunk] = _Found(len(vectors.known(first, end)), erased)

    def unsaved(self, recall: Recall) -> Iterator[tuple[int, Written]]:
        """Yield the chunks whose saved signs are not those that are known, and what is to be saved; some at a time."""
        of = self._identity()
        large = [(p, p.vectors) for p in recall.loaded() if p.vectors is not None and _is_large(p)]
        parts: dict[int, list[tuple[Partition, NDArray[np.int64], VectorIndex]]] = {}
        found: dict[tuple[str, int], _Found] = {}
        changed: set[int] = set()
        for partition, vectors in large:
            for chunk, (first, end, erased) in partition.words.states().items():
                rows, at = vectors.known(first, end), (partition.scope, chunk)
                parts.setdefault(chunk, []).append((partition, rows, vectors))
                found[at] = _Found(len(rows), erased)
                if found[at] != self._saved.get(at, _Found(0, erased)):
                    changed.add(chunk)
        chosen = sorted(changed)[:SAVED_AT_ONCE] if of else []
        self._written = {at: state for at, state in found.items() if at[1] in set(chosen)}
        for chunk in chosen:
            yield chunk, self._joined(chunk, parts[chunk], of).written(of)

    def were_saved(self) -> None:
        """Learn that what was yielded last was saved."""
        self._saved |= self._written
        self._written = {}

    def _joined(self, chunk: int, parts: list[tuple[Partition, NDArray[np.int64], VectorIndex]], of: bytes) -> Signs:
        """Return what is in memory of a chunk, some rows of each scope, and what was saved of scopes that are not."""
        slots = [partition.rows.numbers_of("slot", rows) for partition, rows, _ in parts]
        bits = [vectors.signs(rows) for _, rows, vectors in parts]
        saved = self._shelf.signs(chunk, of)
        if saved is not None and saved.bits.shape[0] == bits[0].shape[0]:
            slots.append(saved.slots)
            bits.append(saved.bits)
        # Of equal slots the first, which is what memory has.
        distinct, at = np.unique(np.concatenate(slots), return_index=True)
        return Signs(distinct, np.concatenate(bits, axis=1)[:, at])


def _is_large(partition: Partition) -> bool:
    # In a smaller scope every vector is scored.
    return len(partition.rows) > SIGNS_FROM
