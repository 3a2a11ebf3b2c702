"""
Signed statements on their way into the log: each is verified, matched to an enrolment, and admitted at most once.

The nonce is the command id of the event: a statement submitted twice gives back its first receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from muniment.events import (
    STORE_SCOPE,
    ActionBody,
    AlreadyDone,
    BadArgument,
    Body,
    CommandConflict,
    Confirmed,
    Draft,
    Enrolled,
    Envelope,
    Lifted,
    Moment,
    NotFound,
    Prohibited,
    Rank,
    Reviewed,
    Revoked,
    SignatureInvalid,
    Status,
    Unprohibited,
    WordsBody,
    covers,
    format_id,
    new_id,
    parse_id,
    parse_scope,
)
from muniment.gate import (
    RECOVERY,
    Batch,
    Confirm,
    Enroll,
    Handle,
    Lift,
    Prohibit,
    Review,
    Revoke,
    Signed,
    Signer,
    Statement,
    Unprohibit,
    check_public_key,
    format_action,
    format_signed,
    format_statement,
    verify,
)
from muniment.projections import FAR_FUTURE, LATEST, Command, admitted_seq

from ._answers import Receipt
from ._engine import Engine
from ._keys import check_replacing, format_command, sign_replacement
from ._once import append_once
from ._writing import command_receipt, event_receipt

Parts = tuple[Envelope, Body]


class Submitter:
    """Takes signed statements into one store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def submit(self, signed: Signed) -> Receipt:
        """
        Verify a signed statement and append what it says.

        Raises:
            SignatureInvalid: the signature, the store, the signer's enrolment or its scope does not fit.
            NotFound, AlreadyDone: what it speaks of is not there, or was done before.
        """
        engine = self._engine
        statement = verify(signed)
        engine.preparer.check_signed(
            getattr(statement, "action", None), getattr(statement, "reason", None), getattr(statement, "edit", None)
        )
        key = engine.values.payload_key(_said(statement))
        with engine.mutex:
            engine.refresh()
            handle = self._handle(statement)
            command_id = format_command(statement.nonce)
            repeat = self._repeat(handle, statement, command_id, (key, engine.values.payload_key(signed.statement)))
            if repeat is not None:
                return self._repeated(repeat)
            self._check_signer(statement, signed)

            def plan(at: Moment) -> list[Draft]:
                # Checked again under the lock: the key may have been replaced, the target decided, since.
                self._check_signer(statement, signed)
                return self._drafts(statement, signed, handle, command_id, key, at)

            done = append_once(engine, handle, command_id, key, plan)
            if isinstance(done, Command):
                return self._repeated(done)
            if done is None:
                raise AssertionError("a statement wrote nothing")
            return event_receipt(done.events[0])

    def _repeat(
        self, handle: Handle, statement: Statement, command_id: str, keys: tuple[bytes, bytes]
    ) -> Command | None:
        first = self._engine.state.register.commands.get((handle.scope, handle.actor, command_id))
        if first is None or first.payload_key in keys:  # the second as logs of before hold it
            return first
        error = CommandConflict(command_id=command_id, first_seq=first.seq)
        if not isinstance(statement, Confirm):
            raise error
        # Whoever answers a request twice has seen no command id, and no nonce.
        hint = "it is signed once; the next denial brings another request"
        raise AlreadyDone(id=format_id(first.id), status="confirmed", hint=hint) from error

    def _repeated(self, command: Command) -> Receipt:
        self._engine.settle()  # it may have granted a forget, whose keys a full disk kept from going
        return command_receipt(command)

    def _handle(self, statement: Statement) -> Handle:
        if statement.store != self._engine.files.store_id.hex():
            raise SignatureInvalid(detail="it was signed for another store")
        return Handle(
            scope=_scope_of(statement), reads=(), actor=statement.principal, origin=statement.principal,
            rank=Rank.SIGNED, principal=statement.principal,
        )  # fmt: skip

    def _check_signer(self, statement: Statement, signed: Signed) -> None:
        # A repeat never comes here: the retried replacement of a key is signed by one that no longer speaks.
        register, scope = self._engine.state.register, _scope_of(statement)
        enrolment = register.enrolment(statement.principal, signed.public_key, LATEST)
        if enrolment is None:
            raise SignatureInvalid(
                detail=f"the key is not enrolled for `{statement.principal}`", hint="run `muniment enroll`"
            )
        if scope != STORE_SCOPE and not any(covers(outer, scope) for outer in enrolment.scopes):
            raise SignatureInvalid(detail=f"`{statement.principal}` may not speak for scope `{scope}`")
        if isinstance(statement, Enroll):
            check_replacing(register, statement, enrolment)
        elif enrolment.recovery:
            # It lies somewhere for years; found, it must not be able to allow anything by itself.
            raise SignatureInvalid(detail="a recovery key signs nothing but the replacement of another key")
        if scope != STORE_SCOPE and not isinstance(statement, Lift):
            self._engine.admission.check_scope(scope)

    def _drafts(
        self, statement: Statement, signed: Signed, handle: Handle, command_id: str, key: bytes, at: Moment
    ) -> list[Draft]:
        maker = _MAKERS.get(type(statement))
        if maker is None:
            raise BadArgument(argument="signed", detail="this kind of statement is not submitted on its own")
        common: dict[str, object] = {
            "scope": handle.scope, "actor": handle.actor, "origin": handle.origin, "rank": int(handle.rank),
            "command_id": command_id, "payload_key": key, "principal": handle.principal,
        }  # fmt: skip
        envelope, body = maker(self, statement, signed, common)
        drafts = [Draft(id=new_id(at.recorded_at), envelope=envelope, body=body, slot=self._slot(statement))]
        if isinstance(statement, Review):
            drafts += self._granted(statement, handle, at)
            drafts += self._edited(statement, signed, handle, at)
        return drafts

    def _slot(self, statement: Statement) -> int | None:
        # A reason is sealed with what it is about, which it may quote, so that a forget of that takes it along.
        register = self._engine.state.register
        match statement:
            case Review(id=identity):
                request = register.requests.get(parse_id(identity))
                if request is not None and statement.approve:
                    return None  # it quotes nothing, or the forget would refuse it; and the signature must outlive that
                targets = (parse_id(identity),) if request is None else request.targets
                memories = [m for t in targets if (m := register.memories.get(t)) is not None]
                return next((m.slot for m in memories if m.erasure is None), None)
            case Revoke(id=identity):
                confirmation = register.confirmations.get(parse_id(identity))
                return confirmation.slot if confirmation is not None and confirmation.erasure is None else None
            case Unprohibit(id=identity):
                prohibition = register.prohibitions.get(parse_id(identity))
                return None if prohibition is None else prohibition.slot
            case _:
                return None

    def _confirm(self, statement: Confirm, signed: Signed, common: Mapping[str, object]) -> Parts:
        envelope = _make(
            Confirmed, common, agent=statement.agent, uses=statement.uses, signed_at=statement.signed_at,
            expires_at=statement.expires_at, nonce=statement.nonce,
        )  # fmt: skip
        return envelope, ActionBody(action=format_action(statement.action), signed=format_signed(signed).encode())

    def _prohibit(self, statement: Prohibit, signed: Signed, common: Mapping[str, object]) -> Parts:
        body = ActionBody(
            action=format_action(statement.action), reason=statement.reason, signed=format_signed(signed).encode()
        )
        return _make(Prohibited, common), body

    def _unprohibit(self, statement: Unprohibit, signed: Signed, common: Mapping[str, object]) -> Parts:
        target = self._engine.state.register.prohibitions.get(parse_id(statement.id))
        if target is None or target.scope != statement.scope:
            raise NotFound(id=statement.id)
        if target.ended_seq < FAR_FUTURE:
            raise AlreadyDone(id=statement.id, status="lifted")
        return _make(Unprohibited, common, target=target.id), _words(statement.reason, signed)

    def _revoke(self, statement: Revoke, signed: Signed, common: Mapping[str, object]) -> Parts:
        target = self._engine.state.register.confirmations.get(parse_id(statement.id))
        if target is None or target.scope != statement.scope:
            raise NotFound(id=statement.id)
        if target.revoked_seq < FAR_FUTURE:
            raise AlreadyDone(id=statement.id, status="revoked")
        return _make(Revoked, common, target=target.id), _words(statement.reason, signed)

    def _review(self, statement: Review, signed: Signed, common: Mapping[str, object]) -> Parts:
        state, identity = self._engine.state, parse_id(statement.id)
        request = state.register.requests.get(identity)
        if request is not None and request.scope == statement.scope:
            if request.decided_seq < FAR_FUTURE:
                raise AlreadyDone(id=statement.id, status="reviewed")
            if statement.edit is not None:
                raise BadArgument(argument="edit", detail="a request to erase has no text")
            return _make(Reviewed, common, target=identity, approve=statement.approve), _words(statement.reason, signed)
        memory = state.register.memories.get(identity)
        if memory is None or memory.scope != statement.scope:
            raise NotFound(id=statement.id)
        standing = state.standing(memory, valid_at=self._engine.now())
        if standing.status in (Status.REJECTED, Status.ERASED):
            raise AlreadyDone(id=statement.id, status=standing.status.value)
        waits = admitted_seq(memory, LATEST) > LATEST
        if statement.approve and waits and standing.status is Status.RETIRED:
            hint = "it was withdrawn, or nobody approved it in 30 days: it has to be proposed again"
            raise AlreadyDone(id=statement.id, status=standing.status.value, hint=hint)
        if statement.approve and waits:
            # It comes in only now, by the authority of who approves: what was forgotten since stays out (I6).
            self._engine.admission.check_value(memory.envelope, memory.scope, Rank.SIGNED)
        tombstones = () if statement.approve else self._engine.deeds.tombstones_of([memory])
        envelope = _make(Reviewed, common, target=identity, approve=statement.approve, tombstones=tombstones)
        return envelope, _words(statement.reason, signed)

    def _granted(self, statement: Review, handle: Handle, at: Moment) -> list[Draft]:
        # An approved erasure request is carried out in the same batch, by the user's authority.
        request = self._engine.state.register.requests.get(parse_id(statement.id))
        if request is None or not statement.approve or request.verb != "forget":
            return []
        targets = [parse_id(format_id(target)) for target in request.targets]
        erasing = self._engine.deeds.erasing(handle, targets)
        return [
            self._engine.deeds.forget(handle, erasing, at, scope=handle.scope, reason=statement.reason, cascade=True)
        ]

    def _edited(self, statement: Review, signed: Signed, handle: Handle, at: Moment) -> list[Draft]:
        # What a person changed is the person's own statement: a record that supersedes, never the author's raised.
        engine = self._engine
        memory = engine.state.register.memories.get(parse_id(statement.id))
        if statement.edit is None or memory is None:
            return []
        request = engine.preparer.memory(
            handle,
            statement.edit,
            {"kind": memory.envelope.kind, "supersedes": statement.id, "reason": statement.reason},
        )
        body = msgspec.structs.replace(request.body, signed=format_signed(signed).encode())
        outcome = engine.admission.admit_memory(msgspec.structs.replace(request, body=body), at, Batch(at))
        return [outcome] if isinstance(outcome, Draft) else []

    def _lift(self, statement: Lift, signed: Signed, common: Mapping[str, object]) -> Parts:
        identity = parse_id(statement.id)
        state = self._engine.state
        found = [t for t in state.tombstones.all if t.event == identity and t.scope in (statement.scope, STORE_SCOPE)]
        closed = [scope for scope, (_, _, event) in state.register.closed.items() if event == identity]
        if not found and statement.scope not in closed:
            raise NotFound(id=statement.id)
        if found and all(t.lifted_seq < FAR_FUTURE for t in found):
            raise AlreadyDone(id=statement.id, status="lifted")
        fields = dict(common)
        if statement.scope in closed:
            fields["scope"] = STORE_SCOPE  # the closed scope's own envelope key is gone
        return _make(Lifted, fields, target=identity), _words(statement.reason, signed)

    def _enroll(self, statement: Enroll, signed: Signed, common: Mapping[str, object]) -> Parts:
        key = bytes.fromhex(statement.public_key)
        check_public_key(key)
        replaced = signed.public_key if statement.replaces is None else bytes.fromhex(statement.replaces)
        signer = self._engine.state.register.enrolment(statement.principal, signed.public_key, LATEST)
        envelope = _make(
            Enrolled, common, key=key, scopes=statement.scopes, replaces=replaced,
            by=statement.by if statement.replaces is None else RECOVERY,
            recovery=statement.replaces is None and signer is not None and signer.recovery,
        )  # fmt: skip
        return envelope, _words(None, signed)


