"""Statements have one spelling; a signature holds for exactly those bytes; the key in the file is its owner's."""

from __future__ import annotations

import contextlib
import os
import pickle
from pathlib import Path

import msgspec
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from hypothesis import given
from hypothesis import strategies as st

from muniment.events._errors import BadArgument, BadValue, InvalidInput, SignatureInvalid
from muniment.gate._actions import Action, Free, Pattern
from muniment.gate._keyfile import KeyFile
from muniment.gate._signing import _WEAK_KEYS, Signed, format_signed, parse_signed, sign, verify, verify_bytes
from muniment.gate._statements import (
    DOMAIN,
    Confirm,
    Enroll,
    Lift,
    Prohibit,
    Remember,
    Review,
    Revoke,
    Statement,
    Unprohibit,
    describe_statement,
    format_statement,
    new_nonce,
    parse_statement,
)

NONCE = "00112233445566778899aabbccddeeff"
NOON = 1_772_366_400_000_000
ACTION = Action("email.send", {"to": "ann@example.org", "subject": Free()})


def confirm(
    *, action: Action = ACTION, uses: int | None = 1, expires_at: int = NOON + 1, nonce: str = NONCE
) -> Confirm:
    return Confirm(
        store="s1", scope="acme/apollo", principal="user:ann", agent="agent:planner", action=action,
        uses=uses, expires_at=expires_at, signed_at=NOON, nonce=nonce,
    )  # fmt: skip


def one_of_each() -> list[Statement]:
    def tail(reason: str = "because") -> dict[str, str]:
        return {"store": "s1", "scope": "acme", "principal": "user:ann", "nonce": NONCE, "reason": reason}

    return [
        confirm(),
        confirm(uses=None),
        Prohibit(action=Action(Pattern("db.drop*")), signed_at=NOON, **tail()),
        Unprohibit(id="p1", signed_at=NOON, **tail()),
        Revoke(id="c1", signed_at=NOON, **tail()),
        Review(id="r1", approve=True, edit=None, signed_at=NOON, **tail()),
        Review(id="r1", approve=True, edit="new text", signed_at=NOON, **tail()),
        Lift(id="t1", signed_at=NOON, **tail()),
        Enroll(store="s1", principal="user:ann", public_key="ab" * 32, scopes=("acme", "user/ann"), by="creator",
               signed_at=NOON, nonce=NONCE),
        Remember(store="s1", scope="acme", principal="user:ann", digest="cd" * 32, signed_at=NOON, nonce=NONCE),
    ]  # fmt: skip


class MemorySigner:
    def __init__(self) -> None:
        self._key = Ed25519PrivateKey.generate()

    @property
    def public_key(self) -> bytes:
        return self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)


# --- statements -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", one_of_each(), ids=lambda s: type(s).__name__)
def test_parse_inverts_format_for_every_kind(statement: Statement) -> None:
    data = format_statement(statement)
    assert data.startswith(DOMAIN)
    assert data.count(b"\n") == 1
    assert parse_statement(data) == statement


def test_the_canonical_bytes_of_a_confirmation_never_change() -> None:
    assert format_statement(confirm()) == (
        b"muniment statement v1\n"
        b'{"action":{"args":{"subject":["free"],"to":["=","ann@example.org"]},"name":["=","email.send"]},'
        b'"agent":"agent:planner","expires_at":1772366400000001,"nonce":"00112233445566778899aabbccddeeff",'
        b'"principal":"user:ann","scope":"acme/apollo","signed_at":1772366400000000,"store":"s1","type":"confirm","uses":1}'
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"muniment statement v1\n", b""),
        (b"statement v1", b"statement v2"),
        (b'"uses":1', b'"uses":1.0'),
        (b'"uses":1', b'"uses":true'),
        (b'"uses":1', b'"uses":1,"uses":2'),
        (b'"uses":1', b'"uses":1,"zeal":2'),
        (b'"uses":1', b'"uses":0'),
        (b',"uses":1', b""),
        (b'"type":"confirm"', b'"type":"prohibit"'),
        (b'"type":"confirm"', b'"type":"consent"'),
        (b'"store":"s1"', b'"store": "s1"'),
        (b'"store":"s1"', b'"store":"\\u00731"'),
        (b'"store":"s1"', b'"store":" "'),
        (b'["=","email.send"]', b'["like","email.*"]'),
        (b'["free"]', b'["free","x"]'),
        (b"1772366400000001", b"1772366400000000"),
        (b"1772366400000001", b"9999999999999999999"),
        (b"00112233", b"0011223G"),
        (b"00112233445566778899aabbccddeeff", b"00"),
    ],
)
def test_any_other_spelling_is_refused(old: bytes, new: bytes) -> None:
    data = format_statement(confirm())
    assert old in data
    with pytest.raises(InvalidInput):
        parse_statement(data.replace(old, new, 1))


