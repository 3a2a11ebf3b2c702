"""
Beliefs: the status of any memory and the value of any key, at any point of both times, read from the register.

`known` is a sequence number: what had been recorded up to it. `valid_at` is an instant.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from muniment.events import Status

from ._columns import with_room
from ._lookups import ScopeRows
from ._register import Register
from ._resolve import (
    Resolution,
    admitted_seq,
    breakpoints,
    has_lapsed,
    is_quarantined,
    resolve,
    retired_from,
    superseded_by,
)
from ._sections import Buffer, PlainSections, Sections
from ._standings import (
    LIVE,
    Codes,
    Rows,
    Span,
    Spans,
    Standing,
    code_of,
    is_bound,
    is_pending,
    of_status,
    offered,
    span_of,
)
from ._state import FAR_FUTURE, LATEST, FateKind, Memory

_NO_CODES: Final[Codes] = np.zeros(0, dtype=np.uint8)


class Belief(NamedTuple):
    """One value of a key, with what disputes it and what it displaced at equal rank."""

    memory: Memory
    disputes: list[Memory]
    conflicts: list[Memory]


class Beliefs:
    """Answers from one register; keeps the present's answers between questions."""

    def __init__(self, register: Register) -> None:
        self.register = register
        self._now = self._saved_at = -FAR_FUTURE
        self._codes: dict[str, Codes] = {}
        self._spans: dict[str, Spans] = {}
        self._changes: list[tuple[int, int]] = []
        self._saved = _NOTHING_SAVED

    def resolution(self, memory: Memory, *, valid_at: int, known: int) -> Resolution:
        """Return the resolution of the memory's single-valued key."""
        register = self.register
        return resolve(register.statements(memory), valid_at=valid_at, known=known, lookup=register.memories.get)

    def standing(self, memory: Memory, *, valid_at: int, known: int) -> Standing:
        """Return the memory's status at the point; it must have been recorded by then."""
        return self._standing(memory, valid_at, known, {})

    def at(self, *, valid_at: int, known: int) -> BeliefsAt:
        """Return the answers at one point, for many memories."""
        return BeliefsAt(self, valid_at, known)

    def keys(self, scopes: Iterable[str], *, valid_at: int, known: int) -> list[Belief]:
        """Return every belief of the scopes at the point, in the order in which each was recorded."""
        found: list[Belief] = []
        for scope, key in self.register.keys.of_scopes(set(scopes)):
            found += self.at_key(scope, key, valid_at=valid_at, known=known)
        return sorted(found, key=lambda belief: belief.memory.seq)

    def at_key(self, scope: str, belief_key: bytes, *, valid_at: int, known: int) -> list[Belief]:
        """Return the value of one key at the point, and every live member of it that was recorded as one of many."""
        statements = self.register.keys.get((scope, belief_key), [])
        found: list[Belief] = []
        single = [m for m in statements if not m.envelope.many]
        if single:
            resolution = self.resolution(single[0], valid_at=valid_at, known=known)
            if resolution.current is not None:
                found.append(Belief(resolution.current, resolution.disputes, resolution.conflicts))
        for memory in statements:
            if memory.envelope.many and memory.seq <= known:
                standing = self.standing(memory, valid_at=valid_at, known=known)
                if standing.holds:
                    found.append(Belief(memory, [], []))
        return found

    def mask(
        self,
        scope: str,
        *,
        valid_at: int,
        known: int,
        statuses: Collection[Status] = LIVE,
        author: str | None = None,
    ) -> NDArray[np.bool_]:
        """Return, for each row of a scope, whether it may be offered at the point; what is pending, to its author."""
        present = known >= self.register.seq and valid_at >= self._now
        # Before anything was asked, any instant may stand for the present.
        self._advance(valid_at if present or self._now == -FAR_FUTURE else self._now)
        rows = self.register.rows.get(scope)
        if rows is None:
            return np.zeros(0, dtype=np.bool_)
        codes = self._room(scope, len(rows))[: len(rows)]
        if present:
            return _offered(rows, codes, statuses, author)
        upto = rows.upto(known)
        covers = (rows.column("valid_from") <= valid_at) & (valid_at < rows.column("valid_until"))
        covers[upto:] = False
        mask = of_status(codes, statuses) & covers
        # Nothing live holds outside its own interval.
        asked = is_bound(codes) & covers if LIVE.issuperset(statuses) else is_bound(codes[:upto])
        bound = np.flatnonzero(asked)
        if len(bound):
            then = self._codes_at(scope, bound, codes[bound], valid_at, known)
            mask[bound] = _offered(rows, then, statuses, author, bound)
        return mask

    def _codes_at(self, scope: str, rows: Rows, codes: Codes, valid_at: int, known: int) -> Codes:
        # Most of what was recorded by then stood as it does: only what a point in between can part is asked again.
        memories, spans = self.register.rows[scope], self._spans.setdefault(scope, Spans())
        known = LATEST if known >= self.register.seq else known
        made: dict[bytes, Span] = {}
        same = spans.reach(rows, valid_at, known, lambda row: self._span(memories[row], made))
        then, memo = codes.copy(), dict[bytes, Resolution]()
        apart = rows[~same]

        def ask(row: int) -> int:
            return code_of(self._standing(memories[row], valid_at, known, memo), bound=True)

        then[~same] = spans.codes_at(apart, valid_at, known, ask)
        return then

    def _span(self, memory: Memory, made: dict[bytes, Span]) -> Span:
        key, lookup = memory.envelope.belief_key, self.register.memories.get
        if key is None or memory.envelope.many:
            return span_of((memory,), self._now, lookup)
        if key not in made:
            made[key] = span_of(self.register.statements(memory), self._now, lookup)
        return made[key]

    @property
    def saved_at(self) -> int:
        """The present that was saved last."""
        return self._saved_at

    # --- saving -------------------------------------------------------------------------------------------------------

    def sections(self, now: int) -> Iterator[tuple[str, Iterable[Buffer]]]:
        """Yield the answers of the present as sections."""
        self._advance(max(now, self._now))
        self._saved_at = self._now
        parts = [(scope, len(rows)) for scope, rows in self.register.rows.items()]
        codes = [self._room(scope, rows)[:rows].tobytes() for scope, rows in parts]
        changes = sorted((*self._changes, *self._saved.changes(self._now)))
        yield "beliefs", [_encode((self._now, parts))]
        yield "beliefs.standings", codes
        yield "beliefs.changes", [np.array(changes, np.int64).tobytes()]

    def load(self, sections: Sections) -> None:
        """Stand on what was saved together with the register."""
        now, parts = _decode(sections.between("beliefs", 0, FAR_FUTURE))
        self._now = self._saved_at = now
        self._codes, self._spans, self._changes = {}, {}, []
        self._saved = _Saved(sections, parts)

    # --- the present --------------------------------------------------------------------------------------------------

    def _advance(self, now: int) -> None:
        # The present moves forward: only what changed, or whose interval begins or ends by now, is asked again.
        register = self.register
        due = {memory.id: memory for memory in map(register.memories.get, register.changed) if memory is not None}
        for key in register.changed_keys:
            due.update((memory.id, memory) for memory in register.keys.get(key, ()))
        register.changed.clear()
        register.changed_keys.clear()
        reached = self._saved.reached(self._now, now)
        while self._changes and self._changes[0][0] <= now:
            reached.append(heapq.heappop(self._changes)[1])
        for seq in sorted(set(reached)):
            memory = register.memory_at(seq)
            if memory is not None:
                due[memory.id] = memory
        self._now = now
        memo: dict[bytes, Resolution] = {}
        next_change: dict[tuple[str, bytes], int] = {}
        for memory in due.values():
            codes = self._room(memory.scope, memory.row + 1)
            if self._is_plain(memory):
                since, until = memory.envelope.valid_from, memory.valid_until
                standing, bound = Standing(_plain_status(memory), since <= now < until), False
                change = since if since > now else until if until > now else FAR_FUTURE
            else:
                standing, bound = self._standing(memory, now, register.seq, memo), True
                change = self._next_change(memory, now, next_change)
            codes[memory.row] = code_of(standing, bound=bound)
            if memory.scope in self._spans:
                self._spans[memory.scope].drop(memory.row)
            if change < FAR_FUTURE:
                heapq.heappush(self._changes, (change, memory.seq))

    def _is_plain(self, memory: Memory) -> bool:
        # Nothing but its own interval says whether it holds.
        envelope = memory.envelope
        if memory.fates or memory.erasure is not None or envelope.pending:
            return False
        key = envelope.belief_key
        return key is None or envelope.many or self.register.keys.is_single((memory.scope, key))

    def _next_change(self, memory: Memory, now: int, kept: dict[tuple[str, bytes], int]) -> int:
        key = memory.envelope.belief_key
        if key is None or memory.envelope.many:
            return _first_after([memory], now, self.register)
        if (memory.scope, key) not in kept:
            kept[memory.scope, key] = _first_after(self.register.statements(memory), now, self.register)
        return kept[memory.scope, key]

    def _room(self, scope: str, rows: int) -> Codes:
        codes = self._codes.get(scope)
        if codes is None:
            codes = self._saved.codes(scope)
        codes = self._codes[scope] = with_room(codes, rows)
        return codes

    def _standing(self, memory: Memory, valid_at: int, known: int, memo: dict[bytes, Resolution]) -> Standing:
        envelope = memory.envelope
        if memory.erasure is not None:
            return Standing(Status.ERASED, False)
        if not memory.fates and envelope.belief_key is None and not envelope.pending:
            # Nothing has happened to it, and nothing else bears on it: nearly every record, nearly always.
            return Standing(_plain_status(memory), memory.covers(valid_at))
        if is_quarantined(memory, known):
            return Standing(Status.QUARANTINED, False)
        if any(fate.kind is FateKind.REJECTED and fate.seq <= known for fate in memory.fates):
            return Standing(Status.REJECTED, False)
        if retired_from(memory, known) <= valid_at or has_lapsed(memory, valid_at=valid_at, known=known):
            return Standing(Status.RETIRED, False)
        lookup = self.register.memories.get
        if superseded_by(memory, valid_at=valid_at, known=known, lookup=lookup) is not None:
            return Standing(Status.SUPERSEDED, False)
        if admitted_seq(memory, known) > known:
            return Standing(Status.PENDING, False)
        here = memory.covers(valid_at)
        if here and memory.envelope.belief_key is not None and not memory.envelope.many:
            resolution = self._resolved(memory, memory.envelope.belief_key, valid_at, known, memo)
            role = resolution.roles.get(memory.id, Status.ACTIVE)
            if role is not Status.ACTIVE:
                return Standing(role, False)
            here = resolution.current is not None and resolution.current.id == memory.id
        return Standing(_plain_status(memory), here)

    def _resolved(
        self, memory: Memory, key: bytes, valid_at: int, known: int, memo: dict[bytes, Resolution]
    ) -> Resolution:
        named = key + memory.scope.encode()
        found = memo.get(named)
        if found is None:
            found = memo[named] = self.resolution(memory, valid_at=valid_at, known=known)
        return found


