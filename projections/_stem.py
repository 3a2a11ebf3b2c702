"""A light English stemmer: plurals, -ed, -ing and -y, as in steps 1a to 1c of Porter's algorithm (1980)."""

from __future__ import annotations

_VOWELS = frozenset("aeiouy")
_DOUBLES = frozenset(("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"))
_MIN_STEM = 3  # shorter rests are words of their own: `sing`, `red`, `bus`


def stem(word: str) -> str:
    """Return the stem of a lower-case ASCII word; words of three letters or fewer come back unchanged."""
    if len(word) <= _MIN_STEM:
        return word
    if word[-1] == "s":
        word = _without_plural(word)
    if word.endswith("ing"):
        word = _restored(word, word[:-3])
    elif word.endswith("eed"):
        word = word if _VOWELS.isdisjoint(word[:-3]) else word[:-1]
    elif word.endswith("ed"):
        word = _restored(word, word[:-2])
    if word[-1] == "y" and len(word) > _MIN_STEM and word[-2] not in _VOWELS:
        return word[:-1] + "i"
    if word[-1] == "e" and len(word) > _MIN_STEM:
        # `lives`, `living` and `live` have to meet; Porter drops the e in step 5.
        return word[:-1]
    return word


def _without_plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith(("ss", "us", "is")):
        return word
    return word[:-1]


def _restored(word: str, rest: str) -> str:
    if len(rest) < _MIN_STEM - 1 or _VOWELS.isdisjoint(rest):
        return word
    if len(rest) < _MIN_STEM:
        return rest if rest[-1] in _VOWELS else rest + "e"  # `going`, `using`
    if rest[-2:] in _DOUBLES and len(rest) > _MIN_STEM:
        return rest[:-1]
    return rest
