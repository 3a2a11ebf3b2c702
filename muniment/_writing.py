"""The writing half of a session: requests through admission, deeds through the door, and their receipts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

import msgspec

from muniment.events import (
    AlreadyDone,
    BadArgument,
    CommandConflict,
    Conflict,
    Draft,
    Event,
    InvalidInput,
    Moment,
    Plan,
    Rank,
    Refused,
    format_id,
    to_datetime,
)
from muniment.events import Batch as EventBatch
from muniment.gate import (
    Batch,
    Existing,
    Handle,
    MemoryFields,
    MemoryRequest,
)
from muniment.projections import LATEST, Command, PairModel

from ._answers import BatchReceipt, Receipt, Refusal, Revision
from ._engine import Engine
from ._once import append_once
from ._reach import Reads, expand_reads
from ._reading import Reading
from ._revising import Revising, find_contradicted

Planned = Callable[[Moment], Draft]
Unfit: TypeAlias = Refused | InvalidInput | Conflict
"""Why one item of a batch is not admitted."""


class Writing(Reading):
    """Writes as one speaker in one scope; what a session is made of."""

    def __init__(self, engine: Engine, handle: Handle, reads: Reads) -> None:
        super().__init__(engine, engine.mutex, handle.scope, reads)
        self._engine, self._speaker = engine, handle
        self._author = None if handle.rank >= Rank.USER else handle.actor

    @property
    def actor(self) -> str:
        """Who speaks."""
        return self._speaker.actor

    @property
    def origin(self) -> str:
        """Where what it says comes from; stamped on every record."""
        return self._speaker.origin

    def _handle(self) -> Handle:
        if not self._reads and not self._speaker.reads:
            return self._speaker
        scopes = expand_reads(self._scope, self._reads, self._engine.state.register.scopes)
        return msgspec.structs.replace(self._speaker, reads=tuple(scopes[1:]))

    def _words(self, reason: str) -> str:
        words = self._engine.preparer.words(reason, "reason", required=True)
        return words or ""

    def _full_id(self, id: str) -> str:  # noqa: A002
        with self._engine.mutex:
            self._engine.refresh()
            return format_id(self._find(id, self._engine.state.seq).id)

    def _check_same_batch(self, handle: Handle, command_id: str, count: int, *, skip: bool) -> None:
        # Whether the items are the same is for each of them to tell; here only whether there are as many.
        commands = self._engine.state.register.commands
        found = [commands.get((handle.scope, handle.actor, f"{command_id}/{index}")) for index in range(count + 1)]
        first = next((command for command in found if command is not None), None)
        if first is not None and (found[-1] is not None or (None in found[:-1] and not skip)):
            raise CommandConflict(command_id=command_id, first_seq=first.seq)

    def _request(self, handle: Handle, content: str, fields: MemoryFields) -> MemoryRequest:
        return self._signed(self._engine.preparer.memory(handle, content, fields, recalled=self._recalled))

    def _signed(self, request: MemoryRequest) -> MemoryRequest:
        """Return the request as the speaker vouches for it; only a user's session signs."""
        return request

    def _write_memory(self, verb: str, content: str, fields: MemoryFields) -> Receipt:
        try:
            request = self._request(self._handle(), content, fields)
        except Refused as error:
            self._count_refusal(verb, error)
            raise
        return self._write_requests(verb, [(0, request)], skip=False)[0]

    def _count_refusal(self, verb: str, error: Unfit) -> None:
        if not isinstance(error, Refused):
            return
        engine = self._engine

        def plan(at: Moment) -> list[Draft]:
            draft = engine.admission.refusal(self._speaker, verb, error, at)
            return [] if draft is None else [draft]

        engine.append(plan)

    def _write_requests(
        self,
        verb: str,
        requests: Sequence[tuple[int, MemoryRequest]],
        unfit: Sequence[tuple[int, Unfit]] = (),
        *,
        skip: bool,
        check: Callable[[Moment], None] | None = None,
    ) -> BatchReceipt:
        """Write what is admitted; `unfit` was refused before it came so far, and is counted in the same batch."""
        engine = self._engine
        outcomes: list[Draft | Existing] = []
        raised: list[Unfit] = []
        refused: list[Refusal] = []

        def plan(at: Moment) -> list[Draft]:
            outcomes.clear()
            raised.clear()
            refused[:] = [refusal_of(index, error) for index, error in unfit]
            if check is not None:
                check(at)
            batch = Batch(at)
            for _, error in unfit:
                counted = engine.admission.refusal(self._speaker, verb, error, at)
                if counted is not None:
                    batch.add(counted)
            for index, request in requests:
                try:
                    outcome = engine.admission.admit_memory(request, at, batch)
                except (Refused, InvalidInput, Conflict) as error:
                    counted = engine.admission.refusal(request.handle, verb, error, at)
                    if not skip:
                        raised.append(error)
                        return [] if counted is None else [counted]
                    refused.append(refusal_of(index, error))
                    if counted is not None:
                        batch.add(counted)
                    continue
                outcomes.append(outcome)
                if isinstance(outcome, Draft):
                    if len(requests) > 1:
                        batch.add(outcome)
                    else:
                        batch.drafts.append(outcome)  # nothing follows that could repeat it
                else:
                    batch.note(outcome)
            return batch.drafts

        # Not under the mutex: threads that wait for the same fsync share a frame.
        engine.append(plan)
        if raised:
            raise raised[0]
        with engine.mutex:
            return BatchReceipt(self._receipts_of(outcomes), sorted(refused, key=lambda one: one.index))

    def _receipts_of(self, outcomes: Sequence[Draft | Existing]) -> list[Receipt]:
        engine, receipts = self._engine, list[Receipt]()
        memories, standing = engine.state.register.memories, engine.state.beliefs.standing
        now, at, recorded_at = engine.now(), 0, _EPOCH
        for outcome in outcomes:
            memory = memories[outcome.id]
            if memory.recorded_at != at:  # once for a batch, but for what it repeats
                at, recorded_at = memory.recorded_at, to_datetime(memory.recorded_at)
            receipt = Receipt(
                id=memory.id.hex(),
                seq=memory.seq,
                recorded_at=recorded_at,
                hash=memory.hash.hex(),
                status=str(standing(memory, valid_at=now, known=LATEST).status),
                repeated=isinstance(outcome, Existing),
            )
            receipts.append(receipt)
        return receipts

    def _revise(
        self, content: str, fields: MemoryFields, act: str, least: float | None, model: PairModel | None
    ) -> Revision:
        engine = self._engine
        try:
            request = self._request(self._handle(), content, fields)
        except Refused as error:
            self._count_refusal("remember", error)
            raise
        found, notes = find_contradicted(engine, request, model, least)
        revising = Revising(engine, request, found, act)
        engine.append(revising.plan)
        if revising.refused is not None:
            raise revising.refused
        if revising.outcome is None:
            raise AssertionError("a revision was not planned")
        with engine.mutex:
            [receipt] = self._receipts_of([revising.outcome])
        return Revision(receipt=receipt, contradicts=tuple(revising.contradicts), notes=tuple(notes))

    def _deed(self, verb: str, payload: tuple[object, ...], command_id: str | None, planned: Planned) -> Receipt:
        engine, handle = self._engine, self._speaker
        engine.preparer.command_id(command_id)
        with engine.mutex:
            engine.refresh()
            key = engine.values.payload_key(_encode(payload))
            repeat = engine.admission.repeat_of_command(handle, command_id, key)
            if repeat is not None:
                return command_receipt(repeat)
            raised: list[Refused] = []

            def plan(at: Moment) -> list[Draft]:
                engine.admission.check_scope(handle.scope)
                raised.clear()
                try:
                    return [with_command(planned(at), command_id, key)]
                except AlreadyDone:
                    raise
                except Refused as error:
                    raised.append(error)
                    counted = engine.admission.refusal(handle, verb, error, at)
                    return [] if counted is None else [counted]

            done = append_once(engine, handle, command_id, key, plan)
            if raised:
                raise raised[0]
            if done is None:
                raise AssertionError("a deed wrote nothing")
            return command_receipt(done) if isinstance(done, Command) else event_receipt(done.events[0])


