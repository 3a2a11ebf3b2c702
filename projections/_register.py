"""
The register: what the door and the guard must know at once, folded from envelopes and kept in memory.

A fold and nothing else: it reads no clock and no other projection. Everything it keeps carries the sequence number from
which it holds, so that any earlier state can be asked of the same structure by `known`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, cast

import msgspec

from muniment.events import (
    REPEATED,
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
    Requested,
    Retired,
    Reviewed,
    Revoked,
    RollbackAccepted,
    SequenceGap,
    Unlinked,
    Unprohibited,
)

from ._kept import Kept, action_of
from ._shapes import (
    scope_of,
)
from ._state import (
    FAR_FUTURE,
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
    Prohibition,
    Proposal,
    Request,
)

VERSION: Final = 5
"""Raised whenever the same log would give another register, unless `ACTS_VERSION` is enough."""
ACTS_VERSION: Final = 1
"""Raised when only commands, decisions, confirmations, prohibitions, enrolments, requests or refusals would differ."""
ROLLED_BACK: Final = "forgotten before an older log was put back"


class Register(Kept):
    """The state of every memory, belief key, confirmation, prohibition, decision and principal."""

    def __init__(self, open_body: Callable[[Event], Body | None]) -> None:
        super().__init__()
        self._open_body = open_body

    def apply(self, batch: Batch) -> None:
        """
        Take in the next batch; one that was applied before is passed over.

        Raises:
            SequenceGap: it does not follow the last one.
        """
        if batch.head.seq <= self.seq:
            return
        if batch.events and batch.events[0].header.seq != self.seq + 1:
            raise SequenceGap(expected=self.seq + 1, actual=batch.events[0].seq)
        for event in batch.events:
            # Without an envelope its whole scope was forgotten: there is nothing left to know.
            if event.envelope is not None:
                self._apply_event(event, event.envelope)
        self.seq = batch.head.seq

    def _apply_event(self, event: Event, envelope: Envelope) -> None:
        header, scope, actor = event.header, envelope.scope, envelope.actor
        if scope not in self.scopes:
            self.scopes[scope] = header.scope_slot
        if envelope.command_id is not None:
            command = self._command(event, envelope)
            if command is not None:
                self.commands.add(scope, actor, envelope.command_id, command)
        target: bytes | None = None
        if isinstance(envelope, MemoryEnvelope):
            self._remembered(event, envelope)
        else:
            handler = _HANDLERS.get(type(envelope))
            if handler is not None:
                handler(self, event, envelope)
            target = _target_of(envelope)
        row = EventRow(
            header.seq, header.recorded_at, header.type, header.id, scope, actor, envelope.origin, event.hash, target
        )
        self.timeline.table.fresh.append(row)

    def _command(self, event: Event, envelope: Envelope) -> Command | None:
        header = event.header
        if isinstance(envelope, RefusedWrite) and envelope.code == REPEATED:
            # A retry gets the receipt of what was there, as the first call did.
            memory = self.memories.get(envelope.because_of or b"")
            if memory is None:
                return None
            said = memory.id, memory.seq, memory.recorded_at, memory.hash, type(memory.envelope).__name__
            return Command(envelope.payload_key, *said)
        said = header.id, header.seq, header.recorded_at, event.hash, type(envelope).__name__
        return Command(envelope.payload_key, *said)

    def _remembered(self, event: Event, envelope: MemoryEnvelope) -> None:
        header = event.header
        memory = Memory(header.id, header.seq, header.recorded_at, event.hash, envelope, header.slot, event.where, 0)
        self.rows.of(envelope.scope).add(memory)
        self.memories.add(memory)
        self._touch(memory)
        for link_type, end in envelope.links:
            self._add_link(event, envelope, memory.id, end, link_type, envelope.valid_from, envelope.valid_to)
        if envelope.supersedes is not None:
            self._add_fate(envelope.supersedes, event, envelope, FateKind.SUPERSEDED, by=memory.id)

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
                self._change(memory)
        slots = set(envelope.other_slots)
        for confirmation in self.confirmations.values():
            if confirmation.slot in slots and confirmation.erasure is None:
                confirmation.erasure, confirmation.action = erasure, None
        for decision in self.decisions.with_slots(slots) if slots else ():
            if decision.erasure is None:
                decision.erasure = erasure
                self.decisions.changed(decision)
        if envelope.closed_scope is not None:
            self._close_scope(envelope.closed_scope, event)

    def erase_shredded(self, slots: Collection[int], erasure: Erasure) -> list[bytes]:
        """Mark the memories whose keys were destroyed by a forget that this log does not hold, and return their ids."""
        # An erasure without an event is only known from the keys: the event that accepts the log takes its place.
        slotted = self.memories.with_slots(set(slots))
        found = [memory for memory in slotted if memory.erasure is None or not memory.erasure.event]
        for memory in found:
            memory.erasure = erasure
            self._change(memory)
        return [memory.id for memory in found]

    def _rollback_accepted(self, event: Event, envelope: RollbackAccepted) -> None:
        erasure = Erasure(event.header.id, event.seq, event.recorded_at, envelope.actor, ROLLED_BACK)
        self.erase_shredded(set(envelope.erased_slots), erasure)

    def note_later_erasure(self, event: Event, envelope: Forgotten) -> None:
        """Mark what a forget after this register's end has erased: it is erased at every earlier moment too."""
        self._forgotten(event, msgspec.structs.replace(envelope, closed_scope=None))
        scope = envelope.closed_scope
        if scope is not None and scope in self.scopes:
            self._close_scope(scope, event)
            del self.closed[scope]  # it was open then, and knew of nothing

    def _close_scope(self, scope: str, event: Event) -> None:
        # Its envelopes cannot be opened any more, so a register built anew would know nothing of it: nor may this one.
        number = self._numbers.close(scope)
        self.rows.pop(scope)
        self.memories.close_scope(number, scope)
        self.decisions.close_scope(number, scope)
        self.links.close_scope(number, scope)
        self.commands.close_scope(number, scope)
        self.timeline.table.close_scope(number, scope, scope_of)
        for lookup in (self.keys, self.texts, self.children, self.recalled_into):
            lookup.reload()
        self.refusals = {key: count for key, count in self.refusals.items() if key[0] != scope}
        for table in (self.confirmations, self.prohibitions, self.requests):
            for identity in [i for i, record in table.items() if record.scope == scope]:
                del table[identity]
        self.proposals = [proposal for proposal in self.proposals if proposal.scope != scope]
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
        wanted = (envelope.start, envelope.end, envelope.link)
        self.links.end(wanted, live=FAR_FUTURE, seq=event.seq, recorded_at=event.recorded_at)

    def _confirmed(self, event: Event, envelope: Confirmed) -> None:
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
            action=action_of(self._open_body(event)),
            place=event.where,
        )

    def _revoked(self, event: Event, envelope: Revoked) -> None:
        confirmation = self.confirmations.get(envelope.target)
        if confirmation is not None:
            confirmation.revoked_seq = min(confirmation.revoked_seq, event.seq)

    def _prohibited(self, event: Event, envelope: Prohibited) -> None:
        self.prohibitions[event.header.id] = Prohibition(
            id=event.header.id,
            seq=event.seq,
            recorded_at=event.recorded_at,
            scope=envelope.scope,
            actor=envelope.principal or envelope.actor,
            rank=envelope.rank,
            slot=event.header.slot,
            action=action_of(self._open_body(event)),
            place=event.where,
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
        # Approved, it supersedes what it could not while it waited.
        reviewed = self.memories.get(envelope.target)
        if reviewed is not None and reviewed.envelope.supersedes is not None:
            superseded = self.memories.get(reviewed.envelope.supersedes)
            if superseded is not None:
                self._touch(superseded)

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
        decision = DecisionRecord(
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
            place=event.where,
        )
        self.decisions.add(decision)
        if envelope.allowed and envelope.confirmation is not None:
            confirmation = self.confirmations.get(envelope.confirmation)
            if confirmation is not None:
                confirmation.spent.append((event.seq, event.header.id))

    def _proposed(self, event: Event, envelope: Proposed) -> None:
        self.proposals.append(
            Proposal(
                id=event.header.id,
                seq=event.seq,
                recorded_at=event.recorded_at,
                scope=envelope.scope,
                actor=envelope.principal or envelope.actor,
                start=envelope.start,
                end=envelope.end,
                link=envelope.link,
                score=envelope.score,
                place=event.where,
            )
        )

    def _requested(self, event: Event, envelope: Requested) -> None:
        self.requests[event.header.id] = Request(
            event.header.id,
            event.seq,
            event.recorded_at,
            envelope.scope,
            envelope.actor,
            envelope.verb,
            envelope.targets,
            event.where,
        )

    def _refused(self, _event: Event, envelope: RefusedWrite) -> None:
        if envelope.code == REPEATED:
            return
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
        fate = Fate(kind, event.seq, event.recorded_at, event.header.id, actor, envelope.rank, until, by)
        memory.fates = (*memory.fates, fate)
        self._change(memory)

    def _add_link(
        self, event: Event, envelope: Envelope, start: bytes, end: bytes, link: str, since: int, until: int | None
    ) -> None:
        self.links.add(Link(start, end, link, event.seq, event.recorded_at, since, until, envelope.scope))

    def _change(self, memory: Memory) -> None:
        self.memories.changed(memory)
        self._touch(memory)

    def _touch(self, memory: Memory) -> None:
        # Whoever keeps an answer about a memory drops it when the memory, or its key, changed.
        envelope = memory.envelope
        key = envelope.belief_key
        if key is None or envelope.many:
            self.changed.append(memory.id)
        else:
            self.changed_keys.add((envelope.scope, key))


def _target_of(envelope: Envelope) -> bytes | None:
    if isinstance(envelope, RefusedWrite) and envelope.code == REPEATED:
        return envelope.because_of
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
    Requested: Register._requested,
    Retired: Register._retired,
    Reviewed: Register._reviewed,
    Revoked: Register._revoked,
    RollbackAccepted: Register._rollback_accepted,
    Unlinked: Register._unlinked,
    Unprohibited: Register._unprohibited,
}
