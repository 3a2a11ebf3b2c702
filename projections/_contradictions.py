"""
Which earlier statements a new one may contradict: closeness of meaning, and what changed between the two.

Pure functions over texts and their vectors. They propose; nothing here links, supersedes or writes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from ._tokens import STOP_TERMS, analyze

_NUMBER = regex.compile(r"(?<![\p{L}\p{N}])[$€£]?\d[\d.,:/-]*\p{L}{0,3}(?![\p{L}\p{N}])")
_NAME = regex.compile(r"(?<=[\p{Ll},;] )\p{Lu}[\p{L}\p{M}'’-]+")
_NEGATED = regex.compile(r"\b(?:not|no|never|none|without|stopped|quit|cannot|\w+n['’]t|no longer|anymore)\b", regex.I)
_CHANGED = regex.compile(
    r"\b(?:actually|instead|correct(?:ion|ed)?|changed?|switched|moved|updated?|now|no longer|anymore|rather than|"
    r"used to|was wrong|mistake|mixed up|turns out|new|replaced|bumped|rescheduled|postponed|from .{1,40} to)\b",
    regex.IGNORECASE,
)

PROPOSED_FROM: Final = 0.83
"""The score from which a pair is proposed; see eval/RESULTS.md for what it gets right and wrong."""
# A logistic fit on half of MemOps' scenarios. A changed name is a reason, but as many distinct facts differ in one.
WEIGHTS: Final = {"meaning": 11.3, "shared": 0.6, "number": 0.8, "name": 0.0, "polarity": 1.3, "cue": 1.85}
_BIAS: Final = -8.8


class Proposal(NamedTuple):
    """An earlier statement, by its index, that a new one may contradict, and why."""

    earlier: int
    score: float
    reasons: tuple[str, ...]


def propose(
    text: str,
    vector: NDArray[np.float32],
    earlier: Sequence[str],
    vectors: NDArray[np.float32],
    *,
    least: float = PROPOSED_FROM,
) -> list[Proposal]:
    """Return which earlier statements the text may contradict, the likeliest first; vectors are unit vectors."""
    cosines = (vectors * vector).sum(axis=1)
    found = [Proposal(i, *judge(old, text, float(cosines[i]))) for i, old in enumerate(earlier)]
    return sorted((p for p in found if p.score >= least and p.reasons), key=lambda p: (-p.score, p.earlier))


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
    return {
        "meaning": cosine,
        "shared": _shared(old, new),
        "number": _differs(_NUMBER.findall(old), _NUMBER.findall(new)),
        "name": _differs(_NAME.findall(old), _NAME.findall(new)),
        "polarity": float(bool(_NEGATED.search(old)) != bool(_NEGATED.search(new))),
        "cue": float(_CHANGED.search(new) is not None),
    }


def _shared(old: str, new: str) -> float:
    """Return the share of the shorter statement's words that the other holds too."""
    one, other = (set(analyze(text)) - STOP_TERMS for text in (old, new))
    return len(one & other) / max(1, min(len(one), len(other)))


def _differs(old: Iterable[str], new: Iterable[str]) -> float:
    """Return 1 where both name something and the new one names something else."""
    before, after = set(old), set(new)
    return float(bool(before and after - before))


_REASONS: Final = {
    "number": "another number or date",
    "name": "another name",
    "polarity": "one says no",
    "cue": "a word of change",
}
