"""Tells which format a file is in from its beginning, or says what was seen instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from muniment.events._errors import BadArgument

from ._jsonl import JsonlTranscript
from ._locomo import LocomoTranscript
from ._turns import Transcript, as_object

FORMATS: dict[str, Callable[[Path], Transcript]] = {"locomo": LocomoTranscript, "jsonl": JsonlTranscript}

_HEAD_BYTES = 64 * 1024
_LOCOMO_KEYS = frozenset({"qa", "conversation", "event_summary", "observation", "session_summary", "sample_id"})
_LOCOMO_MARKS = re.compile(r'"dia_id"\s*:|"session_\d+(?:_date_time)?"\s*:|"conversation"\s*:\s*\{\s*"speaker_a"')
_JSONL_KEYS = frozenset({"role", "content", "time"})
_FIRST_KEY = re.compile(r'\s*(\[?)\s*\{\s*"((?:[^"\\]|\\.){1,100})"\s*:')


def detect_format(path: Path) -> str:
    """Return the name of the file's format; `BadArgument` says what was seen when it is none that is known."""
    head = _read_head(path)
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    first = _FIRST_KEY.match(text)
    if _looks_like_jsonl(text):
        return "jsonl"
    if first and (first[2] in _LOCOMO_KEYS or _LOCOMO_MARKS.search(text)):
        return "locomo"
    if first and not first[1] and first[2] in _JSONL_KEYS and "\n" not in text:
        return "jsonl"  # one line longer than the part that is read
    raise _unknown(path, f"saw {_describe(head, text, first)}")


def open_transcript(path: Path, *, format: str | None = None) -> Transcript:  # noqa: A002  (the name callers use)
    """Return the file's transcript, its format detected unless it is given. Nothing is read before `turns`."""
    if format is None:
        return FORMATS[detect_format(path)](path)
    if format not in FORMATS:
        raise BadArgument(argument="format", detail=f"`{format}` is not known; known are {_known()}")
    _must_be_file(path)
    return FORMATS[format](path)


def _read_head(path: Path) -> bytes:
    _must_be_file(path)
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError as error:
        raise BadArgument(argument="path", detail=f"`{path}` cannot be read: {error.strerror}") from error


def _must_be_file(path: Path) -> None:
    if not path.is_file():
        what = "is not a file" if path.exists() else "does not exist"
        raise BadArgument(argument="path", detail=f"`{path}` {what}")


def _looks_like_jsonl(text: str) -> bool:
    """Whether any line is a turn: the first may be broken, and the last may be cut by the end of what was read."""
    return any(_is_turn(line) for line in text.split("\n") if line.lstrip().startswith("{"))


def _is_turn(line: str) -> bool:
    try:
        record = as_object(json.loads(line))
    except (ValueError, RecursionError):
        return False
    return record is not None and {"role", "content"} <= record.keys()


def _unknown(path: Path, seen: str) -> BadArgument:
    return BadArgument(
        argument="format",
        detail=f"the format of `{path.name}` is not known: {seen}; known are {_known()}",
        hint="name it with `format=` if it is one of those",
    )


def _known() -> str:
    return ", ".join(f"`{name}`" for name in FORMATS)


def _describe(head: bytes, text: str, first: re.Match[str] | None) -> str:
    if not text.strip():
        return "nothing but white space" if text else "an empty file"
    if head.startswith((b"\x1f\x8b", b"PK\x03\x04", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd")):
        return "a compressed file"
    if b"\0" in head:
        return "a binary file, or UTF-16"
    if first:
        return f"a JSON {'array of objects' if first[1] else 'object'} whose first key is `{first[2]}`"
    if text.lstrip()[0] in "[{":
        return "JSON without a conversation in it"
    return "text that is not JSON"