class BeliefsAt:
    """Answers at one point of both times, each key resolved once. For as long as nothing more is applied."""

    def __init__(self, beliefs: Beliefs, valid_at: int, known: int) -> None:
        self._beliefs, self._valid_at, self._known = beliefs, valid_at, known
        self._memo: dict[bytes, Resolution] = {}

    def standing(self, memory: Memory) -> Standing:
        """Return the memory's status; it must have been recorded by then."""
        return self._beliefs._standing(memory, self._valid_at, self._known, self._memo)

    def resolution(self, memory: Memory, belief_key: bytes) -> Resolution:
        """Return the resolution of the memory's single-valued key, which the caller has looked at."""
        return self._beliefs._resolved(memory, belief_key, self._valid_at, self._known, self._memo)


def is_listed(memory: Memory, status: Status, author: str | None) -> bool:
    """Tell whether an actor is shown the memory unasked: what is pending, only its author is. None is shown all."""
    return status is not Status.PENDING or author is None or memory.envelope.actor == author


def _plain_status(memory: Memory) -> Status:
    return Status.CONDITIONAL if memory.envelope.conditional else Status.ACTIVE


def _offered(
    memories: ScopeRows, codes: Codes, statuses: Collection[Status], author: str | None, rows: Rows | None = None
) -> NDArray[np.bool_]:
    # `rows` are those that the bytes are of, where they are not of all.
    mask = offered(codes, statuses)
    if author is not None and Status.PENDING in statuses:
        for at in np.flatnonzero(mask & is_pending(codes)).tolist():
            row = at if rows is None else int(rows[at])
            mask[at] = is_listed(memories[row], Status.PENDING, author)
    return mask