def done_once(
    engine: Engine,
    handle: Handle,
    command_id: str | None,
    payload_key: bytes,
    plan: Plan,
    append: Callable[[Plan], EventBatch | None] | None = None,
) -> Receipt:
    """Append one deed and return its receipt, or that of the same command before, having written nothing."""
    with engine.mutex:
        done = append_once(engine, handle, command_id, payload_key, plan, append)
        if done is None:
            raise AssertionError("a deed wrote nothing")
        return command_receipt(done) if isinstance(done, Command) else event_receipt(done.events[0])


def with_command(draft: Draft, command_id: str | None, payload_key: bytes) -> Draft:
    if command_id is None:
        return draft
    envelope = msgspec.structs.replace(draft.envelope, command_id=command_id, payload_key=payload_key)
    return msgspec.structs.replace(draft, envelope=envelope)


def event_receipt(event: Event) -> Receipt:
    """Return the receipt of an event that has just been written."""
    return Receipt(
        id=format_id(event.header.id),
        seq=event.seq,
        recorded_at=to_datetime(event.recorded_at),
        hash=event.hash.hex(),
        status=type(event.envelope).__name__.lower(),
    )


def command_receipt(command: Command) -> Receipt:
    """Return the receipt of what a command id wrote the first time."""
    return Receipt(
        id=format_id(command.id),
        seq=command.seq,
        recorded_at=to_datetime(command.recorded_at),
        hash=command.hash.hex(),
        status=command.verb.lower(),
        repeated=True,
    )


def fields_of_item(item: Mapping[str, object], index: int, command_id: str | None) -> tuple[str, MemoryFields]:
    """Return the content and the other arguments of one item of a batch; raises BadArgument for what is no item."""
    if not isinstance(cast("object", item), Mapping):
        raise BadArgument(argument=f"items[{index}]", detail="expected a mapping of what `remember` takes")
    fields = dict(item)
    if "content" not in fields:
        raise BadArgument(argument=f"items[{index}]", detail="it has no `content`")
    if not _ITEM_FIELDS.issuperset(fields):
        unknown = min(set(fields) - _ITEM_FIELDS)
        raise BadArgument(argument=f"items[{index}]", detail=f"unknown field `{unknown}`")
    if command_id is not None:
        fields["command_id"] = f"{command_id}/{index}"
    content = fields.pop("content")
    # What a mapping holds was typed by nobody: the preparer checks every argument.
    return cast("str", content), cast("MemoryFields", fields)


def refusal_of(index: int, error: Unfit) -> Refusal:
    return Refusal(index=index, error=error.code, message=str(error), hint=error.hint)


_ITEM_FIELDS = {
    "content", "kind", "about", "value", "many", "provenance", "importance", "applies_when", "valid_from", "valid_to",
    "source", "derived_from", "links", "metadata", "tags", "command_id",
}  # fmt: skip
_EPOCH: Final = to_datetime(0)
_encode = msgspec.msgpack.Encoder(order="deterministic").encode
