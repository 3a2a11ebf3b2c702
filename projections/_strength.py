"""
How strong the evidence is that what was found answers the question: a logistic curve of three signs.

English words that ask, and say nothing of what is asked about, are left out; in other languages every word counts.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._evidence import Bits, Reals
from ._scoring import MAX_COVERED
from ._tokens import analyze_query
from ._words import WordStats, weight

TOP: Final = 3
"""How many of the best rows count as what was found."""
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


class Signs(NamedTuple):
    """
    What tells an answer from a near miss.

    `best` is the best score; `astray` by how much the best row of somebody else is above the best of whom the question
    names; `unmet` is which share of the question's words, by weight, none of the best rows holds.
    """

    best: float
    astray: float
    unmet: float


# Logistic fits on tuning halves; see eval/RESULTS.md.
_WITH_VECTORS: Final = Signs(0.122, -0.542, -1.781), -0.86
_WITHOUT: Final = Signs(0.232, -0.839, -1.964), -1.16


def signs_of(
    terms: tuple[str, ...], stats: WordStats, scores: Reals, held: Bits, named: NDArray[np.bool_], bonus: float
) -> Signs:
    """Return the signs of some scored rows, at least one; `bonus` is what a row got for being by whom is named."""
    top = np.argsort(-scores, kind="stable")[:TOP]
    there = int(np.bitwise_or.reduce(held[top]))
    asked = met = 0.0
    for number, (term, found_in) in enumerate(zip(terms[:MAX_COVERED], stats.found_in, strict=False)):
        if term not in asking():
            of = weight(stats.rows, found_in)
            asked += of
            met += of * (there >> number & 1)
    return Signs(float(scores[top[0]]), _astray(scores, named, bonus), 1 - met / asked if asked else 0.0)


def strength_of(signs: Signs, *, with_vectors: bool) -> float:
    """Return, from 0 to 1, how likely the best hits answer the question, were half of all questions answerable."""
    weights, bias = _WITH_VECTORS if with_vectors else _WITHOUT
    return 1 / (1 + math.exp(-(bias + sum(w * sign for w, sign in zip(weights, signs, strict=True)))))


def _astray(scores: Reals, named: NDArray[np.bool_], bonus: float) -> float:
    if not named.any():
        return 0.0
    if named.all():
        return -_FARTHEST
    ahead = float(scores[~named].max()) - (float(scores[named].max()) - bonus)
    return min(max(ahead, -_FARTHEST), _FARTHEST)
