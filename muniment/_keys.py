"""Keys that take the place of others: rotation by the key itself, and recovery when it is lost or stolen."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.events import AlreadyDone, NotFound, SignatureInvalid, covers, parse_scope
from muniment.gate import Enroll, Signed, Signer, check_list, check_public_key, new_nonce, sign
from muniment.projections import LATEST, Enrolment, Register

from ._engine import Engine


def sign_replacement(
    engine: Engine,
    principal: str,
    signer: Signer,
    public_key: bytes,
    *,
    scopes: Sequence[str] | None,
    replaces: bytes | None = None,
) -> Signed:
    """Return the signed statement by which `public_key` takes the signer's place, or that of the key it `replaces`."""
    check_public_key(public_key)
    with engine.mutex:
        engine.refresh()
        old = replaces if replaces is not None else bytes(signer.public_key)
        enrolment = engine.state.register.enrolment(principal, old, LATEST)
        if enrolment is None:
            raise NotFound(id=old.hex())
        statement = Enroll(
            store=engine.files.store_id.hex(),
            principal=principal,
            signed_at=engine.options.clock(),
            nonce=new_nonce(),
            public_key=bytes(public_key).hex(),
            scopes=enrolment.scopes if scopes is None else tuple(map(parse_scope, check_list(scopes, "scopes"))),
            by=principal,
            replaces=None if replaces is None else replaces.hex(),
        )
    return sign(statement, signer)


def check_replacing(register: Register, statement: Enroll, signer: Enrolment) -> None:
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
