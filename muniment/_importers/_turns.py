"""What every reader gives: turns, and what it left out and why."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Literal, Protocol, TypeAlias, cast

import msgspec

from muniment.events import Data

Role = Literal["user", "assistant", "other"]

MAX_VALUE_BYTES = 16 * 1024 * 1024
"""The longest line or single JSON value that is read: a 1 MB text fits even when every character is `\\uXXXX`."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a file of memories says of one beside its words; a turn of a conversation has none.

    `derived_from`, `links` and `supersedes` are names of other turns; those of links may come later in the file. With a
    `command`, that names the memory, so that it is found again, and its source is `source`; otherwise it is its place.
    """

    kind: str = "note"
    about: tuple[str, str] | None = None
    value: Data = None
    many: bool = False
    provenance: str = "observation"
    importance: float | None = None
    applies_when: str | None = None
    valid_to: int | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = {}
    reason: str | None = None
    source: str | None = None
    derived_from: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    supersedes: str | None = None
    command: str | None = None


class Turn(msgspec.Struct, frozen=True):
    """
    One thing somebody said.

    `conversation` and `position` together name it, and name it again when the same file is read again.
    `said_at` is in microseconds since the epoch, UTC; None where the file gives no time. `via` says through what the
    words came into the conversation, as in `tool:NAME`; they are nobody's own then. `name` is what other turns of the
    file call it, empty where none does. What is `beside` others must not be first where they are missing.
    """

    conversation: str
    position: str
    speaker: str
    role: Role
    text: str
    said_at: int | None
    session: str
    via: str = ""
    told: Mapping[str, object] = {}
    note: Note | None = None
    name: str = ""
    beside: bool = False


class Ending(msgspec.Struct, frozen=True):
    """The turn of this name holds no more, since `at`; None where the file does not say since when."""

    where: str
    name: str
    at: int | None
    reason: str


class Linking(msgspec.Struct, frozen=True):
    """One turn is linked to another; both are named, and the end may come later in the file."""

    where: str
    start: str
    type: str
    end: str


class Skipped(msgspec.Struct, frozen=True):
    """A place in the file that gave no turn. `why` never quotes what was said there; `code` is stable."""

    where: str
    why: str
    code: str = "damaged"


Found: TypeAlias = Turn | Ending | Linking | Skipped


class Transcript(Protocol):
    """
    A file in one format.

    `turns` may be called again and then starts from the beginning. `bytes_read` moves while it runs and ends at
    `total_bytes`, which counts the file twice where a format needs two passes.
    """

    name: str
    total_bytes: int
    bytes_read: int

    def turns(self) -> Iterator[Found]:
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


def unfit(where: str, text: str) -> Skipped | None:
    """Return the text's place as skipped when it cannot be kept exactly."""
    fault = fault_in_text(text)
    return None if fault is None else Skipped(where=where, why=fault, code="unfit")


def plain(value: object) -> str:
    """Return a value that names or titles something when it is usable text, and nothing otherwise."""
    return value if isinstance(value, str) and value and fault_in_text(value) is None else ""


def as_list(value: object) -> list[object]:
    """Return a decoded JSON value if it is an array, and no elements otherwise."""
    return cast("list[object]", value) if isinstance(value, list) else []


def as_object(value: object) -> dict[str, object] | None:
    """Return a decoded JSON value if it is an object."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in {"Cc", "Cf", "Zs", "Zl", "Zp"}
