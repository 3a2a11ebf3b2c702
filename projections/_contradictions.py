"""
Which earlier statements a new one may contradict: closeness of meaning, and what changed between the two.

Pure functions over texts and a cosine; nothing here links, supersedes or writes. Words of change are
read in English only; numbers, dates and names in any script that has capitals.
"""

from __future__ import annotations

import math
from collections.abc import Set
from typing import Final

import regex

from ._tokens import STOP_TERMS, analyze

_NUMBER = regex.compile(r"(?<![\p{L}\p{N}])[$€£]?\d[\d.,:/-]*\p{L}{0,3}(?![\p{L}\p{N}])")
_NAME = regex.compile(r"(?<=[\p{Ll},;] )\p{Lu}[\p{L}\p{M}'’-]+")
_NEGATED = regex.compile(r"\b(?:not|no|never|none|without|stopped|quit|cannot|\w+n['’]t|no longer|anymore)\b", regex.I)
_CUES = tuple(
    regex.compile(rf"\b(?:{words})\b", regex.IGNORECASE)
    for words in (
        # it was said wrongly
        r"actually|instead|correct(?:ion|ed)?|was wrong|mistake|mixed up|turns out|rather than|misread|misremembered|"
        r"mistaken|after all|not \w+ but|thought",
        # it changed
        r"chang(?:e|ed|es|ing)|switch(?:ed|es|ing)?|mov(?:e|ed|es|ing)|updat(?:e|ed|es|ing)|replac(?:e|ed|es|ing)|"
        r"bump(?:ed)?|reschedul\w*|postpon\w*|push(?:ed|es|ing)? (?:back|up|it|to|the)|relocat\w*|transfer\w*|"
        r"upgrad\w*|convert\w*|reassign\w*|extend\w*|cancel\w*|adjust\w*|rais\w+|lower(?:ed|ing)|renam\w*|"
        r"reclassif\w*",
        # it is so from now on
        r"now|no longer|anymore|any more|used to|these days|currently|as of|effective|from now on|starting|recently|"
        r"just",
        # it is as it was
        r"back to|back at|back on|stay(?:s|ing)?|still|keep(?:s|ing)?|return\w*|revert\w*|again|resolved|for good",
        # it is certain
        r"confirm\w*|official\w*|for sure|finali[sz]ed|locked in|settled|decided",
    )
)
_MOST_CUES: Final = 3

PROPOSED_FROM: Final = 0.7
"""The score from which a pair is proposed; see eval/RESULTS.md for what it gets right and wrong."""
# A logistic fit on half of MemOps' scenarios. A changed name is a reason, but as many distinct facts differ in one.
WEIGHTS: Final = {
    "meaning": 5.44,
    "shared": 1.42,
    "shared_words": 0.6,
    "number": 0.89,
    "same_number": 1.95,
    "name": 0.0,
    "same_name": 0.39,
    "polarity": 0.7,
    "cue": 1.2,
}
_BIAS: Final = -7.45


def judge(old: str, new: str, cosine: float) -> tuple[float, tuple[str, ...]]:
    """
    Return how likely the new statement revises the old one, from 0 to 1, and what changed.

    Without a reason nothing changed that rules can see: two ways to say the same thing are no contradiction.
    """
    features = features_of(old, new, cosine)
    score = 1 / (1 + math.exp(-(_BIAS + sum(WEIGHTS[name] * value for name, value in features.items()))))
    reasons = tuple(_REASONS[name] for name in _REASONS if features[name])
    return score, reasons


def features_of(old: str, new: str, cosine: float) -> dict[str, float]:
    """Return what speaks for a revision."""
    words_before, words_after = (set(analyze(text)) - STOP_TERMS for text in (old, new))
    numbers_before, numbers_after = set(_NUMBER.findall(old)), set(_NUMBER.findall(new))
    names_before, names_after = set(_NAME.findall(old)), set(_NAME.findall(new))
    shared = len(words_before & words_after)
    return {
        "meaning": cosine,
        "shared": shared / max(1, min(len(words_before), len(words_after))),
        "shared_words": math.log1p(shared),
        "number": _differs(numbers_before, numbers_after),
        # A change names what it changes: "from the 4th floor to the 7th".
        "same_number": float(bool(numbers_before & numbers_after)),
        "name": _differs(names_before, names_after),
        "same_name": float(bool(names_before & names_after)),
        "polarity": float(bool(_NEGATED.search(old)) != bool(_NEGATED.search(new))),
        "cue": float(min(_MOST_CUES, sum(cue.search(new) is not None for cue in _CUES))),
    }


def _differs(before: Set[str], after: Set[str]) -> float:
    """Return 1 where both name something and the new one names something else."""
    return float(bool(before and after - before))


_REASONS: Final = {
    "number": "another number or date",
    "name": "another name",
    "polarity": "one says no",
    "cue": "a word of change",
}