class _Saved:
    """What was saved of the present's answers: standings by scope, and when each of the others changes."""

    def __init__(self, sections: Sections, parts: Sequence[tuple[str, int]]) -> None:
        self._sections = sections
        self._bounds: dict[str, tuple[int, int]] = {}
        start = 0
        for scope, rows in parts:
            self._bounds[scope] = (start, start + rows)
            start += rows
        self._changes: NDArray[np.int64] | None = None

    def codes(self, scope: str) -> Codes:
        """Return a copy of a scope's standings, once; empty when none were saved."""
        start, end = self._bounds.pop(scope, (0, 0))
        if start == end:
            return _NO_CODES
        return np.frombuffer(self._sections.between("beliefs.standings", start, end), np.uint8).copy()

    def reached(self, before: int, now: int) -> list[int]:
        """Return the sequence numbers of the memories that change after one instant, up to another."""
        found = self._all()
        low, high = np.searchsorted(found[:, 0], (before, now), side="right")
        return [int(seq) for seq in found[low:high, 1]]

    def changes(self, after: int) -> list[tuple[int, int]]:
        """Return (instant, sequence number) of the changes to come."""
        found = self._all()
        return [(at, seq) for at, seq in found[np.searchsorted(found[:, 0], after, side="right") :].tolist()]

    def _all(self) -> NDArray[np.int64]:
        if self._changes is None:
            self._changes = self._sections.array("beliefs.changes", np.int64).reshape(-1, 2)
        return self._changes


_NOTHING_SAVED: Final = _Saved(PlainSections(), ())
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[int, list[tuple[str, int]]]).decode


def _first_after(statements: Iterable[Memory], now: int, register: Register) -> int:
    lookup = register.memories.get
    points = [p for memory in statements for p in breakpoints(memory, lookup) if p > now]
    return min(points, default=FAR_FUTURE)
