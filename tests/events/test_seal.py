"""What is sealed opens to itself, under its key, in its place, and nowhere else."""

from __future__ import annotations

from hashlib import sha256

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from muniment.events._codec import EVENT_HEADER, NO_SLOT, Damaged, parse_event_header
from muniment.events._errors import KeyMissing
from muniment.events._model import Draft, MemoryBody
from muniment.events._seal import KEY_BYTES, NONCE_BYTES, Sealer, commitment, open_blob, padded_size, seal_blob

from .stores import memory

LOG_ID = bytes(16)
NONCE = b"n" * NONCE_BYTES
keys = st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)


class Slots:
    """Keys by slot; those in `shredded` are other ones now."""

    def __init__(self) -> None:
        self.changed: set[int] = set()
        self.shredded: set[int] = set()

    def slot_key(self, slot: int) -> bytes:
        return blake3(b"%d" % slot + b"!" * (slot in self.changed)).digest()

    def is_shredded(self, slot: int) -> bool:
        return slot in self.shredded


def sealed(sealer: Sealer, draft: Draft, *, seq: int = 1) -> bytes:
    return sealer.seal(draft, seq=seq, recorded_at=5, scope_slot=0, slot=1, nonce=NONCE)


@given(st.text(max_size=300))
def test_what_is_sealed_opens_to_itself(text: str) -> None:
    sealer = Sealer(LOG_ID, Slots())
    draft = memory(text)
    raw = sealed(sealer, draft)
    header = parse_event_header(raw)
    assert draft.envelope == sealer.open_envelope(header, raw)
    assert draft.body == sealer.open_body(header, raw)
    assert (draft.id, 1, 5, 0, 1) == (header.id, header.seq, header.recorded_at, header.scope_slot, header.slot)


def test_an_event_without_a_body_has_no_slot_and_opens_to_none() -> None:
    sealer = Sealer(LOG_ID, Slots())
    raw = sealed(sealer, Draft(id=memory("x").id, envelope=memory("x").envelope))
    header = parse_event_header(raw)
    assert (NO_SLOT, 0, bytes(16)) == (header.slot, header.body_bytes, header.commitment)
    assert sealer.open_body(header, raw) is None


def open_both(sealer: Sealer, raw: bytes) -> None:
    header = parse_event_header(raw)
    sealer.open_envelope(header, raw)
    sealer.open_body(header, raw)


def test_any_flipped_bit_of_an_event_is_detected() -> None:
    sealer = Sealer(LOG_ID, Slots())
    raw = sealed(sealer, memory("a secret"))
    for bit in range(8 * len(raw)):
        bad = bytearray(raw)
        bad[bit // 8] ^= 1 << bit % 8
        with pytest.raises((Damaged, KeyMissing, KeyError)):
            open_both(sealer, bytes(bad))


def test_an_event_opens_in_its_own_log_only() -> None:
    slots = Slots()
    raw = sealed(Sealer(LOG_ID, slots), memory("a secret"))
    with pytest.raises(Damaged, match="do not fit the key they commit to"):
        Sealer(b"another log's id", slots).open_envelope(parse_event_header(raw), raw)


def test_envelope_and_body_cannot_change_places() -> None:
    slots = Slots()
    sealer = Sealer(LOG_ID, slots)
    raw = sealer.seal(memory("x"), seq=1, recorded_at=5, scope_slot=1, slot=1, nonce=NONCE)
    header = parse_event_header(raw)
    start, middle = EVENT_HEADER.size, EVENT_HEADER.size + header.envelope_bytes
    swapped = raw[:start] + raw[middle:] + raw[start:middle]
    with pytest.raises(Damaged):
        sealer.open_body(replace(header, envelope_bytes=header.body_bytes), swapped)


def test_i05_a_destroyed_key_opens_nothing_and_is_explained_only_by_a_forget() -> None:
    slots = Slots()
    sealer = Sealer(LOG_ID, slots)
    raw = sealed(sealer, memory("a secret"))
    header = parse_event_header(raw)
    slots.changed.update((0, 1))
    with pytest.raises(KeyMissing, match="another key than the event was sealed with"):
        sealer.open_body(header, raw)
    slots.shredded.update((0, 1))
    assert sealer.open_body(header, raw) is None
    sealer.forget_ciphers()
    assert sealer.open_envelope(header, raw) is None


def test_ciphers_are_kept_until_they_are_forgotten() -> None:
    slots = Slots()
    sealer = Sealer(LOG_ID, slots)
    raw = sealed(sealer, memory("x"))
    slots.changed.add(0)
    assert sealer.open_envelope(parse_event_header(raw), raw) is not None
    sealer.forget_ciphers()
    with pytest.raises(KeyMissing):
        sealer.open_envelope(parse_event_header(raw), raw)


@given(keys, st.binary(max_size=200), st.binary(max_size=9), st.data())
def test_a_blob_opens_under_its_key_nonce_and_context_only(
    key: bytes, plain: bytes, context: bytes, data: st.DataObject
) -> None:
    blob = seal_blob(key, NONCE, plain, context)
    assert plain == open_blob(key, NONCE, blob, context)
    assert open_blob(bytes(KEY_BYTES) if any(key) else b"\1" * KEY_BYTES, NONCE, blob, context) is None
    assert open_blob(key, b"m" * NONCE_BYTES, blob, context) is None
    assert open_blob(key, NONCE, blob, context + b"x") is None
    bit = data.draw(st.integers(0, 8 * len(blob) - 1))
    bad = bytearray(blob)
    bad[bit // 8] ^= 1 << bit % 8
    assert open_blob(key, NONCE, bytes(bad), context) is None


def test_a_commitment_is_what_the_documentation_says() -> None:
    key = bytes(range(32))
    assert sha256(b"\x02" + key).digest()[:16] == commitment(key)


@given(st.integers(0, 1 << 24))
def test_padding_costs_little_and_grows_with_the_length(length: int) -> None:
    size = padded_size(length)
    assert length <= size <= max(64, length * 1.12)
    assert size <= padded_size(length + 1)
    assert size == padded_size(size)


def test_texts_of_similar_length_have_the_same_size() -> None:
    sealer = Sealer(LOG_ID, Slots())
    assert 1 == len({len(sealed(sealer, memory("x" * length))) for length in range(30)})


def test_a_body_is_not_readable_in_the_sealed_bytes() -> None:
    raw = sealed(Sealer(LOG_ID, Slots()), memory("a secret of some length"))
    assert b"secret" not in raw
    assert b"acme" not in raw
    assert isinstance(memory("x").body, MemoryBody)
