"""What a recall may offer at a point in time, and in which order: filters, masks, and the ranking of what is left."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from muniment.events import BadArgument, Instant, Kind, Status, check_interval, parse_data, parse_instant
from muniment.gate import check_choice, check_list
from muniment.projections import (
    LIVE,
    MAX_QUERY_CHARS,
    MAX_QUERY_TERMS,
    Dense,
    Mask,
    Memory,
    Partition,
    Projections,
    Rankable,
    kind_number,
    question_of,
    rank,
)

from ._answers import Hit
from ._points import Point
from ._views import Views

_CLAMPED: Final = (
    f"the query is long: only its first {MAX_QUERY_TERMS} different words, within {MAX_QUERY_CHARS} characters, were"
    " looked up"
)


class Hits(list[Hit]):
    """
    The hits of one recall, best first, and notes on what the answer could not take into account.

    `strength` says from 0 to 1 how likely it is that they answer the question; below `muniment.WEAK`, perhaps nothing
    relevant is stored. It errs: see eval/RESULTS.md for how often.
    """

    def __init__(self, hits: Sequence[Hit] = (), notes: Sequence[str] = (), strength: float = 0.0) -> None:
        super().__init__(hits)
        self.notes, self.strength = tuple(notes), strength


Accept = Callable[[Memory, Mapping[str, object]], bool]


class Filters(NamedTuple):
    """What a recall is limited to; None means no limit. `accept` is asked with each memory and its metadata."""

    kinds: frozenset[str] | None = None
    tags: frozenset[str] | None = None
    where: dict[str, object] | None = None
    since: int | None = None
    until: int | None = None
    accept: Accept | None = None

    @property
    def any(self) -> bool:
        """Tell whether there is a limit at all."""
        return any(part is not None for part in self)


class Asked(NamedTuple):
    """One recall; `vector` is None when only words can be compared. What is pending is offered to `author` alone."""

    query: str
    vector: NDArray[np.float32] | None
    k: int
    filters: Filters
    statuses: frozenset[Status]
    at: Point
    author: str | None


def recalled(state: Projections, dense: Dense, scopes: Sequence[str], asked: Asked) -> Hits:
    """
    Return the best hits in some scopes, over projections that are up to date.

    Raises:
        BadArgument: `where` names a key that no memory there has in its metadata.
    """
    state.recall.absorb(scopes)
    there = {scope: found for scope in scopes if (found := state.recall.partition(scope)) is not None}
    _check_where(asked.filters, there.values())
    rankable = [_rankable(state, scope, partition, asked) for scope, partition in there.items()]
    question = question_of(asked.query)
    ranked = rank(question, asked.vector, rankable, asked.k)
    views, names = Views(state), list(there)
    hits = [views.hit(state.register.memories[state.recall.locate(f.row, names)], asked.at, f) for f in ranked.best]
    notes = [] if asked.vector is not None else [_why_no_vectors(dense, scopes)]
    return Hits(hits, [*notes, _CLAMPED] if question.clamped else notes, ranked.strength)


def _rankable(state: Projections, scope: str, partition: Partition, asked: Asked) -> Rankable:
    rows, at = partition.rows, asked.at

    def mask(statuses: frozenset[Status]) -> Mask:
        return state.beliefs.mask(scope, valid_at=at.valid_at, known=at.known, statuses=statuses, author=asked.author)

    live = mask(LIVE)
    offered = live if asked.statuses is LIVE else mask(asked.statuses)
    return Rankable(
        words=partition.words,
        threads=partition.words.threads,
        vectors=partition.vectors,
        rows=len(rows),
        upto=rows.upto(at.known),
        offered=_filtered(partition, offered, asked.filters),
        live=live,
        instants=partial(rows.numbers_of, "valid_from"),
    )


def _why_no_vectors(dense: Dense, scopes: Sequence[str]) -> str:
    if dense.problem is not None:
        return f"words only: {dense.problem}"
    if dense.waits_for is not None:
        return f"words only: {dense.waits_for}"
    if dense.loading:
        return "words only: the model is being loaded"
    if dense.opening:
        return "words only: the vectors are being opened"
    missing = dense.missing_count(scopes)
    return f"words only: {missing} memories have no vector yet; `muniment rebuild-projections` makes them"


def _filtered(partition: Partition, mask: Mask, filters: Filters) -> Mask:
    if not filters.any:
        return mask
    rows, words = partition.rows, partition.words
    # Parts that nothing limits cost nothing, and the caller's own function is asked last and least.
    if filters.kinds is not None:
        column = rows.column("kind")
        mask = mask & np.logical_or.reduce([column == kind_number(kind) for kind in filters.kinds] or [column < 0])
    if filters.since is not None:
        mask = mask & (rows.column("valid_from") >= filters.since)
    if filters.until is not None:
        mask = mask & (rows.column("valid_from") < filters.until)
    if filters.tags is not None:
        mask = mask & words.with_tags(filters.tags)
    if filters.where is not None:
        mask = mask & words.with_values(filters.where)
    if filters.accept is not None:
        mask = mask.copy()
        for row in np.flatnonzero(mask).tolist():
            mask[row] = filters.accept(rows[row], _data_of(words.facets(row).metadata))
    return mask


def _check_where(filters: Filters, partitions: Collection[Partition]) -> None:
    # A filter on a key that nothing has is a mistake, and must not read as "no such memory".
    if filters.where is None:
        return
    unknown = set(filters.where)
    for partition in partitions:
        unknown -= partition.words.known_keys(filters.where)
    if unknown:
        raise BadArgument(argument="where", detail=f"no memory here has metadata `{sorted(unknown)[0]}`")


def filters_of(
    kinds: Sequence[str] | None,
    tags: Sequence[str] | None,
    where: Mapping[str, object] | None,
    since: Instant | None,
    until: Instant | None,
) -> Filters:
    """Return what a recall is limited to, each part checked."""
    if where is not None and not isinstance(cast("object", where), Mapping):
        raise BadArgument(argument="where", detail="expected a mapping from metadata keys to values")
    first = None if since is None else parse_instant(since)
    last = None if until is None else parse_instant(until)
    if first is not None:
        check_interval(first, last)
    return Filters(
        None if kinds is None else check_kinds(kinds),
        None if tags is None else frozenset(check_list(tags, "tags")),
        None if where is None else dict(where),
        first,
        last,
    )


def check_kinds(kinds: Sequence[str]) -> frozenset[str]:
    """Return the kinds that were named; raises BadArgument for one that there is not."""
    return frozenset(check_choice(kind, Kind, "kinds") for kind in check_list(kinds, "kinds"))


def check_statuses(status: Collection[str]) -> frozenset[Status]:
    """Return the statuses that were named, `LIVE` itself for the live ones; raises BadArgument for an unknown one."""
    words = [s.value for s in Status]
    for given in check_list(
        cast("Sequence[str]", list(status) if isinstance(status, (set, frozenset)) else status), "status"
    ):
        if given not in words:
            raise BadArgument(argument="status", detail=f"expected some of {', '.join(words)}, got `{given}`")
    return LIVE if set(status) == {s.value for s in LIVE} else frozenset(Status(s) for s in status)


def _data_of(metadata: bytes | None) -> dict[str, object]:
    return {} if metadata is None else cast("dict[str, object]", parse_data(metadata))
