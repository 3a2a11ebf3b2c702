"""Keys that come to speak for a user: enrolled, or in the place of another that signs this, or was lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from muniment.events import (
    STORE_SCOPE,
    AlreadyDone,
    BadArgument,
    Draft,
    EnrolDenied,
    Enrolled,
    Moment,
    NotFound,
    Rank,
    SignatureInvalid,
    covers,
    format_data,
    new_id,
    parse_scope,
)
from muniment.gate import Enroll, Handle, Signed, Signer, check_flag, check_list, check_public_key, new_nonce, sign
from muniment.projections import LATEST, Register
from muniment.projections import Enrolment as EnrolledKey

from ._answers import Receipt
from ._engine import Engine
from ._writing import done_once, with_command


class Enrolment(NamedTuple):
    """A key that is to speak for a principal in some scopes; `by` is creator or terminal."""

    principal: str
    public_key: bytes
    scopes: Sequence[str]
    by: str
    recovery: bool
    command_id: str | None


def enroll_key(engine: Engine, wanted: Enrolment, *, created: bool) -> Receipt:
    """
    Let a key speak for a principal; as `creator` only by the handle that created the store.

    Raises:
        EnrolDenied: it did not, and the command id names nothing that was done before.
    """
    principal, public_key, scopes, by, recovery, command_id = wanted
    check_public_key(public_key)
    check_flag(recovery, "recovery")
    if by not in ("creator", "terminal"):
        raise BadArgument(argument="by", detail="expected creator or terminal")
    if not scopes:
        raise BadArgument(argument="scopes", detail="name at least one scope")
    checked = tuple(parse_scope(scope) for scope in check_list(scopes, "scopes"))
    engine.preparer.command_id(command_id)
    said = format_data(["enroll", principal, bytes(public_key).hex(), *checked, recovery], what="command")
    key = engine.values.payload_key(said)
    handle = Handle(scope=STORE_SCOPE, reads=(), actor=principal, origin=by, rank=Rank.EXTERNAL)

    def plan(at: Moment) -> list[Draft]:
        # A retry never comes here: to say again what was done before needs no authority.
        if by == "creator" and not created:
            raise EnrolDenied(principal=principal, detail="this handle did not create the store")
        envelope = Enrolled(
            scope=STORE_SCOPE, actor=principal, origin=by, rank=Rank.EXTERNAL, principal=principal,
            key=bytes(public_key), scopes=checked, by=by, recovery=recovery,
        )  # fmt: skip
        return [with_command(Draft(id=new_id(at.recorded_at), envelope=envelope), command_id, key)]

    return done_once(engine, handle, command_id, key, plan)


def sign_replacement(
    engine: Engine,
    principal: str,
    signer: Signer,
    public_key: bytes,
    *,
    scopes: Sequence[str] | None,
    replaces: bytes | None = None,
    command_id: str | None = None,
) -> Signed:
    """Return the signed statement by which `public_key` takes the signer's place, or that of the key it `replaces`."""
    check_public_key(public_key)
    if replaces is not None and not isinstance(cast("object", replaces), (bytes, bytearray)):
        raise BadArgument(argument="lost", detail=f"expected the bytes of a key, got {type(replaces).__name__}")
    engine.preparer.command_id(command_id)
    nonce = nonce_of(engine, STORE_SCOPE, principal, command_id)
    with engine.mutex:
        engine.refresh()
        register = engine.state.register
        old = replaces if replaces is not None else bytes(signer.public_key)
        # A retry says what was said the first time, when the key that it replaced still spoke.
        first = register.commands.get((STORE_SCOPE, principal, format_command(nonce)))
        enrolment = register.enrolment(principal, old, LATEST if first is None else first.seq - 1)
        if enrolment is None:
            raise NotFound(id=old.hex())
        statement = Enroll(
            store=engine.files.store_id.hex(),
            principal=principal,
            signed_at=engine.options.clock(),
            nonce=nonce,
            public_key=bytes(public_key).hex(),
            scopes=enrolment.scopes if scopes is None else tuple(map(parse_scope, check_list(scopes, "scopes"))),
            by=principal,
            replaces=None if replaces is None else replaces.hex(),
        )
    return sign(statement, signer)


def nonce_of(engine: Engine, scope: str, principal: str, command_id: str | None) -> str:
    """Return the nonce of a statement; the same command has the same one, by which it is admitted once."""
    if command_id is None:
        return new_nonce()
    command = "\0".join((scope, principal, command_id))
    return engine.values.payload_key(b"command\0" + command.encode()).hex()


def format_command(nonce: str) -> str:
    """Return the command id under which a signed statement is admitted: `nonce:` and its nonce."""
    return f"nonce:{nonce}"


def check_replacing(register: Register, statement: Enroll, signer: EnrolledKey) -> None:
    """
    Check that a key may take another's place.

    Raises:
        SignatureInvalid: it would gain scopes, or speaks for somebody else, or the signer may replace only itself.
        AlreadyDone: the new key speaks for the principal already.
    """
    within = all(any(covers(outer, scope) for outer in signer.scopes) for scope in statement.scopes)
    if statement.by != statement.principal or not within:
        raise SignatureInvalid(detail="a key can only be replaced by one with no more scopes")
    new = bytes.fromhex(statement.public_key)
    if register.enrolment(statement.principal, new, LATEST) is not None:
        raise AlreadyDone(id=statement.public_key, status="enrolled")
    if statement.replaces is None:
        return
    lost = register.enrolment(statement.principal, bytes.fromhex(statement.replaces), LATEST)
    # A thief of the everyday key must not be able to take the recovery key away with it.
    if not signer.recovery or lost is None or lost.recovery:
        raise SignatureInvalid(detail="only a recovery key replaces another key, and only one that is in use")
