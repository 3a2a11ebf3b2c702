"""
The names of memory files: paths below `/memories` that say what they are, and the one reason why another is refused.

A path is never used as one: it is the subject of a belief key. What is refused here would still mislead a person who
reads it, or a program that exports it: `..` in any spelling, another slash, a drive, a letter that is not to be seen.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from muniment.gate._text import is_invisible, visible

ROOT: Final = "/memories"
MAX_PATH: Final = 512
MAX_SEGMENT: Final = 128
MAX_DEPTH: Final = 16

_ENCODED: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_DOTS: Final = re.compile(r"\.+")
_SLASHES: Final = frozenset("\\∕⁄⧸⟋╱〳∖⧵⟍╲﹨／＼¦")
_SHOWN: Final = 200


class FileProblem(Exception):
    """What the tool answers instead of a result; the text is for the model."""


def parse_path(given: object, name: str = "path") -> str:
    """
    Return the path in its one spelling, without a slash at the end; the root is `/memories`.

    Raises:
        FileProblem: it is no text, does not lie below the root, or could be read as another path.
    """
    if not isinstance(given, str):
        raise FileProblem(f"Error: `{name}` is required, and is a text")
    if given != ROOT and not given.startswith(ROOT + "/"):
        raise FileProblem(f"Path must start with /memories, got: {shown_path(given)}")
    path = given.rstrip("/")
    if path == ROOT:
        return path
    segments = path.removeprefix(ROOT + "/").split("/")
    if len(path) > MAX_PATH or len(segments) > MAX_DEPTH or any(len(segment) > MAX_SEGMENT for segment in segments):
        raise FileProblem(
            f"Error: Path {shown_path(given)} is too long: at most {MAX_PATH} characters, {MAX_DEPTH} levels, and "
            f"{MAX_SEGMENT} characters a name"
        )
    if any(_leads_astray(segment) for segment in segments):
        raise FileProblem(f"Path {shown_path(given)} would escape /memories directory")
    if any(_is_unclear(segment) for segment in segments):
        raise FileProblem(f"Error: Path {shown_path(given)} holds characters that look like others, or like nothing")
    return path


def shown_path(path: str) -> str:
    """Return a path as an error may repeat it: short, on one line, with nothing in it that cannot be seen."""
    cut = path if len(path) <= _SHOWN else path[:_SHOWN] + "…"
    return cut if cut.isprintable() else visible(cut)


def parents(path: str) -> list[str]:
    """Return the directories that a path lies in, the nearest first, the root last."""
    segments = path.split("/")
    return ["/".join(segments[:end]) for end in range(len(segments) - 1, 1, -1)]


def _leads_astray(segment: str) -> bool:
    # An empty one is `//`; three dots and more are `..` to some programs, and so are the encoded and the wide ones.
    plain = unicodedata.normalize("NFKC", segment)
    return (
        not segment
        or _DOTS.fullmatch(plain) is not None
        or "/" in plain
        or _ENCODED.search(plain) is not None
        or _DRIVE.match(plain) is not None
        or any(character in _SLASHES for character in segment + plain)
    )


def _is_unclear(segment: str) -> bool:
    return (
        unicodedata.normalize("NFKC", segment) != segment
        or segment != segment.strip()
        or any(character != " " and (character.isspace() or is_invisible(character)) for character in segment)
    )
