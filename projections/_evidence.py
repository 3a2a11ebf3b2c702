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
from ._scoring import MAX_COVERED, Scores, Seen, distinct
from ._segments import ScopeWords
from ._threads import NOBODY, Threads
from ._words import K1, WordStats, weight

Rows = NDArray[np.int64]
Reals = NDArray[np.float64]
Bits = NDArray[np.uint64]

REACH: Final = 5
"""How many turns before and after a row belong to its passage."""
LONG: Final = 32
"""Tokens from which a longer text is no better a candidate for being longer."""
_TABLED: Final = 10
"""Terms up to which the weight of each set of them is worth having in a table."""
FEATURES: Final = (
    "meaning", "meaning_before", "meaning_after",
    "covered", "covered_near", "passage",
    "speaker", "asks", "length", "time", "date", "conditional",
)  # fmt: skip


class Question(NamedTuple):
    """
    What is asked, as far as ranking reads it.

    `actions` are those of the terms that say what somebody does; `clamped` says that there was more than is read.
    """

    terms: tuple[str, ...]
    clamped: bool
    actions: frozenset[str]
    asks_when: bool
    says_i: bool
    dates: list[Named]


class Evidence(NamedTuple):
    """What speaks for some rows: one line of `FEATURES` each, and what else is told of them."""

    features: Reals
    word_scores: NDArray[np.float32]
    held: Bits
    named: NDArray[np.bool_]


class Witnesses:
    """Gathers the evidence for rows of one scope below `upto`; `live` says which rows may speak for a neighbour."""

    def __init__(
        self,
        question: Question,
        stats: WordStats,
        index: ScopeWords,
        threads: Threads,
        words: Scores,
        live: NDArray[np.bool_],
        cosines: Callable[[Rows], NDArray[np.float32]] | None,
        instants: Callable[[Rows], Rows],
        upto: int,
    ) -> None:
        self._question, self._index, self._threads, self._words = question, index, threads, words
        self._live, self._cosines, self._instants, self._upto = live, cosines, instants, upto
        self._weights = [weight(stats.rows, found_in) for found_in in stats.found_in]
        self._total = sum(self._weights) or 1.0
        # Terms beyond the bits weigh nothing in coverage, and much in nothing else.
        self._covered_total = sum(self._weights[:MAX_COVERED]) or 1.0
        self._shares: Reals | None = None

    def around(self, rows: Rows) -> Rows:
        """Return the rows with their neighbours at one and two turns, ascending."""
        found = [rows]
        for follow in (self._threads.before, self._threads.after):
            at = rows
            for _ in range(2):
                at = follow(at)
                found.append(at)
        every = distinct(found)
        return every[: int(np.searchsorted(every, self._upto))]

    def of(self, rows: Rows) -> Evidence:
        """Return the evidence for some ascending rows."""
        threads = self._threads
        before, after = threads.before(rows), threads.after(rows)
        near = self._speaking(np.stack((before, after, threads.before(before), threads.after(after))))
        meanings = self._meanings([rows, near[0], near[1]])
        beyond = self._beyond(before, after)
        seen = self._words.seen([rows, *near, *beyond])
        held, nearby = seen.held(rows), seen.held(near)
        # A short turn of a talk mostly says nothing; a short note is short because somebody chose its words.
        alone = (near[0] < 0) & (near[1] < 0)
        question, index, upto = self._question, self._index, self._upto
        named = self._hold([spoken_by(term) for term in question.terms], rows)
        # Between people a question says little; what a user asks an assistant says what the user is about.
        by_user = index.among(rows, USER, upto)
        columns: list[Reals | NDArray[np.bool_] | float] = [
            *meanings,
            self._coverage(held),
            self._coverage(held | np.bitwise_or.reduce(nearby, axis=0)),
            self._passage(seen, rows, beyond),
            named | by_user if question.says_i else named,
            index.among(rows, ASKS, upto) & ~by_user,
            np.log1p(np.where(alone, LONG, np.minimum(index.lengths(rows), LONG))),
            index.among(rows, NAMES_A_TIME, upto) if question.asks_when else 0.0,
            nearness(question.dates, self._instants(rows)) if question.dates else 0.0,
            index.among(rows, CONDITIONAL, upto),
        ]
        out = np.zeros((len(rows), len(FEATURES)), dtype=np.float64)
        for number, column in enumerate(columns):
            out[:, number] = column
        return Evidence(out, seen.scores(rows), held, named)

    def _hold(self, terms: Sequence[str], rows: Rows) -> NDArray[np.bool_]:
        """Tell for each row whether it holds one of the terms."""
        found = np.zeros(len(rows), dtype=np.bool_)
        for term in terms:
            found |= self._index.among(rows, term, self._upto)
        return found

    def _speaking(self, rows: Rows) -> Rows:
        """Return the rows, NOBODY in place of those that may not speak: not yet there, or not live."""
        there = (rows >= 0) & (rows < self._upto)
        safe = np.where(there, rows, 0)
        return np.where(there & self._live[safe], safe, NOBODY)

    def _beyond(self, before: Rows, after: Rows) -> Rows:
        """Return the turns of the rows' passages on both sides, a line each, those that may speak."""
        found: list[Rows] = []
        for follow, at in ((self._threads.before, before), (self._threads.after, after)):
            for _ in range(REACH):
                # A conversation ends for all of them sooner or later, and mostly sooner.
                if not (at >= 0).any():
                    break
                found.append(at)
                at = follow(at)  # noqa: PLW2901
        return self._speaking(np.stack(found)) if found else np.zeros((0, len(before)), dtype=np.int64)

    def _meanings(self, lists: Sequence[Rows]) -> list[Reals]:
        if self._cosines is None:
            return [np.zeros(len(rows)) for rows in lists]
        rows = distinct(lists)
        found = self._cosines(rows).astype(np.float64)
        found[np.isnan(found)] = 0.0
        found = np.append(found, 0.0)
        return [found[np.where(each < 0, -1, np.searchsorted(rows, each))] for each in lists]

    def _coverage(self, held: Bits) -> Reals:
        """Return the share of the question's weight that the held terms make up."""
        weights = self._weights[:MAX_COVERED]
        if len(weights) > _TABLED:
            covered = np.zeros(len(held), dtype=np.float64)
            for number, each in enumerate(weights):
                covered += ((held >> np.uint64(number)) & np.uint64(1)).astype(np.float64) * each
            return covered / self._covered_total
        if self._shares is None:
            # The sum for every set of terms, in the order in which the terms are numbered.
            sums = np.zeros(1, dtype=np.float64)
            for each in weights:
                sums = np.concatenate((sums, sums + each))
            self._shares = sums / self._covered_total
        return self._shares[held.astype(np.int64)]

    def _passage(self, seen: Seen, rows: Rows, beyond: Rows) -> Reals:
        """Return the mean of the best three word scores among a row and the turns around it, as a share of the most."""
        said = np.zeros((max(3, 1 + len(beyond)), len(rows)), dtype=np.float64)
        said[0] = seen.scores(rows)
        said[1 : 1 + len(beyond)] = seen.scores(beyond)
        said.sort(axis=0)
        return np.asarray(said[:-4:-1].sum(axis=0) / (3 * self._total * (K1 + 1)))
