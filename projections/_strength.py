"""
How strong the evidence is that what was found answers the question: a logistic curve of three signs.

They are told from what words score, with vectors or without: a near miss is as near in meaning as an answer. English
words that ask, and say nothing of what is asked about, are left out; in other languages every word counts.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from ._evidence import Bits, Question, Reals
from ._scoring import MAX_COVERED
from ._tokens import analyze_query
from ._words import WordStats, weight

_FARTHEST: Final = 4.0

_ASKING_WORDS: Final = """
many much total number amount first last long often order kind kinds type sort remind previous previously earlier
conversation chat discussed mentioned mention told recommend recommended suggested suggestion ago day days week weeks
month months year years hour hours minute minutes time times spend spent currently current recent recently past
different specific name names named happen happened passed tell know remember said say says get got go went going come
came make made take took give gave ask asked asking want wanted need needed like think start started finish finished
use used using look looking item items thing things find found help please tips advice ideas idea average compared
difference between since until after before percentage earliest latest most least more less there other also ever
still already now new old wondering follow back left
"""


@cache
def asking() -> frozenset[str]:
    """Return the terms of the words that only ask. Made when first wanted: importing is to be quick."""
    # After another word too: what is a stop word alone is not always one within a text.
    queries = (query for word in _ASKING_WORDS.split() for query in (word, f"x {word}"))
    return frozenset(term for query in queries for term in analyze_query(query).terms) - {"x"}


_SUBJECT: Final = "I|[Yy]ou|[Ww]e|[Tt]hey|[Hh]e|[Ss]he"
_BETWEEN: Final = (
    "have|had|has|am|was|were|been|just|ever|already|also|really|usually|actually|currently|recently|initially"
)
_ACTION: Final = regex.compile(
    rf"\b(?:{_SUBJECT})(?: (?:{_BETWEEN}))* (?P<does>[\p{{L}}'’-]+)"
    rf"|\b(?:[Dd]id|[Dd]oes) (?!(?:{_SUBJECT})\b)(?:(?:my|your|our|his|her|their|the) )?\w+ (?P<does>\w+)"
)


def actions(query: str) -> frozenset[str]:
    """
    Return the terms of the English words that say what somebody does, by where they stand.

    What was done is often told in other words than it is asked for; what it was done to, seldom.
    """
    return frozenset(term for match in _ACTION.finditer(query) for term in analyze_query(match["does"]).terms)


class Signs(NamedTuple):
    """
    What tells an answer from a near miss.

    `best` is the best score by words; `astray` by how much the best row of somebody else is above the best of whom the
    question names; `lacking` is which share of the question's words, by weight, what ranks high does not hold: a word
    counts for as much of its weight as the best row that holds it is below the best of all, wholly from `_FARTHEST` on.
    """

    best: float
    astray: float
    lacking: float


# A logistic fit on tuning halves; see eval/RESULTS.md.
_WEIGHTS: Final = Signs(0.31, -0.89, -3.62)
_BIAS: Final = -1.46


def signs_of(
    question: Question, stats: WordStats, scores: Reals, held: Bits, named: NDArray[np.bool_], bonus: float
) -> Signs:
    """
    Return the signs of some rows, at least one, by what their words score.

    `bonus` is what a row got for being by whom is named.
    """
    best = float(scores.max())
    return Signs(best, _astray(scores, named, bonus), _lacking(_told(question), stats, best - scores, held))


def strength_of(signs: Signs) -> float:
    """Return, from 0 to 1, how likely the best hits answer the question, were half of all questions answerable."""
    return 1 / (1 + math.exp(-(_BIAS + sum(w * sign for w, sign in zip(_WEIGHTS, signs, strict=True)))))


def _lacking(told: list[int], stats: WordStats, below: Reals, held: Bits) -> float:
    weights = [weight(stats.rows, stats.found_in[number]) for number in told]
    asked = sum(weights)
    if not asked:
        return 0.0
    holds = (held[:, None] >> np.array(told, dtype=np.uint64)) & np.uint64(1)
    least = np.where(holds, np.minimum(below, _FARTHEST)[:, None], _FARTHEST).min(axis=0)
    lacking: float = sum(w * far for w, far in zip(weights, least.tolist(), strict=True))
    return lacking / (asked * _FARTHEST)


def _told(question: Question) -> list[int]:
    """Return the numbers of the terms that say what is asked about; of the actions only where nothing else does."""
    said = [n for n, term in enumerate(question.terms[:MAX_COVERED]) if term not in asking()]
    return [n for n in said if question.terms[n] not in question.actions] or said


def _astray(scores: Reals, named: NDArray[np.bool_], bonus: float) -> float:
    if not named.any():
        return 0.0
    if named.all():
        return -_FARTHEST
    ahead = float(scores[~named].max()) - (float(scores[named].max()) - bonus)
    return min(max(ahead, -_FARTHEST), _FARTHEST)
