"""
Statements: what a user signs, in one spelling each.

    muniment statement v1\\n
    {"action":{...},"agent":"agent:planner",...,"type":"confirm"}

The first line keeps a signature made for something else from being read as one of these. Each statement names its
store and carries a nonce, so that it can be neither replayed elsewhere nor submitted twice.
"""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime, timedelta
from typing import ClassVar, TypeAlias, cast

import msgspec

from muniment.events._errors import BadArgument, BadValue

from ._actions import (
    Action,
    action_from_wire,
    action_to_wire,
    check_confirmable,
    decode_json,
    describe_action,
    encode_json,
)
from ._text import visible

DOMAIN = b"muniment statement v1\n"
_HEX32 = re.compile(r"[0-9a-f]{64}")
_NONCE = re.compile(r"[0-9a-f]{32,64}")
# The last microsecond that a datetime can name.
_MAX_INSTANT = 253_402_300_799_999_999


class _Statement(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag=str.lower
):
    """What all statements say: in which store, who speaks, when (in microseconds), and a nonce."""

    heading: ClassVar[str]

    store: str
    principal: str
    signed_at: int
    nonce: str


class Confirm(_Statement, frozen=True):
    """The user lets an agent take one action, some number of times (None: any number), until an instant."""

    heading: ClassVar[str] = "ALLOW an action"

    scope: str
    agent: str
    action: Action
    uses: int | None
    expires_at: int


class Prohibit(_Statement, frozen=True):
    """The user forbids an action to everyone, in a scope and below it."""

    heading: ClassVar[str] = "FORBID an action"

    scope: str
    action: Action
    reason: str


class Unprohibit(_Statement, frozen=True):
    """The user lifts a prohibition."""

    heading: ClassVar[str] = "LIFT A PROHIBITION"

    scope: str
    id: str
    reason: str


class Revoke(_Statement, frozen=True):
    """The user takes a confirmation back."""

    heading: ClassVar[str] = "REVOKE a confirmation"

    scope: str
    id: str
    reason: str


class Review(_Statement, frozen=True):
    """The user approves or rejects what is pending, with the text as edited if it was."""

    heading: ClassVar[str] = "REVIEW what is pending"

    scope: str
    id: str
    approve: bool
    reason: str
    edit: str | None = None


class Lift(_Statement, frozen=True):
    """The user lets a forgotten value be remembered again."""

    heading: ClassVar[str] = "LIFT A TOMBSTONE"

    scope: str
    id: str
    reason: str


class Enroll(_Statement, frozen=True):
    """
    The key of one principal is accepted for scopes; `by` is who vouches for it.

    It takes the place of the key that signs, or, signed by a recovery key, of the one that `replaces` names.
    """

    heading: ClassVar[str] = "ENROLL a key"

    public_key: str
    scopes: tuple[str, ...]
    by: str
    replaces: str | None = None


class Remember(_Statement, frozen=True):
    """The user vouches for one record, by the digest of its canonical bytes."""

    heading: ClassVar[str] = "REMEMBER a record as confirmed"

    scope: str
    digest: str


Statement: TypeAlias = Confirm | Prohibit | Unprohibit | Revoke | Review | Lift | Enroll | Remember
_ANY: object = Confirm | Prohibit | Unprohibit | Revoke | Review | Lift | Enroll | Remember


def new_nonce() -> str:
    """Return a nonce that nobody has used or can guess."""
    return secrets.token_hex(16)


def format_statement(statement: Statement) -> bytes:
    """Return the bytes that are signed; raises `BadArgument` or `BadValue` for what no user should be asked to sign."""
    _check(statement)
    fields = cast("dict[str, object]", msgspec.structs.asdict(statement))
    if isinstance(statement, (Confirm, Prohibit)):
        fields["action"] = action_to_wire(statement.action)
    fields["type"] = type(statement).__struct_config__.tag
    try:
        return DOMAIN + encode_json(fields)
    except UnicodeEncodeError as error:
        raise BadValue(what="a statement", detail="a lone surrogate") from error


