"""Notes and checkpoints: what other tools write is read, and one text has one encoding."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from muniment.events import (
    BadNote,
    Tip,
    VerifierKey,
    format_checkpoint,
    format_note,
    format_verifier_key,
    parse_checkpoint,
    parse_note,
    parse_verifier_key,
    sign_note,
    verify_note,
)

# From the tests of Go's note package, and from C2SP's tlog-checkpoint.
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETER_SECRET = "AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
ENOCH = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
PETER_LINE = (
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
ENOCH_LINE = (
    "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n"
)
BOTH = (TEXT + "\n" + PETER_LINE + ENOCH_LINE).encode()
CHECKPOINT = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"


class Held:
    """A signer whose secret is in memory."""

    def __init__(self, secret: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(secret)

    @property
    def public_key(self) -> bytes:
        return self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)


class Lying(Held):
    """A signer that shows another key than it signs with."""

    @property
    def public_key(self) -> bytes:
        return Held(bytes(32)).public_key


def test_signing_gives_the_bytes_that_go_gives() -> None:
    signer = Held(base64.b64decode(PETER_SECRET)[1:])

    assert (TEXT + "\n" + PETER_LINE).encode() == format_note(sign_note(TEXT, "PeterNeumann", signer))


@pytest.mark.parametrize("key", [PETER, ENOCH])
def test_signatures_by_go_verify_beside_those_of_other_keys(key: str) -> None:
    note = parse_note(BOTH)

    assert TEXT == verify_note(note, parse_verifier_key(key))
    assert BOTH == format_note(note)


def test_any_changed_bit_of_a_note_is_found() -> None:
    key = parse_verifier_key(PETER)
    data = (TEXT + "\n" + PETER_LINE).encode()
    for at in range(8 * len(data)):
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        with pytest.raises(BadNote):
            verify_note(parse_note(bytes(changed)), key)


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        (TEXT + "\n").encode(),
        (TEXT + "\n" + PETER_LINE[:-1]).encode(),
        b"\x01" + BOTH,
        b"\xff" + BOTH,
        (TEXT + "\n— Bad Name " + PETER_LINE.split(" ")[2]).encode(),
        BOTH + b"Unexpected line.\n",
        (TEXT + "\n" + PETER_LINE * 101).encode(),
        (TEXT + "\n" + PETER_LINE.replace("AM=", "AN=")).encode(),
        (TEXT + "\n— PeterNeumann x08gow==\n").encode(),
        (TEXT + "\n" + PETER_LINE.replace("\n", "\r\n")).encode(),
    ],
)
def test_what_is_not_a_note_is_refused(data: bytes) -> None:
    with pytest.raises(BadNote):
        parse_note(data)


def test_a_note_by_an_unknown_key_is_not_verified() -> None:
    note = parse_note((TEXT + "\n" + ENOCH_LINE).encode())

    with pytest.raises(BadNote, match="no signature by PeterNeumann"):
        verify_note(note, parse_verifier_key(PETER))


def test_a_signer_that_shows_another_key_is_found_at_once() -> None:
    with pytest.raises(BadNote, match="does not hold"):
        sign_note(TEXT, "PeterNeumann", Lying(bytes([1]) * 32))


def test_a_verifier_key_has_one_spelling() -> None:
    assert PETER == format_verifier_key(parse_verifier_key(PETER))
    for start in range(len(PETER)):
        for end in range(start + 1, len(PETER) + 1):
            if (start, end) != (0, len(PETER)):
                with pytest.raises(BadNote):
                    parse_verifier_key(PETER[start:end])
    for at in range(len(PETER)):
        with pytest.raises(BadNote):
            parse_verifier_key(PETER[:at] + chr(ord(PETER[at]) + 1) + PETER[at + 1 :])
    for bad in (
        "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    ):
        with pytest.raises(BadNote):
            parse_verifier_key(bad)


def test_the_checkpoint_of_the_specification_reads_and_writes_the_same() -> None:
    tip = parse_checkpoint(CHECKPOINT)

    assert ("example.com/behind-the-sofa", 20852163) == tip[:2]
    assert CHECKPOINT == format_checkpoint(tip)


@given(size=st.integers(0, 2**63 - 1), root=st.binary(min_size=32, max_size=32))
def test_parsing_a_checkpoint_inverts_formatting_it(size: int, root: bytes) -> None:
    tip = Tip("muniment/" + "0" * 32, size, root)

    assert tip == parse_checkpoint(format_checkpoint(tip))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\n1\n",
        CHECKPOINT[:-1],
        CHECKPOINT + "extension\n",
        CHECKPOINT + "\n",
        CHECKPOINT.replace("20852163", "020852163"),
        CHECKPOINT.replace("20852163", "-1"),
        CHECKPOINT.replace("20852163", "٣"),
        CHECKPOINT.replace("20852163", "9" * 20),
        CHECKPOINT.replace("example.com/behind-the-sofa", ""),
        CHECKPOINT.replace("q2I=", "q2J="),
        CHECKPOINT.replace("CsUYapGG", ""),
    ],
)
def test_what_is_not_a_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(BadNote):
        parse_checkpoint(text)


def test_names_with_spaces_or_plus_are_refused() -> None:
    for name in ("", "a b", "a+b", "a\u00a0b", "a\tb"):
        with pytest.raises(BadNote):
            format_verifier_key(VerifierKey(name, bytes(32)))
