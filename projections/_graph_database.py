"""One DuckDB database in memory, filled from the register and the log. Only `_graph.py` imports it, when it must."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, cast

import duckdb

from muniment.events import QueryTooLarge

from ._bundle import Projections
from ._graph_rows import (
    Columns,
    Row,
    Scopes,
    decision_columns,
    event_columns,
    fate_columns,
    link_columns,
    memory_columns,
    own_links,
    select_list,
    tombstone_columns,
)
from ._graph_schema import CHANGES, NEIGHBOURHOOD, STANDING, TABLES, VIEWS
from ._sandbox import Sandbox, run_select
from ._state import FAR_FUTURE, PENDING_TERM, Fate, Link, Memory

_CHUNK: Final = 20_000
_OWN: Final = 1 << 40
"""Numbers of the links that memories are recorded with come after those of links made as such."""


class Database(Sandbox):
    """The rows of some scopes, and the views over them at a point."""

    def __init__(self, state: Projections, scopes: Scopes, memory_limit: str, erased: object) -> None:
        super().__init__(memory_limit)
        self._state, self._scopes, self._memory_limit = state, scopes, memory_limit
        self.erased = erased
        self._seq, self._point = 0, (0, -1)
        self._fates: dict[bytes, int] = {}
        self._links = 0
        self._open_links: dict[int, Link] = {}
        self._tombstones: list[tuple[int, int]] = []
        self.connection.execute(TABLES)
        self.connection.execute("INSERT INTO raw.reader VALUES (NULL)")
        self.connection.execute(_filled(VIEWS))
        self._author: str | None = None

    def bring_to(self, valid_at: int, known: int) -> None:
        """Take in what is new, and work out each memory's status at the point; closes itself when that fails."""
        try:
            self._catch_up()
            self._move_to(valid_at, known)
        except duckdb.OutOfMemoryException as error:
            # Half filled: what it would answer is wrong.
            self.close()
            raise QueryTooLarge(limit=f"{self._memory_limit} of memory") from error

    def show_to(self, author: str | None) -> None:
        """Show what waits for a person to its author alone, or all of it when that is None."""
        if author != self._author:
            self.connection.execute("UPDATE raw.reader SET author = ?", [author])
            self._author = author

    def run(self, sql: str, *, seconds: float, max_rows: int) -> tuple[list[str], list[Row]]:
        """Run one SELECT from outside."""
        return run_select(self.connection, sql, seconds=seconds, max_rows=max_rows)

    def neighbourhood(self, start: bytes, *, depth: int, valid_at: int, known: int) -> list[Row]:
        """Return the links around a memory; see `Graph.neighbourhood`."""
        given: dict[str, object] = {
            "start": start.hex(), "depth": depth, "valid_at": valid_at, "known": known,
            "scopes": None if self._scopes is None else sorted(self._scopes),
        }  # fmt: skip
        return self.ask(_filled(NEIGHBOURHOOD), given)

    def ask(self, sql: str, given: dict[str, object]) -> list[Row]:
        """Run a statement of our own."""
        return cast("list[Row]", self.connection.execute(sql, given or None).fetchall())

    def _catch_up(self) -> None:
        register = self._state.register
        if self._seq == register.seq:
            return
        self._add_memories()
        self._add_links()
        seen = self._sees
        first = bisect_right(register.timeline, self._seq, key=lambda row: row.seq)
        self._insert("events", event_columns([row for row in register.timeline[first:] if seen(row.scope)]))
        decisions = [d for d in register.decisions.values() if d.seq > self._seq and seen(d.scope)]
        self._insert("decisions", decision_columns(self._state, decisions))
        tombstones = [t for t in self._state.tombstones.all if seen(t.scope)]
        if (now := [(t.seq, t.lifted_seq) for t in tombstones]) != self._tombstones:
            self.connection.execute("DELETE FROM raw.tombstones")
            self._insert("tombstones", tombstone_columns(tombstones))
            self._tombstones = now
        self._seq, self._point = register.seq, (0, -1)

    def _move_to(self, valid_at: int, known: int) -> None:
        # Not again where it cannot differ from what was worked out before.
        before, known_before = self._point
        if known == known_before and (valid_at == before or not self._changes(before, valid_at)):
            return
        self._point = (0, -1)  # a failure below leaves no point, rather than a wrong one
        self.connection.execute("DELETE FROM raw.point")
        self.connection.execute("INSERT INTO raw.point VALUES (?, ?)", [valid_at, known])
        self.connection.execute(_filled(STANDING))
        self._point = (valid_at, known)

    def _changes(self, one: int, other: int) -> bool:
        found = self.ask(_filled(CHANGES), {"first": min(one, other), "last": max(one, other)})
        return found != [(0,)]

    def _sees(self, scope: str) -> bool:
        return self._scopes is None or scope in self._scopes

    def _add_memories(self) -> None:
        register = self._state.register
        fresh: list[Memory] = []
        fates: list[tuple[Memory, Fate]] = []
        for scope, rows in register.rows.items():
            if not self._sees(scope):
                continue
            for memory in rows:
                known = self._fates.get(memory.id, -1)
                if known < 0:
                    fresh.append(memory)
                if len(memory.fates) > known:
                    fates += [(memory, fate) for fate in memory.fates[max(known, 0) :]]
                    self._fates[memory.id] = len(memory.fates)
        fresh.sort(key=lambda memory: memory.seq)
        for low in range(0, len(fresh), _CHUNK):
            self._insert("memories", memory_columns(self._state, fresh[low : low + _CHUNK]))
        self._insert("fates", fate_columns(register, fates))
        links = own_links(fresh)
        self._insert("links", link_columns([(_OWN + link.seq, link) for link in links], stated=False))

    def _add_links(self) -> None:
        register = self._state.register
        for nr in list(self._open_links):
            link = register.links[nr]
            if link.ended_seq < FAR_FUTURE:
                del self._open_links[nr]
                self.connection.execute(
                    "UPDATE raw.links SET ended_seq = ?, ended_at = ? WHERE nr = ?", [link.ended_seq, link.ended_at, nr]
                )
        fresh = [
            (nr, link)
            for nr, link in enumerate(register.links[self._links :], self._links)
            if link.start in self._fates and link.end in self._fates
        ]
        self._insert("links", link_columns(fresh, stated=True))
        self._open_links.update({nr: link for nr, link in fresh if link.ended_seq == FAR_FUTURE})
        self._links = len(register.links)

    def _insert(self, table: str, columns: Columns) -> None:
        if not len(columns["seq"]):
            return
        names = ", ".join(f'"{name}"' for name in columns)
        self.connection.register("filling", columns)
        try:
            self.connection.execute(
                f"INSERT INTO raw.{table} ({names}) SELECT {select_list(columns)} FROM filling"  # noqa: S608  # our names
            )
        finally:
            self.connection.unregister("filling")


def _filled(sql: str) -> str:
    return sql.replace("$far", str(FAR_FUTURE)).replace("$term", str(PENDING_TERM))
