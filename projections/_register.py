"""
The register: what the door and the guard must know at once, folded from envelopes and kept in memory.

A fold and nothing else: it reads no clock and no other projection. Everything it keeps carries the sequence number from
which it holds, so that any earlier state can be asked of the same structure by `known`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, cast

import msgspec
from blake3 import blake3

from muniment.events import (
    ActionBody,
    Batch,
    Body,
    Confirmed,
    Decided,
    Enrolled,
    Envelope,
    Event,
    Forgotten,
    Lifted,
    Linked,
    MemoryEnvelope,
    Prohibited,
    Proposed,
    Quarantined,
    RefusedWrite,
    Released,
    Remembered,
    Requested,
    Retired,
    Reviewed,
    Revoked,
    RollbackAccepted,
    SequenceGap,
    Superseded,
    Unlinked,
    Unprohibited,
    covers,
)

from ._state import (
    FAR_FUTURE,
    BeliefKey,
    Command,
    Confirmation,
    DecisionRecord,
    Enrolment,
    Erasure,
    EventRow,
    Fate,
    FateKind,
    Link,
    Memory,
    Place,
    Prohibition,
    Request,
)

VERSION: Final = 2
ROLLED_BACK: Final = "forgotten before an older log was put back"
"""Raised whenever the same log would give another register."""


class _Saved(msgspec.Struct, array_like=True):
    """A register as it is saved: everything that cannot be derived from the rest."""

    seq: int
    key_epoch: int
    memories: list[Memory]
    links: list[Link]
    commands: list[tuple[str, str, str, Command]]
    confirmations: list[Confirmation]
    prohibitions: list[Prohibition]
    decisions: list[DecisionRecord]
    enrolments: list[Enrolment]
    requests: list[Request]
    proposals: list[tuple[int, bytes, bytes, str, float]]
    scopes: list[tuple[str, int]]
    closed: list[tuple[str, int, int, bytes]]
    lifted_scopes: list[tuple[str, int]]
    refusals: list[tuple[str, str, int]]
    timeline: list[EventRow]


class Register:
    """The state of every memory, belief key, confirmation, prohibition, decision and principal."""

    def __init__(self, open_body: Callable[[Event], Body | None]) -> None:
        self._open_body = open_body
        self.seq = 0
        self.key_epoch = 0
        self.memories: dict[bytes, Memory] = {}
        self.rows: dict[str, list[Memory]] = {}
        self.keys: dict[BeliefKey, list[Memory]] = {}
        self.texts: dict[tuple[str, bytes], list[Memory]] = {}
        self.children: dict[bytes, list[Memory]] = {}
        self.recalled_into: dict[bytes, list[Memory]] = {}
        self.links: list[Link] = []
        self.links_at: dict[bytes, list[Link]] = {}
        self.commands: dict[tuple[str, str, str], Command] = {}
        self.confirmations: dict[bytes, Confirmation] = {}
        self.prohibitions: dict[bytes, Prohibition] = {}
        self.decisions: dict[bytes, DecisionRecord] = {}
        self.enrolments: list[Enrolment] = []
        self.requests: dict[bytes, Request] = {}
        self.proposals: list[tuple[int, bytes, bytes, str, float]] = []
        self.scopes: dict[str, int] = {}
        self.closed: dict[str, tuple[int, int, bytes]] = {}
        self.lifted_scopes: dict[str, int] = {}
        self.refusals: dict[tuple[str, str], int] = {}
        self.timeline: list[EventRow] = []
        self.changed: set[bytes] = set()

    # --- the fold -----------------------------------------------------------------------------------------------------

    def apply(self, batch: Batch) -> None:
        """
        Take in the next batch; one that was applied before is passed over.

        Raises:
            SequenceGap: it does not follow the last one.
        """
        if batch.head.seq <= self.seq:
            return
        if batch.events and batch.events[0].seq != self.seq + 1:
            raise SequenceGap(expected=self.seq + 1, actual=batch.events[0].seq)
        for event in batch.events:
            self._apply_event(event)
        self.seq = batch.head.seq

    def _apply_event(self, event: Event) -> None:
        envelope = event.envelope
        if envelope is None:
            return  # its whole scope was forgotten: there is nothing left to know
        self.scopes.setdefault(envelope.scope, event.header.scope_slot)
        self._note_command(event, envelope)
        handler = _HANDLERS.get(type(envelope))
        if handler is not None:
            handler(self, event, envelope)
        self.timeline.append(
            EventRow(
                event.seq,
                event.recorded_at,
                event.header.type,
                event.header.id,
                envelope.scope,
                envelope.actor,
                envelope.origin,
                event.hash,
                _target_of(envelope),
            )
        )

    def _note_command(self, event: Event, envelope: Envelope) -> None:
        if envelope.command_id is None:
            return
        key = (envelope.scope, envelope.actor, envelope.command_id)
        self.commands.setdefault(
            key,
            Command(
                envelope.payload_key,
                event.header.id,
                event.seq,
                event.recorded_at,
                event.hash,
                type(envelope).__name__,
            ),
        )

    def _remembered(self, event: Event, envelope: MemoryEnvelope) -> None:
        rows = self.rows.setdefault(envelope.scope, [])
        memory = Memory(
            id=event.header.id,
            seq=event.seq,
            recorded_at=event.recorded_at,
            hash=event.hash,
            envelope=envelope,
            slot=event.header.slot,
            place=_place(event),
            row=len(rows),
        )
        rows.append(memory)
        self._index(memory)
        for link_type, end in envelope.links:
            self._add_link(event, envelope, memory.id, end, link_type, envelope.valid_from, envelope.valid_to)
        if envelope.supersedes is not None:
            self._add_fate(envelope.supersedes, event, envelope, FateKind.SUPERSEDED, by=memory.id)
        self._touch(memory)

    def _index(self, memory: Memory) -> None:
        envelope = memory.envelope
        self.memories[memory.id] = memory
        self.texts.setdefault((envelope.scope, envelope.text_key), []).append(memory)
        if envelope.belief_key is not None:
            self.keys.setdefault((envelope.scope, envelope.belief_key), []).append(memory)
        for parent in envelope.derived_from:
            self.children.setdefault(parent, []).append(memory)
        for seen in envelope.recalled:
            self.recalled_into.setdefault(seen, []).append(memory)

    def _retired(self, event: Event, envelope: Retired) -> None:
        until = event.recorded_at if envelope.valid_to is None else envelope.valid_to
        self._add_fate(envelope.target, event, envelope, FateKind.RETIRED, until=until)

    def _forgotten(self, event: Event, envelope: Forgotten) -> None:
        self.key_epoch = max(self.key_epoch, envelope.key_epoch)
        erasure = Erasure(event.header.id, event.seq, event.recorded_at, envelope.actor, envelope.reason)
        for identity, _ in envelope.targets:
            memory = self.memories.get(identity)
            if memory is not None and memory.erasure is None:
                memory.erasure = erasure
                self._touch(memory)
        slots = set(envelope.other_slots)
        for confirmation in self.confirmations.values():
            if confirmation.slot in slots and confirmation.erasure is None:
                confirmation.erasure, confirmation.action = erasure, None
        for decision in self.decisions.values():
            if decision.slot in slots and decision.erasure is None:
                decision.erasure = erasure
        if envelope.closed_scope is not None:
            self._close_scope(envelope.closed_scope, event)

    def erase_shredded(self, slots: Collection[int], erasure: Erasure) -> list[bytes]:
        """Mark the memories whose keys were destroyed by a forget that this log does not hold, and return their ids."""
        found: list[bytes] = []
        for memory in self.memories.values():
            # An erasure without an event is only known from the keys: the event that accepts the log takes its place.
            if memory.slot in slots and (memory.erasure is None or not memory.erasure.event):
                memory.erasure = erasure
                self._touch(memory)
                found.append(memory.id)
        return found

    def _rollback_accepted(self, event: Event, envelope: RollbackAccepted) -> None:
        erasure = Erasure(event.header.id, event.seq, event.recorded_at, envelope.actor, ROLLED_BACK)
        self.erase_shredded(set(envelope.erased_slots), erasure)

    def note_later_erasure(self, event: Event, envelope: Forgotten) -> None:
        """Mark what a forget after this register's end has erased: it is erased at every earlier moment too."""
        self._forgotten(event, msgspec.structs.replace(envelope, closed_scope=None))

    def _close_scope(self, scope: str, event: Event) -> None:
        # Its envelopes cannot be opened any more, so a register built anew would know nothing of it: nor may this one.
        for memory in self.rows.pop(scope, []):
            self.memories.pop(memory.id, None)
            self.changed.discard(memory.id)
        self.keys = {key: found for key, found in self.keys.items() if key[0] != scope}
        self.texts = {key: found for key, found in self.texts.items() if key[0] != scope}
        self.commands = {key: found for key, found in self.commands.items() if key[0] != scope}
        self.refusals = {key: count for key, count in self.refusals.items() if key[0] != scope}
        for table in (self.confirmations, self.prohibitions, self.decisions, self.requests):
            for identity in [i for i, record in table.items() if record.scope == scope]:
                del table[identity]
        for parents in (self.children, self.recalled_into):
            for identity in list(parents):
                kept = [m for m in parents[identity] if m.scope != scope]
                parents[identity] = kept
                if not kept:
                    del parents[identity]
        self.links = [link for link in self.links if link.scope != scope]
        self._index_links()
        self.timeline = [row for row in self.timeline if row.scope != scope]
        self.scopes.pop(scope, None)
        self.closed[scope] = (event.seq, event.recorded_at, event.header.id)

    def _lifted(self, event: Event, envelope: Lifted) -> None:
        for scope, (_, _, forgotten) in self.closed.items():
            if forgotten == envelope.target:
                self.lifted_scopes[scope] = event.seq

    def _linked(self, event: Event, envelope: Linked) -> None:
        self._add_link(
            event, envelope, envelope.start, envelope.end, envelope.link, envelope.valid_from, envelope.valid_to
        )

    def _unlinked(self, event: Event, envelope: Unlinked) -> None:
        for link in self.links_at.get(envelope.start, []):
            same = (link.start, link.end, link.type) == (envelope.start, envelope.end, envelope.link)
            if same and link.ended_seq == FAR_FUTURE:
                link.ended_seq, link.ended_at = event.seq, event.recorded_at

    def _confirmed(self, event: Event, envelope: Confirmed) -> None:
        body = cast("ActionBody | None", self._open_body(event))
        self.confirmations[event.header.id] = Confirmation(
            id=event.header.id,
            seq=event.seq,
            recorded_at=event.recorded_at,
            scope=envelope.scope,
            agent=envelope.agent,
            principal=envelope.principal or "",
            uses=envelope.uses,
            signed_at=envelope.signed_at,
            expires_at=envelope.expires_at,
            nonce=envelope.nonce,
            slot=event.header.slot,
            action=None if body is None else body.action,
        )

    def _revoked(self, event: Event, envelope: Revoked) -> None:
        confirmation = self.confirmations.get(envelope.target)
        if confirmation is not None:
            confirmation.revoked_seq = min(confirmation.revoked_seq, event.seq)

    def _prohibited(self, event: Event, envelope: Prohibited) -> None:
        body = cast("ActionBody | None", self._open_body(event))
        self.prohibitions[event.header.id] = Prohibition(
            id=event.header.id,
            seq=event.seq,
            recorded_at=event.recorded_at,
            scope=envelope.scope,
            actor=envelope.principal or envelope.actor,
            rank=envelope.rank,
            slot=event.header.slot,
            action=None if body is None else body.action,
        )

    def _unprohibited(self, event: Event, envelope: Unprohibited) -> None:
        prohibition = self.prohibitions.get(envelope.target)
        if prohibition is not None:
            prohibition.ended_seq = min(prohibition.ended_seq, event.seq)

    def _reviewed(self, event: Event, envelope: Reviewed) -> None:
        request = self.requests.get(envelope.target)
        if request is not None:
            request.decided_seq, request.approved = min(request.decided_seq, event.seq), envelope.approve
            return
        kind = FateKind.APPROVED if envelope.approve else FateKind.REJECTED
        self._add_fate(envelope.target, event, envelope, kind)

    def _enrolled(self, event: Event, envelope: Enrolled) -> None:
        for enrolment in self.enrolments:
            if envelope.replaces == enrolment.key and enrolment.principal == envelope.principal:
                enrolment.replaced_seq = min(enrolment.replaced_seq, event.seq)
        self.enrolments.append(
            Enrolment(
                id=event.header.id,
                seq=event.seq,
                principal=envelope.principal or "",
                key=envelope.key,
                scopes=envelope.scopes,
                by=envelope.by,
                recovery=envelope.recovery,
            )
        )

    def _quarantined(self, event: Event, envelope: Quarantined) -> None:
        for target in envelope.targets:
            self._add_fate(target, event, envelope, FateKind.QUARANTINED)

    def _released(self, event: Event, envelope: Released) -> None:
        for target in envelope.targets:
            self._add_fate(target, event, envelope, FateKind.RELEASED)

    def _decided(self, event: Event, envelope: Decided) -> None:
        self.decisions[event.header.id] = DecisionRecord(
            id=event.header.id,
            seq=event.seq,
            recorded_at=event.recorded_at,
            scope=envelope.scope,
            actor=envelope.actor,
            use=envelope.use,
            allowed=envelope.allowed,
            reasons=envelope.reasons,
            evidence=envelope.evidence,
            confirmation=envelope.confirmation,
            prohibition=envelope.prohibition,
            policy=envelope.policy,
            at_seq=envelope.at_seq,
            decided_at=envelope.decided_at,
            slot=event.header.slot,
            place=_place(event),
        )
        if envelope.allowed and envelope.confirmation is not None:
            confirmation = self.confirmations.get(envelope.confirmation)
            if confirmation is not None:
                confirmation.spent.append((event.seq, event.header.id))

    def _proposed(self, event: Event, envelope: Proposed) -> None:
        self.proposals.append((event.seq, envelope.start, envelope.end, envelope.link, envelope.score))

    def _requested(self, event: Event, envelope: Requested) -> None:
        self.requests[event.header.id] = Request(
            event.header.id,
            event.seq,
            event.recorded_at,
            envelope.scope,
            envelope.actor,
            envelope.verb,
            envelope.targets,
            _place(event),
        )

    def _refused(self, _event: Event, envelope: RefusedWrite) -> None:
        key = (envelope.scope, envelope.code)
        self.refusals[key] = self.refusals.get(key, 0) + 1

    def _add_fate(
        self,
        target: bytes,
        event: Event,
        envelope: Envelope,
        kind: FateKind,
        *,
        until: int = FAR_FUTURE,
        by: bytes | None = None,
    ) -> None:
        memory = self.memories.get(target)
        if memory is None:
            return
        actor = envelope.principal or envelope.actor
        memory.fates.append(Fate(kind, event.seq, event.recorded_at, event.header.id, actor, envelope.rank, until, by))
        self._touch(memory)

    def _add_link(
        self, event: Event, envelope: Envelope, start: bytes, end: bytes, link: str, since: int, until: int | None
    ) -> None:
        added = Link(start, end, link, event.seq, event.recorded_at, since, until, envelope.scope)
        self.links.append(added)
        self._index_link(added)

    def _index_link(self, link: Link) -> None:
        self.links_at.setdefault(link.start, []).append(link)
        if link.end != link.start:
            self.links_at.setdefault(link.end, []).append(link)

    def _index_links(self) -> None:
        self.links_at = {}
        for link in self.links:
            self._index_link(link)

    def _touch(self, memory: Memory) -> None:
        # Whoever keeps an answer about a memory drops it when the memory, or its key, changed.
        key = memory.envelope.belief_key
        if key is None or memory.envelope.many:
            self.changed.add(memory.id)
        else:
            self.changed.update(m.id for m in self.keys[memory.scope, key])

    # --- lookups ------------------------------------------------------------------------------------------------------

    def scope_slot(self, scope: str) -> int | None:
        """Return the key slot of a scope's envelopes, or None before its first event."""
        return self.scopes.get(scope)

    def statements(self, memory: Memory) -> list[Memory]:
        """Return the single-valued statements of the memory's key, in sequence order; empty when it has none."""
        key = memory.envelope.belief_key
        if key is None or memory.envelope.many:
            return []
        return [m for m in self.keys.get((memory.scope, key), []) if not m.envelope.many]

    def in_scope(self, scope: str, known: int) -> Iterator[Memory]:
        """Yield the memories of one scope that were recorded up to a sequence number, in order."""
        for memory in self.rows.get(scope, ()):
            if memory.seq > known:
                return
            yield memory

    def closing(self, scope: str, known: int) -> tuple[int, int, bytes] | None:
        """Return (seq, record time, event) of the forget that closed the scope, unless it was lifted."""
        found = self.closed.get(scope)
        if found is None or found[0] > known or found[0] < self.lifted_scopes.get(scope, 0) <= known:
            return None
        return found

    def live_prohibitions(self, scope: str, known: int) -> list[Prohibition]:
        """Return the vetoes that hold in a scope, seen from a sequence number."""
        return [p for p in self.prohibitions.values() if p.seq <= known < p.ended_seq and covers(p.scope, scope)]

    def enrolment(self, principal: str, key: bytes, known: int) -> Enrolment | None:
        """Return the enrolment under which a key speaks for a principal, or None."""
        for enrolment in self.enrolments:
            if (enrolment.principal, enrolment.key) == (
                principal,
                key,
            ) and enrolment.seq <= known < enrolment.replaced_seq:
                return enrolment
        return None

    def descendants(self, identities: Iterable[bytes]) -> list[Memory]:
        """Return everything that declares to derive from the given memories, transitively, in sequence order."""
        found: dict[bytes, Memory] = {}
        todo = list(identities)
        while todo:
            for child in self.children.get(todo.pop(), ()):
                if child.id not in found:
                    found[child.id] = child
                    todo.append(child.id)
        return sorted(found.values(), key=lambda memory: memory.seq)

    def event_hash(self, identity: bytes) -> bytes:
        """Return the hash of an event by its id, or nothing when it is not known."""
        return next((row.hash for row in reversed(self.timeline) if row.id == identity), b"")

    def seq_at(self, recorded_at: int) -> int:
        """Return the last sequence number recorded up to an instant."""
        low = bisect_right(self.timeline, recorded_at, key=lambda row: row.recorded_at)
        return self.timeline[low - 1].seq if low else 0

    def recorded_at_seq(self, seq: int) -> int:
        """Return the record time of the last event up to a sequence number; 0 before the first."""
        low = bisect_right(self.timeline, seq, key=lambda row: row.seq)
        return self.timeline[low - 1].recorded_at if low else 0

    # --- saving -------------------------------------------------------------------------------------------------------

    def digest(self) -> bytes:
        """Return a hash of all that is stated; equal for live and rebuilt registers of one log."""
        return blake3(self.save()).digest()

    def save(self) -> bytes:
        """Return the register as bytes, in an order that depends on the log alone."""
        saved = _Saved(
            seq=self.seq,
            key_epoch=self.key_epoch,
            memories=[m for scope in sorted(self.rows) for m in self.rows[scope]],
            links=self.links,
            commands=sorted((*key, command) for key, command in self.commands.items()),
            confirmations=list(self.confirmations.values()),
            prohibitions=list(self.prohibitions.values()),
            decisions=list(self.decisions.values()),
            enrolments=self.enrolments,
            requests=list(self.requests.values()),
            proposals=self.proposals,
            scopes=sorted(self.scopes.items()),
            closed=sorted((scope, *closing) for scope, closing in self.closed.items()),
            lifted_scopes=sorted(self.lifted_scopes.items()),
            refusals=sorted((*key, count) for key, count in self.refusals.items()),
            timeline=self.timeline,
        )
        return _encode(saved)

    def load(self, data: bytes) -> None:
        """Become what was saved; raises msgspec.MsgspecError when the bytes are something else."""
        saved = _decode(data)
        self.seq = saved.seq
        self.key_epoch = saved.key_epoch
        for memory in sorted(saved.memories, key=lambda m: m.seq):
            self.rows.setdefault(memory.scope, []).append(memory)
            self._index(memory)
        self.links = saved.links
        self._index_links()
        self.commands = {(scope, actor, command): found for scope, actor, command, found in saved.commands}
        self.confirmations = {c.id: c for c in saved.confirmations}
        self.prohibitions = {p.id: p for p in saved.prohibitions}
        self.decisions = {d.id: d for d in saved.decisions}
        self.enrolments = saved.enrolments
        self.requests = {r.id: r for r in saved.requests}
        self.proposals = saved.proposals
        self.scopes = dict(saved.scopes)
        self.closed = {scope: (seq, at, event) for scope, seq, at, event in saved.closed}
        self.lifted_scopes = dict(saved.lifted_scopes)
        self.refusals = {(scope, code): count for scope, code, count in saved.refusals}
        self.timeline = saved.timeline
        self.changed = set(self.memories)


def _place(event: Event) -> Place:
    return Place(event.where.segment, event.where.offset, event.where.length)


def _target_of(envelope: Envelope) -> bytes | None:
    return cast("bytes | None", getattr(envelope, "target", None))


_HANDLERS: Final[dict[type, Callable[..., None]]] = {
    Confirmed: Register._confirmed,
    Decided: Register._decided,
    Enrolled: Register._enrolled,
    Forgotten: Register._forgotten,
    Lifted: Register._lifted,
    Linked: Register._linked,
    Prohibited: Register._prohibited,
    Proposed: Register._proposed,
    Quarantined: Register._quarantined,
    RefusedWrite: Register._refused,
    Released: Register._released,
    Remembered: Register._remembered,
    Superseded: Register._remembered,
    Requested: Register._requested,
    Retired: Register._retired,
    Reviewed: Register._reviewed,
    Revoked: Register._revoked,
    RollbackAccepted: Register._rollback_accepted,
    Unlinked: Register._unlinked,
    Unprohibited: Register._unprohibited,
}
_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder(_Saved).decode
