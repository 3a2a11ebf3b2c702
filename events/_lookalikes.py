"""
Letters of one script that pass for letters of another, folded inside words that mix scripts.

The pairs are from Unicode's confusables.txt (UTS #39, version 13.0.0), between Latin letters and those of Cyrillic,
Greek and Armenian, put in small letters: a pair is listed when the small or the capital letters are confusable there.
Left out on purpose: all digits; rare letters; μ, because `μm`, `μg` and `μl` must never become `mm`, `mg` and `ml`.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_LATIN: Final = "a-z\u00df-\u00f6\u00f8-\u02af\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff"
_CYRILLIC: Final = "\u0400-\u0482\u048a-\u052f\ua640-\ua66e\ua680-\ua69d"
_GREEK: Final = "\u0370-\u03ff\u1f00-\u1fff"
_ARMENIAN: Final = "\u0531-\u0588"
# In the order of preference when nothing else decides.
_SCRIPTS: Final = (_LATIN, _CYRILLIC, _GREEK, _ARMENIAN)
_MARKS: Final = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff"

_LETTERS: Final = tuple(re.compile(f"[{script}]") for script in _SCRIPTS)
_NOT_LATIN: Final = re.compile(f"[{_CYRILLIC}{_GREEK}{_ARMENIAN}]")
_WORD: Final = re.compile(rf"[\w{_MARKS}]+")
_NEUTRAL: Final = rf"(?:[^\W{''.join(_SCRIPTS)}]|[{_MARKS}])*+"
# A mixed word has two neighbouring letters of different scripts. Possessive, so that one long word stays linear.
_SEAM: Final = re.compile(
    "|".join(f"[{one}]{_NEUTRAL}[{''.join(other for other in _SCRIPTS if other != one)}]" for one in _SCRIPTS)
)


def _pairs(ours: str, latin: str) -> dict[int, int]:
    return {ord(one): ord(other) for one, other in zip(ours, latin, strict=True)}


# What each letter passes for in a Latin word, by script in the order of _SCRIPTS.
_TO_LATIN: Final[tuple[dict[int, int], ...]] = (
    {},
    _pairs("авгекмнорстухьѕіјѡѵүһҽӏԁԍԛԝ", "abrekmhopctyxbsijwvyheldgqw"),
    _pairs("αβγεζηικνορτυχ", "abyezhikvoptux"),
    _pairs("ագզհոսցտօ", "wqqhnugso"),
)
# What a Latin letter passes for in a word of that script: the alphabets in use only, so that `l`, `d`, `s` and `w`
# in a word full of Cyrillic look-alikes still say that it was a Latin one.
_FROM_LATIN: Final[tuple[dict[int, int], ...]] = (
    {},
    _pairs("abcehijkmoptxy", "авсеніјкмортху"),
    _pairs("abehiknoptuvxyz", "αβεηικνορτυνχυζ"),
    _pairs("ghnoqu", "ցհոօզս"),
)
_ALL_TO_LATIN: Final = {ours: latin for table in _TO_LATIN for ours, latin in table.items()}
# Into each script from any other: over the Latin letter that both resemble.
_INTO: Final[tuple[dict[int, int], ...]] = (
    _ALL_TO_LATIN,
    *(
        {ours: into[latin] for ours, latin in _ALL_TO_LATIN.items() if latin in into and ours not in own} | into
        for own, into in zip(_TO_LATIN[1:], _FROM_LATIN[1:], strict=True)
    ),
)
# Letters that only one script has: they tell which script a text is in.
_NATIVE: Final = (
    re.compile(f"(?![{''.join(chr(c) for table in _FROM_LATIN for c in table)}])[{_LATIN}]"),
    *(
        re.compile(f"(?![{''.join(map(chr, table))}])[{script}]")
        for table, script in zip(_TO_LATIN[1:], _SCRIPTS[1:], strict=True)
    ),
)


def fold_lookalikes(text: str) -> str:
    """
    Return case-folded NFC `text` with every word that mixes Latin, Cyrillic, Greek or Armenian put into one script.

    A word wholly in one script is left as it is, whatever it looks like. A word that no single script can write is put
    into Latin letters as far as they go. Folding what was folded changes nothing.
    """
    if _NOT_LATIN.search(text) is None or _SEAM.search(text) is None:
        return text
    counts: list[int] | None = None

    def fold(match: re.Match[str]) -> str:
        nonlocal counts
        word = match[0]
        if word.isascii() or _SEAM.search(word) is None:
            return word
        # Accents come off first, so that ё passes for ë as е does for e.
        letters = unicodedata.normalize("NFD", word)
        homes = _homes(letters)
        if len(homes) > 1 and counts is None:
            counts = [sum(1 for _ in native.finditer(text)) for native in _NATIVE]
        return letters.translate(_INTO[_choose(homes, letters, counts or [])])

    return unicodedata.normalize("NFC", _WORD.sub(fold, text))


def _homes(letters: str) -> list[int]:
    """Return the scripts present in `letters` in which all of them can be written."""
    present = [script for script, pattern in enumerate(_LETTERS) if pattern.search(letters)]
    return [
        home
        for home in present
        if all(
            _INTO[home].keys() >= set(map(ord, _LETTERS[other].findall(letters))) for other in present if other != home
        )
    ]


def _choose(homes: list[int], letters: str, counts: list[int]) -> int:
    """Return the home that most unmistakable letters of the whole text speak for, then most letters of the word."""
    if len(homes) < 2:
        return homes[0] if homes else 0
    return max(homes, key=lambda home: (counts[home], len(_LETTERS[home].findall(letters)), -home))
