"""
What is current: the resolution of one belief key at one point of both times.

At (valid_at, known) the value is that of the last statement, in sequence order, among those that were entitled to the
interval. A statement is entitled when nothing holds the interval, or its origin may change what does. Retiring,
rejecting or forgetting the holder leaves a hole, which revives nothing and which anyone may fill afterwards. A
quarantined holder counts as a hole while it is quarantined. A forget is on neither time axis: it applies whatever
`known` is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from muniment.events import Status

from ._state import FAR_FUTURE, Fate, FateKind, Memory, may_change


class Resolution(NamedTuple):
    """Who holds a single-valued key at a point, who disputes it, whom it displaced at equal rank, and each role."""

    current: Memory | None
    disputes: list[Memory]
    conflicts: list[Memory]
    roles: dict[bytes, Status]


Lookup = Callable[[bytes], Memory | None]


def resolve(
    statements: Sequence[Memory], *, valid_at: int, known: int, lookup: Lookup, held: list[bytes] | None = None
) -> Resolution:
    """
    Resolve the single-valued statements of one key, given in sequence order.

    `held` is given the ids of all that held the key at the point, one after the other.
    """
    held = [] if held is None else held
    revisions = _revisions(statements, valid_at, known, lookup)
    if revisions is None:
        return resolve_each(statements, valid_at=valid_at, known=known, lookup=lookup, held=held)
    roles = dict.fromkeys((memory.id for memory in revisions), Status.SUPERSEDED)
    held.extend(roles)
    if not revisions:
        return Resolution(None, [], [], roles)
    roles[revisions[-1].id] = Status.ACTIVE
    return Resolution(revisions[-1], [], [], roles)


def resolve_each(
    statements: Sequence[Memory], *, valid_at: int, known: int, lookup: Lookup, held: list[bytes]
) -> Resolution:
    """Do what `resolve` does, statement by statement, whoever made them and whatever became of them."""
    holder: Memory | None = None
    disputes: list[Memory] = []
    conflicts: list[Memory] = []
    agreeing: list[Memory] = []
    roles: dict[bytes, Status] = {}
    for memory, ends in _operations(statements, valid_at, known, lookup):
        if ends:
            disputes = [m for m in disputes if m is not memory]
            conflicts = [m for m in conflicts if m is not memory]
        if holder is not None and ((ends and holder is memory) or is_quarantined(holder, known)):
            # A hole: who agreed goes with the value, and who fills it displaces nobody.
            _supersede(roles, (holder, *agreeing))
            holder, conflicts, agreeing = None, [], []
        if ends:
            continue
        if holder is None or _entitled(memory, holder):
            _supersede(roles, (*agreeing, *([] if holder is None else [holder])))
            conflicts = _displaced(conflicts, holder, memory)
            agreeing = [m for m in (*agreeing, *disputes) if same_value(m, memory)]
            # Over disputes of no lower rank the new value has the last word; the others go on beside it.
            _supersede(roles, [m for m in disputes if _entitled(m, memory)])
            disputes = [m for m in disputes if not same_value(m, memory) and not _entitled(m, memory)]
            holder = memory
            held.append(memory.id)
            _give(roles, (holder, *agreeing), Status.ACTIVE)
        elif same_value(memory, holder):
            agreeing.append(memory)
            roles[memory.id] = Status.ACTIVE
        else:
            disputes.append(memory)
            roles[memory.id] = Status.DISPUTED
    if holder is None or is_quarantined(holder, known):
        _supersede(roles, agreeing)
        return Resolution(None, [], [], roles)
    # A dispute that its own side has replaced is history.
    disputes = [m for m in disputes if superseded_by(m, valid_at=valid_at, known=known, lookup=lookup) is None]
    return Resolution(holder, _shown(disputes, known), _shown(conflicts, known), roles)


def same_value(one: Memory, other: Memory) -> bool:
    """Tell whether two statements of one key give the same value under the normal form."""
    return one.envelope.value_key == other.envelope.value_key


def is_quarantined(memory: Memory, known: int) -> bool:
    """Tell whether the memory is set apart, seen from a sequence number."""
    state = False
    for fate in memory.fates:
        if fate.seq <= known and fate.kind in (FateKind.QUARANTINED, FateKind.RELEASED):
            state = fate.kind is FateKind.QUARANTINED
    return state


def admitted_seq(memory: Memory, known: int) -> int:
    """Return the sequence number from which the memory counts: its own, or its approval's; the far future if never."""
    if not memory.envelope.pending:
        return memory.seq
    for fate in memory.fates:
        if fate.kind is FateKind.APPROVED and fate.seq <= known:
            return fate.seq
    return FAR_FUTURE


def has_lapsed(memory: Memory, *, valid_at: int, known: int) -> bool:
    """Tell whether the memory waited for a person until its term was over, and nobody had approved it."""
    return memory.lapses_at <= valid_at and admitted_seq(memory, known) > known


