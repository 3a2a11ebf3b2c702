"""The writing half of the store: the puts and deletes of a batch in one append, erasures, and longer validity."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from langgraph.store.base import InvalidNamespaceError, PutOp

from muniment._session import Session
from muniment.events import BadArgument, Draft, Id, Moment, Refused, format_id, to_datetime
from muniment.gate import Batch, MemoryFields, MemoryRequest
from muniment.projections import LATEST

from ._items import Stored, metadata_of, read_value
from ._names import Namespace, about_key
from ._reads import Reads, Speaker

_DELETED: Final = "deleted by a LangGraph store"
_REPLACED: Final = "replaced by a value that expires"


class Change(NamedTuple):
    """What becomes of one key: another value, or none. With `only_if`, only while that memory is what stands there."""

    session: Session
    belief_key: bytes
    request: MemoryRequest | None
    only_if: str | None = None


class Writes:
    """Writes what one batch puts and deletes: all of it, or nothing."""

    def __init__(self, speaker: Speaker, reads: Reads) -> None:
        self._speaker, self._reads, self._engine = speaker, reads, speaker.engine

    def put(self, ops: Iterable[PutOp]) -> None:
        """
        Put values and retire those that are deleted, in one append.

        Raises:
            Refused: a value was forgotten, holds a secret, or stands in the place of what has more authority.
            InvalidInput: a value or a name cannot be stored exactly.
        """
        changes = [self._change(op) for op in ops]
        if changes:
            self._append(changes, skip=False)

    def refresh(self, items: Iterable[Stored]) -> None:
        """Move the end of validity of items that have a time to live; what this actor may not change stays as it is."""
        changes = [
            self._version(item.namespace, item.key, item.value, item.ttl, item.indexed, item, same=True)
            for item in {(item.namespace, item.key): item for item in items if item.ttl is not None}.values()
        ]
        if changes and not self._engine.options.read_only:
            self._append(changes, skip=True)

    def forget(self, namespace: Namespace, key: str) -> None:
        """
        Erase every version of an item, and keep their values out of the namespace.

        Raises:
            NeedsGrant: one of them has more authority; a request was filed and nothing erased.
        """
        session, belief_key = self._place(namespace, key)
        with self._engine.mutex:
            self._engine.refresh()
            versions = self._engine.state.register.keys.get((session.scope, belief_key), [])
            ids = [format_id(memory.id) for memory in versions if memory.erasure is None]
        if ids:
            session.forget(*ids, reason=_DELETED)

    def _change(self, op: PutOp) -> Change:
        if not op.namespace:
            raise InvalidNamespaceError("Namespace cannot be empty.")
        if op.value is None:
            return Change(*self._place(op.namespace, op.key), None)
        if op.ttl is not None and not (math.isfinite(op.ttl) and op.ttl > 0):
            raise BadArgument(argument="ttl", detail=f"expected minutes, more than none, got `{op.ttl}`")
        before = self._reads.get(op.namespace, op.key)
        return self._version(op.namespace, op.key, op.value, op.ttl, op.index is not False, before, same=False)

    def _version(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, object],
        ttl: float | None,
        indexed: bool,
        before: Stored | None,
        *,
        same: bool,
    ) -> Change:
        session, belief_key = self._place(namespace, key)
        plain, content = read_value(value)
        fields: MemoryFields = {
            "kind": "note",
            "about": about_key(key),
            # Each put is a version of its own: what merely reads alike (`Ann`, `ann`) is not the value that was put.
            "source": f"langgraph:{uuid.uuid4().hex}",
            "metadata": metadata_of(key, plain, indexed=indexed, ttl=ttl, before=before, same=same),
            "valid_to": None if ttl is None else _minutes_after(self._engine.now(), ttl),
        }
        session._recalled = self._speaker.recalled
        request = session._request(session._handle(), content, fields)
        return Change(session, belief_key, request, before.id if same and before is not None else None)

    def _place(self, namespace: Namespace, key: str) -> tuple[Session, bytes]:
        session = self._speaker.session(self._speaker.scope(namespace))
        return session, self._engine.values.belief_key(*about_key(key))

    def _append(self, changes: Sequence[Change], *, skip: bool) -> None:
        raised: list[Refused] = []

        def plan(at: Moment) -> list[Draft]:
            raised.clear()
            batch = Batch(at)
            for change in changes:
                try:
                    drafts = self._drafts(change, at, batch)
                except Refused as error:
                    if skip:
                        continue
                    raised.append(error)
                    handle = change.session._speaker
                    counted = self._engine.admission.refusal(handle, "put", error, at)
                    return [] if counted is None else [counted]
                for draft in drafts:
                    batch.add(draft)
            return batch.drafts

        self._engine.append(plan)
        if raised:
            raise raised[0]

    def _drafts(self, change: Change, at: Moment, batch: Batch) -> list[Draft]:
        engine, handle, request = self._engine, change.session._handle(), change.request
        admission, deeds = engine.admission, engine.deeds
        held = engine.state.beliefs.at_key(handle.scope, change.belief_key, valid_at=at.recorded_at, known=LATEST)
        holder = next((belief.memory for belief in held if not belief.memory.envelope.many), None)
        if change.only_if is not None and (holder is None or format_id(holder.id) != change.only_if):
            return []
        if request is None:
            admission.check_scope(handle.scope)
            return [] if holder is None else [deeds.retire(handle, Id(holder.id), at, reason=_DELETED, valid_to=None)]
        drafts: list[Draft] = []
        if holder is not None:
            # Without this the put would be kept as a dispute, and the next get would give the old value.
            admission.check_rank(handle, handle.rank, holder, "put a value over")
            if request.valid_to is not None and holder.valid_until > request.valid_to:
                # Else the value before would hold again when this one expires.
                drafts.append(deeds.retire(handle, Id(holder.id), at, reason=_REPLACED, valid_to=None))
        admitted = admission.admit_memory(request, at, batch)
        return [*drafts, admitted] if isinstance(admitted, Draft) else drafts


def _minutes_after(now: int, ttl: float) -> datetime:
    try:
        return to_datetime(now) + timedelta(minutes=ttl)
    except OverflowError as error:
        raise BadArgument(argument="ttl", detail=f"it ends after year 9999: `{ttl}` minutes") from error
