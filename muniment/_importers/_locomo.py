"""LoCoMo: a JSON array of conversations, each of dated sessions of turns between two people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ._cursor import JsonCursor, Malformed
from ._turns import Skipped, Turn, as_object, fault_in_text

_SESSION = re.compile(r"session_\d+")
_SESSION_TIME = re.compile(r"(\d{1,2}):(\d{2}) ?([ap])m on (\d{1,2}) ([a-z]+),? (\d{4})", re.IGNORECASE)
# Not strptime: its month names are those of the process's locale.
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECOND = 1_000_000


class LocomoTranscript:
    """
    The turns of every conversation of a LoCoMo file, in two passes.

    The first pass is needed because the file names a conversation after its turns. A conversation that is cut short is
    left out whole: half of it would come under a name that the complete file does not give it.
    """

    name = "locomo"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.total_bytes = 2 * path.stat().st_size
        self.bytes_read = 0

    def turns(self) -> Iterator[Turn | Skipped]:
        """Yield the turns with the time of their session, a second apart, all with role `other`."""
        self.bytes_read = 0
        outlines, broken = self._outlines()
        try:
            yield from self._second_pass(outlines)
        except Malformed as error:
            yield Skipped(where=f"character {error.position}", why="the file changed while it was read")
        if broken is not None:
            yield broken
        self.bytes_read = self.total_bytes

    def _outlines(self) -> tuple[list[_Outline | Skipped], Skipped | None]:
        found: list[_Outline | Skipped] = []
        with self._path.open("rb") as file:
            cursor = JsonCursor(file, self._count)
            try:
                for index in _each_conversation(cursor):
                    found.append(_outline(cursor, index + 1))
                if cursor.peek():
                    return found, Skipped(where="end of file", why="something follows the end of the JSON")
            except Malformed as error:
                return found, Skipped(where=f"character {error.position}", why=f"reading stopped here: {error.why}")
        return found, None

    def _second_pass(self, outlines: list[_Outline | Skipped]) -> Iterator[Turn | Skipped]:
        if not outlines:
            return
        left = Counter(outline.conversation for outline in outlines if isinstance(outline, _Outline))
        seen: dict[str, set[str]] = {}
        with self._path.open("rb") as file:
            cursor = JsonCursor(file, self._count)
            for index, outline in zip(_each_conversation(cursor), outlines, strict=False):
                if isinstance(outline, Skipped):
                    cursor.skip()
                    yield outline
                else:
                    name = outline.conversation
                    yield from _conversation(cursor, outline, seen.setdefault(name, set()))
                    left[name] -= 1
                    if not left[name]:
                        del seen[name]  # a file of many conversations would otherwise hold every position in it
                if index + 1 == len(outlines):
                    return  # the rest was found broken, and would raise here

    def _count(self, size: int) -> None:
        self.bytes_read += size


class _Outline(msgspec.Struct, frozen=True):
    conversation: str
    session_times: dict[str, object]


def parse_session_time(text: str) -> int | None:
    """Return `"1:56 pm on 8 May, 2023"`, read as UTC, in microseconds since the epoch; None if it is not so written."""
    match = _SESSION_TIME.fullmatch(text.strip())
    if match is None:
        return None
    hour, minute, half, day, month, year = match.groups()
    try:
        number = _MONTHS.index(month[:3].lower()) + 1
        if not 1 <= int(hour) <= 12:
            return None
        hours = int(hour) % 12 + (12 if half in "pP" else 0)
        moment = datetime(int(year), number, int(day), hours, int(minute), tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) * _SECOND


def _each_conversation(cursor: JsonCursor) -> Iterator[int]:
    """Yield before each conversation; a file that is one conversation, not in an array, counts as one."""
    if cursor.peek() == "{":
        yield 0
    else:
        yield from cursor.elements()


def _outline(cursor: JsonCursor, number: int) -> _Outline | Skipped:
    if cursor.peek() != "{":
        cursor.skip()
        return Skipped(where=f"conversation {number}", why="it is not a JSON object")
    name: object = None
    times: dict[str, object] | None = None
    for key in cursor.members():
        if key == "sample_id":
            name = cursor.value()
        elif key == "conversation" and cursor.peek() == "{":
            times = _session_times(cursor)
        else:
            cursor.skip()
    if times is None:
        return Skipped(where=f"conversation {number}", why="it has no object `conversation`")
    if name is None:
        name = f"conversation-{number}"
    if not isinstance(name, str | int) or fault_in_text(str(name)):
        return Skipped(where=f"conversation {number}", why="its `sample_id` is not usable text")
    return _Outline(conversation=str(name), session_times=times)


def _session_times(cursor: JsonCursor) -> dict[str, object]:
    times: dict[str, object] = {}
    for key in cursor.members():
        if key.endswith("_date_time"):
            times[key.removesuffix("_date_time")] = cursor.value()
        else:
            cursor.skip()
    return times


def _conversation(cursor: JsonCursor, outline: _Outline, seen: set[str]) -> Iterator[Turn | Skipped]:
    for key in cursor.members():
        if key != "conversation" or cursor.peek() != "{":
            cursor.skip()
            continue
        for session in cursor.members():
            if not _SESSION.fullmatch(session):
                cursor.skip()
            elif cursor.peek() != "[":
                cursor.skip()
                yield Skipped(where=f"{outline.conversation}/{session}", why="it is not a list of turns")
            else:
                yield from _session(cursor, outline, session, seen)


def _session(cursor: JsonCursor, outline: _Outline, session: str, seen: set[str]) -> Iterator[Turn | Skipped]:
    given = outline.session_times.get(session)
    start = parse_session_time(given) if isinstance(given, str) else None
    unreadable = given is not None and start is None
    for index in cursor.elements():
        turn = _turn(cursor.value(), outline.conversation, session, index, start)
        if isinstance(turn, Turn):
            where = f"{turn.conversation}/{turn.position}"
            if turn.position in seen:
                turn = Skipped(where=where, why="this position was used before in the conversation", code="duplicate")
            elif unreadable:
                turn = Skipped(where=where, why=f"the time of {session} cannot be read")
            else:
                seen.add(turn.position)
        yield turn


def _turn(value: object, conversation: str, session: str, index: int, start: int | None) -> Turn | Skipped:
    where = f"{conversation}/{session}[{index}]"
    record = as_object(value)
    if record is None:
        return Skipped(where=where, why="it is not a JSON object")
    position, speaker, text = record.get("dia_id"), record.get("speaker", ""), record.get("text", "")
    if not isinstance(position, str) or fault_in_text(position):
        return Skipped(where=where, why="it has no usable `dia_id`")
    where = f"{conversation}/{position}"
    if not isinstance(text, str) or not isinstance(speaker, str):
        return Skipped(where=where, why="`text` or `speaker` is not text")
    caption = record.get("blip_caption")
    if isinstance(caption, str) and caption.strip():
        text = f"{text} [image: {caption}]".lstrip()
    fault = fault_in_text(text) or (speaker and fault_in_text(speaker))
    if fault:
        return Skipped(where=where, why=fault, code="unfit")
    said_at = None if start is None else start + index * _SECOND
    return Turn(conversation, position, speaker, "other", text, said_at, session)
