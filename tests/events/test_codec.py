"""Frames and headers have one encoding each, and the chain finds every changed bit."""

from __future__ import annotations

import zlib

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from muniment.events._codec import (
    DIGEST_BYTES,
    EVENT_HEADER,
    EVENT_VERSION,
    FRAME_HEADER,
    FRAME_HEADER_BYTES,
    FRAME_MAGIC,
    NO_COMMITMENT,
    NO_SLOT,
    SEGMENT_HEADER_BYTES,
    Damaged,
    Digest,
    chain_hash,
    format_frame,
    format_segment_header,
    genesis,
    is_frame_header,
    parse_event_header,
    parse_frame,
    parse_segment_header,
)

LOG_ID = bytes(range(16))
BEFORE = genesis(LOG_ID)
EVENTS = [b"first event", b"", b"third"]
seqs = st.integers(1, (1 << 64) - 1)
digests = st.binary(min_size=32, max_size=32).map(Digest)


@given(seqs, st.lists(st.binary(max_size=300), min_size=1, max_size=8), digests, st.binary(max_size=9))
def test_parse_inverts_format_wherever_the_frame_stands(
    first_seq: int, events: list[bytes], before: Digest, around: bytes
) -> None:
    data, chain = format_frame(first_seq, events, before)
    frame = parse_frame(around + data + around, len(around), first_seq, before)
    assert frame is not None
    assert (first_seq, events, chain, len(data)) == (frame.first_seq, frame.events, frame.chain, frame.size)
    assert events == [data[at : at + len(event)] for at, event in zip(frame.offsets, events, strict=True)]


def test_i02_the_chain_is_what_the_documentation_says() -> None:
    one = blake3(b"\x00" + blake3(b"\x01" + LOG_ID).digest() + EVENTS[0]).digest()
    two = blake3(b"\x00" + one + EVENTS[1]).digest()
    _, chain = format_frame(1, EVENTS, genesis(LOG_ID))
    assert [one, two] == chain[:2]
    assert one == chain_hash(genesis(LOG_ID), EVENTS[0])


def test_i02_any_flipped_bit_of_a_frame_is_detected() -> None:
    data, _ = format_frame(7, EVENTS, BEFORE)
    for bit in range(8 * len(data)):
        bad = bytearray(data)
        bad[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Damaged):
            parse_frame(bytes(bad), 0, 7, BEFORE)


def test_a_frame_that_is_cut_anywhere_is_unfinished_and_not_damaged() -> None:
    data, _ = format_frame(7, EVENTS, BEFORE)
    assert {None} == {parse_frame(data[:size], 0, 7, BEFORE) for size in range(len(data))}


def test_a_frame_that_does_not_follow_is_damaged() -> None:
    data, _ = format_frame(7, EVENTS, BEFORE)
    with pytest.raises(Damaged, match="expected event 8, the frame begins with 7"):
        parse_frame(data, 0, 8, BEFORE)
    with pytest.raises(Damaged, match="chain hash does not match"):
        parse_frame(data, 0, 7, Digest(bytes(32)))


@pytest.mark.parametrize(
    ("body_bytes", "count", "zero"), [(4, 0, 0), (3, 1, 0), (4, 1, 1), ((1 << 30) + 1, 1, 0), (7, 2, 0)]
)
def test_a_frame_header_with_impossible_numbers_is_damaged(body_bytes: int, count: int, zero: int) -> None:
    header = FRAME_HEADER.pack(FRAME_MAGIC, body_bytes, 7, count, zero)
    data = header + zlib.crc32(header).to_bytes(4, "big") + bytes(100)
    assert is_frame_header(data, 0)
    with pytest.raises(Damaged, match="impossible numbers"):
        parse_frame(data, 0, 7, BEFORE)


@given(st.binary(max_size=200), st.integers(0, 40))
def test_bytes_that_are_no_frame_are_never_taken_for_one(data: bytes, at: int) -> None:
    try:
        frame = parse_frame(data, at, 7, BEFORE)
    except Damaged:
        frame = None
    assert frame is None


@given(st.binary(min_size=16, max_size=16), seqs, digests)
def test_parse_inverts_format_of_a_segment_header(log_id: bytes, first_seq: int, before: Digest) -> None:
    data = format_segment_header(log_id, first_seq, before)
    assert SEGMENT_HEADER_BYTES == len(data)
    assert (log_id, first_seq, before) == parse_segment_header(data)


def test_any_flipped_bit_of_a_segment_header_is_detected_and_so_is_a_short_one() -> None:
    data = format_segment_header(LOG_ID, 1, BEFORE)
    for bit in range(8 * len(data)):
        bad = bytearray(data)
        bad[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Damaged):
            parse_segment_header(bytes(bad))
    for size in range(len(data)):
        with pytest.raises(Damaged, match="segment header is short"):
            parse_segment_header(data[:size])


@pytest.mark.parametrize("at", [8, 10, 12, 72, 95])
def test_a_segment_header_of_another_format_is_refused_although_its_hash_is_right(at: int) -> None:
    head = bytearray(format_segment_header(LOG_ID, 1, BEFORE)[:-DIGEST_BYTES])
    head[at] ^= 0x40
    with pytest.raises(Damaged, match="not of this format"):
        parse_segment_header(bytes(head) + blake3(head).digest())


def event(
    *, version: int = EVENT_VERSION, zero: int = 0, slot: int = 4, envelope: bytes = b"e" * 80, body: bytes
) -> bytes:
    head = EVENT_HEADER.pack(
        version, 2, zero, 9, -5, b"i" * 16, 3, slot, b"n" * 12, b"s" * 16, NO_COMMITMENT, len(envelope), len(body)
    )
    return head + envelope + body


def test_an_event_header_says_what_was_packed() -> None:
    header = parse_event_header(event(body=b"b" * 80))
    assert (9, -5, 3, 4, 80, 80) == (
        header.seq, header.recorded_at, header.scope_slot, header.slot, header.envelope_bytes, header.body_bytes
    )  # fmt: skip


def test_an_event_whose_parts_do_not_add_up_is_damaged() -> None:
    for bad, why in [
        (event(body=b"b")[:95], "shorter than its header"),
        (event(body=b"b") + b"x", "do not add up"),
        (event(body=b"b")[:-1], "do not add up"),
        (event(body=b"b", version=2), "version 2"),
        (event(body=b"b", zero=1), "version 1"),
        (event(body=b"", slot=4), "a key without a body"),
        (event(body=b"b", slot=NO_SLOT), "a body without a key"),
    ]:
        with pytest.raises(Damaged, match=why):
            parse_event_header(bad)


@given(st.binary(max_size=80), st.integers(0, 40))
def test_a_frame_header_is_recognised_only_with_its_checksum(noise: bytes, at: int) -> None:
    data, _ = format_frame(1, [b"x"], BEFORE)
    assert is_frame_header(noise + data, len(noise))
    assert not is_frame_header(data[: FRAME_HEADER_BYTES - 1], 0)
    assert not is_frame_header(noise, at)
