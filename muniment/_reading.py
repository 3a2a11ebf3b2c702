"""The reading half of a session: recall, context, beliefs, history, links, lists, differences; in its scopes only."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from muniment.events import (
    BadArgument,
    Instant,
    MunimentError,
    NotFound,
    Status,
    check_text,
    format_id,
    is_id_prefix,
    parse_scope,
    to_datetime,
)
from muniment.gate import check_about
from muniment.projections import LIVE, Graph, Memory, is_listed

from ._answers import BeliefView, Briefing, Change, LinkView, ProposalView, Record
from ._context import Context, assemble
from ._diff import changes
from ._folding import Answering
from ._points import KnownAt, Point, point, span
from ._reach import Reach, Reads, check_reads, expand_reads
from ._recalling import Asked, Filters, Hits, check_kinds, check_statuses, filters_of, recalled
from ._sql import Table, run_sql
from ._telemetry import traced
from ._views import Views

DEFAULT_STATUS: Final = ("active", "conditional")
MAX_K: Final = 1_000
MAX_LIST: Final = 10_000
MAX_DEPTH: Final = 16


class Source(Answering, Protocol):
    """What a reading session reads from: the live engine, or a past that was replayed."""

    @property
    def graph(self) -> Graph: ...

    @property
    def store_id(self) -> bytes: ...

    def answering(self, reach: Reach) -> Answering:
        """Return what answers now about the memories of some scopes as they are; the mutex is held."""
        ...


List = list
"""`Reading.list` hides the built-in name inside the class."""


class Reading:
    """Reads from one scope and those listed in `reads=`, and from nothing else."""

    def __init__(self, source: Source, mutex: threading.RLock, scope: str, reads: Reads) -> None:
        self._source, self._mutex = source, mutex
        self._scope = parse_scope(scope)
        self._reads = check_reads(reads)
        self._reach = Reach(self._scope, self._reads)
        self._recalled: tuple[bytes, ...] = ()
        self._author: str | None = None
        """Who alone is listed what it proposed and nobody approved yet; None for a person, who is listed all."""

    @property
    def scope(self) -> str:
        """The scope that this session writes to and reads."""
        return self._scope

    # --- recall -------------------------------------------------------------------------------------------------------

    @traced("recall", "search_memory")
    def recall(
        self,
        query: str,
        *,
        k: int = 8,
        kinds: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        where: Mapping[str, object] | None = None,
        since: Instant | None = None,
        until: Instant | None = None,
        valid_at: Instant | None = None,
        known_at: KnownAt | None = None,
        status: Collection[str] = DEFAULT_STATUS,
    ) -> Hits:
        """
        Return at most `k` memories that fit the query, best first; fewer only when fewer may be offered at all.

        `since` and `until` bound `valid_from`, half-open. `tags` must all be there, `where` must equal the metadata.
        The query is plain text. What is not live at the point is not a candidate, unless `status` asks for it.

        Raises:
            BlankContent, BadText, BadTime, BadArgument: an argument cannot be used as it is.
        """
        check_text(query, what="query")
        check_count(k, "k", MAX_K)
        filters = filters_of(kinds, tags, where, since, until)
        return self._recall(query, k, filters, check_statuses(status), valid_at, known_at)

    def _recall(
        self,
        query: str,
        k: int,
        filters: Filters,
        statuses: frozenset[Status] = LIVE,
        valid_at: Instant | None = None,
        known_at: KnownAt | None = None,
    ) -> Hits:
        with self._mutex:
            source = self._answering
            source.refresh()
            scopes = self._scopes()
        # Not under the mutex: the model may have vectors to make, and no append waits for that.
        vector = source.dense.query_vector(query, scopes)
        with self._mutex:
            self._answering.refresh()
            at = self._point(valid_at, known_at)
            if self._answering is source:
                asked = Asked(query, vector, k, filters, statuses, at, self._author)
                hits = recalled(source.state, source.dense, self._scopes(), asked)
                self._recalled = tuple(bytes.fromhex(hit.id) for hit in hits)
                return hits
        # The whole log was folded meanwhile: now there may be vectors.
        return self._recall(query, k, filters, statuses, valid_at, known_at)

    def context(
        self,
        query: str,
        *,
        budget_tokens: int = 600,
        k: int = 24,
        valid_at: Instant | None = None,
        known_at: KnownAt | None = None,
    ) -> Context:
        """
        Return the memories that fit a query as one block for a prompt: fenced, dated, labelled by origin.

        Stored text stands in it as JSON strings, one a line, so that it can neither close the fence nor speak as
        somebody. `budget_tokens` counts four characters as a token. Where the evidence is weak, the block says so.
        """
        check_count(budget_tokens, "budget_tokens", 1_000_000)
        hits = self.recall(query, k=k, valid_at=valid_at, known_at=known_at)
        return assemble(hits, budget_tokens, hits.strength, hits.notes)

    # --- beliefs and records ------------------------------------------------------------------------------------------

    @traced("beliefs", "search_memory")
    def beliefs(
        self,
        about: tuple[str, str] | None = None,
        *,
        valid_at: Instant | None = None,
        known_at: KnownAt | None = None,
    ) -> List[BeliefView]:
        """Return the current value of one key, or of every key, with what disputes it; both times default to now."""
        about = None if about is None else check_about(about)
        with self._mutex:
            self._answering.refresh()
            at = self._point(valid_at, known_at)
            state, views = self._answering.state, Views(self._answering.state)
            if about is None:
                found = state.beliefs.keys(self._scopes(), valid_at=at.valid_at, known=at.known)
            else:
                key = self._answering.values.belief_key(*about)
                found = [
                    belief
                    for scope in self._scopes()
                    for belief in state.beliefs.at_key(scope, key, valid_at=at.valid_at, known=at.known)
                ]
            return [views.belief(belief, at) for belief in found]

    def get(self, id: str, *, valid_at: Instant | None = None, known_at: KnownAt | None = None) -> Record:  # noqa: A002
        """
        Return one memory; of an erased one, its stub. Any unique prefix of an id will do.

        Raises:
            NotFound: no such id can be seen from here.
        """
        with self._mutex:
            self._answering.refresh()
            at = self._point(valid_at, known_at)
            return Views(self._answering.state).record(self._find(id, at.known), at)

    def history(self, id: str, *, known_at: KnownAt | None = None) -> List[Record]:  # noqa: A002
        """Return every version in the chain of supersessions that the memory stands in, the oldest first."""
        with self._mutex:
            self._answering.refresh()
            at = self._point(None, known_at)
            asked, views = self._find(id, at.known), Views(self._answering.state)
            chain = [
                memory for memory in self._chain(asked, at.known) if memory is asked or self._is_listed(memory, at)
            ]
            return [views.record(memory, at) for memory in chain]

    def list(
        self,
        *,
        kinds: Sequence[str] | None = None,
        after: str | None = None,
        limit: int = 100,
        status: Collection[str] | None = None,
        known_at: KnownAt | None = None,
    ) -> List[Record]:
        """Return memories in the order they were recorded, erased ones left out; `after` is the last id of a page."""
        check_count(limit, "limit", MAX_LIST)
        wanted = None if kinds is None else check_kinds(kinds)
        statuses = None if status is None else {s.value for s in check_statuses(status)}
        with self._mutex:
            self._answering.refresh()
            at = self._point(None, known_at)
            start = 0 if after is None else self._find(after, at.known).seq
            views = Views(self._answering.state)
            found: List[Record] = []
            for memory in self._memories(at.known):
                if memory.seq <= start or memory.erasure is not None:
                    continue
                if wanted is not None and memory.envelope.kind not in wanted:
                    continue
                if statuses is not None or memory.envelope.pending:
                    standing = self._answering.state.standing(memory, valid_at=at.valid_at, known=at.known)
                    if statuses is not None and standing.status.value not in statuses:
                        continue
                    if not is_listed(memory, standing.status, self._author):
                        continue
                found.append(views.record(memory, at))
                if len(found) == limit:
                    break
            return found

    def links(
        self,
        id: str,  # noqa: A002
        *,
        depth: int = 1,
        valid_at: Instant | None = None,
        known_at: KnownAt | None = None,
    ) -> List[LinkView]:
        """Return the links around a memory, up to `depth` hops; each hop obeys the same scopes and the same point."""
        check_count(depth, "depth", MAX_DEPTH)
        with self._mutex:
            self._answering.refresh()
            at = self._point(valid_at, known_at)
            return self._links(self._find(id, at.known), depth, at)

    def proposals(self, id: str | None = None, *, known_at: KnownAt | None = None) -> List[ProposalView]:  # noqa: A002
        """Return what was proposed in this session's scopes, in order; with `id` only what concerns that memory."""
        with self._mutex:
            self._answering.refresh()
            at = self._point(None, known_at)
            state, scopes = self._answering.state, set(self._scopes())
            views = Views(state)
            wanted = None if id is None else self._find(id, at.known).id
            return [
                views.proposal(found)
                for found in state.register.proposals
                if found.scope in scopes and found.seq <= at.known and wanted in (None, found.start, found.end)
            ]

    def sql(self, query: str, *, valid_at: Instant | None = None, known_at: KnownAt | None = None) -> Table:
        """
        Return (columns, rows) of one SELECT over the views `memories`, `stubs`, `beliefs`, `links`, `events`,
        `decisions` and `tombstones`, which hold this session's scopes and no other. Instants are in UTC.

        Raises:
            BadArgument: it is not one SELECT, uses a function that it may not, or cannot be run.
            QueryTooLarge: it takes more than ten seconds, 100 tables, 1 GB of memory, or 100 000 rows.
        """
        return run_sql(
            self._source,
            self._mutex,
            query,
            lambda: (self._point(valid_at, known_at), frozenset(self._scopes())),
            author=self._author,
        )

    def diff(self, since: KnownAt, until: KnownAt | None = None) -> List[Change]:
        """Return what changed between two moments: added, revised, retired, forgotten."""
        with self._mutex:
            self._source.refresh()
            first, second = span(self._source.state.register, self._source.now(), since, until)
            return changes(self._source.state, self._scopes(), first, second)

    def briefing(self) -> Briefing:
        """Return what a session should start with: what holds, what binds, and what waits for a person."""
        with self._mutex:
            self._answering.refresh()
            at = self._point(None, None)
            state, views = self._answering.state, Views(self._answering.state)
            by_status: dict[str, List[Record]] = {"disputed": [], "pending": []}
            by_kind: dict[str, List[Record]] = {"constraint": [], "commitment": []}
            for memory in self._memories(at.known):
                standing = state.standing(memory, valid_at=at.valid_at, known=at.known)
                if not is_listed(memory, standing.status, self._author):
                    continue
                if standing.status.value in by_status:
                    by_status[standing.status.value].append(views.record(memory, at))
                elif standing.holds and memory.envelope.kind in by_kind:
                    by_kind[memory.envelope.kind].append(views.record(memory, at))
            return Briefing(
                scope=self._scope,
                beliefs=tuple(
                    views.belief(b, at)
                    for b in state.beliefs.keys(self._scopes(), valid_at=at.valid_at, known=at.known)
                ),
                constraints=tuple(by_kind["constraint"]),
                commitments=tuple(by_kind["commitment"]),
                disputed=tuple(by_status["disputed"]),
                pending=tuple(by_status["pending"]),
            )

    # --- helpers ------------------------------------------------------------------------------------------------------

    @property
    def _answering(self) -> Answering:
        return self._source.answering(self._reach)

    def _point(self, valid_at: Instant | None, known_at: KnownAt | None) -> Point:
        if known_at is not None and self._answering is not self._source:
            self._source.refresh()  # waits: only the whole log has a past
        return point(self._answering.state.register, self._answering.now(), valid_at, known_at)

    def _scopes(self) -> List[str]:
        return expand_reads(self._scope, self._reads, self._answering.state.register.scopes)

    def _memories(self, known: int) -> List[Memory]:
        register = self._answering.state.register
        found = [memory for scope in self._scopes() for memory in register.in_scope(scope, known)]
        return sorted(found, key=lambda memory: memory.seq)

    def _find(self, prefix: str, known: int) -> Memory:
        register = self._answering.state.register
        if not is_id_prefix(prefix):
            raise NotFound(id=prefix)
        scopes = set(self._scopes())
        exact = register.memories.get(bytes.fromhex(prefix)) if len(prefix) == 32 else None
        if exact is not None:
            if exact.scope in scopes and exact.seq <= known:
                return exact
            raise NotFound(id=prefix)
        found = [m for m in self._memories(known) if format_id(m.id).startswith(prefix)]
        if len(found) > 1:
            raise BadArgument(argument="id", detail=f"`{prefix}` begins {len(found)} ids: type more of it")
        if not found:
            raise NotFound(id=prefix)
        return found[0]

    def _is_listed(self, memory: Memory, at: Point) -> bool:
        if not memory.envelope.pending:
            return True
        standing = self._answering.state.standing(memory, valid_at=at.valid_at, known=at.known)
        return is_listed(memory, standing.status, self._author)

    def _cited_ids(self, cited: Sequence[str], known: int) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
        """Return the ids that are cited, and what is cited that is no whole id and begins none."""
        ids: List[bytes] = []
        unknown: List[str] = []
        for one in cited:
            # Evidence that does not exist is judged, not raised.
            try:
                ids.append(self._find(one, known).id)
            except MunimentError:
                if len(one) == 32 and is_id_prefix(one):
                    ids.append(bytes.fromhex(one))
                else:
                    unknown.append(one)
        return tuple(ids), tuple(unknown)

    def _chain(self, memory: Memory, known: int) -> List[Memory]:
        register = self._answering.state.register
        found = {memory.id: memory}
        todo = [memory]
        keys: set[bytes | None] = set()
        while todo:
            here = todo.pop()
            linked = [here.envelope.supersedes, *(fate.by for fate in here.fates if fate.seq <= known)]
            near = [register.memories.get(i) for i in linked if i is not None]
            if not here.envelope.many and here.envelope.belief_key not in keys:
                keys.add(here.envelope.belief_key)
                near += register.statements(here)
            for other in near:
                if other is not None and other.seq <= known and other.id not in found and other.scope == memory.scope:
                    found[other.id] = other
                    todo.append(other)
        return sorted(found.values(), key=lambda m: m.seq)

    def _links(self, start: Memory, depth: int, at: Point) -> List[LinkView]:
        register, scopes = self._answering.state.register, set(self._scopes())
        found: dict[tuple[str, str, str], LinkView] = {}
        seen, edge = {start.id}, [start]
        for hop in range(1, depth + 1):
            following: List[Memory] = []
            for memory in edge:
                for view, other in self._links_of(memory, hop, at):
                    neighbour = register.memories.get(other)
                    if neighbour is None or neighbour.scope not in scopes or neighbour.seq > at.known:
                        continue
                    found.setdefault((view.start, view.end, view.type), view)
                    if other not in seen:
                        seen.add(other)
                        following.append(neighbour)
            edge = following
        return list(found.values())

    def _links_of(self, memory: Memory, hop: int, at: Point) -> List[tuple[LinkView, bytes]]:
        register, envelope = self._answering.state.register, memory.envelope
        edges: List[tuple[bytes, bytes, str, int, int | None, int]] = []
        for link in register.links_at.get(memory.id, ()):
            if not link.seq <= at.known < link.ended_seq or not link.valid_from <= at.valid_at:
                continue
            if link.valid_to is None or at.valid_at < link.valid_to:
                edges.append((link.start, link.end, link.type, link.valid_from, link.valid_to, link.recorded_at))
        own = [(memory.id, parent, "derives-from") for parent in envelope.derived_from]
        if envelope.supersedes is not None:
            own.append((memory.id, envelope.supersedes, "supersedes"))
        own += [(c.id, memory.id, "derives-from") for c in register.children.get(memory.id, ()) if c.seq <= at.known]
        own += [(f.by, memory.id, "supersedes") for f in memory.fates if f.by is not None and f.seq <= at.known]
        for start, end, kind in own:
            made = register.memories[start]
            edges.append((start, end, kind, made.envelope.valid_from, made.envelope.valid_to, made.recorded_at))
        return [
            (
                LinkView(
                    start=format_id(start), end=format_id(end), type=kind, depth=hop, valid_from=to_datetime(since),
                    valid_to=None if until is None else to_datetime(until), recorded_at=to_datetime(recorded),
                ),
                end if start == memory.id else start,
            )
            for start, end, kind, since, until, recorded in edges
        ]  # fmt: skip


def check_count(count: object, what: str, most: int) -> None:
    """Raise BadArgument unless it is a whole number from 1 to a bound."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= most:
        raise BadArgument(argument=what, detail=f"expected a whole number from 1 to {most}, got `{count}`")
