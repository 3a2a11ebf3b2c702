"""Many closed pieces of a word index, asked as one: what was asked of all of them once is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ._postings import Numbers
from ._words import PackedWords, WordStats, scores_of

MOST_KEPT: Final = 1 << 22
"""Entries of lists that are kept before all are dropped: about 24 MB."""
_PER_LIST: Final = 32
"""What a list itself takes, in entries; most terms are rare."""
Lists = tuple[NDArray[np.int32], NDArray[np.int32]]


class JoinedWords:
    """
    The words of consecutive pieces, none of which changes while this is in use. It answers as one index of all would.

    Asking every piece for a term takes a search in each; a store of a million memories has hundreds.
    """

    def __init__(self, parts: Sequence[PackedWords]) -> None:
        self.parts = parts
        self._firsts = [0, *accumulate(part.rows for part in parts)]
        self.rows = self._firsts[-1]
        self._all_lengths: NDArray[np.int32] | None = None
        self._totals: WordStats | None = None
        self._vocabulary: _Vocabulary | None = None
        self._kept: dict[str, Lists] = {}
        self._size = 0

    def statistics(self, terms: Sequence[str], upto: int) -> WordStats:
        """Return the statistics of the live rows below `upto`."""
        if upto < self.rows:
            total = self._counted(upto)
        else:
            total = self._totals = self._totals or self._counted(self.rows)
        found_in = tuple(len(self.postings(term, upto)[0]) for term in terms)
        return WordStats(total.rows, total.length, found_in)

    def scores(
        self, terms: Sequence[str], stats: WordStats, upto: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the rows below `upto` that hold any of the terms, ascending, and their BM25 scores."""
        postings = {term: found for term in terms if len((found := self.postings(term, upto))[0])}
        return scores_of(postings, terms, stats, self._lengths[: min(upto, self.rows)])

    def holders(self, term: str, upto: int) -> NDArray[np.int32]:
        """Return the rows below `upto` that hold a term or a mark, ascending."""
        return self.postings(term, upto)[0]

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return how many tokens each row has."""
        return self._lengths[rows]

    def postings(self, term: str, upto: int) -> Lists:
        """Return the rows below `upto` that hold a term, ascending, and how often each does."""
        found = self._kept.get(term)
        if found is None:
            found = self._kept[term] = self._gathered(term)
            self._size += len(found[0]) + _PER_LIST
            if self._size > MOST_KEPT:
                self._kept, self._size = {term: found}, len(found[0]) + _PER_LIST
        rows, counts = found
        if upto < self.rows and len(rows) and rows[-1] >= upto:
            cut = int(np.searchsorted(rows, upto))
            return rows[:cut], counts[:cut]
        return found

    def _gathered(self, term: str) -> Lists:
        rows: list[NDArray[np.int32]] = []
        counts: list[Numbers] = []
        if self._vocabulary is None:
            self._vocabulary = _Vocabulary(self.parts)
        for number, here, often in self._vocabulary.lists_of(term):
            rows.append(here.astype(np.int32) + np.int32(self._firsts[number]))
            counts.append(often)
        if not rows:
            return _NOTHING
        return np.concatenate(rows), np.concatenate(counts).astype(np.int32)

    @property
    def _lengths(self) -> NDArray[np.int32]:
        if self._all_lengths is None:
            self._all_lengths = np.concatenate([part.lengths(np.arange(part.rows)) for part in self.parts])
        return self._all_lengths

    def _counted(self, upto: int) -> WordStats:
        total = WordStats(0, 0, ())
        for part, first in zip(self.parts, self._firsts, strict=False):
            if first >= upto:
                break
            total = total.plus(part.totals(upto - first))
        return total


class _Vocabulary:
    """The terms of all pieces, searched in all of them at once; they are kept apart by their first eight bytes."""

    def __init__(self, parts: Sequence[PackedWords]) -> None:
        self._parts = parts
        prefixes = [part.prefixes() for part in parts]
        self._prefixes = np.concatenate([*prefixes, np.zeros(1, np.uint64)])
        self._bounds = np.append(0, np.cumsum([len(each) for each in prefixes], dtype=np.int64))

    def lists_of(self, term: str) -> Iterator[tuple[int, Numbers, Numbers]]:
        """Yield (number of the piece, rows, counts) of each piece that has the term, in order."""
        sought = term.encode()
        wanted = np.uint64(int.from_bytes(sought[:8].ljust(8, b"\0"), "big"))
        ends = self._bounds[1:]
        low, high = self._bounds[:-1], ends
        while (open_ := low < high).any():
            middle = (low + high) >> 1
            before = self._prefixes[middle] < wanted
            low = np.where(open_ & before, middle + 1, low)
            high = np.where(open_ & ~before, middle, high)
        for number in np.flatnonzero((low < ends) & (self._prefixes[low] == wanted)).tolist():
            rows, counts = self._parts[number].postings_from(int(low[number] - self._bounds[number]), sought)
            if len(rows):
                yield number, rows, counts


_NOTHING: Final[Lists] = (np.zeros(0, np.int32), np.zeros(0, np.int32))
