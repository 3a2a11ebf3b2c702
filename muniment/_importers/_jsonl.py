"""JSON lines: one `{"role", "content", "time"}` a line, as most chat programs can export."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ._instants import BadInstant, instant_of
from ._lines import Unusable, numbered_lines, record_of
from ._turns import Role, Skipped, Turn, fault_in_text

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
            for number, line in numbered_lines(file, self._count):
                yield line if isinstance(line, Skipped) else _turn(line, number, self._conversation)

    def _count(self, size: int) -> None:
        self.bytes_read += size


def _turn(line: bytes, number: int, conversation: str) -> Turn | Skipped:
    try:
        record = record_of(line)
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
    except Unusable as error:
        return Skipped(where=f"line {number}", why=str(error), code=error.code)


def _text(record: dict[str, object], key: str, *, needed: bool = False) -> str:
    value = record.get(key)
    if value is None and not needed:
        return ""
    if not isinstance(value, str):
        raise Unusable(f"`{key}` is {'missing' if value is None else 'not text'}")
    fault = fault_in_text(value)
    if fault and (value or needed):
        raise Unusable(f"`{key}`: {fault}", "unfit")
    return value


def _said_at(value: object) -> int | None:
    try:
        return instant_of(value)
    except BadInstant as error:
        raise Unusable(f"`time` {error}") from None