@pytest.mark.parametrize("data", [b"", DOMAIN, DOMAIN + b"[]", DOMAIN + b"\xff", DOMAIN + b'{"type":"confirm"}'])
def test_what_is_no_statement_is_refused(data: bytes) -> None:
    with pytest.raises(BadValue):
        parse_statement(data)


def test_what_no_user_should_sign_is_refused_before_signing() -> None:
    revoke = Revoke(store="s", scope="a", principal="p", id="c", reason="r", signed_at=NOON, nonce=NONCE)
    for bad in (
        confirm(uses=0),
        confirm(expires_at=NOON),
        confirm(nonce="short"),
        confirm(action=Action(Pattern("*"))),
        msgspec.structs.replace(revoke, reason=" "),
        msgspec.structs.replace(revoke, reason="\ud800"),
        msgspec.structs.replace(revoke, signed_at=-1),
    ):
        with pytest.raises(InvalidInput):
            format_statement(bad)


def test_nonces_differ_and_fit() -> None:
    assert new_nonce() != new_nonce()
    assert format_statement(confirm(nonce=new_nonce()))


def test_a_description_tells_all_and_hides_nothing() -> None:
    text = describe_statement(confirm(uses=None))
    assert text == (
        "ALLOW an action\n"
        '  scope:       "acme/apollo"\n'
        '  agent:       "agent:planner"\n'
        '  action:      email.send(subject=ANY VALUE, to="ann@example.org")\n'
        "  uses:        ANY NUMBER OF TIMES\n"
        "  expires_at:  2026-03-01 12:00:00.000001 UTC\n"
        '  store:       "s1"\n'
        '  principal:   "user:ann"\n'
        "  signed_at:   2026-03-01 12:00:00 UTC\n"
        f'  nonce:       "{NONCE}"'
    )


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_no_value_begins_a_line_of_its_own(reason: str) -> None:
    statement = Revoke(store="s", scope="a", principal="p", id="c", reason=reason, signed_at=NOON, nonce=NONCE)
    described = describe_statement(statement)
    assert len(described.splitlines()) == 8
    assert described.replace("\n", "").isprintable()


# --- signatures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", one_of_each(), ids=lambda s: type(s).__name__)
def test_what_was_signed_verifies_after_travelling_as_text(statement: Statement) -> None:
    line = format_signed(sign(statement, MemorySigner()))
    assert len(line.splitlines()) == 1
    assert verify(parse_signed(line)) == statement
    assert parse_signed(line + "\n") == parse_signed(line)


@given(st.data())
def test_any_flipped_bit_is_detected(data: st.DataObject) -> None:
    signed = sign(confirm(), MemorySigner())
    field = data.draw(st.sampled_from(["statement", "public_key", "signature"]))
    raw = bytearray(getattr(signed, field))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(SignatureInvalid):
        verify(msgspec.structs.replace(signed, **{field: bytes(raw)}))


def test_a_refusal_names_what_is_wrong() -> None:
    signer = MemorySigner()
    signed = sign(confirm(), signer)
    with pytest.raises(SignatureInvalid, match="public key has 31 bytes, not 32"):
        verify(msgspec.structs.replace(signed, public_key=signed.public_key[1:]))
    with pytest.raises(SignatureInvalid, match="signature has 0 bytes, not 64"):
        verify(msgspec.structs.replace(signed, signature=b""))
    with pytest.raises(SignatureInvalid, match="did not sign these bytes"):
        verify(msgspec.structs.replace(signed, public_key=MemorySigner().public_key))
    with pytest.raises(SignatureInvalid, match="the signature holds, but a statement"):
        verify(Signed(b"{}", signer.public_key, signer.sign(b"{}")))


@pytest.mark.parametrize("key", sorted(_WEAK_KEYS), ids=lambda key: key.hex()[:8])
@pytest.mark.parametrize("sign_bit", [0, 0x80])
def test_a_key_under_which_anyone_can_sign_is_refused(key: bytes, sign_bit: int) -> None:
    """The same signature, made without a secret, holds under such a key for many messages."""
    key = key[:-1] + bytes([key[-1] | sign_bit])
    forged = b"\x01" + bytes(63)
    fooled = 0
    for number in range(200):
        with contextlib.suppress(InvalidSignature):
            Ed25519PublicKey.from_public_bytes(key).verify(forged, str(number).encode())
            fooled += 1
        with pytest.raises(SignatureInvalid, match="small order"):
            verify_bytes(str(number).encode(), public_key=key, signature=forged)
    assert fooled > 0


def test_a_signature_over_the_bare_json_is_no_statement() -> None:
    """The domain line keeps what a key signs elsewhere from being read as the user's word."""
    signer = MemorySigner()
    bare = format_statement(confirm()).removeprefix(DOMAIN)
    with pytest.raises(SignatureInvalid):
        verify(Signed(bare, signer.public_key, signer.sign(bare)))


