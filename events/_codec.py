"""
The bytes of events, frames and segments, and the chain over them. No files, no keys, no state.

Event (integers big-endian):

     0  u8    event version, 1
     1  u8    event type
     2  u16   zero
     4  u64   sequence number
    12  i64   record time, microseconds
    20  16    id of the event, which is also the id of the memory or decision it creates
    36  u32   key slot of the scope
    40  u32   key slot of the body; 0xFFFFFFFF without a body
    44  12    nonce, random
    56  16    commitment to the scope's key
    72  16    commitment to the body's key; zeros without a body
    88  u32   length of the sealed envelope
    92  u32   length of the sealed body
    96        sealed envelope, sealed body

Frame, one per commit, written by one write and made durable by one fdatasync:

     0  4     b"MNf1"
     4  u32   length of the body
     8  u64   first sequence number
    16  u32   number of events, n >= 1
    20  u64   zero
    28  u32   CRC-32 of bytes 0 to 27, so that a flipped length is not followed into nonsense
    32        body: n x u32 event lengths, then the events
              trailer: 32 bytes, the chain hash of the last event

Segment header, 128 bytes, once per file:

     0  8     b"MUNIMENT"
     8  u16   format
    10  u16   zero
    12  u32   128
    16  16    log id
    32  u64   first sequence number
    40  32    chain hash before it
    72  24    zero
    96  32    BLAKE3 of bytes 0 to 95

Chain: hash of event n = BLAKE3(0x00 || hash of event n-1 || event bytes); before the first event it is
BLAKE3(0x01 || log id). Both prefixes keep the two kinds of input apart.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Final, NewType, Protocol, cast

import msgspec
from blake3 import blake3

Digest = NewType("Digest", bytes)
"""A BLAKE3 digest of 32 bytes."""

FORMAT: Final = 1
"""The store format that this program writes."""
EVENT_VERSION: Final = 1
NO_SLOT: Final = 0xFFFFFFFF
NO_COMMITMENT: Final = bytes(16)
DIGEST_BYTES: Final = 32

EVENT_HEADER: Final = struct.Struct(">BBHQq16sII12s16s16sII")
_EVENT_HEADER_BYTES: Final = EVENT_HEADER.size
FRAME_HEADER: Final = struct.Struct(">4sIQIQ")
_FRAME_CRC: Final = struct.Struct(">I")
SEGMENT_HEADER: Final = struct.Struct(">8sHHI16sQ32s24s")
FRAME_HEADER_BYTES: Final = FRAME_HEADER.size + _FRAME_CRC.size
SEGMENT_HEADER_BYTES: Final = SEGMENT_HEADER.size + DIGEST_BYTES

FRAME_MAGIC: Final = b"MNf1"
_SEGMENT_MAGIC: Final = b"MUNIMENT"
_EVENT_PREFIX: Final = b"\x00"
_GENESIS_PREFIX: Final = b"\x01"
MAX_FRAME_BODY: Final = 1 << 30


class _Hashed(Protocol):
    def digest(self) -> Digest: ...


# A call of `Digest` for each event would cost a tenth of hashing it.
_hashed: Final = cast("Callable[[bytes], _Hashed]", blake3)


class Damaged(ValueError):
    """Bytes do not parse; the message says why. The log turns it into `LogCorrupt` with a position."""


class Unfinished(Damaged):
    """A frame whose last bytes read as zeros, and which is right as far as it can be told but for those."""


class EventHeader(msgspec.Struct, frozen=True, gc=False):
    """The part of an event that is in clear."""

    version: int
    type: int
    zero: int
    seq: int
    recorded_at: int
    id: bytes
    scope_slot: int
    slot: int
    nonce: bytes
    scope_commitment: bytes
    commitment: bytes
    envelope_bytes: int
    body_bytes: int


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A parsed frame: its events' bytes, each event's chain hash, and how long it was on disk."""

    first_seq: int
    events: list[bytes]
    chain: list[Digest]
    offsets: list[int]
    size: int


def genesis(log_id: bytes) -> Digest:
    """Return the chain hash before the first event."""
    return Digest(blake3(_GENESIS_PREFIX + log_id).digest())


def chain_hash(before: Digest, event: bytes) -> Digest:
    """Return the hash of an event: BLAKE3(0x00 || hash before || event bytes)."""
    return _hashed(_EVENT_PREFIX + before + event).digest()


def parse_event_header(event: bytes) -> EventHeader:
    """
    Return the clear part of an event.

    Raises:
        Damaged: it is short, of another version, or its lengths do not add up.
    """
    if len(event) < _EVENT_HEADER_BYTES:
        raise Damaged("event shorter than its header")
    header = EventHeader(*EVENT_HEADER.unpack_from(event))
    if header.version != EVENT_VERSION or header.zero:
        raise Damaged(f"event version {header.version} is not known")
    if _EVENT_HEADER_BYTES + header.envelope_bytes + header.body_bytes != len(event):
        raise Damaged("event lengths do not add up")
    if (header.slot == NO_SLOT) != (header.body_bytes == 0):
        raise Damaged("event has a body without a key, or a key without a body")
    return header


def format_frame(first_seq: int, events: Sequence[bytes], before: Digest) -> tuple[bytes, list[Digest]]:
    """Return the bytes of one commit, and the chain hash of each of its events."""
    chain: list[Digest] = []
    link = before
    for event in events:
        link = _hashed(_EVENT_PREFIX + link + event).digest()
        chain.append(link)
    sizes = list(map(len, events))
    lengths = struct.pack(f">{len(events)}I", *sizes)
    body_bytes = len(lengths) + sum(sizes)
    header = FRAME_HEADER.pack(FRAME_MAGIC, body_bytes, first_seq, len(events), 0)
    crc = _FRAME_CRC.pack(zlib.crc32(header))
    return b"".join((header, crc, lengths, *events, link)), chain


