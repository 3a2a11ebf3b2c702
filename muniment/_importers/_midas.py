"""Midas (midas-memory): what `midas export` writes, `{"midas_export": 1, "records": [...]}`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ._cursor import JsonCursor, Malformed
from ._instants import BadInstant, instant_of
from ._sources import Source, stopped
from ._turns import Ending, Found, Note, Skipped, Turn, as_object, plain, unfit

KINDS: Final = frozenset({"note", "chat", "mission", "fact", "preference", "constraint", "commitment"})
_WEAKER: Final = frozenset({"planning", "action", "observation"})
_LEAST, _MOST = 1, 5


class MidasTranscript:
    """The records with their kinds, importance and times, and what superseded what. Vectors are left out."""

    name = "midas"

    def __init__(self, path: Path) -> None:
        self._source = Source(path, None, path.stat().st_size)
        self.total_bytes = self._source.size
        self.bytes_read = 0

    def turns(self) -> Iterator[Found]:
        """Yield the records in file order."""
        self.bytes_read = 0
        with self._source.open() as file:
            cursor = JsonCursor(file, self._count)
            chains = _Chains()
            try:
                for key in cursor.members():
                    if key == "records" and cursor.peek() == "[":
                        for index in cursor.elements():
                            yield from _record(as_object(cursor.value()) or {}, f"record {index + 1}", chains)
                    else:
                        cursor.skip()
            except Malformed as error:
                yield stopped(self._source, error)
            yield from chains.rest()

    def _count(self, size: int) -> None:
        self.bytes_read += size


class _Chains:
    """Who supersedes whom: the file says it of the earlier one, and a store wants it said by the later one."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[tuple[str, str]]] = {}
        self._since: dict[str, int | None] = {}

    def take(self, identity: str, where: str, successor: str, since: int | None) -> tuple[str | None, list[Ending]]:
        """Return what a record supersedes, and what it ends beside that."""
        before = self._waiting.pop(identity, [])
        endings = [Ending(place, name, since, "superseded in midas") for name, place in before[1:]]
        if successor and successor in self._since:
            endings.append(Ending(where, identity, self._since[successor], "superseded in midas"))
        elif successor:
            self._waiting.setdefault(successor, []).append((identity, where))
        self._since[identity] = since
        return (before[0][0] if before else None), endings

    def rest(self) -> Iterator[Ending]:
        """Yield the end of what was superseded by something that is not in the file."""
        for waiting in self._waiting.values():
            for name, where in waiting:
                yield Ending(where, name, None, "superseded in midas, by a record that is not in the file")


def _record(record: dict[str, object], where: str, chains: _Chains) -> Iterator[Found]:
    identity, text, kind = plain(record.get("id")), record.get("content"), record.get("kind")
    if not identity or not isinstance(text, str):
        yield Skipped(where=where, why="it has no usable `id` or `content`")
        return
    where = f"{where}, {identity}"
    try:
        since = instant_of(record.get("created_at"))
    except BadInstant as error:
        yield Skipped(where=where, why=f"`created_at` {error}")
        return
    bad = unfit(where, text)
    if bad is not None:
        yield bad
        return
    supersedes, endings = chains.take(identity, where, plain(record.get("superseded_by")), since)
    claimed = record.get("provenance")
    told = {key: said for key in ("source", "actor", "provenance") if (said := plain(record.get(key)))}
    metadata = as_object(record.get("metadata")) or {}
    note = Note(
        kind=kind if isinstance(kind, str) and kind in KINDS else "note",
        # What a file claims to be a user's confirmation was signed by nobody.
        provenance=claimed if isinstance(claimed, str) and claimed in _WEAKER else "observation",
        importance=_importance(record.get("importance")),
        metadata={**metadata, **({"imported": told} if told else {})},
        supersedes=supersedes,
        reason=None if supersedes is None else "superseded in midas",
    )
    yield Turn("records", identity, "", "other", text, since, "", note=note, name=identity)
    yield from endings


def _importance(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _LEAST <= value <= _MOST:
        return None
    return (value - _LEAST) / (_MOST - _LEAST)
