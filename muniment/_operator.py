"""The operator: reads every scope, quarantines and erases; can neither assert nor confirm."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast

import msgspec

from muniment.events import (
    STORE_SCOPE,
    ActionBody,
    AlreadyDone,
    BadArgument,
    Draft,
    Forgotten,
    Id,
    Moment,
    NotFound,
    Rank,
    Status,
    check_text,
    format_id,
    is_id_prefix,
    parse_id,
    parse_scope,
    to_datetime,
)
from muniment.gate import OPERATOR, Handle, check_list, describe_action, parse_action
from muniment.projections import FAR_FUTURE, Command, DecisionRecord, FateKind, Memory, Prohibition, Request, Tombstone

from ._answers import Answer, ErasureReceipt, Receipt, Record
from ._engine import Engine
from ._erasing import check_forget, dry_receipt, erasure_receipt, name_erased_before, repeated_erasure
from ._finding import SORTS, find_id
from ._leaving_out import fits
from ._once import append_once
from ._points import Point
from ._telemetry import traced
from ._user import UserSession
from ._views import Views
from ._writing import command_receipt, done_once, event_receipt, with_command


class Decided(Answer, frozen=True, kw_only=True):
    """A recorded decision that cited something of a trace; `action` is None when it was forgotten."""

    id: str
    scope: str
    actor: str
    action: str | None
    use: str
    allowed: bool


class Trace(Answer, frozen=True, kw_only=True):
    """The blast radius of a memory: what came of it, transitively. `decided` are the `decisions`, in full."""

    id: str
    derived: tuple[Record, ...]
    recalled_before: tuple[Record, ...]
    superseded: tuple[Record, ...]
    decisions: tuple[str, ...]
    decided: tuple[Decided, ...]


class TombstoneView(Answer, frozen=True, kw_only=True):
    """A refused value: where, since when, by whom and why, never what. `id` is what a lift names."""

    id: str
    scope: str
    domain: str
    how: str
    everyone: bool
    since: datetime
    by: str
    reason: str
    lifted: bool


class ProhibitionView(Answer, frozen=True, kw_only=True):
    """A veto: what is forbidden in the scope and below, since when and by whom. `id` is what an unprohibit names."""

    id: str
    scope: str
    action: str | None
    since: datetime
    by: str


class Operator:
    """Maintenance and containment over all scopes of a store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def quarantine(self, ids: Sequence[str], *, reason: str, command_id: str | None = None) -> Receipt:
        """Set memories apart in one reversible event: they are neither recalled nor able to support anything."""
        return self._set_apart(ids, reason, command_id, release=False)

    def release(self, ids: Sequence[str], *, reason: str, command_id: str | None = None) -> Receipt:
        """Put quarantined memories back; the id of a quarantine stands for all that it set apart."""
        with self._engine.mutex:
            self._engine.refresh()
            named = [one for i in check_list(ids, "ids") for one in self._set_apart_by(i) or (i,)]
        return self._set_apart(named, reason, command_id, release=True)

    def ids_of_origin(self, origin: str) -> list[str]:
        """Return the memories of an origin (or of `web:*`), in every scope, that are neither erased nor set apart."""
        check_text(origin, what="origin")
        engine = self._engine
        with engine.mutex:
            engine.refresh()
            state, now = engine.state, self._now()
            found = [m for m in state.register.memories.values() if fits(origin, m.envelope.origin)]
            out = (Status.ERASED, Status.QUARANTINED)
            return [
                format_id(m.id)
                for m in sorted(found, key=lambda m: m.seq)
                if state.standing(m, valid_at=now.valid_at).status not in out
            ]

    def get(self, id: str) -> Record:  # noqa: A002
        """Return a memory of any scope; any unique prefix of its id will do."""
        engine = self._engine
        with engine.mutex:
            engine.refresh()
            return Views(engine.state).record(self._find(id), self._now())

    def trace(self, id: str) -> Trace:  # noqa: A002
        """Return what derived from a memory, what was written just after recalling it, and which decisions cite it."""
        engine = self._engine
        with engine.mutex:
            engine.refresh()
            start = self._find(id)
            register, views, now = engine.state.register, Views(engine.state), self._now()
            derived = {m.id: m for m in register.descendants([start.id])}
            recalled: dict[bytes, Memory] = {}
            todo = [start.id, *derived]
            reached = set(todo)
            while todo:
                here = todo.pop()
                for memory in (*register.recalled_into.get(here, ()), *register.children.get(here, ())):
                    if memory.id not in reached:
                        reached.add(memory.id)
                        recalled[memory.id] = memory
                        todo.append(memory.id)
            superseded = [m for i in reached for m in [register.memories[i]] if m.envelope.supersedes is not None]
            targets = [register.memories.get(m.envelope.supersedes or b"") for m in superseded]
            cited = [d for d in register.decisions.values() if reached.intersection(i for i, _ in d.evidence)]
            return Trace(
                id=format_id(start.id),
                derived=tuple(views.record(m, now) for m in derived.values()),
                recalled_before=tuple(views.record(m, now) for m in sorted(recalled.values(), key=lambda m: m.seq)),
                superseded=tuple(views.record(m, now) for m in targets if m is not None),
                decisions=tuple(format_id(d.id) for d in cited),
                decided=tuple(self._decided(d) for d in cited),
            )

    def _decided(self, record: DecisionRecord) -> Decided:
        body = None if record.erasure is not None else self._engine.state.read_body(record.place)
        said = body.action if isinstance(body, ActionBody) else None
        return Decided(
            id=format_id(record.id), scope=record.scope, actor=record.actor, use=record.use, allowed=record.allowed,
            action=None if said is None else describe_action(parse_action(said)),
        )  # fmt: skip

    @traced("forget", "delete_memory")
    def forget(
        self,
        *ids: str,
        reason: str,
        cascade: bool = True,
        dry_run: bool = False,
        block: str = "value",
        command_id: str | None = None,
    ) -> ErasureReceipt:
        """
        Erase memories of one scope, and what derives from them anywhere; their values are refused to everyone.

        `block="key"` refuses every new value of the belief key.

        Raises:
            DerivedRecords: `cascade=False`, and others derive from them.
        """
        check_forget(cascade, dry_run, block)
        engine = self._engine
        words = self._words(reason)
        engine.preparer.command_id(command_id)
        with engine.mutex:
            engine.refresh()
            if not ids:
                raise BadArgument(argument="ids", detail="name at least one memory")
            found = [self._find(i) for i in ids]
            scopes = {m.scope for m in found}
            if len(scopes) != 1:
                raise BadArgument(argument="ids", detail="expected memories of one scope")
            scope = scopes.pop()
            targets = [Id(m.id) for m in found]
            if dry_run:
                erasing = engine.deeds.erasing(None, targets)
                kept = engine.deeds.holding(None, erasing, scope).kept
                receipt = dry_receipt(erasing, scope, "operator", words, kept=kept)
                return name_erased_before(engine.state, receipt, targets)
            how = () if cascade and block == "value" else (cascade, block)
            key = engine.values.payload_key(_encode(("forget", *targets, words, *how)))

            def plan(at: Moment) -> list[Draft]:
                draft = engine.deeds.forget(
                    None, engine.deeds.erasing(None, targets), at, scope=scope, reason=words, cascade=cascade,
                    block_key=block == "key",
                )  # fmt: skip
                return [with_command(draft, command_id, key)]

            done = append_once(engine, _handle(scope), command_id, key, plan)
            if done is None:
                raise AssertionError("a forget wrote nothing")
            if isinstance(done, Command):
                receipt = repeated_erasure(engine, done, scope)
            else:
                event, forgotten = done.events[0], cast("Forgotten", done.events[0].envelope)
                receipt = erasure_receipt(engine.state, event.header.id, scope, forgotten=forgotten)
            return name_erased_before(engine.state, receipt, targets)

    def forget_value(
        self,
        text: str,
        *,
        scope: str,
        reason: str = "by the operator",
        about: tuple[str, str] | None = None,
        dry_run: bool = False,
        command_id: str | None = None,
    ) -> ErasureReceipt:
        """Erase every memory of a scope that says a text or gives a value, and refuse it there to everyone."""
        return self._eraser(scope).forget_value(
            text, reason=reason, about=about, dry_run=dry_run, command_id=command_id
        )

    def forget_scope(
        self, scope: str, *, reason: str = "by the operator", dry_run: bool = False, command_id: str | None = None
    ) -> ErasureReceipt:
        """
        Destroy every key of a scope, and close it until the user lifts that.

        Raises:
            ScopeUnknown: nothing was ever written there.
            RankTooLow: it holds a prohibition, which only the user's signature takes away.
        """
        return self._eraser(scope).forget_scope(reason=reason, dry_run=dry_run, command_id=command_id)

    def _eraser(self, scope: str) -> UserSession:
        # Authority over every record of one scope, and a voice for nothing: the session is not handed out.
        return UserSession(self._engine, _handle(parse_scope(scope)), (), None)

    def accept_rollback(self, *, reason: str, command_id: str | None = None) -> Receipt:
        """
        Go on with an older copy of the log that was put back, keeping what was erased since erased, and refused.

        Raises:
            AlreadyDone: the log and the keys agree.
        """
        engine = self._engine
        words = self._words(reason)
        engine.preparer.command_id(command_id)
        handle, key = _handle(STORE_SCOPE), engine.values.payload_key(_encode(("accept_rollback", words)))
        with engine.mutex:
            engine.refresh()
            if not engine.rolled_back and engine.admission.repeat_of_command(handle, command_id, key) is None:
                raise AlreadyDone(id="rollback", status="accepted, or there was none")

            def plan(at: Moment) -> list[Draft]:
                return [with_command(engine.rollback_draft(at, words), command_id, key)]

            receipt = done_once(engine, handle, command_id, key, plan, append=engine.append_acceptance)
            return msgspec.structs.replace(receipt, status="accepted")

    def tombstones(self) -> list[TombstoneView]:
        """Return every refused value, without the value."""
        with self._engine.mutex:
            self._engine.refresh()
            return [_tombstone_view(t) for t in self._engine.state.tombstones.all]

    def requests(self) -> list[dict[str, object]]:
        """Return the requests that wait for a person; not those for what was erased since."""
        with self._engine.mutex:
            self._engine.refresh()
            register = self._engine.state.register
            gone = {m.id for r in register.requests.values() for m in map(register.memories.get, r.targets)
                    if m is not None and m.erasure is not None}  # fmt: skip
            waiting = [r for r in register.requests.values() if r.decided_seq == FAR_FUTURE]
            return [_request_view(r) for r in waiting if not gone.issuperset(r.targets)]

    def prohibitions(self, scope: str) -> list[ProhibitionView]:
        """Return the vetoes that hold in a scope, those of the scopes above it too."""
        checked = parse_scope(scope)
        with self._engine.mutex:
            self._engine.refresh()
            found = self._engine.state.register.live_prohibitions(checked, self._engine.state.seq)
            return [_prohibition_view(p) for p in found]

    def full_id(self, prefix: str, *, sorts: Sequence[str] = SORTS, scope: str | None = None) -> str:
        """Return the id of the one thing whose id begins so, among `sorts`, in one scope or in all."""
        with self._engine.mutex:
            self._engine.refresh()
            return find_id(self._engine.state, prefix, sorts, scope)[1]

    def _set_apart_by(self, event: str) -> list[str]:
        if not is_id_prefix(event):
            return []
        return [
            format_id(memory.id)
            for memory in self._engine.state.register.memories.values()
            if any(f.kind is FateKind.QUARANTINED and format_id(f.event).startswith(event) for f in memory.fates)
        ]

    def _set_apart(self, ids: Sequence[str], reason: str, command_id: str | None, *, release: bool) -> Receipt:
        engine = self._engine
        words = self._words(reason)
        engine.preparer.command_id(command_id)
        with engine.mutex:
            engine.refresh()
            targets = [Id(self._find(i).id) for i in check_list(ids, "ids")]
            if not targets:
                raise BadArgument(argument="ids", detail="name at least one memory")
            key = engine.values.payload_key(_encode(("release" if release else "quarantine", *targets, words)))

            def plan(at: Moment) -> list[Draft]:
                draft = engine.deeds.quarantine(targets, at, scope=STORE_SCOPE, reason=words, release=release)
                return [with_command(draft, command_id, key)]

            done = append_once(engine, _handle(STORE_SCOPE), command_id, key, plan)
            if isinstance(done, Command):
                return command_receipt(done)
            if done is None:
                raise AssertionError("nothing was set apart or put back")
            return event_receipt(done.events[0])

    def _find(self, prefix: str) -> Memory:
        register = self._engine.state.register
        if not is_id_prefix(prefix):
            raise NotFound(id=prefix)
        if len(prefix) == 32:
            memory = register.memories.get(parse_id(prefix))
            found = [] if memory is None else [memory]
        else:
            found = [m for m in register.memories.values() if format_id(m.id).startswith(prefix)]
        if len(found) > 1:
            raise BadArgument(argument="id", detail=f"`{prefix}` begins {len(found)} ids: type more of it")
        if not found:
            raise NotFound(id=prefix)
        return found[0]

    def _now(self) -> Point:
        return Point(self._engine.now(), self._engine.state.seq)

    def _words(self, reason: str) -> str:
        return self._engine.preparer.words(reason, "reason", required=True) or ""