def describe_frame(first_seq: int, events: Sequence[bytes], chain: list[Digest], size: int) -> Frame:
    """Return what `parse_frame` would of the frame that `format_frame` made of these events."""
    first = FRAME_HEADER_BYTES + 4 * len(events)
    offsets = list(itertools.accumulate(map(len, events), initial=first))
    offsets.pop()  # where the last one ends
    return Frame(first_seq, list(events), chain, offsets, size)


def parse_frame(data: bytes, at: int, expected_seq: int, before: Digest) -> Frame | None:
    """
    Return the frame that begins at `at`, or None when the data ends before it does.

    Raises:
        Damaged: bytes that cannot be the beginning of a frame that follows `before`.
    """
    if len(data) - at < FRAME_HEADER_BYTES:
        return None
    magic, body_bytes, first_seq, count, zero = FRAME_HEADER.unpack_from(data, at)
    (crc,) = _FRAME_CRC.unpack_from(data, at + FRAME_HEADER.size)
    if magic != FRAME_MAGIC or zlib.crc32(data[at : at + FRAME_HEADER.size]) != crc:
        raise Damaged("frame header does not match its checksum")
    if first_seq != expected_seq:
        raise Damaged(f"expected event {expected_seq}, the frame begins with {first_seq}")
    if zero or not count or body_bytes > MAX_FRAME_BODY or body_bytes < 4 * count:
        raise Damaged("frame header holds impossible numbers")
    size = FRAME_HEADER_BYTES + body_bytes + DIGEST_BYTES
    if len(data) - at < size:
        return None
    return _parse_frame_body(data, at, count, size, first_seq, before)


def _parse_frame_body(data: bytes, at: int, count: int, size: int, first_seq: int, before: Digest) -> Frame:
    lengths = struct.unpack_from(f">{count}I", data, at + FRAME_HEADER_BYTES)
    end = at + size - DIGEST_BYTES
    position = at + FRAME_HEADER_BYTES + 4 * count
    if position + sum(lengths) != end:
        raise (Damaged if any(data[end : end + DIGEST_BYTES]) else Unfinished)("frame lengths do not add up")
    events: list[bytes] = []
    chain: list[Digest] = []
    offsets: list[int] = []
    link = before
    for length in lengths:
        event = data[position : position + length]
        link = _hashed(_EVENT_PREFIX + link + event).digest()
        events.append(event)
        chain.append(link)
        offsets.append(position - at)
        position += length
    if (stored := data[end : end + DIGEST_BYTES]) != link:
        is_cut = link.startswith(stored.rstrip(b"\0"))
        raise (Unfinished if is_cut else Damaged)("chain hash does not match")
    return Frame(first_seq, events, chain, offsets, size)


def is_frame_header(data: bytes, at: int) -> bool:
    """Tell whether a frame header with a right checksum stands at an offset."""
    if len(data) - at < FRAME_HEADER_BYTES or data[at : at + 4] != FRAME_MAGIC:
        return False
    crc = _FRAME_CRC.pack(zlib.crc32(data[at : at + FRAME_HEADER.size]))
    return data[at + FRAME_HEADER.size : at + FRAME_HEADER_BYTES] == crc


def frame_size(data: bytes) -> int:
    """Return how long the frame is whose header the data begins with, by what the header says."""
    return FRAME_HEADER_BYTES + int(FRAME_HEADER.unpack_from(data)[1]) + DIGEST_BYTES


def first_seq_of(frame: bytes) -> int:
    """Return the sequence number of a frame's first event, by what its header says."""
    return int(FRAME_HEADER.unpack_from(frame)[2])


def event_of(frame: bytes, at: int) -> int | None:
    """Return the sequence number of the event that begins at an offset of a frame, by what its header says."""
    _, _, first_seq, count, _ = FRAME_HEADER.unpack_from(frame)
    lengths = struct.unpack_from(f">{count}I", frame, FRAME_HEADER_BYTES)
    begins = list(itertools.accumulate(lengths, initial=FRAME_HEADER_BYTES + 4 * count))
    return int(first_seq) + begins.index(at) if at in begins else None


def format_segment_header(log_id: bytes, first_seq: int, before: Digest) -> bytes:
    """Return the 128 bytes that begin a segment."""
    head = SEGMENT_HEADER.pack(_SEGMENT_MAGIC, FORMAT, 0, SEGMENT_HEADER_BYTES, log_id, first_seq, before, bytes(24))
    return head + blake3(head).digest()


def parse_segment_header(data: bytes) -> tuple[bytes, int, Digest]:
    """
    Return (log id, first sequence number, chain hash before it).

    Raises:
        Damaged: it is short or does not match its own hash.
    """
    if len(data) < SEGMENT_HEADER_BYTES:
        raise Damaged("segment header is short")
    head = data[: SEGMENT_HEADER.size]
    if blake3(head).digest() != data[SEGMENT_HEADER.size : SEGMENT_HEADER_BYTES]:
        raise Damaged("segment header does not match its hash")
    magic, version, zero, size, log_id, first_seq, before, rest = SEGMENT_HEADER.unpack(head)
    if magic != _SEGMENT_MAGIC or version != FORMAT or zero or size != SEGMENT_HEADER_BYTES or any(rest):
        raise Damaged("segment header is not of this format")
    return log_id, first_seq, Digest(before)
