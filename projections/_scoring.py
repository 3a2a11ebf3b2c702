"""
BM25 over the words of one scope: the best rows, without scoring those that cannot be, and the score of any row.

A score is a sum in single precision, the rarest term first, however it is come by. So it is bit by bit the same in a
small scope and in a large one, and whatever came after the point in time that is asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ._joined import JoinedWords
from ._words import K1, WordIndex, WordStats, shares, weight

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Bits = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Piece = tuple[JoinedWords | WordIndex, int]
"""Words of consecutive rows, and the first of them."""

MAX_COVERED: Final = 64
"""Terms of a question of which is told who holds them: one bit each."""
SCORED_WHOLE: Final = 1 << 16
"""Rows up to which each is scored: arrays as long as the scope cost less there than choosing."""
_LONG: Final = 2048
"""Rows of a term that are worth asking whether it can be left out."""
_SLACK: Final = np.float32(1 + 1e-4)
"""More than the order of a sum in single precision can make of its terms."""


class Seen(Protocol):
    """What the words say of some rows."""

    def scores(self, rows: Rows) -> Floats:
        """Return the BM25 score of each row; none for a negative one, which is nobody."""
        ...

    def held(self, rows: Rows) -> Bits:
        """Return which terms each row holds, the first one in the lowest bit."""
        ...


class Scores(Protocol):
    """The words of one scope, for one question, as of one point in time."""

    def best(self, offered: Mask, depth: int) -> tuple[Rows, Floats]:
        """Return the best rows among those offered that hold any term, in no order; of equals the lower."""
        ...

    def seen(self, lists: Sequence[Rows]) -> Seen:
        """Return what the words say of the rows in some lists."""
        ...


def score(pieces: Iterable[Piece], terms: Sequence[str], stats: WordStats, upto: int) -> Scores:
    """
    Return the scores of the rows below `upto`, all of whose words are in the pieces.

    `stats` is the sum of the statistics of all scopes that are asked together.
    """
    asked = _Asked(terms, stats)
    held = [each for piece, first in pieces if first < upto and (each := asked.of(piece, first, upto)).terms]
    return _Whole(held, upto) if upto <= SCORED_WHOLE else _Chosen(held, upto)


def distinct(lists: Sequence[Rows]) -> Rows:
    """Return the rows of all lists, ascending, each once, without what is negative."""
    found = np.sort(np.concatenate(lists))
    return found[np.concatenate(([True], found[1:] != found[:-1])) & (found >= 0)] if len(found) else found


class _Term(NamedTuple):
    """A term in one piece: who holds it and how often, and above what its part of a score never is."""

    number: int
    rows: NDArray[np.int32]
    counts: NDArray[np.int32]
    factor: np.float32
    most: float


class _Asked:
    """A question's terms, the rarest first."""

    def __init__(self, terms: Sequence[str], stats: WordStats) -> None:
        order = sorted(range(len(terms)), key=stats.found_in.__getitem__)
        self._terms = [
            (number, terms[number], weight(stats.rows, stats.found_in[number]) * (K1 + 1))
            for number in order
            if stats.found_in[number]
        ]
        self._mean = stats.length / stats.rows if stats.length else 1.0

    def of(self, piece: JoinedWords | WordIndex, first: int, upto: int) -> _Piece:
        found: list[_Term] = []
        for number, term, factor in self._terms:
            rows, counts = piece.postings(term, upto - first)
            if len(rows):
                found.append(_Term(number, rows, counts, np.float32(factor), factor * piece.most(term, self._mean)))
        return _Piece(piece, first, min(piece.rows, upto - first), found, self._mean)


class _Piece:
    def __init__(self, words: JoinedWords | WordIndex, first: int, rows: int, terms: list[_Term], mean: float) -> None:
        self._words, self.first, self.end, self.terms = words, first, first + rows, terms
        self._mean = mean

    def part(self, term: _Term, at: NDArray[np.int64] | None = None) -> Floats:
        """Return what a term adds to the score of each of its rows, or of those at some places of its list."""
        rows, counts = (term.rows, term.counts) if at is None else (term.rows[at], term.counts[at])
        return shares(counts, self._words.lengths(rows), self._mean) * term.factor


class _Whole:
    """Scores of every row, in arrays as long as the scope."""

    def __init__(self, pieces: Sequence[_Piece], upto: int) -> None:
        # One more for nobody, who is asked for as the row -1.
        self._scores = np.zeros(upto + 1, dtype=np.float32)
        self._held = np.zeros(upto + 1, dtype=np.uint64)
        for piece in pieces:
            scores, held = self._scores[piece.first : piece.end], self._held[piece.first : piece.end]
            for term in piece.terms:
                scores[term.rows] += piece.part(term)
                if term.number < MAX_COVERED:
                    held[term.rows] |= np.uint64(1 << term.number)

    def best(self, offered: Mask, depth: int) -> tuple[Rows, Floats]:
        rows = np.flatnonzero(self._scores)
        rows = rows[offered[rows]]
        return _best(rows, self._scores[rows], depth)

    def seen(self, lists: Sequence[Rows]) -> Seen:  # noqa: ARG002  # all were looked at
        return self

    def scores(self, rows: Rows) -> Floats:
        return self._scores[rows]

    def held(self, rows: Rows) -> Bits:
        return self._held[rows]


