"""
The graph: memories, links, events, decisions and tombstones as tables for SQL, filled when somebody asks.

It is derived from the register and the log at the moment of a query, so it has no watermark or digest of its own, and
nothing of it is ever on disk: DuckDB runs in memory with no directory to spill to. Each set of scopes has a database of
its own that holds nothing of other scopes, so that no SQL, however clever, can read past a session's scopes. A database
takes in what is new since the last query; once anything was erased it is dropped whole and filled again.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, cast

from ._bundle import Projections
from ._graph_rows import Row, Scopes

if TYPE_CHECKING:
    from ._graph_database import Database

MAX_DATABASES: Final = 4


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
        self._register = state.register

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

    def fill(self, *, valid_at: int, known: int, scopes: Scopes, author: str | None = None) -> None:
        """Bring the scopes' database up to the projections, to the point, and to what one reader is shown."""
        with self.lock:
            self._drop_outdated()
            database = self._filled.pop(scopes, None)
            if database is None:
                self._make_room()
                database = self._new_database(scopes)
            database.bring_to(valid_at, min(known, self._state.seq))
            database.show_to(author)
            self._filled[scopes] = database

    def run(
        self, sql: str, *, scopes: Scopes, seconds: float = 10.0, max_rows: int = 100_000
    ) -> tuple[list[str], list[Row]]:
        """Run one SELECT on what the last `fill` of the scopes left; see `query`."""
        with self.lock:
            try:
                return self._filled[scopes].run(sql, seconds=seconds, max_rows=max_rows)
            finally:
                self._settle()

    def neighbourhood(self, start: bytes, *, depth: int, valid_at: int, known: int, scopes: Scopes) -> list[Row]:
        """
        Return the links around a memory, up to `depth` hops, the nearest first.

        Rows are (start, end, type, depth, valid_from, valid_to, recorded_at).
        """
        with self.lock:
            self.fill(valid_at=valid_at, known=known, scopes=scopes)
            rows = self._filled[scopes].neighbourhood(start, depth=depth, valid_at=valid_at, known=known)
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
        if self._register is not self._state.register:
            self._register = self._state.register  # it was loaded again, and need not be the same
            self.close()
        if self._checked == self._state.seq:
            return
        self._checked, erased = self._state.seq, erasures(self._state)
        for scopes in [s for s, database in self._filled.items() if database.erased != erased]:
            self._filled.pop(scopes).close()

    def _new_database(self, scopes: Scopes) -> Database:
        from ._graph_database import Database  # noqa: PLC0415  # slow to import, and only SQL needs it

        return Database(self._state, scopes, self._memory_limit, erasures(self._state))

    def _make_room(self) -> None:
        while len(self._filled) >= MAX_DATABASES:
            self._filled.pop(next(iter(self._filled))).close()


def erasures(state: Projections) -> tuple[int, int, dict[str, tuple[int, int, bytes]]]:
    """Return what differs once something was erased."""
    register = state.register
    memories = sum(m.erasure is not None for m in register.memories.values())
    decisions = sum(d.erasure is not None for d in register.decisions.values())
    return memories, decisions, dict(register.closed)
