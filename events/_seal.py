"""
Sealing: AES-256-GCM through `cryptography`, with a commitment to the key beside each sealed part.

GCM does not commit to its key: whoever holds the log could otherwise make one ciphertext that opens to two texts under
two keys. So each part carries SHA-256(0x02 || key)[:16], checked before opening. (SHA-256 and not BLAKE3, because on 33
bytes it takes half the time: 0.5 and 1.0 microseconds through Python.)

Plaintext is a u32 length, the bytes, and zeros up to the next size class (Padmé, Nikitin et al. 2019: at most 12 % of
overhead, and the ciphertext's length tells about log log of the true one), so that lengths say little.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, Protocol

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ._codec import EVENT_HEADER, EVENT_VERSION, NO_COMMITMENT, NO_SLOT, Damaged, EventHeader
from ._errors import KeyMissing
from ._kinds import EventType
from ._model import (
    BODIES,
    ENVELOPES,
    Body,
    Draft,
    Envelope,
    WordsBody,
)

KEY_BYTES: Final = 32
TAG_BYTES: Final = 16
NONCE_BYTES: Final = 12
_COMMIT: Final = b"\x02"
_ENVELOPE_DOMAIN: Final = b"E"
_BODY_DOMAIN: Final = b"B"
_BLOB_DOMAIN: Final = b"S"
_LENGTH: Final = struct.Struct(">I")
_LENGTH_BYTES: Final = _LENGTH.size
_pack_length, _unpack_length = _LENGTH.pack, _LENGTH.unpack_from
_SMALLEST: Final = 64
_HEADER_BYTES: Final = EVENT_HEADER.size


class KeySource(Protocol):
    """Where the keys of slots come from."""

    def slot_key(self, slot: int) -> bytes:
        """Return the key of a slot; raises KeyMissing when the page that holds it cannot be opened."""
        ...

    def is_shredded(self, slot: int) -> bool:
        """Tell whether the slot's key was destroyed on purpose."""
        ...


def commitment(key: bytes) -> bytes:
    """Return the 16 bytes that commit to a key: SHA-256(0x02 || key)[:16]."""
    return sha256(_COMMIT + key).digest()[:16]


def padded_size(length: int) -> int:
    """Return the size class of a plaintext: the Padmé bound, at least 64."""
    return _SIZES[length] if length < _MANY_SIZES else _size_class(length)


def _size_class(length: int) -> int:
    exponent = length.bit_length() - 1
    low_bits = exponent - exponent.bit_length()
    mask = (1 << low_bits) - 1
    return (length + mask) & ~mask


_MANY_SIZES: Final = 2_048
_SIZES: Final = [_SMALLEST if length <= _SMALLEST else _size_class(length) for length in range(_MANY_SIZES)]


def seal_blob(key: bytes, nonce: bytes, plain: bytes, context: bytes) -> bytes:
    """Return commitment || sealed bytes of something that is not an event: a key page, a table, a snapshot chunk."""
    return commitment(key) + AESGCM(key).encrypt(nonce, plain, _BLOB_DOMAIN + context)


def open_blob(key: bytes, nonce: bytes, sealed: bytes, context: bytes) -> bytes | None:
    """Return what `seal_blob` sealed, or None when key, nonce, context or bytes are not the same."""
    if sealed[:16] != commitment(key):
        return None
    try:
        return AESGCM(key).decrypt(nonce, sealed[16:], _BLOB_DOMAIN + context)
    except InvalidTag:
        return None


