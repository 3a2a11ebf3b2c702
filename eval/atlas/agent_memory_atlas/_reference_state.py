"""What the reference keeps, and how it finds and compares texts."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ._adapter import Entry, Item, Key

_INVISIBLE = {"Cf", "Cc"}
_LOOK_ALIKES = str.maketrans("аеорсух", "aeopcyx")


@dataclass
class Record:
    """A memory; `closed` is the write that ended it."""

    id: str
    scope: str
    text: str
    by: str
    key: Key | None
    value: str | None
    source: str | None
    derived_from: tuple[str, ...]
    valid_from: datetime | None
    valid_to: datetime | None
    seq: int
    status: str = "active"
    replaces: str | None = None
    closed: int | None = None
    shared: set[str] = field(default_factory=set[str])


@dataclass
class Tombstone:
    """Digests of a rejected value; `note` is for the leak that quotes."""

    id: str
    scope: str
    digests: set[str]
    note: str
    lifted: bool = False


@dataclass
class State:
    """Everything."""

    seq: int = 0
    records: dict[str, Record] = field(default_factory=dict[str, Record])
    tombstones: list[Tombstone] = field(default_factory=list[Tombstone])
    log: list[tuple[str, Entry]] = field(default_factory=list[tuple[str, Entry]])
    grants: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    secret: bytes = field(default_factory=lambda: os.urandom(16))
    # Only leaks use these: what a careless product would have lying about.
    attic: list[Record] = field(default_factory=list[Record])
    copies: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    hidden: set[str] = field(default_factory=set[str])


def ranked(query: str, items: Sequence[Item]) -> list[Item]:
    """Return the items that share words with a query, the most first, then the oldest."""
    asked = _words(query)
    scored = [(len(asked & _words(item.text)), number, item) for number, item in enumerate(items)]
    return [item for score, _, item in sorted(scored, key=lambda one: (-one[0], one[1])) if score]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def normal_form(text: str, without: Collection[str] = ()) -> str:
    """Return the form in which values are compared, some of its steps left out."""
    if "compatibility" not in without:
        text = unicodedata.normalize("NFKC", text)
    if "invisible" not in without:
        text = "".join(c for c in text if unicodedata.category(c) not in _INVISIBLE)
    if "look_alike" not in without:
        text = text.translate(_LOOK_ALIKES)
    if "case" not in without:
        text = text.casefold()
    if "white_space" not in without:
        text = " ".join(text.split())
    return text if "trailing_stop" in without else text.rstrip(".").rstrip()
