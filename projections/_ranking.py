"""One ranking from words, meaning, the turns around and what the question asks for: a fixed weighted sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from ._dates import named_dates
from ._evidence import FEATURES, Evidence, Question, Reals, Rows, Witnesses
from ._segments import ScopeWords
from ._strength import actions, signs_of, strength_of
from ._threads import Threads
from ._tokens import MAX_QUERY_CHARS, analyze_query
from ._vectors import VectorIndex
from ._words import WordStats

Mask = NDArray[np.bool_]

DEPTH: Final = 40
"""Candidates of each arm and scope at least; twice as many as are asked for, where that is more."""

# Chosen by `eval/recall_weights.py` on the tuning half of each set; see eval/RESULTS.md for what each is worth.
WEIGHTS: Final = {
    "meaning": 6.89,
    "meaning_before": 0.16,
    "meaning_after": 2.13,
    "covered": 3.08,
    "covered_near": 2.72,
    "passage": 0.28,
    "speaker": 2.32,
    "asks": -0.73,
    "length": 0.51,
    "time": 0.11,
    "date": 4.79,
    # What holds only on a condition comes after what simply holds, unless it fits clearly better.
    "conditional": -1.0,
}
HISTORY: Final = 6.0
"""What a row loses that holds no longer: its successor, which may say less of the words asked for, comes first."""
LIFT: Final = 0.3
"""How far a turn is lifted from its own score towards what its conversation has in all."""
_LIFTERS: Final = 40
_OF_NEIGHBOURS: Final = ("meaning_before", "meaning_after")
_MEANINGS: Final = ("meaning", *_OF_NEIGHBOURS)
_WHEN = regex.compile(r"\b(?:when|what (?:date|day|month|year|time)|which (?:date|day|month|year)|how long)\b")
_I = regex.compile(r"\b(?:i|my|me|mine|i'm|i've|myself)\b")


class Rankable(NamedTuple):
    """One scope at a point in time: rows below `upto` exist, `offered` may be returned, `live` may speak for others."""

    words: ScopeWords
    threads: Threads
    vectors: VectorIndex | None
    rows: int
    upto: int
    offered: Mask
    live: Mask
    instants: Callable[[Rows], Rows]


class Fused(NamedTuple):
    """A row's place in the ranking, over the scopes' rows laid end to end; None where an arm has nothing to say."""

    row: int
    score: float
    word_score: float | None
    dense_score: float | None
    word_rank: int | None
    dense_rank: int | None
    near_score: float


class Ranking(NamedTuple):
    """The best rows, and how likely they answer the question, from 0 to 1."""

    best: list[Fused]
    strength: float


class _Found(NamedTuple):
    rows: Rows
    evidence: Evidence
    live: Mask
    best_words: NDArray[np.float32]
    near_rows: Rows
    labels: Rows


def question_of(query: str) -> Question:
    """Return what ranking reads in a query; English and ISO dates and English pronouns, words of any script."""
    text = query[:MAX_QUERY_CHARS]
    lower, words = text.lower(), analyze_query(query)
    return Question(
        terms=words.terms,
        clamped=words.clamped,
        actions=actions(text),
        asks_when=_WHEN.search(lower) is not None,
        says_i=_I.search(lower) is not None,
        dates=named_dates(text),
    )


def rank(question: Question, vector: NDArray[np.float32] | None, scopes: Sequence[Rankable], k: int) -> Ranking:
    """
    Return the best `k` offered rows that hold a word of the question or, with a vector, have a meaning; best first.

    Fewer only when fewer match. Equal scores come in row order. What holds no longer comes after what does.
    """
    stats = WordStats(0, 0, (0,) * len(question.terms))
    for scope in scopes:
        stats = stats.plus(scope.words.statistics(question.terms, scope.upto))
    depth = max(DEPTH, 2 * k)
    found = [_candidates(question, vector, scope, stats, depth) for scope in scopes]
    bases = np.concatenate(([0], np.cumsum([scope.rows for scope in scopes])))[: len(scopes)]
    rows = np.concatenate([_NO_ROWS, *(part.rows + base for part, base in zip(found, bases, strict=True))])
    features = np.concatenate([np.zeros((0, len(FEATURES))), *(part.evidence.features for part in found)])
    words = np.concatenate([_NO_SCORES, *(part.evidence.word_scores for part in found)])
    live = np.concatenate([np.zeros(0, dtype=np.bool_), *(part.live for part in found)])
    labels = np.concatenate([_NO_ROWS, *(part.labels + base for part, base in zip(found, bases, strict=True))])
    own = weighed(features) - np.where(live, 0.0, HISTORY)
    lifts = lifts_of(own, labels, live)
    scores = own + lifts
    best = np.lexsort((rows, -scores))[:k]
    best = np.concatenate((best[live[best]], best[~live[best]]))
    best_words = np.sort(np.concatenate([_NO_SCORES, *(part.best_words for part in found)]))[-depth:]
    word_ranks = _ranks(best_words, words[best])
    dense_ranks = _ranks(features[:, 0], features[best, 0])
    near_rows = np.concatenate([_NO_ROWS, *(part.near_rows + base for part, base in zip(found, bases, strict=True))])
    near = set(near_rows.tolist())
    beside = lifts[best] + sum(features[best, FEATURES.index(name)] * WEIGHTS[name] for name in _OF_NEIGHBOURS)
    hits = [
        Fused(
            row=(row := int(rows[at])),
            score=float(scores[at]),
            word_score=float(words[at]) if words[at] > 0 else None,
            dense_score=float(features[at, 0]) if row in near else None,
            word_rank=word_rank if word_rank <= len(best_words) else None,
            dense_rank=dense_rank if row in near else None,
            near_score=float(by_neighbours),
        )
        for at, word_rank, dense_rank, by_neighbours in zip(
            best.tolist(), word_ranks, dense_ranks, beside.tolist(), strict=True
        )
    ]
    if not hits:
        return Ranking(hits, 0.0)
    held = np.concatenate([part.evidence.held for part in found])
    named = np.concatenate([part.evidence.named for part in found])
    by_words = own - sum(features[:, FEATURES.index(name)] * WEIGHTS[name] for name in _MEANINGS)
    return Ranking(hits, strength_of(signs_of(question, stats, by_words, held, named, WEIGHTS["speaker"])))


def weighed(features: Reals) -> Reals:
    """Return the score of each line of features."""
    # Column by column: a matrix product would add in an order that depends on how many rows there are.
    total = np.zeros(len(features), dtype=np.float64)
    for number, name in enumerate(FEATURES):
        total += features[:, number] * WEIGHTS[name]
    return total


def lifts_of(scores: Reals, labels: Rows, live: Mask) -> Reals:
    """
    Return by how much each row's conversation lifts it; nothing where it stands alone.

    A score is the logarithm of odds, up to a constant. What a conversation has in all is the logarithm of the sum over
    those of its live rows that are among the best.
    """
    best = np.argsort(-scores, kind="stable")[:_LIFTERS]
    best = best[live[best]]
    if not len(best):
        return np.zeros(len(scores), dtype=np.float64)
    odds = np.exp(scores - scores[best[0]])
    distinct, of = np.unique(labels[best], return_inverse=True)
    total = np.bincount(of, weights=odds[best])
    at = np.minimum(np.searchsorted(distinct, labels), len(distinct) - 1)
    others = total[at] * ((distinct[at] == labels) & live)
    others[best] -= odds[best]
    lifted: Reals = LIFT * np.log1p(others / odds)
    return lifted


def _candidates(
    question: Question, vector: NDArray[np.float32] | None, scope: Rankable, stats: WordStats, depth: int
) -> _Found:
    words = scope.words.scores(question.terms, stats, scope.upto)
    offered, live = _fitted(scope.offered, scope.upto), _fitted(scope.live, scope.upto)
    chosen, best_words = words.best(offered, depth)
    near, cosines = _NO_ROWS, None
    if vector is not None and scope.vectors is not None:
        near, _ = scope.vectors.search(vector, allowed=offered, upto=scope.upto, k=depth)
        cosines = partial(scope.vectors.scores, vector)
    witnesses = Witnesses(question, stats, scope.words, scope.threads, words, live, cosines, scope.instants, scope.upto)
    rows = witnesses.around(np.concatenate((chosen, near)))
    rows = rows[offered[rows]]
    if cosines is None:
        # Without vectors a neighbour that holds none of the words is no match, only the turn beside one.
        rows = rows[words.seen([rows]).scores(rows) > 0]
    return _Found(rows, witnesses.of(rows), live[rows], best_words, near, scope.threads.labels(rows))


def _fitted(mask: Mask, upto: int) -> Mask:
    if len(mask) >= upto:
        return mask[:upto]
    return np.concatenate((mask, np.zeros(upto - len(mask), dtype=np.bool_)))


def _ranks(scores: NDArray[np.floating], of: NDArray[np.floating]) -> list[int]:
    """Return the rank of each value of `of` among the scores, from 1; equal scores share one."""
    ascending = np.sort(scores)
    ranks: list[int] = (len(scores) - np.searchsorted(ascending, of, side="right") + 1).tolist()
    return ranks


_NO_ROWS: Final[Rows] = np.zeros(0, dtype=np.int64)
_NO_SCORES: Final = np.zeros(0, dtype=np.float32)