def test_a_signer_that_shows_one_key_and_uses_another_is_found_at_once() -> None:
    class Confused(MemorySigner):
        @property
        def public_key(self) -> bytes:
            return b"\x01" * 32

    with pytest.raises(SignatureInvalid):
        sign(confirm(), Confused())


def test_verify_bytes_takes_exactly_those_bytes() -> None:
    signer = MemorySigner()
    verify_bytes(b"x", public_key=signer.public_key, signature=signer.sign(b"x"))
    with pytest.raises(SignatureInvalid):
        verify_bytes(b"y", public_key=signer.public_key, signature=signer.sign(b"x"))


def test_a_signed_line_has_one_spelling() -> None:
    line = format_signed(sign(confirm(), MemorySigner()))
    extended = line[:-1] + ',"x":1}'
    longer = line.replace('"signature":"', '"signature":"0')
    spaced = line.replace('"public_key":"', '"public_key":" ')
    for bad in ("", "{}", "[]", " " + line, line + " ", line.replace(":", ": ", 1), extended, "\ud800", longer, spaced):
        with pytest.raises(BadValue):
            parse_signed(bad)


# --- key files --------------------------------------------------------------------------------------------------------


def test_a_key_file_signs_and_opens_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "user.key"
    key = KeyFile.create(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.parent.parent.stat().st_mode & 0o777 == 0o700
    assert KeyFile(str(path)).public_key == key.public_key
    assert verify(sign(confirm(), key)) == confirm()
    assert path.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----\n")


def test_an_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    KeyFile.create(folder / "k")
    assert folder.stat().st_mode & 0o777 == 0o755


def test_the_mode_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        KeyFile.create(tmp_path / "d" / "k")
    finally:
        os.umask(before)
    assert (tmp_path / "d" / "k").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o700


def test_a_key_is_never_overwritten_not_even_through_a_link(tmp_path: Path) -> None:
    path = tmp_path / "k"
    KeyFile.create(path)
    before = path.read_bytes()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    for target in (path, link):
        with pytest.raises(BadArgument, match="never overwritten"):
            KeyFile.create(target)
    assert path.read_bytes() == before
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o601])
def test_a_key_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "k"
    KeyFile.create(path)
    path.chmod(mode)
    with pytest.raises(BadArgument, match="only its owner may") as caught:
        KeyFile(path)
    assert caught.value.hint == f"chmod 600 {path}"


def test_a_passphrase_is_needed_and_must_be_right(tmp_path: Path) -> None:
    path = tmp_path / "k"
    phrase = "correct horse"
    key = KeyFile.create(path, passphrase=phrase)
    assert KeyFile(path, passphrase=phrase).public_key == key.public_key
    with pytest.raises(BadArgument, match="none was given"):
        KeyFile(path)
    with pytest.raises(BadArgument, match="does not open this key"):
        KeyFile(path, passphrase="wrong horse")
    for unusable in ("", "\ud800"):
        with pytest.raises(BadArgument, match="passphrase"):
            KeyFile.create(tmp_path / "other", passphrase=unusable)
    assert not (tmp_path / "other").exists()


def test_a_key_without_a_passphrase_takes_none(tmp_path: Path) -> None:
    KeyFile.create(tmp_path / "k")
    with pytest.raises(BadArgument, match="the key has none"):
        KeyFile(tmp_path / "k", passphrase="x")


def test_the_passphrase_alone_does_not_open_the_pem(tmp_path: Path) -> None:
    """The PEM's own key derivation is fast; guessing has to go through scrypt."""
    path = tmp_path / "k"
    KeyFile.create(path, passphrase="phrase")
    with pytest.raises(ValueError):
        load_pem_private_key(path.read_bytes(), b"phrase")


def test_a_pem_encrypted_by_another_tool_opens(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    path = tmp_path / "k"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"phrase")))
    path.chmod(0o600)
    assert KeyFile(path, passphrase="phrase").public_key == key.public_key().public_bytes_raw()


def test_what_is_no_ed25519_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k"
    other = X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for data, reason in ((b"", "holds no private key"), (b"junk", "holds no private key"), (other, "not an Ed25519")):
        path.write_bytes(data)
        path.chmod(0o600)
        with pytest.raises(BadArgument, match=reason):
            KeyFile(path)


def test_what_is_not_there_or_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="no key at"):
        KeyFile(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(BadArgument, match="is not a file"):
            KeyFile(path)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadArgument, match="cannot be made"):
        KeyFile.create(tmp_path / "file" / "k")


def test_no_secret_is_shown_or_pickled(tmp_path: Path) -> None:
    path = tmp_path / "k"
    key = KeyFile.create(path, passphrase="phrase")
    assert repr(key) == f"KeyFile({str(path)!r}, public_key={key.public_key.hex()})"
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(key)


def test_a_key_can_be_named_from_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    key = KeyFile.create("~/.config/muniment/user.key")
    assert key.path == tmp_path / ".config" / "muniment" / "user.key"
