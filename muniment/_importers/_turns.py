"""What every reader gives: turns, and what it left out and why."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Literal, Protocol, cast

import msgspec

Role = Literal["user", "assistant", "other"]

MAX_VALUE_BYTES = 16 * 1024 * 1024
"""The longest line or single JSON value that is read: a 1 MB text fits even when every character is `\\uXXXX`."""


class Turn(msgspec.Struct, frozen=True):
    """
    One thing somebody said.

    `conversation` and `position` together name it, and name it again when the same file is read again.
    `said_at` is in microseconds since the epoch, UTC; None where the file gives no time.
    """

    conversation: str
    position: str
    speaker: str
    role: Role
    text: str
    said_at: int | None
    session: str


class Skipped(msgspec.Struct, frozen=True):
    """A place in the file that gave no turn. `why` never quotes what was said there."""

    where: str
    why: str


class Transcript(Protocol):
    """
    A file in one format.

    `turns` may be called again and then starts from the beginning. `bytes_read` moves while it runs and ends at
    `total_bytes`, which counts the file twice where a format needs two passes.
    """

    name: str
    total_bytes: int
    bytes_read: int

    def turns(self) -> Iterator[Turn | Skipped]:
        """Yield the turns in file order, in bounded memory; what cannot be used is yielded as `Skipped`."""
        ...


def fault_in_text(text: str) -> str | None:
    """Return why a text cannot be kept exactly, or None when it can."""
    if "\0" in text:
        return "the text holds a NUL"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "the text holds a lone surrogate"
    if not any(_is_visible(character) for character in text):
        return "the text has no visible character"
    return None


def as_object(value: object) -> dict[str, object] | None:
    """Return a decoded JSON value if it is an object."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in {"Cc", "Cf", "Zs", "Zl", "Zp"}
