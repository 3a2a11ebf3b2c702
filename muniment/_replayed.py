"""A store as it was: the same questions, answered by projections that were replayed to a moment. It only reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from muniment.events import ReadOnly, ValueKeys, parse_scope
from muniment.gate import Action, Guard, Handle, check_action, check_actor, rank_of
from muniment.projections import Dense, Graph, Projections

from ._answers import Decision
from ._deciding import check_cited, decision_of, name_unknown, question_of
from ._points import Point
from ._reach import Reach, Reads, expand_reads
from ._reading import Reading
from ._session import use_named
from ._sql import Table, run_sql
from ._telemetry import traced


class Past:
    """What a past session reads from: projections at a moment, whose instant is its now."""

    def __init__(
        self,
        *,
        state: Projections,
        dense: Dense,
        values: ValueKeys,
        guard: Guard,
        instant: int,
        store: bytes,
        mutex: threading.RLock,
        follow: Callable[[], None],
    ) -> None:
        self.state, self.dense, self.values, self.guard = state, dense, values, guard
        # Its sequence number stands still when something is erased, so it keeps no words between two queries.
        self.graph = Graph(state, keep=False)
        self.instant, self.store_id, self.mutex, self._follow = instant, store, mutex, follow

    def answering(self, reach: Reach) -> Past:  # noqa: ARG002
        """Return this: a past is whole."""
        return self

    def now(self) -> int:
        """Return the moment."""
        return self.instant

    def refresh(self) -> None:
        """Mark what was erased since; in all else the past does not change."""
        self._follow()


class PastStore:
    """A read-only store at a moment. It writes nothing, and needs no closing."""

    def __init__(self, past: Past) -> None:
        self._past, self._mutex = past, past.mutex

    @property
    def seq(self) -> int:
        """The last event that is part of this past."""
        return self._past.state.seq

    @property
    def source(self) -> Past:
        """What this past's sessions read from."""
        return self._past

    def session(self, *, scope: str, actor: str = "agent:replay", reads: Reads = ()) -> PastSession:
        """Return a session that reads the scope as it was, and asks the guard what it would have said."""
        check_actor(actor)
        return PastSession(self._past, self._mutex, parse_scope(scope), reads, actor)

    def sql(self, query: str) -> Table:
        """Return (columns, rows) of one SELECT over every scope as it was; see `Store.sql`."""
        return run_sql(self._past, self._mutex, query, lambda: (Point(self._past.instant, self.seq), None))

    def digests(self) -> dict[str, str]:
        """Return a digest of each projection at the moment."""
        with self._mutex:
            return self._past.state.digests()


class PastSession(Reading):
    """Reads one scope, and those listed, as they were."""

    def __init__(self, past: Past, mutex: threading.RLock, scope: str, reads: Reads, actor: str) -> None:
        super().__init__(past, mutex, scope, reads)
        self._past, self._actor = past, actor

    @traced("decide", "decide")
    def decide(
        self,
        action: Action,
        *,
        use: str | None = None,
        evidence: Sequence[str] = (),
        dry_run: bool = True,
    ) -> Decision:
        """
        Return what the guard would have decided at the moment, with the policy of today.

        Raises:
            ReadOnly: `dry_run=False`; nothing can be spent in the past.
        """
        if not dry_run:
            raise ReadOnly(detail="a decision in the past is always a dry run", hint="pass `dry_run=True`")
        check_action(action)
        cited = check_cited(evidence)
        with self._mutex:
            past = self._past
            scopes = expand_reads(self.scope, self._reads, past.state.register.scopes)
            handle = Handle(
                scope=self.scope, reads=tuple(scopes[1:]), actor=self._actor, origin=self._actor,
                rank=rank_of(self._actor),
            )  # fmt: skip
            ids, unknown = self._cited_ids(cited, past.state.seq)
            asked = None if use is None else use_named(use)
            question = question_of(handle, action, asked, ids, past.instant, past.state.seq)
            decision = decision_of(past.guard.decide(question), question, past.store_id, None)
            return name_unknown(decision, unknown)
