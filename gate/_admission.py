"""
Admission of memories: what may be written, against the state that is current under the writer lock.

Each check names what it keeps out. The order matters only where a refusal would tell too much: visibility first, so
that an id of another scope is as if it did not exist.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from muniment.events import (
    NORMAL_FORM,
    REPEATED,
    AlreadyDone,
    CommandConflict,
    Draft,
    Envelope,
    Kind,
    MemoryBody,
    Moment,
    MunimentError,
    NotFound,
    Provenance,
    Rank,
    RankTooLow,
    Refused,
    RefusedWrite,
    Remembered,
    RetiredValue,
    ScopeClosed,
    Status,
    Superseded,
    Tombstoned,
    WordsBody,
    check_interval,
    format_id,
    format_instant,
    new_id,
)
from muniment.projections import (
    LATEST,
    Command,
    Memory,
    Projections,
    Tombstone,
    may_change,
    same_condition,
    spans,
)

from ._handles import Handle
from ._policy import Policy
from ._requests import MemoryRequest, Preparer

LOGGED_REFUSALS = frozenset({"tombstoned", "retired_value", "rank_too_low", "secret_found", "provenance_above_ceiling"})
"""Refusals that are themselves events: attempts that somebody may want to count."""
# Asking a member for its value takes longer than all that is asked of a tombstone.
_WORDS: Final = {provenance: provenance.value for provenance in Provenance}
_NOTE: Final = Kind.NOTE.value


class Existing(NamedTuple):
    """What was asked for is already in the log."""

    id: bytes
    seq: int
    recorded_at: int
    hash: bytes
    note: Draft | None = None
    """The event that keeps the command id under which it was said again; None where there is nothing to keep."""


class Batch:
    """The drafts of one batch so far, and what each of them says, so that a batch does not repeat itself."""

    def __init__(self, at: Moment) -> None:
        self.drafts: list[Draft] = []
        self._at = at
        self._said: dict[bytes, list[tuple[Remembered, Draft, int]]] = {}
        self._stated: dict[tuple[str, bytes], Remembered] = {}
        self._commands: dict[tuple[str, str, str], tuple[bytes | None, Existing]] = {}

    def add(self, draft: Draft) -> None:
        """Take in the next draft."""
        envelope = draft.envelope
        if isinstance(envelope, Remembered):
            seq = self._at.first_seq + len(self.drafts)
            self._said.setdefault(envelope.text_key, []).append((envelope, draft, seq))
            if envelope.command_id is not None:
                self._keep(envelope, envelope.command_id, Existing(draft.id, seq, self._at.recorded_at, b""))
            if envelope.belief_key is not None and not envelope.many and self._holds_now(envelope):
                self._stated[envelope.scope, envelope.belief_key] = envelope
        self.drafts.append(draft)

    def note(self, existing: Existing) -> None:
        """Take in the command id of what only repeats something."""
        if existing.note is not None:
            envelope = existing.note.envelope
            if envelope.command_id is not None:
                self._keep(envelope, envelope.command_id, existing)
            self.drafts.append(existing.note)

    def _keep(self, envelope: Envelope, command_id: str, said: Existing) -> None:
        self._commands[envelope.scope, envelope.actor, command_id] = (envelope.payload_key, said)

    def repeat_of_command(self, request: MemoryRequest) -> Existing | None:
        """Return the earlier draft under the same command id; raises CommandConflict when it says something else."""
        if request.command_id is None:
            return None
        said = self._commands.get((request.handle.scope, request.handle.actor, request.command_id))
        if said is None:
            return None
        payload_key, first = said
        if payload_key != request.payload_key:
            raise CommandConflict(command_id=request.command_id, first_seq=first.seq)
        return first._replace(note=None)

    def find(self, envelope: Remembered, stated: Remembered | None, applies_when: str | None = None) -> Existing | None:
        """Return the earlier draft that says the same of all that interval, and that `stated` did not replace."""
        for said, draft, seq in self._said.get(envelope.text_key, ()):
            replaced = stated is not None and said is not stated and self._holds_now(said)
            if replaced or _saying(said) != _saying(envelope) or not spans(said, envelope):
                continue
            if not said.conditional or same_condition(_condition(draft), applies_when):
                return Existing(draft.id, seq, self._at.recorded_at, b"")
        return None

    def stated(self, envelope: Remembered) -> Remembered | None:
        """Return the last draft that states the present value of the same single-valued key, or None."""
        if envelope.belief_key is None or envelope.many:
            return None
        return self._stated.get((envelope.scope, envelope.belief_key))

    def _holds_now(self, envelope: Remembered) -> bool:
        now = self._at.recorded_at
        return envelope.valid_from <= now and (envelope.valid_to is None or now < envelope.valid_to)


class Admission:
    """The checks, over the projections of one process."""

    def __init__(self, projections: Projections, preparer: Preparer, policy: Policy) -> None:
        self._state, self._preparer, self._policy = projections, preparer, policy

    # --- what every write passes --------------------------------------------------------------------------------------

    def check_scope(self, scope: str) -> None:
        """Raise ScopeClosed when exactly this scope was forgotten as a whole; those below it stay open."""
        closing = self._state.register.closing(scope, LATEST)
        if closing is not None:
            raise ScopeClosed(scope=scope, forgotten_at=format_instant(closing[1]), id=format_id(closing[2]))

    def repeat_of_command(self, handle: Handle, command_id: str | None, payload_key: bytes) -> Command | None:
        """
        Return the first use of a command id, or None.

        Raises:
            CommandConflict: it was used with another payload.
            Tombstoned: what it wrote was forgotten since.
        """
        if command_id is None:
            return None
        command = self._state.register.commands.get((handle.scope, handle.actor, command_id))
        if command is None:
            return None
        if command.payload_key != payload_key:
            raise CommandConflict(command_id=command_id, first_seq=command.seq)
        memory = self._state.register.memories.get(command.id)
        if memory is not None and memory.erasure is not None:
            raise Tombstoned(
                forgotten_at=format_instant(memory.erasure.recorded_at),
                reason=memory.erasure.reason,
                id=format_id(memory.erasure.event),
            )
        return command

    def visible(self, identity: bytes, handle: Handle) -> Memory:
        """Return a memory of the handle's scope or of those it reads; raises NotFound for any other."""
        memory = self._state.register.memories.get(identity)
        if memory is None or memory.scope not in (handle.scope, *handle.reads):
            raise NotFound(id=format_id(identity))
        return memory

    def own(self, identity: bytes, handle: Handle) -> Memory:
        """Return a memory of the handle's own scope; raises NotFound for any other."""
        memory = self._state.register.memories.get(identity)
        if memory is None or memory.scope != handle.scope:
            raise NotFound(id=format_id(identity))
        return memory

    def check_rank(self, handle: Handle, rank: Rank, memory: Memory, verb: str) -> None:
        """Raise RankTooLow when the handle's origin has no authority over the memory (I7)."""
        if not may_change(handle.origin, rank, memory.envelope.origin, memory.envelope.rank):
            needed = Rank(memory.envelope.rank).name.lower()
            if rank == memory.envelope.rank:
                needed = f"{needed} from the same origin"
            raise RankTooLow(
                actual=rank.name.lower(),
                verb=verb,
                needed=needed,
                id=format_id(memory.id),
                hint="state it with `about=` instead: it is kept as a dispute, shown beside the value",
            )

    def refusal(self, handle: Handle, verb: str, error: MunimentError, at: Moment) -> Draft | None:
        """Return the event that counts a refused attempt, without its value; None for refusals nobody counts."""
        if error.code not in LOGGED_REFUSALS:
            return None
        because = error.facts.get("id")
        return Draft(
            id=new_id(at.recorded_at),
            envelope=RefusedWrite(
                scope=handle.scope,
                actor=handle.actor,
                origin=handle.origin,
                rank=handle.rank,
                verb=verb,
                code=error.code,
                because_of=bytes.fromhex(because) if isinstance(because, str) else None,
            ),
        )

    # --- memories -----------------------------------------------------------------------------------------------------

    def admit_memory(self, request: MemoryRequest, at: Moment, batch: Batch) -> Draft | Existing:
        """
        Return the event to write, or what it would only repeat; the batch is what the same call writes before it.

        Raises:
            Refused, Conflict, NotFound: the write is not admitted; the error says what was needed.
        """
        handle = request.handle
        self.check_scope(handle.scope)
        if request.command_id is not None:
            command = self.repeat_of_command(handle, request.command_id, request.payload_key)
            if command is not None:
                return Existing(command.id, command.seq, command.recorded_at, command.hash)
            place = batch.repeat_of_command(request)
            if place is not None:
                return place
        rank = self._rank(request)
        target = None if request.supersedes is None else self._superseded(request, rank, at)
        if target is not None:
            body = self._state.read_memory(target.place)
            if body is not None:
                request = self._preparer.inherit(request, body, many=target.envelope.many)
        draft = self._draft(request, target, rank, at)
        self.check_value(draft.envelope, handle.scope, rank)
        repeat = self._repeat(draft, at, batch)
        return draft if repeat is None else repeat._replace(note=_note(draft.envelope, repeat, at))

    def check_value(self, envelope: Envelope, scope: str, rank: Rank) -> None:
        """Raise Tombstoned or RetiredValue when the value may not come in (I6). Ranks count, not derived ones."""
        if not isinstance(envelope, (Remembered, Superseded)) or not self._state.tombstones.all:
            return
        digests: list[tuple[str, bytes]] = [("text", envelope.text_key)]
        if envelope.belief_key is not None and envelope.value_key is not None:
            digests += [("value", envelope.value_key), ("key", envelope.belief_key)]
        for domain, digest in digests:
            found = self._state.tombstones.find(domain, digest, scope=scope, rank=rank)
            if found is not None:
                raise _refused_value(found)

    def check_text(self, text_key: bytes, handle: Handle) -> None:
        """Raise Tombstoned or RetiredValue when a text may not come in, for those who store it inside a longer one."""
        found = self._state.tombstones.find("text", text_key, scope=handle.scope, rank=handle.rank)
        if found is not None:
            raise _refused_value(found)

    def _rank(self, request: MemoryRequest) -> Rank:
        # The least rank among all that it derives from: laundering a page through a summary gains nothing (I7).
        if not request.derived_from and not request.links:
            return request.handle.rank
        rank = int(request.handle.rank)
        for parent in request.derived_from:
            memory = self.visible(parent, request.handle)
            if memory.erasure is not None:
                raise AlreadyDone(id=format_id(parent), status="erased", hint="it cannot be derived from any more")
            rank = min(rank, memory.envelope.rank)
        for _, end in request.links:
            self.visible(end, request.handle)
        return Rank(rank)

    def _superseded(self, request: MemoryRequest, rank: Rank, at: Moment) -> Memory:
        target = self.own(request.supersedes or b"", request.handle)
        standing = self._state.standing(target, valid_at=at.recorded_at)
        gone = (Status.ERASED, Status.SUPERSEDED, Status.RETIRED, Status.REJECTED)
        if standing.status in gone:
            successor = self._successor(target, at)
            facts = {"successor": format_id(successor.id)} if successor is not None else {}
            hint = f"the current one is `{facts['successor']}`" if facts else "remember it as a record of its own"
            raise AlreadyDone(id=format_id(target.id), status=standing.status.value, hint=hint, **facts)
        self.check_rank(request.handle, rank, target, "supersede")
        return target

    def _successor(self, memory: Memory, at: Moment) -> Memory | None:
        register = self._state.register
        seen = memory
        for _ in range(len(register.memories)):
            by = [fate.by for fate in seen.fates if fate.by is not None]
            following = register.memories.get(by[-1]) if by else None
            if following is None:
                break
            seen = following
        if seen.envelope.belief_key is not None and not seen.envelope.many:
            resolution = self._state.beliefs.resolution(seen, valid_at=at.recorded_at, known=LATEST)
            seen = resolution.current or seen
        return None if seen.id == memory.id or seen.erasure is not None else seen

    def _draft(self, request: MemoryRequest, target: Memory | None, rank: Rank, at: Moment) -> Draft:
        handle, policy = request.handle, self._policy
        start = at.recorded_at if request.valid_from is None else request.valid_from
        check_interval(start, request.valid_to)
        inherited = target.envelope.kind if target is not None else _NOTE
        kind = Superseded if target is not None else Remembered
        # What derives from something weaker cannot be the user's word.
        provenance = request.provenance
        if provenance is Provenance.USER_CONFIRMATION and rank < Rank.SIGNED:
            provenance = Provenance.OBSERVATION
        envelope = kind(
            scope=handle.scope,
            actor=handle.actor,
            origin=handle.origin,
            rank=rank,
            command_id=request.command_id,
            payload_key=request.payload_key if request.command_id is not None else None,
            principal=handle.principal,
            kind=request.kind or inherited,
            provenance=_WORDS[provenance],
            valid_from=start,
            valid_to=request.valid_to,
            text_key=request.text_key,
            form=NORMAL_FORM,
            belief_key=request.belief_key,
            value_key=request.value_key,
            many=request.many,
            source_key=request.source_key,
            importance=request.importance,
            conditional=request.body.applies_when is not None,
            # What a person signs needs no other person's approval.
            pending=rank < Rank.SIGNED and bool(policy.review) and policy.reviews(handle.origin),
            derived_from=tuple(request.derived_from),
            links=request.links,
            recalled=request.recalled,
            supersedes=None if target is None else target.id,
        )
        return Draft(id=new_id(at.recorded_at), envelope=envelope, body=request.body)

    def _repeat(self, draft: Draft, at: Moment, batch: Batch) -> Existing | None:
        envelope = draft.envelope
        if not isinstance(envelope, Remembered):
            return None
        now = at.recorded_at
        stated = batch.stated(envelope)
        if stated is not None and not self._takes_over(stated, now):
            stated = None
        applies_when = _condition(draft)
        found = self._state.find_live_repeat(envelope, valid_at=now, applies_when=applies_when)
        # Red, blue, red in one batch: what was red before it, or in it, is not the present value any more.
        if found is not None and (stated is None or not found.covers(now)):
            return Existing(found.id, found.seq, found.recorded_at, found.hash)
        return batch.find(envelope, stated, applies_when)

    def _takes_over(self, stated: Remembered, now: int) -> bool:
        key = stated.belief_key or b""
        beliefs = self._state.beliefs.at_key(stated.scope, key, valid_at=now, known=LATEST)
        holder = next((b.memory.envelope for b in beliefs if not b.memory.envelope.many), None)
        return holder is None or may_change(stated.origin, stated.rank, holder.origin, holder.rank)


