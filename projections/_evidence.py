"""
What speaks for each candidate row: its own words and meaning, those of the turns around it, and what the question asks.

Every figure depends on the row, its live neighbours and the word statistics of the point in time alone: never on which
other rows are candidates. So it is the same in a store of ten and of a million, now and in a replay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._dates import Named, nearness
from ._marks import ASKS, CONDITIONAL, NAMES_A_TIME, USER, spoken_by
from ._segments import ScopeWords
from ._threads import NOBODY, Threads
from ._words import K1, WordStats, weight

Rows = NDArray[np.int64]
Reals = NDArray[np.float64]
Bits = NDArray[np.uint64]

MAX_COVERED: Final = 64
"""Terms of a question whose coverage is counted: one bit each."""
REACH: Final = 5
"""How many turns before and after a row belong to its passage."""
LONG: Final = 32
"""Tokens from which a longer text is no better a candidate for being longer."""
FEATURES: Final = (
    "meaning", "meaning_before", "meaning_after",
    "covered", "covered_near", "passage",
    "speaker", "asks", "length", "time", "date", "conditional",
)  # fmt: skip


class Question(NamedTuple):
    """What is asked, as far as ranking reads it; `actions` are those of the terms that say what somebody does."""

    terms: tuple[str, ...]
    actions: frozenset[str]
    asks_when: bool
    says_i: bool
    dates: list[Named]


class WordsOf(NamedTuple):
    """
    The words of one scope for one question: for each row its BM25 score, and which terms it holds, one bit each.

    `holders` are the rows that hold any.
    """

    holders: Rows
    scores: NDArray[np.float32]
    held: Bits


def words_of(index: ScopeWords, terms: Sequence[str], stats: WordStats, upto: int) -> WordsOf:
    """Return the word scores and held terms of the rows below `upto`."""
    scores = np.zeros(upto, dtype=np.float32)
    held = np.zeros(upto, dtype=np.uint64)
    rows = np.zeros(0, dtype=np.int64)
    if stats.rows:
        rows, found = index.scores(terms, stats, upto)
        scores[rows] = found
        for number, term in enumerate(terms[:MAX_COVERED]):
            held[index.holders(term, upto)] |= np.uint64(1 << number)
    return WordsOf(rows, scores, held)


class Witnesses:
    """Gathers the evidence for rows of one scope; `live` says which rows may speak for a neighbour."""

    def __init__(
        self,
        question: Question,
        stats: WordStats,
        index: ScopeWords,
        threads: Threads,
        words: WordsOf,
        live: NDArray[np.bool_],
        cosines: Callable[[Rows], NDArray[np.float32]] | None,
        instants: Callable[[Rows], Rows],
    ) -> None:
        self._question, self._index, self._threads, self._words = question, index, threads, words
        self._live, self._cosines, self._instants = live, cosines, instants
        self._upto = len(words.scores)
        self._by_name = [index.holders(spoken_by(term), self._upto) for term in question.terms]
        self._weights = [weight(stats.rows, found_in) for found_in in stats.found_in]
        self._total = sum(self._weights) or 1.0
        # Terms beyond the bits weigh nothing in coverage, and much in nothing else.
        self._covered_total = sum(self._weights[:MAX_COVERED]) or 1.0

    def around(self, rows: Rows) -> Rows:
        """Return the rows with their neighbours at one and two turns."""
        # One flag a row: several times faster than sorting what was found.
        found = np.zeros(self._upto + 1, dtype=np.bool_)
        found[rows] = True
        for follow in (self._threads.before, self._threads.after):
            at = rows
            for _ in range(2):
                at = follow(at)
                found[np.where((at >= 0) & (at < self._upto), at, self._upto)] = True
        return np.flatnonzero(found[:-1])

    def of(self, rows: Rows) -> Reals:
        """Return one line of `FEATURES` a row."""
        threads = self._threads
        before, after = threads.before(rows), threads.after(rows)
        near = [self._speaking(each) for each in (before, after, threads.before(before), threads.after(after))]
        meanings = self._meanings([rows, near[0], near[1]])
        held = [self._held(each) for each in (rows, *near)]
        # A short turn of a talk mostly says nothing; a short note is short because somebody chose its words.
        alone = (near[0] < 0) & (near[1] < 0)
        question, index, upto = self._question, self._index, self._upto
        columns: list[Reals | NDArray[np.bool_] | float] = [
            *meanings,
            self._coverage(held[0]),
            self._coverage(held[0] | held[1] | held[2] | held[3] | held[4]),
            self._passage(rows),
            _are_among(rows, self._speakers()),
            _are_among(rows, [index.holders(ASKS, upto)]),
            np.log1p(np.where(alone, LONG, np.minimum(index.lengths(rows), LONG))),
            _are_among(rows, [index.holders(NAMES_A_TIME, upto)]) if question.asks_when else 0.0,
            nearness(question.dates, self._instants(rows)) if question.dates else 0.0,
            _are_among(rows, [index.holders(CONDITIONAL, upto)]),
        ]
        out = np.zeros((len(rows), len(FEATURES)), dtype=np.float64)
        for number, column in enumerate(columns):
            out[:, number] = column
        return out

    def _speaking(self, rows: Rows) -> Rows:
        """Return the rows, NOBODY in place of those that may not speak: not yet there, or not live."""
        there = (rows >= 0) & (rows < self._upto)
        safe = np.where(there, rows, 0)
        return np.where(there & self._live[safe], safe, NOBODY)

    def _meanings(self, lists: Sequence[Rows]) -> list[Reals]:
        if self._cosines is None:
            return [np.zeros(len(rows)) for rows in lists]
        wanted = np.zeros(self._upto + 1, dtype=np.bool_)
        for rows in lists:
            wanted[rows] = True
        wanted[-1] = False  # NOBODY
        distinct = np.flatnonzero(wanted)
        found = self._cosines(distinct).astype(np.float64)
        found[np.isnan(found)] = 0.0
        found = np.append(found, 0.0)
        return [np.where(rows < 0, 0.0, found[np.searchsorted(distinct, rows)]) for rows in lists]

    def _held(self, rows: Rows) -> Bits:
        return np.where(rows < 0, np.uint64(0), self._words.held[rows])

    def _coverage(self, held: Bits) -> Reals:
        """Return the share of the question's weight that the held terms make up."""
        covered = np.zeros(len(held), dtype=np.float64)
        for number, each in enumerate(self._weights[:MAX_COVERED]):
            covered += ((held >> np.uint64(number)) & np.uint64(1)).astype(np.float64) * each
        return covered / self._covered_total

    def _share(self, rows: Rows) -> Reals:
        """Return the rows' BM25 scores as a share of the most that any text could have."""
        scores = np.where(rows < 0, np.float32(0), self._words.scores[rows])
        return scores.astype(np.float64) / (self._total * (K1 + 1))

    def _passage(self, rows: Rows) -> Reals:
        """Return the mean of the best three word scores among a row and the turns around it."""
        best = np.zeros((3, len(rows)), dtype=np.float64)
        best[0] = self._share(rows)
        for follow in (self._threads.before, self._threads.after):
            at = rows
            for _ in range(REACH):
                at = follow(at)
                # A conversation ends for all of them sooner or later, and mostly sooner.
                if not (at >= 0).any():
                    break
                here = self._share(self._speaking(at))
                for place in range(3):
                    best[place], here = np.maximum(best[place], here), np.minimum(best[place], here)
        return np.asarray(best.sum(axis=0) / 3)

    def named(self, rows: Rows) -> NDArray[np.bool_]:
        """Tell for each row whether somebody whom the question names says it."""
        return _are_among(rows, self._by_name)

    def _speakers(self) -> list[Rows]:
        by_user = [self._index.holders(USER, self._upto)] if self._question.says_i else []
        return [*self._by_name, *by_user]


def _are_among(rows: Rows, lists: Sequence[Rows]) -> NDArray[np.bool_]:
    """Tell for each row whether one of the ascending lists holds it."""
    found = np.zeros(len(rows), dtype=np.bool_)
    for holders in lists:
        if len(holders):
            at = np.minimum(np.searchsorted(holders, rows), len(holders) - 1)
            found |= holders[at] == rows
    return found
