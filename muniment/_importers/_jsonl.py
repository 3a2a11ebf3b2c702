"""JSON lines: one `{"role", "content", "time"}` a line, as most chat programs can export."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from muniment.events._errors import BadTime
from muniment.events._time import parse_instant

from ._turns import MAX_VALUE_BYTES, Role, Skipped, Turn, as_object, fault_in_text

_BOM = b"\xef\xbb\xbf"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}


class JsonlTranscript:
    """
    The turns of a file of JSON lines; the position is the line number, blank lines counted.

    The conversation is named after the file. `name` and `session` are taken when a line has them. Only the exact roles
    `user` and `assistant` are those; every other one is `other`.
    """

    name = "jsonl"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._conversation = os.fsencode(path.stem).decode("utf-8", "replace")
        self.total_bytes = path.stat().st_size
        self.bytes_read = 0

    def turns(self) -> Iterator[Turn | Skipped]:
        """Yield a turn for each line that is one; a broken line is `Skipped`, and the next is read."""
        self.bytes_read = 0
        with self._path.open("rb") as file:
            for number, line in enumerate(self._lines(file), start=1):
                if line is None:
                    yield Skipped(where=f"line {number}", why=f"it is longer than {MAX_VALUE_BYTES} bytes")
                elif line.strip():
                    yield _turn(line, number, self._conversation)

    def _lines(self, file: BinaryIO) -> Iterator[bytes | None]:
        """Yield the lines; None for one that is too long, which is passed over without being held."""
        first = True
        while line := file.readline(MAX_VALUE_BYTES):
            self.bytes_read += len(line)
            too_long = len(line) == MAX_VALUE_BYTES and not line.endswith(b"\n")
            if too_long:
                self._pass_over_line(file)
            if first:
                line = line.removeprefix(_BOM)
                first = False
            yield None if too_long else line

    def _pass_over_line(self, file: BinaryIO) -> None:
        while rest := file.readline(MAX_VALUE_BYTES):
            self.bytes_read += len(rest)
            if rest.endswith(b"\n"):
                return


class _Unusable(Exception):
    """Why a line gives no turn."""


def _turn(line: bytes, number: int, conversation: str) -> Turn | Skipped:
    try:
        record = _record(line)
        role = _text(record, "role", needed=True)
        return Turn(
            conversation=conversation,
            position=str(number),
            speaker=_text(record, "name") or role,
            role=_ROLES.get(role, "other"),
            text=_text(record, "content", needed=True),
            said_at=_said_at(record.get("time")),
            session=_text(record, "session"),
        )
    except _Unusable as error:
        return Skipped(where=f"line {number}", why=str(error))


def _record(line: bytes) -> dict[str, object]:
    # Decoded here because json.loads lets lone surrogates in bytes pass, and guesses at UTF-16.
    try:
        record = as_object(json.loads(line.decode("utf-8")))
    except UnicodeDecodeError:
        raise _Unusable("it is not UTF-8") from None
    except (ValueError, RecursionError):
        raise _Unusable("it is not JSON, or was cut short") from None
    if record is None:
        raise _Unusable("it is not a JSON object")
    return record


def _text(record: dict[str, object], key: str, *, needed: bool = False) -> str:
    value = record.get(key)
    if value is None and not needed:
        return ""
    if not isinstance(value, str):
        raise _Unusable(f"`{key}` is {'missing' if value is None else 'not text'}")
    fault = fault_in_text(value)
    if fault and (value or needed):
        raise _Unusable(f"`{key}`: {fault}")
    return value


def _said_at(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _Unusable("`time` is neither text nor a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise _Unusable("`time` is not a finite number")
    try:
        return parse_instant(value if isinstance(value, str) else _epoch_text(value))
    except (BadTime, ValueError):  # ValueError: an integer of thousands of digits
        raise _Unusable("`time` cannot be read as an instant") from None


def _epoch_text(number: float) -> str:
    # A float of seconds prints seven decimals, or an exponent; neither is an instant.
    return f"@{number:.6f}" if isinstance(number, float) else f"@{number}"
