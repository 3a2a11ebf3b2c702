"""Many closed pieces of a word index, asked as one: what was asked of all of them once is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ._postings import Numbers
from ._words import PREFIX_BYTES, PackedWords, WordIndex, WordStats, shares

KEPT_AT_LEAST: Final = 1 << 22
KEPT_PER_ROW: Final = 8
"""Entries of lists, for each row, that are kept, of eight bytes each; those asked for longest ago are dropped first."""
_PER_LIST: Final = 32
"""What a list itself takes, in entries; most terms are rare."""
_NEAR: Final = 1.02
Lists = tuple[NDArray[np.int32], NDArray[np.int32]]


class JoinedWords:
    """
    The words of consecutive pieces. It answers as one index of all would.

    Asking every piece for a term takes a search in each; a store of a million memories has hundreds. A piece changes
    by being taken out and put back, so that one change is not paid for with all pieces.
    """

    def __init__(self, parts: Sequence[PackedWords]) -> None:
        self.parts: list[PackedWords] = []
        self._firsts = [0]
        self.rows = 0
        self._all_lengths: NDArray[np.int32] | None = None
        self._totals: WordStats | None = None
        self._vocabulary: _Vocabulary | None = None
        self._kept: dict[str, Lists] = {}
        self._size = 0
        self._most: dict[str, tuple[float, float]] = {}
        """Of terms whose lists are kept, for which mean their highest share was found, and the share."""
        for part in parts:
            self._add(part)

    def append(self, part: PackedWords) -> None:
        """Take in the piece that follows."""
        first = self.rows
        self._add(part)
        if self._vocabulary is not None:
            self._vocabulary.append(part)
        if self._all_lengths is not None:
            self._all_lengths = np.concatenate((self._all_lengths, part.lengths(np.arange(part.rows))))
        alone = _Vocabulary([part])
        for term, (rows, counts) in self._kept.items():
            _, more, often = alone.lists_of(term)
            if more:
                more_rows, more_counts = more[0].astype(np.int32) + np.int32(first), often[0].astype(np.int32)
                self._kept[term] = np.concatenate((rows, more_rows)), np.concatenate((counts, more_counts))
                self._size += len(more_rows)
        self._most.clear()

    def pop(self) -> None:
        """Let go of the last piece."""
        self.parts.pop()
        self._firsts.pop()
        self.rows = self._firsts[-1]
        self._totals = None
        if self._vocabulary is not None:
            self._vocabulary.pop()
        if self._all_lengths is not None:
            self._all_lengths = self._all_lengths[: self.rows].copy()
        for term, (rows, counts) in list(self._kept.items()):
            cut = int(np.searchsorted(rows, self.rows))
            self._keep(term, rows[:cut].copy(), counts[:cut].copy())

    def erase(self, number: int, row: int) -> None:
        """Drop what a row of a piece left here; the piece has no terms until it is put back without the row."""
        at = self._firsts[number] + row
        self.parts[number] = _EMPTY
        self._totals = None
        if self._vocabulary is not None:
            self._vocabulary.wipe(number)
        if self._all_lengths is not None:
            self._all_lengths[at] = 0
        for term, (rows, counts) in list(self._kept.items()):
            place = int(np.searchsorted(rows, at))
            if place < len(rows) and rows[place] == at:
                self._keep(term, np.delete(rows, place), np.delete(counts, place))

    def put_back(self, number: int, part: PackedWords) -> None:
        """Put a piece in its place again, after rows of it were erased."""
        self.parts[number] = part
        self._totals = None
        if self._vocabulary is not None:
            self._vocabulary.put(number, part)

    def _add(self, part: PackedWords) -> None:
        self.parts.append(part)
        self.rows += part.rows
        self._firsts.append(self.rows)
        self._totals = None

    def _keep(self, term: str, rows: NDArray[np.int32], counts: NDArray[np.int32]) -> None:
        self._size -= len(self._kept[term][0]) - len(rows)
        self._kept[term] = rows, counts
        if not len(rows):
            # The term itself may be what an erased row said.
            del self._kept[term]
            self._most.pop(term, None)
            self._size -= _PER_LIST

    def statistics(self, terms: Sequence[str], upto: int) -> WordStats:
        """Return the statistics of the live rows below `upto`."""
        if upto < self.rows:
            total = self._counted(upto)
        else:
            total = self._totals = self._totals or self._counted(self.rows)
        found_in = tuple(len(self.postings(term, upto)[0]) for term in terms)
        return WordStats(total.rows, total.length, found_in)

    def holders(self, term: str, upto: int) -> NDArray[np.int32]:
        """Return the rows below `upto` that hold a term or a mark, ascending."""
        return self.postings(term, upto)[0]

    def lengths(self, rows: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int32]:
        """Return how many tokens each row has."""
        return self._lengths[rows]

    def postings(self, term: str, upto: int) -> Lists:
        """Return the rows below `upto` that hold a term, ascending, and how often each does."""
        # What was asked for last is dropped last.
        found = self._kept.pop(term, None)
        if found is None:
            # What nobody holds is kept too: most terms that a question is asked for as a name are nobody's.
            found = self._gathered(term)
            self._size += len(found[0]) + _PER_LIST
            while self._kept and self._size > max(KEPT_AT_LEAST, KEPT_PER_ROW * self.rows):
                oldest = next(iter(self._kept))
                self._size -= len(self._kept.pop(oldest)[0]) + _PER_LIST
                self._most.pop(oldest, None)
        self._kept[term] = found
        rows, counts = found
        if upto < self.rows and len(rows) and rows[-1] >= upto:
            cut = int(np.searchsorted(rows, upto))
            return rows[:cut], counts[:cut]
        return found

    def most(self, term: str, mean: float) -> float:
        """
        Return above which share of its weight no row's score for a term is; `mean` is that of all lengths.

        A share rises with the mean, by no more than the mean does, so what was found for one mean serves near it.
        """
        at, share = self._most.get(term, (0.0, 0.0))
        if not at or not 1 / _NEAR <= mean / at <= _NEAR:
            rows, counts = self.postings(term, self.rows)
            at, share = mean, float(shares(counts, self._lengths[rows], mean).max(initial=0))
            self._most[term] = at, share
        return min(1.0, share * max(1.0, mean / at))

    def _gathered(self, term: str) -> Lists:
        if self._vocabulary is None:
            self._vocabulary = _Vocabulary(self.parts)
        numbers, rows, counts = self._vocabulary.lists_of(term)
        if not rows:
            return _NOTHING
        firsts = np.repeat([self._firsts[n] for n in numbers], [len(each) for each in rows]).astype(np.int32)
        return np.concatenate(rows).astype(np.int32) + firsts, np.concatenate(counts).astype(np.int32)

    @property
    def _lengths(self) -> NDArray[np.int32]:
        if self._all_lengths is None:
            lengths = [part.lengths(np.arange(part.rows)) for part in self.parts]
            self._all_lengths = np.concatenate([np.zeros(0, np.int32), *lengths])
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
        self._parts = list(parts)
        prefixes = [part.prefixes() for part in parts]
        self._prefixes = np.concatenate([*prefixes, np.zeros(1, np.uint64)])
        self._bounds = np.append(0, np.cumsum([len(each) for each in prefixes], dtype=np.int64))
        self._sizes = np.concatenate([*(part.sizes() for part in parts), np.zeros(1, np.int32)])
        # One more than terms for each piece: where its first list starts.
        self._edges = np.concatenate([np.zeros(0, np.int32), *(part.edges for part in parts)])

    def append(self, part: PackedWords) -> None:
        """Take in a piece after the last one."""
        end = int(self._bounds[-1])
        self._bounds = np.append(self._bounds, end)
        self._edges = np.append(self._edges, np.int32(0))
        self._parts.append(part)
        self.put(len(self._parts) - 1, part)

    def pop(self) -> None:
        """Let go of the last piece."""
        self._splice(len(self._parts) - 1, np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.int32))
        self._parts.pop()
        self._bounds = self._bounds[:-1].copy()

    def put(self, number: int, part: PackedWords) -> None:
        """Put a piece in the place of another."""
        self._parts[number] = part
        self._splice(number, part.prefixes(), part.sizes(), part.edges)

    def wipe(self, number: int) -> None:
        """Leave nothing of a piece but its place."""
        self._parts[number] = _EMPTY
        low, high = self._bounds[number : number + 2]
        self._prefixes[low:high] = 0
        self._sizes[low:high] = 0

    def _splice(
        self, number: int, prefixes: NDArray[np.uint64], sizes: NDArray[np.int32], edges: NDArray[np.int32]
    ) -> None:
        low, high = self._bounds[number : number + 2].tolist()
        self._prefixes = np.concatenate((self._prefixes[:low], prefixes, self._prefixes[high:]))
        self._sizes = np.concatenate((self._sizes[:low], sizes, self._sizes[high:]))
        self._edges = np.concatenate((self._edges[: low + number], edges, self._edges[high + number + 1 :]))
        self._bounds[number + 1 :] += len(prefixes) - (high - low)

    def lists_of(self, term: str) -> tuple[list[int], list[Numbers], list[Numbers]]:
        """Return the numbers of the pieces that have the term, in order, and of each its rows and counts."""
        sought = term.encode()
        wanted = np.uint64(int.from_bytes(sought[:PREFIX_BYTES].ljust(PREFIX_BYTES, b"\0"), "big"))
        ends = self._bounds[1:]
        low, high = self._bounds[:-1], ends
        while (open_ := low < high).any():
            middle = (low + high) >> 1
            before = self._prefixes[middle] < wanted
            low = np.where(open_ & before, middle + 1, low)
            high = np.where(open_ & ~before, middle, high)
        there = np.flatnonzero((low < ends) & (self._prefixes[low] == wanted))
        if len(sought) <= PREFIX_BYTES:
            # Of the terms that begin so the shortest comes first, and only one is no longer than what was compared.
            there = there[self._sizes[low[there]] == len(sought)]
            edges = low[there] + there
            starts, ends = self._edges[edges].tolist(), self._edges[edges + 1].tolist()
            numbers = there.tolist()
            lists = [self._parts[n].lists(start, end) for n, start, end in zip(numbers, starts, ends, strict=True)]
        else:
            at = (low - self._bounds[:-1])[there].tolist()
            found = zip(there.tolist(), at, strict=True)
            every = [(number, self._parts[number].postings_from(place, sought)) for number, place in found]
            numbers = [number for number, (rows, _) in every if len(rows)]
            lists = [pair for _, pair in every if len(pair[0])]
        return numbers, [rows for rows, _ in lists], [counts for _, counts in lists]


_EMPTY: Final = PackedWords(WordIndex().dump())
_NOTHING: Final[Lists] = (np.zeros(0, np.int32), np.zeros(0, np.int32))