def _handle(scope: str) -> Handle:
    return Handle(scope=scope, reads=(), actor=OPERATOR, origin=OPERATOR, rank=Rank.SIGNED)


def _tombstone_view(tombstone: Tombstone) -> TombstoneView:
    return TombstoneView(
        id=format_id(tombstone.event),
        scope=tombstone.scope,
        domain=tombstone.domain,
        how=tombstone.how,
        everyone=tombstone.everyone,
        since=to_datetime(tombstone.recorded_at),
        by=tombstone.actor,
        reason=tombstone.reason,
        lifted=tombstone.lifted_seq < FAR_FUTURE,
    )


def _prohibition_view(prohibition: Prohibition) -> ProhibitionView:
    return ProhibitionView(
        id=format_id(prohibition.id),
        scope=prohibition.scope,
        action=None if prohibition.action is None else describe_action(parse_action(prohibition.action)),
        since=to_datetime(prohibition.recorded_at),
        by=prohibition.actor,
    )


def _request_view(request: Request) -> dict[str, object]:
    return {
        "id": format_id(request.id),
        "scope": request.scope,
        "by": request.actor,
        "verb": request.verb,
        "targets": [format_id(t) for t in request.targets],
        "asked_at": to_datetime(request.recorded_at),
    }


_encode = msgspec.msgpack.Encoder(order="deterministic").encode
