"""
The graph: memories, links, events, decisions and tombstones as tables for SQL, filled when somebody asks.

It is derived from the register and the log at the moment of a query, so it has no watermark or digest of its own, and
nothing of it is ever on disk: DuckDB runs in memory with no directory to spill to. Each set of scopes has a database of
its own that holds nothing of other scopes, so that no SQL, however clever, can read past a session's scopes. A database
takes in what is new since the last query; once anything was erased it is dropped whole and filled again.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from typing import Final, cast

import duckdb

from muniment.events import QueryTooLarge

from ._bundle import Projections
from ._graph_rows import (
    Columns,
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
from ._sandbox import Row, Sandbox, run_select
from ._state import FAR_FUTURE, Fate, Link, Memory

Scopes = frozenset[str] | None
"""The scopes that a query may see; None for every scope, which is the operator's view."""

MAX_DATABASES: Final = 4
_CHUNK: Final = 20_000
_OWN: Final = 1 << 40
"""Numbers of the links that memories are recorded with come after those of links made as such."""
_FAR: Final = str(FAR_FUTURE)


class Graph:
    """
    SQL over one set of projections.

    `keep=False` drops what was filled after each query, for projections that do not learn of a later forget.
    Everything but `run` reads the projections: call it under whatever keeps them from changing. Where a mutex does so,
    take `lock` first and the mutex second, fill, let the mutex go, and `run`: then a slow query holds up nobody else.
    """

    def __init__(self, state: Projections, *, keep: bool = True, memory_limit: str = "1GB") -> None:
        self.lock = threading.RLock()
        self._state, self._keep, self._memory_limit = state, keep, memory_limit
        self._filled: dict[Scopes, Database] = {}
        self._checked = -1

    def query(
        self,
        sql: str,
        *,
        valid_at: int,
        known: int,
        scopes: Scopes,
        seconds: float = 10.0,
        max_rows: int = 100_000,
    ) -> tuple[list[str], list[Row]]:
        """
        Return the columns and rows of one SELECT over the views, at a point, in some scopes.

        Raises:
            BadArgument: it is not one SELECT, uses what it may not, or cannot be run.
            QueryTooLarge: it takes too long, too much memory, or too many rows; `seconds` does not count the filling.
        """
        with self.lock:
            self.fill(valid_at=valid_at, known=known, scopes=scopes)
            return self.run(sql, scopes=scopes, seconds=seconds, max_rows=max_rows)

    def fill(self, *, valid_at: int, known: int, scopes: Scopes) -> None:
        """Bring the scopes' database up to the projections, and to the point."""
        with self.lock:
            self._drop_outdated()
            database = self._filled.pop(scopes, None)
            if database is None:
                self._make_room()
                database = Database(self._state, scopes, self._memory_limit)
            try:
                database.catch_up()
                database.move_to(valid_at, min(known, self._state.seq))
            except duckdb.OutOfMemoryException as error:
                # Half filled: what it would answer is wrong.
                database.close()
                raise QueryTooLarge(limit=f"{self._memory_limit} of memory") from error
            self._filled[scopes] = database

    def run(
        self, sql: str, *, scopes: Scopes, seconds: float = 10.0, max_rows: int = 100_000
    ) -> tuple[list[str], list[Row]]:
        """Run one SELECT on what the last `fill` of the scopes left; see `query`."""
        with self.lock:
            try:
                return run_select(self._filled[scopes].connection, sql, seconds=seconds, max_rows=max_rows)
            finally:
                self._settle()

    def neighbourhood(self, start: bytes, *, depth: int, valid_at: int, known: int, scopes: Scopes) -> list[Row]:
        """
        Return the links around a memory, up to `depth` hops, the nearest first.

        Rows are (start, end, type, depth, valid_from, valid_to, recorded_at).
        """
        with self.lock:
            self.fill(valid_at=valid_at, known=known, scopes=scopes)
            given: dict[str, object] = {
                "start": start.hex(), "depth": depth, "valid_at": valid_at, "known": known,
                "scopes": None if scopes is None else sorted(scopes),
            }  # fmt: skip
            rows = self._filled[scopes].ask(NEIGHBOURHOOD.replace("$far", _FAR), given)
            self._settle()
            return rows

    def beliefs_as_of(self, *, valid_at: int, known: int, scopes: Scopes) -> list[bytes]:
        """Return which memories are the value of their key at the point, in the order in which each was recorded."""
        with self.lock:
            self.fill(valid_at=valid_at, known=known, scopes=scopes)
            rows = self._filled[scopes].ask("SELECT id FROM beliefs ORDER BY seq", {})
            self._settle()
            return [bytes.fromhex(cast("str", identity)) for (identity,) in rows]

    def close(self) -> None:
        """Drop everything that was filled."""
        with self.lock:
            for database in self._filled.values():
                database.close()
            self._filled.clear()

    def _settle(self) -> None:
        if not self._keep:
            self.close()

    def _drop_outdated(self) -> None:
        # Of every set of scopes: the one that is asked next is not the only one that holds the erased text.
        if self._checked == self._state.seq:
            return
        self._checked, erased = self._state.seq, erasures(self._state)
        for scopes in [s for s, database in self._filled.items() if database.erased != erased]:
            self._filled.pop(scopes).close()

    def _make_room(self) -> None:
        while len(self._filled) >= MAX_DATABASES:
            self._filled.pop(next(iter(self._filled))).close()


class Database(Sandbox):
    """One DuckDB database in memory, holding the rows of some scopes."""

    def __init__(self, state: Projections, scopes: Scopes, memory_limit: str) -> None:
        super().__init__(memory_limit)
        self._state, self._scopes = state, scopes
        self._seq, self._point = 0, (0, -1)
        self._fates: dict[bytes, int] = {}
        self._links = 0
        self._open_links: dict[int, Link] = {}
        self._tombstones: list[tuple[int, int]] = []
        self.erased = erasures(state)
        self.connection.execute(TABLES)
        self.connection.execute(VIEWS.replace("$far", _FAR))

    def ask(self, sql: str, given: dict[str, object]) -> list[Row]:
        """Run a statement of our own."""
        return cast("list[Row]", self.connection.execute(sql, given or None).fetchall())

    def catch_up(self) -> None:
        """Take in what the projections learned since the last time."""
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

    def move_to(self, valid_at: int, known: int) -> None:
        """Work out each memory's status at a point, unless it cannot differ from what was worked out before."""
        before, known_before = self._point
        if known == known_before and (valid_at == before or not self._changes(before, valid_at)):
            return
        self._point = (0, -1)  # a failure below leaves no point, rather than a wrong one
        self.connection.execute("DELETE FROM raw.point")
        self.connection.execute("INSERT INTO raw.point VALUES (?, ?)", [valid_at, known])
        self.connection.execute(STANDING.replace("$far", _FAR))
        self._point = (valid_at, known)

    def _changes(self, one: int, other: int) -> bool:
        found = self.ask(CHANGES, {"first": min(one, other), "last": max(one, other)})
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
        for nr, link in list(self._open_links.items()):
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


def erasures(state: Projections) -> tuple[int, int, dict[str, tuple[int, int, bytes]]]:
    """Return what differs once something was erased."""
    register = state.register
    memories = sum(m.erasure is not None for m in register.memories.values())
    decisions = sum(d.erasure is not None for d in register.decisions.values())
    return memories, decisions, dict(register.closed)