def parse_statement(data: bytes) -> Statement:
    """Read signed bytes; anything but the one spelling that `format_statement` gives is `BadValue`."""
    if not data.startswith(DOMAIN):
        raise BadValue(what="a statement", detail=f"it does not begin with {visible(DOMAIN.decode())}")
    raw = decode_json(data[len(DOMAIN) :], "a statement")
    if not isinstance(raw, dict):
        raise BadValue(what="a statement", detail="it is not a JSON object")
    fields = cast("dict[str, object]", raw)
    if "action" in fields:
        fields["action"] = action_from_wire(fields["action"])
    try:
        statement = cast("Statement", msgspec.convert(fields, type=_ANY))
    except msgspec.ValidationError as error:
        raise BadValue(what="a statement", detail=str(error)) from error
    if format_statement(statement) != data:
        raise BadValue(what="a statement", detail="it is not in canonical form")
    return statement


def _check(statement: Statement) -> None:
    for field in ("store", "principal", "scope", "agent", "id", "by"):
        text = cast("object", getattr(statement, field, "-"))
        if not isinstance(text, str) or not text.strip():
            raise BadArgument(argument=field, detail="it is blank")
    if not _NONCE.fullmatch(statement.nonce):
        raise BadArgument(argument="nonce", detail="from 16 to 32 bytes in lower-case hexadecimal")
    _check_instant("signed_at", statement.signed_at)
    _check_kind(statement)


def _check_kind(statement: Statement) -> None:
    match statement:
        case Confirm():
            check_confirmable(statement.action)
            _check_instant("expires_at", statement.expires_at)
            # By its very type: True and 1.5 would be signed, and then not be read back.
            if statement.uses is not None and (type(statement.uses) is not int or not 1 <= statement.uses < 2**63):
                raise BadArgument(argument="uses", detail="a whole number from 1, or None for any number")
            if statement.expires_at <= statement.signed_at:
                raise BadArgument(argument="expires_at", detail="it is not after signed_at")
        case Enroll():
            if not _HEX32.fullmatch(statement.public_key):
                raise BadArgument(argument="public_key", detail="32 bytes in lower-case hexadecimal")
            if statement.replaces is not None and not _HEX32.fullmatch(statement.replaces):
                raise BadArgument(argument="replaces", detail="32 bytes in lower-case hexadecimal")
            if not statement.scopes or not all(scope.strip() for scope in statement.scopes):
                raise BadArgument(argument="scopes", detail="at least one, none of them blank")
        case Remember():
            if not _HEX32.fullmatch(statement.digest):
                raise BadArgument(argument="digest", detail="32 bytes in lower-case hexadecimal")
        case Review() if statement.edit is not None and not (statement.approve and statement.edit.strip()):
            raise BadArgument(argument="edit", detail="only an approval has an edited text, and it is not blank")
        case Prohibit() | Unprohibit() | Revoke() | Review() | Lift():
            if not statement.reason.strip():
                raise BadArgument(argument="reason", detail="it is blank")


def _check_instant(field: str, instant: int) -> None:
    if not 0 <= instant <= _MAX_INSTANT:
        raise BadArgument(argument=field, detail="microseconds since 1970, before the year 10000")


# --- for people -------------------------------------------------------------------------------------------------------


def describe_statement(statement: Statement) -> str:
    """Return all that the statement says, one field a line, for a person to read before signing.

    Unseen characters are shown, and no value can begin a line of its own.
    """
    fields = cast("dict[str, object]", msgspec.structs.asdict(statement))
    lines = [statement.heading]
    lines += [f"  {name + ':':<12} {_shown(name, value)}" for name, value in fields.items()]
    return "\n".join(lines)


def _shown(name: str, value: object) -> str:
    match name, value:
        case _, Action():
            text = describe_action(value)
        case "uses", None:
            text = "ANY NUMBER OF TIMES"
        case _, None:
            text = "none"
        case "signed_at" | "expires_at", int():
            text = _instant(value)
        case "approve", bool():
            text = "APPROVE" if value else "REJECT"
        case _, str():
            text = visible(value)
        case _, tuple():
            text = ", ".join(visible(str(item)) for item in cast("tuple[object, ...]", value))
        case _:
            text = str(value)
    return text


def _instant(micros: int) -> str:
    return (
        (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).isoformat(sep=" ").replace("+00:00", " UTC")
    )
