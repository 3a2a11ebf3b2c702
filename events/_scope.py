"""
Scopes: who a memory belongs to, as segments joined by `/`, compared segment by segment and never as string prefixes.

A segment is 1 to 64 printable characters without `/`, `\\`, `*`, `?`, brackets, or white space at its ends, and is
neither `.` nor `..`. A scope has at most 16 segments and 255 characters, in NFC, with no invisible characters: two
scopes that look alike are alike. A scope is never used as a path on disk.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from ._errors import ScopeMalformed

STORE_SCOPE: Final = ""
"""The scope of events that concern the whole store: openings, enrolments, quarantines. No session can have it."""

_FORBIDDEN: Final = frozenset('\\*?[]{}"<>|')
_MAX_SEGMENTS: Final = 16
_MAX_SEGMENT: Final = 64
_MAX_SCOPE: Final = 255
_UNPRINTABLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def parse_scope(given: object) -> str:
    """
    Return the scope in the one form in which it is stored.

    Raises:
        ScopeMalformed: the text breaks a rule above; the message names it.
    """
    if not isinstance(given, str) or not given:
        raise ScopeMalformed(scope=given, detail="a scope is required")
    if len(given) > _MAX_SCOPE:
        raise ScopeMalformed(scope=given[:40] + "…", detail=f"longer than {_MAX_SCOPE} characters")
    segments = given.split("/")
    if len(segments) > _MAX_SEGMENTS:
        raise ScopeMalformed(scope=given, detail=f"more than {_MAX_SEGMENTS} segments")
    for segment in segments:
        if problem := _segment_problem(segment):
            raise ScopeMalformed(scope=given.encode("unicode_escape").decode("ascii"), detail=problem)
    return given


def covers(outer: str, inner: str) -> bool:
    """Tell whether `inner` is `outer` or lies below it. The store's own scope covers all."""
    return outer in (STORE_SCOPE, inner) or inner.startswith(outer + "/")


def ancestors(scope: str) -> list[str]:
    """Return the scope and those above it, the nearest first."""
    segments = scope.split("/")
    return ["/".join(segments[:n]) for n in range(len(segments), 0, -1)]


def _segment_problem(segment: str) -> str | None:
    if not segment:
        return "empty segment"
    if segment in (".", ".."):
        return f"segment `{segment}` is not a name"
    if len(segment) > _MAX_SEGMENT:
        return f"a segment is longer than {_MAX_SEGMENT} characters"
    if segment.strip() != segment:
        return "white space at the end of a segment"
    if unicodedata.normalize("NFC", segment) != segment:
        return "not in Unicode normal form C"
    for character in segment:
        if character in _FORBIDDEN:
            return f"character `{character}` is not allowed"
        if unicodedata.category(character) in _UNPRINTABLE:
            return "an unprintable or invisible character"
    return None
