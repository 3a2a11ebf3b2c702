"""What the register keeps: its tables and its small lists, what they are asked, and how they are saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec
from blake3 import blake3

from muniment.events import (
    ActionBody,
    Body,
    Location,
    covers,
)

from ._keyed import BeliefKeys, Lookup
from ._lookups import ById, Commands, Links, Rows, Timeline
from ._sections import Buffer, Sections
from ._shapes import (
    AnyTable,
    belief_keys_of,
    command_shape,
    decision_shape,
    event_shape,
    link_shape,
    memory_shape,
    parents_of,
    recalled_of,
    scope_of,
    text_keys_of,
)
from ._state import (
    FAR_FUTURE,
    BeliefKey,
    Confirmation,
    Enrolment,
    Memory,
    Prohibition,
    Proposal,
    Request,
)
from ._tables import Scopes, Table, key_of


class _Small(msgspec.Struct, array_like=True):
    """What is not kept in tables. Actions are words, which a forget destroys: they are read from the log again."""

    seq: int
    key_epoch: int
    confirmations: list[Confirmation]
    prohibitions: list[Prohibition]
    enrolments: list[Enrolment]
    requests: list[Request]
    proposals: list[Proposal]
    scopes: list[tuple[str, int]]
    closed: list[tuple[str, int, int, bytes]]
    lifted_scopes: list[tuple[str, int]]
    refusals: list[tuple[str, str, int]]


class _Saved(msgspec.Struct, array_like=True):
    small: _Small
    scope_names: list[str | None]
    counts: dict[str, int]


class Kept:
    """The state of every memory, belief key, confirmation, prohibition, decision and principal, as it was folded."""

    def __init__(self) -> None:
        self.seq = 0
        self.key_epoch = 0
        self._numbers = Scopes()
        number = self._numbers.number
        memories = Table(memory_shape(number), self._numbers)
        self.memories = ById(memories, scope_of)
        self.rows = Rows(memories, self._numbers)
        self.keys = BeliefKeys(memories, "key", _low_of_pair, belief_keys_of)
        self.texts: Lookup[tuple[str, bytes]] = Lookup(memories, "text", _low_of_pair, text_keys_of)
        self.children: Lookup[bytes] = Lookup(memories, "parent", key_of, parents_of)
        self.recalled_into: Lookup[bytes] = Lookup(memories, "recalled", key_of, recalled_of)
        self.links = Links(Table(link_shape(number), self._numbers))
        self.links_at = self.links
        self.commands = Commands(Table(command_shape(number), self._numbers))
        self.decisions = ById(Table(decision_shape(number), self._numbers), scope_of)
        self.timeline = Timeline(Table(event_shape(number), self._numbers))
        self.confirmations: dict[bytes, Confirmation] = {}
        self.prohibitions: dict[bytes, Prohibition] = {}
        self.enrolments: list[Enrolment] = []
        self.requests: dict[bytes, Request] = {}
        self.proposals: list[Proposal] = []
        self.scopes: dict[str, int] = {}
        self.closed: dict[str, tuple[int, int, bytes]] = {}
        self.lifted_scopes: dict[str, int] = {}
        self.refusals: dict[tuple[str, str], int] = {}
        self.changed: list[bytes] = []
        self.changed_keys: set[BeliefKey] = set()

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
        return _digest(_encode(self._small()), self._tables())

    def digest_later(self) -> Callable[[], bytes]:
        """Return what makes the digest of this moment, for a thread that leaves the register to others meanwhile."""
        small, tables = _encode(self._small()), [table.detached() for table in self._tables()]
        return lambda: _digest(small, tables)

    def sections(self) -> Iterator[tuple[str, Iterable[Buffer]]]:
        """Yield the register as sections; nothing in it is words."""
        small = self._small()
        small.confirmations = [msgspec.structs.replace(c, action=None) for c in small.confirmations]
        small.prohibitions = [msgspec.structs.replace(p, action=None) for p in small.prohibitions]
        for table in self._tables():
            yield from table.sections()
        # Numbers of closed scopes stay taken, so that those of the others do not move.
        yield "register", [_encode(_Saved(small, self._numbers.saved(), self.counts()))]

    def load(self, sections: Sections, read_body: Callable[[Location], Body | None]) -> None:
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
            lookup.reload()

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

    def _take_small(self, small: _Small, read_body: Callable[[Location], Body | None]) -> None:
        self.seq, self.key_epoch = small.seq, small.key_epoch
        self.confirmations = {c.id: c for c in small.confirmations}
        self.prohibitions = {p.id: p for p in small.prohibitions}
        for confirmation in small.confirmations:
            confirmation.action = action_of(read_body(confirmation.place))
        for prohibition in small.prohibitions:
            prohibition.action = action_of(read_body(prohibition.place))
        self.enrolments = small.enrolments
        self.requests = {r.id: r for r in small.requests}
        self.proposals = small.proposals
        self.scopes = dict(small.scopes)
        self.closed = {scope: (seq, at, event) for scope, seq, at, event in small.closed}
        self.lifted_scopes = dict(small.lifted_scopes)
        self.refusals = {(scope, code): count for scope, code, count in small.refusals}


def _digest(small: bytes, tables: Iterable[AnyTable]) -> bytes:
    hasher = blake3(small)
    for table in tables:
        hasher.update(table.shape.name.encode())
        for piece in table.pieces():
            hasher.update(piece)
    return hasher.digest()


def action_of(body: Body | None) -> bytes | None:
    return body.action if isinstance(body, ActionBody) else None


def _low_of_pair(key: tuple[str, bytes]) -> int:
    return key_of(key[1])


_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder(_Saved).decode
