"""What the register holds: one struct per memory, link, confirmation, prohibition, decision and enrolment."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import msgspec

from muniment.events import Location, MemoryEnvelope, Rank

FAR_FUTURE = 1 << 62
"""As a sequence number or an instant: later than any, and later than LATEST."""
LATEST = FAR_FUTURE - 1
"""The `known` of whoever knows everything that was recorded."""
PENDING_TERM = 30 * 24 * 3600 * 1_000_000
"""How long a memory waits for a person, in microseconds from its record time: 30 days. It then lapses."""


class FateKind(IntEnum):
    """What happened to a memory after it was recorded."""

    SUPERSEDED = 1
    RETIRED = 2
    APPROVED = 3
    REJECTED = 4
    QUARANTINED = 5
    RELEASED = 6


class Fate(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One thing that happened: `event` caused it; a retirement ends validity at `until`, a successor is `by`."""

    kind: FateKind
    seq: int
    recorded_at: int
    event: bytes
    actor: str
    rank: int
    until: int = FAR_FUTURE
    by: bytes | None = None


class Erasure(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The forget that erased something."""

    event: bytes
    seq: int
    recorded_at: int
    actor: str
    reason: str


class Memory(msgspec.Struct, array_like=True, gc=False):
    """A memory's envelope, its place, and what happened to it since. Words are only in the log."""

    id: bytes
    seq: int
    recorded_at: int
    hash: bytes
    envelope: MemoryEnvelope
    slot: int
    place: Location
    row: int
    fates: tuple[Fate, ...] = ()
    erasure: Erasure | None = None

    @property
    def scope(self) -> str:
        """The scope it belongs to."""
        return self.envelope.scope

    @property
    def valid_until(self) -> int:
        """The end of the interval that was stated, or the far future."""
        return FAR_FUTURE if self.envelope.valid_to is None else self.envelope.valid_to

    @property
    def lapses_at(self) -> int:
        """The instant from which it waits no longer for an approval that has not come, or the far future."""
        return self.recorded_at + PENDING_TERM if self.envelope.pending else FAR_FUTURE

    def covers(self, instant: int) -> bool:
        """Tell whether the interval that was stated holds the instant."""
        return self.envelope.valid_from <= instant < self.valid_until


class Link(msgspec.Struct, array_like=True, gc=False):
    """A typed link between two memories, with both intervals."""

    start: bytes
    end: bytes
    type: str
    seq: int
    recorded_at: int
    valid_from: int
    valid_to: int | None
    scope: str
    ended_seq: int = FAR_FUTURE
    ended_at: int = FAR_FUTURE


class Command(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The first event written under a command id, so that a retry gets the same receipt."""

    payload_key: bytes | None
    id: bytes
    seq: int
    recorded_at: int
    hash: bytes
    verb: str


class CommandRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A command with what it is found by."""

    scope: str
    actor: str
    command_id: str
    command: Command


class Confirmation(msgspec.Struct, array_like=True):
    """A user's signed yes. `action` is canonical bytes; `spent` are the decisions that used it, with their places."""

    id: bytes
    seq: int
    recorded_at: int
    scope: str
    agent: str
    principal: str
    uses: int | None
    signed_at: int
    expires_at: int
    nonce: str
    slot: int
    action: bytes | None
    spent: list[tuple[int, bytes]] = []
    revoked_seq: int = FAR_FUTURE
    erasure: Erasure | None = None
    place: Location = Location(0, 0, 0)

    def is_live(self, *, known: int, now: int) -> bool:
        """Tell whether it may still be used, seen from a sequence number and an instant."""
        if self.seq > known or self.revoked_seq <= known or self.erasure is not None or self.action is None:
            return False
        if not self.signed_at <= now < self.expires_at:
            return False
        return self.uses is None or sum(seq <= known for seq, _ in self.spent) < self.uses


class Prohibition(msgspec.Struct, array_like=True):
    """A veto in a scope and below. `action` is canonical bytes."""

    id: bytes
    seq: int
    recorded_at: int
    scope: str
    actor: str
    rank: int
    slot: int
    action: bytes | None
    ended_seq: int = FAR_FUTURE
    place: Location = Location(0, 0, 0)


class DecisionRecord(msgspec.Struct, array_like=True, gc=False):
    """A recorded verdict; its action and arguments are only in the log."""

    id: bytes
    seq: int
    recorded_at: int
    scope: str
    actor: str
    use: str
    allowed: bool
    reasons: tuple[str, ...]
    evidence: tuple[tuple[bytes, str], ...]
    confirmation: bytes | None
    prohibition: bytes | None
    policy: str
    at_seq: int
    decided_at: int
    slot: int
    place: Location
    erasure: Erasure | None = None


class Enrolment(msgspec.Struct, array_like=True):
    """A key that speaks for a principal in some scopes and those below."""

    id: bytes
    seq: int
    principal: str
    key: bytes
    scopes: tuple[str, ...]
    by: str
    replaced_seq: int = FAR_FUTURE
    recovery: bool = False


class Proposal(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A relation between two memories that was noticed; why is in its event's body."""

    id: bytes
    seq: int
    recorded_at: int
    scope: str
    actor: str
    start: bytes
    end: bytes
    link: str
    score: float
    place: Location


class Request(msgspec.Struct, array_like=True):
    """A deed above its asker's rank, waiting for a person."""

    id: bytes
    seq: int
    recorded_at: int
    scope: str
    actor: str
    verb: str
    targets: tuple[bytes, ...]
    place: Location
    decided_seq: int = FAR_FUTURE
    approved: bool = False


class EventRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One line of the event list: what a timeline shows, without words."""

    seq: int
    recorded_at: int
    type: int
    id: bytes
    scope: str
    actor: str
    origin: str
    hash: bytes
    target: bytes | None = None


BeliefKey: TypeAlias = tuple[str, bytes]
"""A scope and the keyed digest of (subject, attribute)."""


def may_change(origin: str, rank: int, other_origin: str, other_rank: int) -> bool:
    """Tell whether a record of one origin may change one of another: an external source only its own (I7)."""
    if rank == other_rank == Rank.EXTERNAL:
        return origin == other_origin
    return rank >= other_rank
