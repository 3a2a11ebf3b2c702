"""mem0: what `get_all` returns and its exports hold, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ._cursor import JsonCursor, Malformed
from ._instants import BadInstant, instant_of
from ._sources import Source, stopped
from ._turns import Found, Note, Skipped, Turn, as_list, as_object, plain, unfit

LISTS = ("results", "memories")
_WHOSE = ("user_id", "agent_id", "app_id", "run_id")


class Mem0Transcript:
    """The memories, each valid since it was last changed; relations of the graph are facts of their own."""

    name = "mem0"

    def __init__(self, path: Path) -> None:
        self._source = Source(path, None, path.stat().st_size)
        self.total_bytes = self._source.size
        self.bytes_read = 0

    def turns(self) -> Iterator[Found]:
        """Yield the memories in file order."""
        self.bytes_read = 0
        with self._source.open() as file:
            cursor = JsonCursor(file, self._count)
            try:
                if cursor.peek() == "[":
                    yield from _memories(cursor)
                else:
                    for key in cursor.members():
                        if key in LISTS and cursor.peek() == "[":
                            yield from _memories(cursor)
                        elif key == "relations" and cursor.peek() == "[":
                            yield from _relations(cursor)
                        else:
                            cursor.skip()
            except Malformed as error:
                yield stopped(self._source, error)

    def _count(self, size: int) -> None:
        self.bytes_read += size


def _memories(cursor: JsonCursor) -> Iterator[Found]:
    for index in cursor.elements():
        record = as_object(cursor.value())
        yield _memory(record or {}, f"memory {index + 1}")


def _memory(record: dict[str, object], where: str) -> Found:
    identity = plain(record.get("id"))
    text = next((record[key] for key in ("memory", "text", "data") if isinstance(record.get(key), str)), None)
    if not identity or not isinstance(text, str):
        return Skipped(where=where, why="it has no usable `id` or `memory`")
    where = f"{where}, {identity}"
    try:
        # The words are those of the last change.
        since = instant_of(record.get("updated_at") or record.get("created_at"))
        until = instant_of(record.get("expiration_date"))
    except BadInstant as error:
        return Skipped(where=where, why=f"one of its times {error}")
    whose = {key: said for key in _WHOSE if (said := plain(record.get(key)))}
    metadata = as_object(record.get("metadata")) or {}
    note = Note(
        kind="fact",
        valid_to=until,
        tags=tuple(tag for item in as_list(record.get("categories")) if (tag := plain(item))),
        metadata={**metadata, **({"imported": whose} if whose else {})},
    )
    name = next(iter(whose.values()), "memories")
    return unfit(where, text) or Turn(name, identity, "", "other", text, since, "", note=note)


def _relations(cursor: JsonCursor) -> Iterator[Found]:
    for index in cursor.elements():
        record = as_object(cursor.value()) or {}
        where = f"relation {index + 1}"
        start, end = plain(record.get("source")), plain(record.get("target")) or plain(record.get("destination"))
        relation = plain(record.get("relationship")) or plain(record.get("relation"))
        if not start or not end or not relation:
            yield Skipped(where=where, why="it has no usable `source`, `relationship` or `target`")
            continue
        text = f"{start} {relation} {end}"
        note = Note(kind="fact", about=(start, relation), value=end, many=True)
        yield unfit(where, text) or Turn("relations", text, "", "other", text, None, "", note=note)
