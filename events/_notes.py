"""
Signed notes and checkpoints, in the formats of C2SP (`signed-note`, `tlog-checkpoint`): text that other tools read.

Note: a text that ends in a line break, an empty line, and one line for each signature:

    <text>\\n
    \\n
    — <key name> <base64 of 4 bytes of key id || signature>\\n

Checkpoint: the text of a note about a log's head. Ours have no extension lines, since nobody could audit them:

    <origin>\\n
    <number of records, decimal, no leading zeros>\\n
    <base64 of the 32-byte root>\\n

Key id: SHA-256(key name || 0x0A || 0x01 || public key)[:4], where 0x01 stands for Ed25519. A verifier key is written
`<key name>+<key id, 8 hexadecimal digits>+<base64 of 0x01 || public key>`.

A text without signature lines is an unsigned head: it tells a head, and says nothing about who told it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, cast

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ._merkle import HASH_BYTES

_ED25519: Final = b"\x01"
_PUBLIC_KEY_BYTES: Final = 32
_KEY_ID_BYTES: Final = 4
_SIGNATURES_MAX: Final = 64
_DASH: Final = "— "
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f]")
_DECIMAL: Final = re.compile(r"(?:0|[1-9][0-9]{0,19})\Z", re.ASCII)
_SIZE_MAX: Final = (1 << 63) - 1


class BadNote(ValueError):
    """Bytes are not a note, a checkpoint or a verifier key, or a signature does not hold."""


class NoteSigner(Protocol):
    """Anything that signs for one Ed25519 key."""

    @property
    def public_key(self) -> bytes:
        """The 32 raw bytes of the public key."""
        ...

    def sign(self, message: bytes) -> bytes:
        """Return the 64 bytes of the signature over exactly these bytes."""
        ...


class NoteSignature(NamedTuple):
    """One signature line; nothing is verified."""

    name: str
    key_id: bytes
    signature: bytes


class Note(NamedTuple):
    """A text and the signature lines under it; nothing is verified."""

    text: str
    signatures: tuple[NoteSignature, ...]


class VerifierKey(NamedTuple):
    """A public key and the name under which it signs."""

    name: str
    public_key: bytes

    @property
    def key_id(self) -> bytes:
        """The 4 bytes by which signature lines name the key; a name, not a commitment."""
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.public_key).digest()[:_KEY_ID_BYTES]


class Tip(NamedTuple):
    """What a checkpoint says: the log at `origin` had `size` records, and this root over them."""

    origin: str
    size: int
    root: bytes


def format_checkpoint(tip: Tip) -> str:
    """
    Return the text of a checkpoint.

    Raises:
        BadNote: the origin, the size or the root cannot be written so.
    """
    text = f"{tip.origin}\n{tip.size}\n{base64.b64encode(tip.root).decode()}\n"
    parse_checkpoint(text)
    return text


def parse_checkpoint(text: str) -> Tip:
    """
    Return what the text of a checkpoint says.

    Raises:
        BadNote: it is not exactly three lines of the right form.
    """
    lines = text.split("\n")
    if len(lines) != 4 or lines[3]:
        raise BadNote("a checkpoint has three lines: origin, size and root")
    origin, size, root = lines[:3]
    if not origin or _CONTROL.search(origin):
        raise BadNote("the origin is empty, or holds control characters")
    if not _DECIMAL.match(size) or int(size) > _SIZE_MAX:
        raise BadNote(f"`{size}` is not a number of records")
    return Tip(origin, int(size), _unbase64(root, HASH_BYTES, "the root"))


def format_note(note: Note) -> bytes:
    """
    Return the bytes of a note.

    Raises:
        BadNote: the text does not end in a line break, holds control characters, or nobody signed it.
    """
    lines = [f"{_DASH}{one.name} {base64.b64encode(one.key_id + one.signature).decode()}\n" for one in note.signatures]
    data = (note.text + "\n" + "".join(lines)).encode()
    if parse_note(data) != note:
        raise BadNote("the text would not be read back as it is")
    return data


def parse_note(data: bytes) -> Note:
    """
    Return the text and the signatures of a note, none of them verified.

    Raises:
        BadNote: it is not exactly a text, an empty line and signature lines.
    """
    try:
        whole = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadNote("a note is UTF-8") from error
    if _CONTROL.search(whole):
        raise BadNote("a note holds no control characters but line breaks")
    # The last empty line separates: the text may hold empty lines itself.
    text, separator, below = whole.rpartition("\n\n")
    if not separator or not below.endswith("\n"):
        raise BadNote("a note is a text, an empty line, and signature lines")
    lines = below[:-1].split("\n")
    if len(lines) > _SIGNATURES_MAX:
        raise BadNote(f"a note has at most {_SIGNATURES_MAX} signatures")
    return Note(text + "\n", tuple(_parse_signature(line) for line in lines))


def sign_note(text: str, name: str, signer: NoteSigner) -> Note:
    """
    Have a text signed, and return the note.

    Raises:
        BadNote: the signer hands back a signature that does not hold, or the name cannot name a key.
    """
    key = VerifierKey(name, bytes(signer.public_key))
    note = Note(text, (NoteSignature(name, key.key_id, bytes(signer.sign(text.encode()))),))
    # An external signer may hold another key than the one it shows: found here, not by whoever relies on the note.
    verify_note(parse_note(format_note(note)), key)
    return note


def verify_note(note: Note, key: VerifierKey) -> str:
    """
    Return the note's text once the key's signature over it has been verified; other keys' lines are passed over.

    Raises:
        BadNote: the key did not sign it, or a signature under its name and id does not hold.
    """
    ours = [one for one in note.signatures if (one.name, one.key_id) == (key.name, key.key_id)]
    if not ours:
        raise BadNote(f"no signature by {key.name}+{key.key_id.hex()}")
    for one in ours:
        try:
            Ed25519PublicKey.from_public_bytes(key.public_key).verify(one.signature, note.text.encode())
        except (InvalidSignature, ValueError) as error:
            raise BadNote(f"the signature by {key.name}+{key.key_id.hex()} does not hold") from error
    return note.text


def format_verifier_key(key: VerifierKey) -> str:
    """Return a verifier key as one word of text: name, key id, public key."""
    _check_name(key.name)
    return f"{key.name}+{key.key_id.hex()}+{base64.b64encode(_ED25519 + key.public_key).decode()}"


def parse_verifier_key(text: str) -> VerifierKey:
    """
    Read a verifier key.

    Raises:
        BadNote: it is of another form or algorithm, or its id is not the one its name and key make.
    """
    parts = text.split("+", 2) if isinstance(cast("object", text), str) else []
    if len(parts) != 3:
        raise BadNote("a verifier key is NAME+ID+KEY")
    name, key_id, encoded = parts
    _check_name(name)
    data = _unbase64(encoded, 1 + _PUBLIC_KEY_BYTES, "the key")
    if data[:1] != _ED25519:
        raise BadNote(f"algorithm {data[0]} is not Ed25519, which is 1")
    key = VerifierKey(name, data[1:])
    if key_id != key.key_id.hex():
        raise BadNote(f"expected key id {key.key_id.hex()}, got `{key_id}`")
    return key


def _parse_signature(line: str) -> NoteSignature:
    if not line.startswith(_DASH):
        raise BadNote("a signature line begins with an em dash and a space")
    name, separator, encoded = line[len(_DASH) :].partition(" ")
    if not separator:
        raise BadNote("a signature line is a name and a signature")
    _check_name(name)
    data = _unbase64(encoded, None, "the signature")
    if len(data) <= _KEY_ID_BYTES:
        raise BadNote("a signature is longer than its key id")
    return NoteSignature(name, data[:_KEY_ID_BYTES], data[_KEY_ID_BYTES:])


def _check_name(name: str) -> None:
    if not name or "+" in name or _CONTROL.search(name) or any(character.isspace() for character in name):
        raise BadNote(f"`{name}` cannot name a key: it is empty, or holds spaces or `+`")


def _unbase64(text: str, size: int | None, what: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadNote(f"{what} is not base64") from error
    # Bits after the last byte could be anything: one encoding per value.
    if base64.b64encode(data).decode() != text or (size is not None and len(data) != size):
        raise BadNote(f"{what} is not base64 of {size or 'whole'} bytes")
    return data


def signers(note: Note) -> Sequence[str]:
    """Return the names of the keys that the signature lines claim, for showing."""
    return [f"{one.name}+{one.key_id.hex()}" for one in note.signatures]