def _note(said: Envelope, repeat: Existing, at: Moment) -> Draft | None:
    # Without it the same command id with another text would pass for a first use (and a retry after a forget too).
    if said.command_id is None:
        return None
    envelope = RefusedWrite(
        scope=said.scope, actor=said.actor, origin=said.origin, rank=said.rank, principal=said.principal,
        command_id=said.command_id, payload_key=said.payload_key, verb="remember", code=REPEATED, because_of=repeat.id,
    )  # fmt: skip
    return Draft(id=new_id(at.recorded_at), envelope=envelope)


def words_draft(envelope: Envelope, at: Moment, reason: str | None, *, slot: int | None = None) -> Draft:
    """Return an event whose body is a reason, under a slot in use or one of its own."""
    body = None if reason is None else WordsBody(reason=reason)
    return Draft(id=new_id(at.recorded_at), envelope=envelope, body=body, slot=slot)


def _condition(draft: Draft) -> str | None:
    return draft.body.applies_when if isinstance(draft.body, MemoryBody) else None


def _saying(envelope: Remembered) -> tuple[object, ...]:
    return (
        envelope.scope,
        envelope.text_key,
        envelope.belief_key,
        envelope.value_key,
        envelope.many,
        envelope.origin,
        envelope.source_key,
    )


def _refused_value(found: Tombstone) -> Refused:
    facts = {"id": format_id(found.event), "scope": found.scope}
    if found.how == "forgotten":
        return Tombstoned(forgotten_at=format_instant(found.recorded_at), reason=found.reason, **facts)
    return RetiredValue(how=found.how, since=format_instant(found.recorded_at), reason=found.reason, **facts)