def submit_command(engine: Engine, signed: Signed, command_id: str | None) -> Receipt:
    """Take in a statement whose nonce was made of a command id, if there was one; a conflict names that id."""
    try:
        return Submitter(engine).submit(signed)
    except (CommandConflict, AlreadyDone) as error:
        conflict = error if isinstance(error, CommandConflict) else error.__cause__
        if command_id is None or not isinstance(conflict, CommandConflict):
            raise
        # By the id that the caller gave, and not by the nonce that was made of it.
        raise CommandConflict(command_id=command_id, first_seq=conflict.facts["first_seq"]) from error


def replace_key(
    engine: Engine, principal: str, signer: Signer, public_key: bytes, *, scopes: Sequence[str] | None,
    replaces: bytes | None = None, command_id: str | None = None,
) -> Receipt:  # fmt: skip
    """Sign and submit that `public_key` takes the signer's place, or that of the key it `replaces`."""
    signed = sign_replacement(
        engine, principal, signer, public_key, scopes=scopes, replaces=replaces, command_id=command_id
    )
    return submit_command(engine, signed, command_id)


def _said(statement: Statement) -> bytes:
    # Without the times of signing: the same command, signed again, is the same. It is admitted once in any case.
    told: dict[str, int] = {"signed_at": 0}
    if isinstance(statement, Confirm):
        told["expires_at"] = statement.expires_at - statement.signed_at
    return format_statement(msgspec.structs.replace(statement, **told))


def _scope_of(statement: Statement) -> str:
    return STORE_SCOPE if isinstance(statement, Enroll) else parse_scope(statement.scope)


def _make(kind: type[Envelope], common: Mapping[str, object], **fields: object) -> Envelope:
    return kind(**(dict(common) | fields))  # type: ignore[arg-type]  # the fields of each kind, given by its maker


def _words(reason: str | None, signed: Signed) -> WordsBody:
    return WordsBody(reason=reason, signed=format_signed(signed).encode())


_MAKERS: Final[Mapping[type, Callable[..., Parts]]] = {
    Confirm: Submitter._confirm,
    Enroll: Submitter._enroll,
    Lift: Submitter._lift,
    Prohibit: Submitter._prohibit,
    Review: Submitter._review,
    Revoke: Submitter._revoke,
    Unprohibit: Submitter._unprohibit,
}
