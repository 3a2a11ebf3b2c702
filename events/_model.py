"""
Events, as they are before they are sealed.

Each event has two parts. The *envelope* is what must outlive a forget: who, from where, of what rank, over which
interval, under which keyed digests, changing what. The *body* is what a forget must destroy: text, and all that was
said in words. Both are MessagePack arrays in the field order below; a later schema may only add fields at the end,
with defaults. (`gc=False`: they cannot hold cycles, and a million of them need not be walked by the collector.)
Nothing in an envelope is text that a caller wrote, but names of scopes, actors and command ids, and the
reason of a forget.
"""

from __future__ import annotations

from typing import ClassVar, Final, TypeAlias

import msgspec

from ._ids import Id
from ._kinds import EventType


class Envelope(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """What every event says: in which scope, by whom, with what rank, under which command."""

    TYPE: ClassVar[EventType]

    scope: str
    actor: str
    origin: str
    rank: int
    command_id: str | None = None
    payload_key: bytes | None = None
    principal: str | None = None


class Opened(Envelope, frozen=True):
    """The store was opened for writing; the nonce makes two copies that both go on differ at once."""

    TYPE = EventType.OPENED

    nonce: bytes
    version: str


class MemoryEnvelope(Envelope, frozen=True):
    """A memory: its sort, its interval, its keyed digests, and what it comes from."""

    kind: str
    provenance: str
    valid_from: int
    valid_to: int | None
    text_key: bytes
    form: int
    belief_key: bytes | None = None
    value_key: bytes | None = None
    many: bool = False
    source_key: bytes | None = None
    importance: float | None = None
    conditional: bool = False
    pending: bool = False
    derived_from: tuple[bytes, ...] = ()
    links: tuple[tuple[str, bytes], ...] = ()
    recalled: tuple[bytes, ...] = ()
    supersedes: bytes | None = None
    confirmed_by: bytes | None = None


class Remembered(MemoryEnvelope, frozen=True):
    """A memory was recorded."""

    TYPE = EventType.REMEMBERED


class Superseded(MemoryEnvelope, frozen=True):
    """A memory was recorded in place of another, over its own valid interval."""

    TYPE = EventType.SUPERSEDED


TombstoneEntry: TypeAlias = tuple[str, bytes, bytes | None, int]
"""(domain, digest, belief key or None, normal form): one value that an event refuses from now on."""


class Retired(Envelope, frozen=True):
    """A memory's validity ends at this event, or at `valid_to`."""

    TYPE = EventType.RETIRED

    target: bytes
    valid_to: int | None = None
    tombstones: tuple[TombstoneEntry, ...] = ()


class Forgotten(Envelope, frozen=True):
    """
    Memories were erased, and their values are refused from now on.

    `targets` are (memory id, key slot); `tombstones` are (domain, digest, belief key or None, normal form). Without
    `everyone` ranks above the setter's may state the value again. `key_epoch` is the epoch that the key tree must have
    reached: an older one means that the erasure was interrupted, and the next holder of the lock finishes it. `kept`
    are ids of what holds the value and stays, `elsewhere` those of what derives from it beyond the setter's authority.
    """

    TYPE = EventType.FORGOTTEN

    targets: tuple[tuple[bytes, int], ...]
    tombstones: tuple[TombstoneEntry, ...]
    everyone: bool
    reason: str
    key_epoch: int
    other_slots: tuple[int, ...] = ()
    closed_scope: str | None = None
    kept: tuple[bytes, ...] = ()
    elsewhere: tuple[bytes, ...] = ()


class Linked(Envelope, frozen=True):
    """A typed link from one memory to another begins to hold."""

    TYPE = EventType.LINKED

    start: bytes
    end: bytes
    link: str
    valid_from: int
    valid_to: int | None = None


class Unlinked(Envelope, frozen=True):
    """A link no longer holds."""

    TYPE = EventType.UNLINKED

    start: bytes
    end: bytes
    link: str


class Confirmed(Envelope, frozen=True):
    """A user signed that an agent may do one bound action; the action is in the body."""

    TYPE = EventType.CONFIRMED

    agent: str
    uses: int | None
    signed_at: int
    expires_at: int
    nonce: str


class Revoked(Envelope, frozen=True):
    """A confirmation no longer holds."""

    TYPE = EventType.REVOKED

    target: bytes


class Prohibited(Envelope, frozen=True):
    """An action is vetoed in this scope and below; the action is in the body."""

    TYPE = EventType.PROHIBITED


class Unprohibited(Envelope, frozen=True):
    """A prohibition no longer holds."""

    TYPE = EventType.UNPROHIBITED

    target: bytes


class Reviewed(Envelope, frozen=True):
    """A person approved or rejected a memory or a request."""

    TYPE = EventType.REVIEWED

    target: bytes
    approve: bool
    tombstones: tuple[TombstoneEntry, ...] = ()


class Lifted(Envelope, frozen=True):
    """The tombstones that an event set no longer refuse."""

    TYPE = EventType.LIFTED

    target: bytes


class Enrolled(Envelope, frozen=True):
    """
    A key may speak for a principal in some scopes and those below; `by` is creator, terminal, recovery, or a principal.

    A `recovery` key signs nothing but the replacement of another key of its principal.
    """

    TYPE = EventType.ENROLLED

    key: bytes
    scopes: tuple[str, ...]
    by: str
    replaces: bytes | None = None
    recovery: bool = False


class Quarantined(Envelope, frozen=True):
    """Memories are set apart, reversibly: neither recalled nor able to support anything."""

    TYPE = EventType.QUARANTINED

    targets: tuple[bytes, ...]


class Released(Envelope, frozen=True):
    """Memories are no longer quarantined."""

    TYPE = EventType.RELEASED

    targets: tuple[bytes, ...]


class Decided(Envelope, frozen=True):
    """
    The guard's verdict on an external or destructive action; action and arguments are in the body.

    `evidence` are (memory id, verdict code), where the code is `supports` or why the item was dropped.
    """

    TYPE = EventType.DECIDED

    use: str
    allowed: bool
    reasons: tuple[str, ...]
    evidence: tuple[tuple[bytes, str], ...]
    confirmation: bytes | None
    prohibition: bytes | None
    policy: str
    at_seq: int
    decided_at: int


class Proposed(Envelope, frozen=True):
    """A relation between two memories was noticed and awaits a person or a rule."""

    TYPE = EventType.PROPOSED

    start: bytes
    end: bytes
    link: str
    score: float


class Requested(Envelope, frozen=True):
    """An actor asks for a deed above its rank; a person grants it by review."""

    TYPE = EventType.REQUESTED

    verb: str
    targets: tuple[bytes, ...]


REPEATED: Final = "repeated"
"""The code of a write that said nothing new: what a live memory says already, noted for its command id."""


class RefusedWrite(Envelope, frozen=True):
    """
    A write was refused; neither its value nor any digest of it is kept.

    With the code `repeated` it was not refused: the memory `because_of` said the same already, and nothing but the
    command that said it again is kept.
    """

    TYPE = EventType.REFUSED

    verb: str
    code: str
    because_of: bytes | None = None


class RollbackAccepted(Envelope, frozen=True):
    """An older copy of the log was put back, and the operator goes on with it."""

    TYPE = EventType.ROLLBACK_ACCEPTED

    erased_slots: tuple[int, ...]
    tombstones: tuple[tuple[str, bytes, bytes | None, int, str, bool, int, int], ...] = ()


# --- Bodies -----------------------------------------------------------------------------------------------------------


class Body(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """What dies with the key of its memory."""


class MemoryBody(Body, frozen=True):
    """A memory's words. `value` and `metadata` are canonical data (see `format_data`)."""

    content: str
    subject: str | None = None
    attribute: str | None = None
    value: bytes | None = None
    source: str | None = None
    tags: tuple[str, ...] = ()
    metadata: bytes | None = None
    applies_when: str | None = None
    reason: str | None = None
    signed: bytes | None = None


class WordsBody(Body, frozen=True):
    """A reason, and the signed statement that carries it where there is one."""

    reason: str | None = None
    signed: bytes | None = None


class ActionBody(Body, frozen=True):
    """
    An action in its canonical bytes, and the signed statement or the words that go with it.

    `unknown` is what a decision cited that is no memory's id, as it was given but for secrets. A caller wrote it: it
    lies here, and not beside the evidence, so that it is erased with the action.
    """

    action: bytes
    reason: str | None = None
    signed: bytes | None = None
    needed: tuple[str, ...] = ()
    values: tuple[bytes, ...] = ()
    masked: bool = False
    unknown: tuple[str, ...] = ()


AnyEnvelope: TypeAlias = (
    Opened
    | Remembered
    | Superseded
    | Retired
    | Forgotten
    | Linked
    | Unlinked
    | Confirmed
    | Revoked
    | Prohibited
    | Unprohibited
    | Reviewed
    | Lifted
    | Enrolled
    | Quarantined
    | Released
    | Decided
    | Proposed
    | Requested
    | RefusedWrite
    | RollbackAccepted
)

ENVELOPES: Final[dict[EventType, type[Envelope]]] = {
    kind.TYPE: kind
    for kind in (
        Opened, Remembered, Superseded, Retired, Forgotten, Linked, Unlinked, Confirmed, Revoked, Prohibited,
        Unprohibited, Reviewed, Lifted, Enrolled, Quarantined, Released, Decided, Proposed, Requested, RefusedWrite,
        RollbackAccepted,
    )
}  # fmt: skip

BODIES: Final[dict[EventType, type[Body]]] = {
    EventType.REMEMBERED: MemoryBody,
    EventType.SUPERSEDED: MemoryBody,
    EventType.CONFIRMED: ActionBody,
    EventType.PROHIBITED: ActionBody,
    EventType.DECIDED: ActionBody,
}
"""The body type of each event type; every other type has `WordsBody`."""


class Draft(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    An event that admission lets through, before it has a place in the log.

    `slot` names the key that seals the body: a slot in use (a retirement's reason dies with the memory it retires),
    or None for one of its own.
    """

    id: Id
    envelope: Envelope
    body: Body | None = None
    slot: int | None = None
