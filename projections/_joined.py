"""Many closed pieces of a word index, asked as one: what was asked of all of them once is kept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ._postings import Numbers
from ._words import PackedWords, WordIndex, WordStats, scores_of

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

    def __init__(self, parts: Sequence[WordIndex | PackedWords]) -> None:
        self._parts = parts
        self._firsts = [0, *accumulate(part.rows for part in parts)]
        self.rows = self._firsts[-1]
        self._all_lengths: NDArray[np.int32] | None = None
        self._totals: WordStats | None = None
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
        for part, first in zip(self._parts, self._firsts, strict=False):
            here, often = part.postings(term, part.rows)
            if len(here):
                rows.append(here.astype(np.int32) + np.int32(first))
                counts.append(often)
        if not rows:
            return _NOTHING
        return np.concatenate(rows), np.concatenate(counts).astype(np.int32)

    @property
    def _lengths(self) -> NDArray[np.int32]:
        if self._all_lengths is None:
            self._all_lengths = np.concatenate([part.lengths(np.arange(part.rows)) for part in self._parts])
        return self._all_lengths

    def _counted(self, upto: int) -> WordStats:
        total = WordStats(0, 0, ())
        for part, first in zip(self._parts, self._firsts, strict=False):
            if first >= upto:
                break
            total = total.plus(part.statistics((), upto - first))
        return total


_NOTHING: Final[Lists] = (np.zeros(0, np.int32), np.zeros(0, np.int32))
