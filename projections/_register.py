"""
The register: what the door and the guard must know at once, folded from envelopes and kept in memory.

A fold and nothing else: it reads no clock and no other projection. Everything it keeps carries the sequence number from
which it holds, so that any earlier state can be asked of the same structure by `known`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, TypeVar, cast

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
    Requested,
    Retired,
    Reviewed,
    Revoked,
    RollbackAccepted,
    SequenceGap,
    Unlinked,
    Unprohibited,
    covers,
)

from ._lookups import BeliefKeys, ById, Commands, Links, Lookup, Rows, Timeline
from ._sections import Buffer, Sections
from ._shapes import (
    AnyTable,
    command_shape,
    decision_shape,
    event_shape,
    has_recalled,
    has_text,
    is_about,
    is_derived_from,
    link_shape,
    memory_shape,
    scope_of,
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
from ._tables import Scopes, Table, key_of

Key = TypeVar("Key")
VERSION: Final = 2
ROLLED_BACK: Final = "forgotten before an older log was put back"
"""Raised whenever the same log would give another register."""


class _Small(msgspec.Struct, array_like=True):
    """What is not kept in tables. Actions are words, which a forget destroys: they are read from the log again."""

    seq: int
    key_epoch: int
    confirmations: list[Confirmation]
    prohibitions: list[Prohibition]
    enrolments: list[Enrolment]
    requests: list[Request]
    proposals: list[tuple[int, bytes, bytes, str, float]]
    scopes: list[tuple[str, int]]
    closed: list[tuple[str, int, int, bytes]]
    lifted_scopes: list[tuple[str, int]]
    refusals: list[tuple[str, str, int]]


class _Saved(msgspec.Struct, array_like=True):
    small: _Small
    scope_names: list[str | None]
    counts: dict[str, int]


class Register:
    """The state of every memory, belief key, confirmation, prohibition, decision and principal."""

    def __init__(self, open_body: Callable[[Event], Body | None]) -> None:
        self._open_body = open_body
        self.seq = 0
        self.key_epoch = 0
        self._numbers = Scopes()
        number = self._numbers.number
        memories = Table(memory_shape(number), self._numbers)
        self.memories = ById(memories, scope_of)
        self.rows = Rows(memories, self._numbers)
        self.keys = BeliefKeys(memories, "key", _low_of_pair, is_about)
        self.texts: Lookup[tuple[str, bytes]] = Lookup(memories, "text", _low_of_pair, has_text)
        self.children: Lookup[bytes] = Lookup(memories, "parent", key_of, is_derived_from)
        self.recalled_into: Lookup[bytes] = Lookup(memories, "recalled", key_of, has_recalled)
        self.links = Links(Table(link_shape(number), self._numbers))
        self.links_at = self.links
        self.commands = Commands(Table(command_shape(number), self._numbers))
        self.decisions = ById(Table(decision_shape(number), self._numbers), scope_of)
        self.timeline = Timeline(Table(event_shape(number), self._numbers))
        self.confirmations: dict[bytes, Confirmation] = {}
        self.prohibitions: dict[bytes, Prohibition] = {}
        self.enrolments: list[Enrolment] = []
        self.requests: dict[bytes, Request] = {}
        self.proposals: list[tuple[int, bytes, bytes, str, float]] = []
        self.scopes: dict[str, int] = {}
        self.closed: dict[str, tuple[int, int, bytes]] = {}
        self.lifted_scopes: dict[str, int] = {}
        self.refusals: dict[tuple[str, str], int] = {}
        self.changed: set[bytes] = set()
        self.changed_keys: set[BeliefKey] = set()

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
        header, scope = event.header, envelope.scope
        if scope not in self.scopes:
            self.scopes[scope] = header.scope_slot
        if envelope.command_id is not None:
            command = Command(
                envelope.payload_key, header.id, header.seq, header.recorded_at, event.hash, type(envelope).__name__
            )
            self.commands.add(scope, envelope.actor, envelope.command_id, command)
        target: bytes | None = None
        if isinstance(envelope, MemoryEnvelope):
            self._remembered(event, envelope)
        else:
            handler = _HANDLERS.get(type(envelope))
            if handler is not None:
                handler(self, event, envelope)
            target = _target_of(envelope)
        self.timeline.append(
            EventRow(
                header.seq,
                header.recorded_at,
                header.type,
                header.id,
                scope,
                envelope.actor,
                envelope.origin,
                event.hash,
                target,
            )
        )

    def _remembered(self, event: Event, envelope: MemoryEnvelope) -> None:
        header = event.header
        rows = self.rows.of(envelope.scope)
        memory = Memory(
            header.id,
            header.seq,
            header.recorded_at,
            event.hash,
            envelope,
            header.slot,
            Place(*event.where),
            len(rows),
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
        self.memories.add(memory)
        text, texts = (envelope.scope, envelope.text_key), self.texts.fresh
        if text in texts:
            texts[text].append(memory)
        else:
            texts[text] = [memory]
        if envelope.belief_key is not None:
            _append(self.keys.fresh, (envelope.scope, envelope.belief_key), memory)
        for parent in envelope.derived_from:
            _append(self.children.fresh, parent, memory)
        for seen in envelope.recalled:
            _append(self.recalled_into.fresh, seen, memory)

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
            lookup.close_scope(scope)
        self.refusals = {key: count for key, count in self.refusals.items() if key[0] != scope}
        for table in (self.confirmations, self.prohibitions, self.requests):
            for identity in [i for i, record in table.items() if record.scope == scope]:
                del table[identity]
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
            action=_action(self._open_body(event)),
            place=_place(event),
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
            action=_action(self._open_body(event)),
            place=_place(event),
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
            Enrolment(event.header.id, event.seq, envelope.principal or "", envelope.key, envelope.scopes, envelope.by)
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
            place=_place(event),
        )
        self.decisions.add(decision)
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
        key = memory.envelope.belief_key
        if key is None or memory.envelope.many:
            self.changed.add(memory.id)
        else:
            self.changed_keys.add((memory.scope, key))

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

    def memory_at(self, seq: int) -> Memory | None:
        """Return the memory that was recorded by an event, or None."""
        return self.memories.at_seq(seq)

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
        found = self.timeline.find(identity)
        return found[-1].hash if found else b""

    def seq_at(self, recorded_at: int) -> int:
        """Return the last sequence number recorded up to an instant."""
        row = self.timeline.upto_time(recorded_at)
        return 0 if row is None else row.seq

    def recorded_at_seq(self, seq: int) -> int:
        """Return the record time of the last event up to a sequence number; 0 before the first."""
        row = self.timeline.upto(seq)
        return 0 if row is None else row.recorded_at

    # --- saving -------------------------------------------------------------------------------------------------------

    def digest(self) -> bytes:
        """Return a hash of all that is stated; equal for live and rebuilt registers of one log, saved or not."""
        hasher = blake3(_encode(self._small()))
        for table in self._tables():
            hasher.update(table.shape.name.encode())
            for piece in table.pieces():
                hasher.update(piece)
        return hasher.digest()

    def sections(self) -> Iterator[tuple[str, Iterable[Buffer]]]:
        """Yield the register as sections; nothing in it is words."""
        small = self._small()
        small.confirmations = [msgspec.structs.replace(c, action=None) for c in small.confirmations]
        small.prohibitions = [msgspec.structs.replace(p, action=None) for p in small.prohibitions]
        for table in self._tables():
            yield from table.sections()
        # Numbers of closed scopes stay taken, so that those of the others do not move.
        yield "register", [_encode(_Saved(small, self._numbers.saved(), self.counts()))]

    def load(self, sections: Sections, read_body: Callable[[Place], Body | None]) -> None:
        """Stand on what was saved; raises msgspec.MsgspecError when it is something else."""
        saved = _decode(sections.between("register", 0, FAR_FUTURE))
        self._take_small(saved.small, read_body)
        self._stand_on(sections, saved)

    def rest_on(self, sections: Sections) -> None:
        """Hand what is in memory over to sections that were written from this register, which has not changed since."""
        self._stand_on(sections, _decode(sections.between("register", 0, FAR_FUTURE)))

    def counts(self) -> dict[str, int]:
        """Return how many records each table has."""
        return {table.shape.name: len(table) for table in self._tables()}

    def saved_counts(self) -> dict[str, int]:
        """Return how many records of each table were saved, those of scopes that were closed since included."""
        return {table.shape.name: table.saved for table in self._tables()}

    def _stand_on(self, sections: Sections, saved: _Saved) -> None:
        self._numbers.load(saved.scope_names)
        for table in self._tables():
            table.load(sections, saved.counts[table.shape.name])
        for view in (self.memories, self.rows, self.links, self.commands, self.decisions):
            view.reload()
        for lookup in (self.keys, self.texts, self.children, self.recalled_into):
            lookup.fresh.clear()

    def _tables(self) -> list[AnyTable]:
        return [
            self.memories.table,
            self.links.table,
            self.commands.table,
            self.decisions.table,
            self.timeline.table,
        ]

    def _small(self) -> _Small:
        return _Small(
            seq=self.seq,
            key_epoch=self.key_epoch,
            confirmations=list(self.confirmations.values()),
            prohibitions=list(self.prohibitions.values()),
            enrolments=self.enrolments,
            requests=list(self.requests.values()),
            proposals=self.proposals,
            scopes=sorted(self.scopes.items()),
            closed=sorted((scope, *closing) for scope, closing in self.closed.items()),
            lifted_scopes=sorted(self.lifted_scopes.items()),
            refusals=sorted((*key, count) for key, count in self.refusals.items()),
        )

    def _take_small(self, small: _Small, read_body: Callable[[Place], Body | None]) -> None:
        self.seq, self.key_epoch = small.seq, small.key_epoch
        self.confirmations = {c.id: c for c in small.confirmations}
        self.prohibitions = {p.id: p for p in small.prohibitions}
        for confirmation in small.confirmations:
            confirmation.action = _action(read_body(confirmation.place))
        for prohibition in small.prohibitions:
            prohibition.action = _action(read_body(prohibition.place))
        self.enrolments = small.enrolments
        self.requests = {r.id: r for r in small.requests}
        self.proposals = small.proposals
        self.scopes = dict(small.scopes)
        self.closed = {scope: (seq, at, event) for scope, seq, at, event in small.closed}
        self.lifted_scopes = dict(small.lifted_scopes)
        self.refusals = {(scope, code): count for scope, code, count in small.refusals}


def _place(event: Event) -> Place:
    return Place(event.where.segment, event.where.offset, event.where.length)


def _action(body: Body | None) -> bytes | None:
    return body.action if isinstance(body, ActionBody) else None


def _low_of_pair(key: tuple[str, bytes]) -> int:
    return key_of(key[1])


def _append(lists: dict[Key, list[Memory]], key: Key, memory: Memory) -> None:
    found = lists.get(key)
    if found is None:
        lists[key] = [memory]
    else:
        found.append(memory)


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
