"""SQL over a source at a point: filled under the source's mutex, run without it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeAlias

from muniment.projections import Graph, Row, Scopes

from ._points import Point

Table: TypeAlias = tuple[list[str], list[Row]]
"""Column names, and rows."""


class Queried(Protocol):
    """What SQL is asked of."""

    @property
    def graph(self) -> Graph: ...

    def refresh(self) -> None: ...


def run_sql(
    source: Queried,
    mutex: threading.RLock,
    sql: str,
    place: Callable[[], tuple[Point, Scopes]],
    *,
    author: str | None = None,
) -> Table:
    """
    Return the columns and rows of one SELECT, at the point and in the scopes that `place` gives.

    What waits for a person is shown to its author, or all of it where that is None.

    The graph's lock is taken before the mutex, and the mutex is let go before the query runs: a slow query delays other
    queries, and no reader or writer.
    """
    while True:
        with mutex:
            # After a fork there is another graph; the old one's lock may be held by nobody who lives.
            source.refresh()
            graph = source.graph
        with graph.lock:
            with mutex:
                source.refresh()
                if source.graph is not graph:
                    continue
                at, scopes = place()
                graph.fill(valid_at=at.valid_at, known=at.known, scopes=scopes, author=author)
            return graph.run(sql, scopes=scopes)