def superseded_by(memory: Memory, *, valid_at: int, known: int, lookup: Lookup) -> Memory | None:
    """Return the record that explicitly supersedes this one at the point, whatever became of that record."""
    for fate in memory.fates:
        if fate.kind is not FateKind.SUPERSEDED or fate.seq > known or fate.by is None:
            continue
        successor = lookup(fate.by)
        if successor is None or not successor.covers(valid_at) or admitted_seq(successor, known) > known:
            continue
        return successor
    return None


def retired_from(memory: Memory, known: int) -> int:
    """Return the instant from which the memory is retired, or the far future."""
    ends = [fate.until for fate in memory.fates if fate.kind is FateKind.RETIRED and fate.seq <= known]
    return min(ends, default=FAR_FUTURE)


def breakpoints(memory: Memory, lookup: Lookup) -> list[int]:
    """Return the instants at which the memory's own state may change as valid time passes."""
    points = [memory.envelope.valid_from, memory.valid_until, memory.lapses_at]
    for fate in memory.fates:
        if fate.kind is FateKind.RETIRED:
            points.append(fate.until)
        elif fate.kind is FateKind.SUPERSEDED and fate.by is not None and (successor := lookup(fate.by)) is not None:
            points += [successor.envelope.valid_from, successor.valid_until]
    return points


def _revisions(statements: Sequence[Memory], valid_at: int, known: int, lookup: Lookup) -> list[Memory] | None:
    """
    Return the statements at the point where each simply takes the place of the one before, or None where it is not so.

    So it is where one voice says all of them, as of a status that is told again and again: nobody disputes, nothing is
    displaced that could stand beside, and no hole is left.
    """
    found: list[Memory] = []
    for memory in statements:
        if memory.seq > known or not memory.covers(valid_at):
            continue
        if memory.erasure is not None or memory.envelope.pending:
            return None
        for fate in memory.fates:
            if fate.kind is not FateKind.SUPERSEDED:
                return None
            if fate.seq <= known and _ends_hold(memory, fate, valid_at, known, lookup):
                return None
        if found and not _is_one_voice(memory, found[-1]):
            return None
        found.append(memory)
    return found


def _is_one_voice(memory: Memory, other: Memory) -> bool:
    one, another = memory.envelope, other.envelope
    return one.actor == another.actor and one.origin == another.origin and one.rank == another.rank


def _operations(statements: Iterable[Memory], valid_at: int, known: int, lookup: Lookup) -> list[tuple[Memory, bool]]:
    # (memory, False) states it at this point; (memory, True) ends its hold. In sequence order.
    found: list[tuple[int, int, Memory, bool]] = []
    for memory in statements:
        start = admitted_seq(memory, known)
        if start > known or not memory.covers(valid_at):
            continue
        ends = [
            fate.seq for fate in memory.fates if fate.seq <= known and _ends_hold(memory, fate, valid_at, known, lookup)
        ]
        if memory.erasure is not None:
            ends.append(memory.erasure.seq)
        if any(end < start for end in ends):
            continue  # approved when it was over already: it never had a say
        found.append((start, 0, memory, False))
        found.extend((end, 1, memory, True) for end in ends)
    found.sort(key=lambda operation: operation[:2])
    return [(memory, ends) for _, _, memory, ends in found]


def _ends_hold(memory: Memory, fate: Fate, valid_at: int, known: int, lookup: Lookup) -> bool:
    if fate.kind is FateKind.REJECTED:
        return True
    if fate.kind is FateKind.RETIRED:
        return fate.until <= valid_at
    if fate.kind is FateKind.SUPERSEDED and fate.by is not None:
        successor = lookup(fate.by)
        if successor is None or not successor.covers(valid_at) or admitted_seq(successor, known) > known:
            return False
        # A successor under the same key is a statement of its own, and takes over in its turn.
        return successor.envelope.belief_key != memory.envelope.belief_key or successor.envelope.many
    return False


def _entitled(memory: Memory, holder: Memory) -> bool:
    one, other = memory.envelope, holder.envelope
    return may_change(one.origin, one.rank, other.origin, other.rank)


def _give(roles: dict[bytes, Status], memories: Iterable[Memory], role: Status) -> None:
    roles.update({memory.id: role for memory in memories})


def _supersede(roles: dict[bytes, Status], memories: Iterable[Memory]) -> None:
    _give(roles, memories, Status.SUPERSEDED)


def _displaced(conflicts: list[Memory], holder: Memory | None, memory: Memory) -> list[Memory]:
    # What another actor of the same rank said, and was displaced, stays beside the value until that actor speaks again.
    if holder is None or memory.envelope.rank != holder.envelope.rank:
        return []
    kept = [m for m in (*conflicts, holder) if m.envelope.actor != memory.envelope.actor]
    return [m for m in kept if not same_value(m, memory)]


def _shown(memories: list[Memory], known: int) -> list[Memory]:
    return [m for m in memories if m.erasure is None and not is_quarantined(m, known)]