class _Chosen:
    """
    Scores of the rows that may be among the best, and of those that somebody asks for.

    The terms are taken in from the rarest on; once the best rows so far are above all that the terms left could add up
    to, a row that holds only those cannot come among them (Turtle and Flood, 1995, "maxscore").
    """

    def __init__(self, pieces: Sequence[_Piece], upto: int) -> None:
        self._pieces, self._upto = pieces, upto

    def best(self, offered: Mask, depth: int) -> tuple[Rows, Floats]:
        found = [_best_of(piece, offered[piece.first : piece.end], depth) for piece in self._pieces]
        rows = np.concatenate([_NO_ROWS, *(each[0] for each in found)])
        return _best(rows, np.concatenate([_NO_SCORES, *(each[1] for each in found)]), depth)

    def seen(self, lists: Sequence[Rows]) -> Seen:
        rows = distinct(lists)
        scores, held = np.zeros(len(rows) + 1, dtype=np.float32), np.zeros(len(rows) + 1, dtype=np.uint64)
        for piece in self._pieces:
            start, end = np.searchsorted(rows, (piece.first, piece.end))
            here = (rows[start:end] - piece.first).astype(np.int32)
            if len(here):
                for term in piece.terms:
                    at, places = _places(term.rows, here)
                    scores[start + at] += piece.part(term, places)
                    if term.number < MAX_COVERED:
                        held[start + at] |= np.uint64(1 << term.number)
        return _Looked(rows, scores, held)


class _Looked:
    """What was looked up for some rows."""

    def __init__(self, rows: Rows, scores: Floats, held: Bits) -> None:
        self._rows, self._scores, self._held = rows, scores, held

    def scores(self, rows: Rows) -> Floats:
        return self._scores[self._at(rows)]

    def held(self, rows: Rows) -> Bits:
        return self._held[self._at(rows)]

    def _at(self, rows: Rows) -> Rows:
        return np.where(rows < 0, len(self._rows), np.searchsorted(self._rows, rows))


def _best_of(piece: _Piece, offered: Mask, depth: int) -> tuple[Rows, Floats]:
    terms = piece.terms
    left = np.append(np.cumsum([term.most for term in reversed(terms)])[::-1], 0.0)
    scores = np.zeros(len(offered), dtype=np.float32)
    rows = np.zeros(0, dtype=np.int32)
    bound, taken = np.float32(0), 0
    for term in terms:
        # What a look at the bound costs is less than a list that long.
        if len(term.rows) >= max(_LONG, len(rows)):
            bound = _bound(scores[rows], depth)
            if bound > left[taken] * _SLACK:
                break
        before = scores[term.rows]
        fresh = term.rows[before == 0]
        scores[term.rows] = before + piece.part(term)
        rows = np.concatenate((rows, fresh[offered[fresh]]))
        taken += 1
    found = scores[rows]
    for number in range(taken, len(terms)):
        likely = found * _SLACK + np.float32(left[number]) >= bound
        rows, found = rows[likely], found[likely]
        term = terms[number]
        order = np.argsort(rows)
        rows, found = rows[order], found[order]
        at, places = _places(term.rows, rows)
        found[at] += piece.part(term, places)
        bound = max(bound, _bound(found, depth))
    return _best(rows.astype(np.int64) + piece.first, found, depth)


def _bound(scores: Floats, depth: int) -> np.float32:
    """Return what the best rows have at least; nothing while there are fewer."""
    return np.float32(np.partition(scores, len(scores) - depth)[len(scores) - depth] if len(scores) > depth else 0)


def _places(held: NDArray[np.int32], rows: NDArray[np.int32]) -> tuple[Rows, Rows]:
    """Return which of some rows are held, and where in the list of those that are; both ascend."""
    if len(held) < len(rows):
        places = np.searchsorted(rows, held)
        there = rows[np.minimum(places, len(rows) - 1)] == held
        return places[there], np.flatnonzero(there)
    places = np.searchsorted(held, rows)
    there = held[np.minimum(places, len(held) - 1)] == rows
    return np.flatnonzero(there), places[there]


def _best(rows: Rows, scores: Floats, depth: int) -> tuple[Rows, Floats]:
    if len(rows) <= depth:
        return rows, scores
    bound = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    above, equal = np.flatnonzero(scores > bound), np.flatnonzero(scores == bound)
    chosen = np.concatenate((above, equal[np.argsort(rows[equal], kind="stable")][: depth - len(above)]))
    return rows[chosen], scores[chosen]


_NO_ROWS: Final[Rows] = np.zeros(0, dtype=np.int64)
_NO_SCORES: Final[Floats] = np.zeros(0, dtype=np.float32)