class Sealer:
    """
    Seals drafts into event bytes and opens them again, for one log.

    Scope keys are used by every event of their scope, so their ciphers are kept; body keys are used once or a few
    times. `forget_ciphers` drops what is kept, and must be called when the key tree changes epoch.
    """

    def __init__(self, log_id: bytes, keys: KeySource) -> None:
        self._keys = keys
        self._envelope_context = _ENVELOPE_DOMAIN + log_id
        self._body_context = _BODY_DOMAIN + log_id
        self._scopes: dict[int, tuple[AESGCM, bytes]] = {}

    def forget_ciphers(self) -> None:
        """Drop kept ciphers, whose keys may have been destroyed."""
        self._scopes.clear()

    def seal(self, draft: Draft, *, seq: int, recorded_at: int, scope_slot: int, slot: int, nonce: bytes) -> bytes:
        """Return one event's bytes."""
        return self.seal_batch([draft], seq, recorded_at, [scope_slot], [slot], nonce)[0]

    def seal_batch(
        self,
        drafts: Sequence[Draft],
        first_seq: int,
        recorded_at: int,
        scope_slots: Sequence[int],
        slots: Sequence[int],
        nonces: bytes,
    ) -> list[bytes]:
        """Return the bytes of consecutive events, with one nonce after the other in `nonces`."""
        slot_key, kept, pack, sizes = self._keys.slot_key, self._scopes, EVENT_HEADER.pack, _SIZES
        envelope_context, body_context = self._envelope_context, self._body_context
        events: list[bytes] = []
        at = 0
        for seq, (draft, scope_slot, slot) in enumerate(zip(drafts, scope_slots, slots, strict=True), first_seq):
            cipher, scope_commitment = kept.get(scope_slot) or self._scope_cipher(scope_slot)
            content, sealed_as = draft.body, draft.envelope
            # `padded_size` and the padding, without a call for either: they run twice for each event.
            plain = _encode(sealed_as)
            size = _LENGTH_BYTES + len(plain)
            size = sizes[size] if size < _MANY_SIZES else _size_class(size)
            envelope = (_pack_length(len(plain)) + plain).ljust(size, b"\0")
            nonce = nonces[at : at + NONCE_BYTES]
            at += NONCE_BYTES
            if content is None:
                body, body_key, slot, body_commitment, body_bytes = b"", b"", NO_SLOT, NO_COMMITMENT, 0  # noqa: PLW2901
            else:
                plain = _encode(content)
                size = _LENGTH_BYTES + len(plain)
                size = sizes[size] if size < _MANY_SIZES else _size_class(size)
                body = (_pack_length(len(plain)) + plain).ljust(size, b"\0")
                body_key = slot_key(slot)
                body_commitment, body_bytes = sha256(_COMMIT + body_key).digest()[:16], len(body) + TAG_BYTES
            header = pack(
                EVENT_VERSION, sealed_as.TYPE, 0, seq, recorded_at, draft.id, scope_slot, slot, nonce,
                scope_commitment, body_commitment, len(envelope) + TAG_BYTES, body_bytes,
            )  # fmt: skip
            event = header + cipher.encrypt(nonce, envelope, envelope_context + header)
            if body_bytes:
                event += AESGCM(body_key).encrypt(nonce, body, body_context + header)
            events.append(event)
        return events

    def open_envelope(self, header: EventHeader, event: bytes) -> Envelope | None:
        """
        Return the envelope, or None when its whole scope was forgotten.

        Raises:
            KeyMissing: the key does not fit and no forget explains it.
            Damaged: the key fits, and the bytes are not those that were sealed.
        """
        slot = header.scope_slot
        kept = self._scopes.get(slot)
        if kept is None or kept[1] != header.scope_commitment:
            kept = self._scope_cipher(slot)
            if kept[1] != header.scope_commitment:
                self._explain_missing(slot)
                return None
        sealed = event[_HEADER_BYTES : _HEADER_BYTES + header.envelope_bytes]
        try:
            plain = kept[0].decrypt(header.nonce, sealed, self._envelope_context + event[:_HEADER_BYTES])
        except InvalidTag as error:
            raise Damaged("the sealed bytes do not fit the key they commit to") from error
        decoder = _ENVELOPE_DECODERS.get(header.type)
        if decoder is None:
            raise Damaged(f"unknown event type {header.type}: damaged, or written by a newer program")
        return decoder.decode(_unpad(plain))

    def open_body(self, header: EventHeader, event: bytes) -> Body | None:
        """
        Return the body, or None when the event has none or its key was destroyed.

        Raises:
            KeyMissing: the key does not fit and no forget explains it.
            Damaged: the key fits, and the bytes are not those that were sealed.
        """
        slot = header.slot
        if slot == NO_SLOT:
            return None
        key = self._keys.slot_key(slot)
        if commitment(key) != header.commitment:
            self._explain_missing(slot)
            return None
        sealed = event[_HEADER_BYTES + header.envelope_bytes :]
        try:
            plain = AESGCM(key).decrypt(header.nonce, sealed, self._body_context + event[:_HEADER_BYTES])
        except InvalidTag as error:
            raise Damaged("the sealed bytes do not fit the key they commit to") from error
        return _BODY_DECODERS[header.type].decode(_unpad(plain))

    def _scope_cipher(self, slot: int) -> tuple[AESGCM, bytes]:
        kept = self._scopes.get(slot)
        if kept is None:
            key = self._keys.slot_key(slot)
            kept = self._scopes[slot] = (AESGCM(key), commitment(key))
        return kept

    def _explain_missing(self, slot: int) -> None:
        if not self._keys.is_shredded(slot):
            raise KeyMissing(slot=slot, detail="it is another key than the event was sealed with")


def _unpad(padded: bytes) -> bytes:
    (length,) = _unpack_length(padded)
    return padded[_LENGTH_BYTES : _LENGTH_BYTES + length]


_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_ENVELOPE_DECODERS: Final = {int(number): msgspec.msgpack.Decoder(kind) for number, kind in ENVELOPES.items()}
_BODY_DECODERS: Final = {int(number): msgspec.msgpack.Decoder(BODIES.get(number, WordsBody)) for number in EventType}
