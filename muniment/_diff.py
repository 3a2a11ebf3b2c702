"""What changed between two points: added, revised, retired, forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.events import Status, format_id
from muniment.projections import Memory, Projections

from ._answers import Change
from ._points import Point
from ._views import Views


def changes(state: Projections, scopes: Sequence[str], first: Point, second: Point) -> list[Change]:
    """Return the differences between what held at two points, in the order in which the memories were recorded."""
    views = Views(state)
    memories = [m for scope in scopes for m in state.register.in_scope(scope, second.known)]
    memories.sort(key=lambda memory: memory.seq)
    revised: set[bytes] = set()
    found: list[tuple[int, Change]] = []
    for memory in memories:
        change = _ended(state, views, memory, first, second, revised)
        if change is not None:
            found.append((memory.seq, change))
    for memory in memories:
        if memory.id not in revised and not _held(state, memory, first) and _held(state, memory, second):
            record = views.record(memory, second)
            found.append((memory.seq, Change(change="added", id=record.id, about=record.about, old=None, new=record)))
    return [change for _, change in sorted(found, key=lambda pair: pair[0])]


def _ended(
    state: Projections, views: Views, memory: Memory, first: Point, second: Point, revised: set[bytes]
) -> Change | None:
    if memory.erasure is not None:
        if first.known < memory.erasure.seq <= second.known and memory.seq <= first.known:
            stub = views.record(memory, second)
            return Change(change="forgotten", id=stub.id, about=None, old=stub, new=None)
        return None
    if not _held(state, memory, first) or _held(state, memory, second):
        return None
    old = views.record(memory, first)
    standing = state.standing(memory, valid_at=second.valid_at, known=second.known)
    if standing.status is Status.SUPERSEDED:
        successor = _successor(state, memory, second)
        if successor is not None:
            revised.add(successor.id)
            new = views.record(successor, second)
            return Change(change="revised", id=format_id(memory.id), about=new.about, old=old, new=new)
    change = standing.status.value if standing.status not in (Status.ACTIVE, Status.CONDITIONAL) else "expired"
    return Change(change=change, id=format_id(memory.id), about=old.about, old=old, new=None)


def _successor(state: Projections, memory: Memory, at: Point) -> Memory | None:
    if memory.envelope.belief_key is not None and not memory.envelope.many:
        resolution = state.beliefs.resolution(memory, valid_at=at.valid_at, known=at.known)
        if resolution.current is not None:
            return resolution.current
    by = [fate.by for fate in memory.fates if fate.by is not None and fate.seq <= at.known]
    found = state.register.memories.get(by[-1]) if by else None
    return None if found is None or found.erasure is not None else found


def _held(state: Projections, memory: Memory, at: Point) -> bool:
    if memory.seq > at.known:
        return False
    return state.standing(memory, valid_at=at.valid_at, known=at.known).holds
