"""
Who the user is: an Ed25519 key kept outside the store, and what was signed with it.

A signed statement travels as one line of JSON, keys sorted:

    {"public_key":"<hex>","signature":"<hex>","statement":"muniment statement v1\\n{...}"}

A good signature says that the holder of the key made the statement. Whether that key speaks for anyone is for the
caller to look up among the enrolled: the key that travels along identifies nobody.
"""

from __future__ import annotations

from typing import Protocol, cast

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from muniment.events._errors import BadArgument, BadValue, InvalidInput, SignatureInvalid

from ._actions import decode_json, encode_json
from ._statements import Statement, format_statement, parse_statement

KEY_BYTES = 32
SIGNATURE_BYTES = 64

# The points of small order, sign bit cleared. Under such a key anyone can sign, without any secret; OpenSSL accepts it.
_WEAK_KEYS = frozenset(
    bytes.fromhex(key)
    for key in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)


class Signer(Protocol):
    """Anything that signs for one key: a file, an agent-socket, a hardware key, another account."""

    @property
    def public_key(self) -> bytes:
        """The 32 raw bytes of the Ed25519 public key."""
        ...

    def sign(self, message: bytes) -> bytes:
        """Return the 64 bytes of the signature over exactly these bytes."""
        ...


class Signed(msgspec.Struct, frozen=True):
    """The bytes of a statement, the key that is said to have signed them, and the signature; nothing is verified."""

    statement: bytes
    public_key: bytes
    signature: bytes


def check_signer(given: object, what: str) -> None:
    """Raise BadArgument for what shows no public key, or cannot sign."""
    if not isinstance(getattr(given, "public_key", None), (bytes, bytearray)) or not callable(
        getattr(given, "sign", None)
    ):
        raise BadArgument(argument=what, detail=f"expected a KeyFile or a signer, got {type(given).__name__}")


def sign(statement: Statement, signer: Signer) -> Signed:
    """Have the statement signed; raises `SignatureInvalid` if the signer hands back a signature that does not hold."""
    signed = Signed(format_statement(statement), bytes(signer.public_key), b"")
    signed = msgspec.structs.replace(signed, signature=bytes(signer.sign(signed.statement)))
    # An external signer may hold another key than the one it shows; say so here, not to whoever submits it later.
    verify(signed)
    return signed


def verify(signed: Signed) -> Statement:
    """Return the statement if its signature holds for the key that came with it; else raises `SignatureInvalid`.

    The key is not an identity: look it up among the enrolled before believing the statement's `principal`.
    """
    verify_bytes(signed.statement, public_key=signed.public_key, signature=signed.signature)
    try:
        return parse_statement(signed.statement)
    except InvalidInput as error:
        raise SignatureInvalid(detail=f"the signature holds, but {error}") from error


def check_public_key(public_key: bytes) -> None:
    """Raise `SignatureInvalid` unless these bytes can be the key of one person; call it before enrolling a key.

    Raises `BadArgument` for what is not bytes at all.
    """
    if not isinstance(cast("object", public_key), (bytes, bytearray)):
        raise BadArgument(argument="public_key", detail=f"expected {KEY_BYTES} bytes")
    if len(public_key) != KEY_BYTES:
        raise SignatureInvalid(detail=f"the public key has {len(public_key)} bytes, not {KEY_BYTES}")
    if public_key[:-1] + bytes([public_key[-1] & 0x7F]) in _WEAK_KEYS:
        raise SignatureInvalid(detail=f"key {public_key.hex()[:16]} has small order: anyone could sign for it")


def verify_bytes(message: bytes, *, public_key: bytes, signature: bytes) -> None:
    """Raise `SignatureInvalid` unless the key signed exactly these bytes."""
    check_public_key(public_key)
    if len(signature) != SIGNATURE_BYTES:
        raise SignatureInvalid(detail=f"the signature has {len(signature)} bytes, not {SIGNATURE_BYTES}")
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError) as error:
        raise SignatureInvalid(detail=f"key {public_key.hex()[:16]} did not sign these bytes") from error


def format_signed(signed: Signed) -> str:
    """Return the signed statement as one line of text, without a line break."""
    try:
        statement = signed.statement.decode()
    except UnicodeDecodeError as error:
        raise BadValue(what="a signed statement", detail="the statement is not UTF-8") from error
    fields = {"public_key": signed.public_key.hex(), "signature": signed.signature.hex(), "statement": statement}
    return encode_json(fields).decode()


def parse_signed(line: str) -> Signed:
    """Read one line of text, a line break after it allowed; nothing is verified. Any other spelling is `BadValue`."""
    try:
        data = line.removesuffix("\n").encode()
    except UnicodeEncodeError as error:
        raise BadValue(what="a signed statement", detail="a lone surrogate") from error
    match decode_json(data, "a signed statement"):
        case {"public_key": str() as public_key, "signature": str() as signature, "statement": str() as statement}:
            signed = Signed(statement.encode(), _unhex(public_key), _unhex(signature))
        case _:
            raise BadValue(what="a signed statement", detail="not an object of statement, public_key and signature")
    if format_signed(signed).encode() != data:
        raise BadValue(what="a signed statement", detail="it is not in canonical form")
    return signed


def _unhex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise BadValue(what="a signed statement", detail="keys and signatures are hexadecimal") from error
