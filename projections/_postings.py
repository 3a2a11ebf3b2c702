"""Where each term occurs: one sorted list of rows a term, all of them in two arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Numbers: TypeAlias = Ints | NDArray[np.int64] | NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]
Number = TypeVar("Number", np.int32, np.int64)

_EMPTY = np.int32(-1)  # what a cell holds that no posting uses; never a row
_FIRST_CAPACITY = 1  # most terms occur once


class Postings:
    """
    Rows and counts by term id, appended in row order.

    Each list has a region of the pool, doubled when full; the region it leaves is wiped and given to another list. So
    an append costs amortised constant time, and nothing of what was taken out stays in memory.
    """

    def __init__(self) -> None:
        self._rows: Ints = np.full(1024, _EMPTY, dtype=np.int32)
        self._counts: Ints = np.zeros(1024, dtype=np.int32)
        self._used = 0
        self._free: dict[int, list[int]] = {}
        self._start = np.zeros(256, dtype=np.int64)
        self._length = np.zeros(256, dtype=np.int64)
        self._capacity = np.zeros(256, dtype=np.int64)
        self.lists = 0

    @classmethod
    def packed(cls, lengths: Numbers, rows: Numbers, counts: Numbers) -> Postings:
        """Return the postings whose lists lie one after the other in `rows` and `counts`, which are copied."""
        made = cls()
        made._rows, made._counts, made._used = rows.astype(np.int32), counts.astype(np.int32), len(rows)
        made._length, made._capacity = lengths.astype(np.int64), lengths.astype(np.int64)
        made._start = np.cumsum(lengths, dtype=np.int64) - made._length
        made.lists = len(lengths)
        return made

    def new_lists(self, count: int) -> None:
        """Add that many empty lists; their ids are the numbers that follow the last one."""
        needed = self.lists + count
        if needed > len(self._start):
            self._start, self._length, self._capacity = (
                _grown(array, needed, 0) for array in (self._start, self._length, self._capacity)
            )
        self.lists = needed

    def append(self, terms: NDArray[np.int64], rows: Ints, counts: Ints) -> None:
        """Append one posting for each triple; `terms` ascends, and so do the rows of each term."""
        if not len(terms):
            return
        firsts = np.flatnonzero(np.concatenate(([True], terms[1:] != terms[:-1])))
        distinct = terms[firsts]
        added = np.diff(np.append(firsts, len(terms)))
        needed = self._length[distinct] + added
        for i in np.flatnonzero(needed > self._capacity[distinct]):
            self._move(int(distinct[i]), int(needed[i]))
        offsets = np.arange(len(terms)) - np.repeat(firsts, added)
        cells = np.repeat(self._start[distinct] + self._length[distinct], added) + offsets
        self._rows[cells] = rows
        self._counts[cells] = counts
        self._length[distinct] = needed

    def append_row(self, row: int, counts: Mapping[int, int]) -> None:
        """Append one posting of a row for each of a few terms; the same as `append`, without an array for each step."""
        for term, count in counts.items():
            held = int(self._length[term])
            if held == self._capacity[term]:
                self._move(term, held + 1)
            cell = int(self._start[term]) + held
            self._rows[cell], self._counts[cell] = row, count
            self._length[term] = held + 1

    def of(self, term: int, upto: int) -> tuple[Ints, Ints]:
        """Return views of the term's rows below `upto` and its counts there."""
        start = self._start[term]
        rows = self._rows[start : start + self._length[term]]
        if len(rows) and rows[-1] >= upto:
            rows = rows[: np.searchsorted(rows, upto)]
        return rows, self._counts[start : start + len(rows)]

    def erase(self, row: int) -> list[int]:
        """Take the row out of every list and return the terms whose list is empty now."""
        cells = np.flatnonzero(self._rows[: self._used] == row)
        # Lists with room, in pool order: the last one that starts at or before a cell owns it.
        live = np.flatnonzero(self._capacity[: self.lists])
        order = live[np.argsort(self._start[live], kind="stable")]
        owners = order[np.searchsorted(self._start[order], cells, side="right") - 1]
        emptied: list[int] = []
        for cell, term in zip(cells.tolist(), owners.tolist(), strict=True):
            end = int(self._start[term] + self._length[term])
            for array, blank in ((self._rows, _EMPTY), (self._counts, np.int32(0))):
                array[cell : end - 1] = array[cell + 1 : end].copy()
                array[end - 1] = blank
            self._length[term] -= 1
            if self._length[term] == 0:
                self._release(term)
                emptied.append(term)
        return emptied

    def pack(self, order: Sequence[int] | NDArray[np.int64]) -> tuple[NDArray[np.int64], Ints, Ints]:
        """Return lengths, rows and counts of the lists in that order, one after the other."""
        ids = np.asarray(order, dtype=np.int64)
        lengths = self._length[ids]
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        cells = np.repeat(self._start[ids] - (ends - lengths), lengths) + np.arange(total)
        return lengths, self._rows[cells], self._counts[cells]

    def _move(self, term: int, needed: int) -> None:
        size = max(_FIRST_CAPACITY, 1 << (needed - 1).bit_length())
        target = self._region(size)
        start, length = int(self._start[term]), int(self._length[term])
        if self._capacity[term]:
            self._rows[target : target + length] = self._rows[start : start + length]
            self._counts[target : target + length] = self._counts[start : start + length]
            self._release(term)
        self._start[term], self._capacity[term], self._length[term] = target, size, length

    def _region(self, size: int) -> int:
        free = self._free.get(size)
        if free:
            return free.pop()
        start = self._used
        if start + size > len(self._rows):
            self._rows = _grown(self._rows, start + size, -1)
            self._counts = _grown(self._counts, start + size, 0)
        self._used += size
        return start

    def _release(self, term: int) -> None:
        start, capacity = int(self._start[term]), int(self._capacity[term])
        self._rows[start : start + capacity] = _EMPTY
        self._counts[start : start + capacity] = 0
        self._start[term] = self._length[term] = self._capacity[term] = 0
        while capacity:
            # Packed lists have any length: their region is given away in pieces of a power of two.
            size = 1 << (capacity.bit_length() - 1)
            self._free.setdefault(size, []).append(start)
            start, capacity = start + size, capacity - size


def _grown(array: NDArray[Number], needed: int, blank: int) -> NDArray[Number]:
    grown = np.full(max(needed, len(array) * 3 // 2), blank, dtype=array.dtype)
    grown[: len(array)] = array
    return grown
