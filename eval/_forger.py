"""
An attacker with the store's whole directory: reads the log frame by frame and puts back what he likes.

He knows the format and can hash as well as we can. The store's own keys lie in the store, so he can seal as well. What
he has not got is what is kept elsewhere: the log key and the anchor.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from muniment.events import Body, Disk, Draft, Id, KeyTree, MemoryBody, Sealer, find_store, genesis, parse_event_header
from muniment.events._codec import (
    DIGEST_BYTES,
    FRAME_HEADER,
    FRAME_HEADER_BYTES,
    SEGMENT_HEADER_BYTES,
    Digest,
    format_frame,
    format_segment_header,
    parse_frame,
    parse_segment_header,
)
from muniment.events._room import begins_with_room


class Segment(NamedTuple):
    """One file of the log: its header and its frames, as bytes, and the events in each frame."""

    path: Path
    header: bytes
    frames: list[bytes]
    events: list[list[bytes]]


def read_log(store: Path) -> list[Segment]:
    """Return the segments of an intact log."""
    found: list[Segment] = []
    for path in sorted((store / "log").glob("*.seg")):
        data = path.read_bytes()
        _, seq, link = parse_segment_header(data)
        at, frames, events = SEGMENT_HEADER_BYTES, list[bytes](), list[list[bytes]]()
        while not begins_with_room(data, at):
            frame = parse_frame(data, at, seq, link)
            if frame is None:
                raise ValueError(f"{path.name} is not intact")
            frames.append(data[at : at + frame.size])
            events.append(frame.events)
            seq, link, at = seq + len(frame.events), frame.chain[-1], at + frame.size
        found.append(Segment(path, data[:SEGMENT_HEADER_BYTES], frames, events))
    return found


def write_segment(segment: Segment, frames: Iterable[bytes]) -> None:
    """Put a segment back with other frames, the rest untouched."""
    segment.path.chmod(0o600)
    segment.path.write_bytes(segment.header + b"".join(frames))


def rechain(store: Path, batches: Iterable[list[bytes]]) -> None:
    """Write a log of one segment anew, every hash correct, and remove what the store keeps beside it of the old one."""
    log_id = find_store(store).store_id
    seq, link = 1, genesis(log_id)
    out = [format_segment_header(log_id, seq, link)]
    for events in batches:
        data, chain = format_frame(seq, events, Digest(link))
        out.append(data)
        seq, link = seq + len(events), chain[-1]
    for path in (store / "log").iterdir():
        path.unlink()
    (store / "log" / f"{1:016d}.seg").write_bytes(b"".join(out))
    for folder in ("checkpoints", "projections"):
        for path in (store / folder).glob("*"):
            path.unlink()


def splice(segment: Segment, number: int, events: list[bytes]) -> None:
    """Put other events into one frame, its own lengths and hashes made to fit; the frames behind it stay."""
    _, seq, link = parse_segment_header(segment.header)
    for before in segment.events[:number]:
        link = format_frame(seq, before, link)[1][-1]
        seq += len(before)
    frame = format_frame(seq, events, Digest(link))[0]
    write_segment(segment, [*segment.frames[:number], frame, *segment.frames[number + 1 :]])


class RawFrame(NamedTuple):
    """A frame as it lies there, whether it fits or not: its number, its events, its stored hash."""

    first_seq: int
    events: list[bytes]
    trailer: bytes


def read_raw(store: Path) -> list[RawFrame]:
    """Return the frames of a log of one segment by their lengths alone."""
    (path,) = (store / "log").glob("*.seg")
    data, at, found = path.read_bytes(), SEGMENT_HEADER_BYTES, list[RawFrame]()
    while not begins_with_room(data, at):
        _, body_bytes, first_seq, count, _ = FRAME_HEADER.unpack_from(data, at)
        end = at + FRAME_HEADER_BYTES + body_bytes
        position, events = at + FRAME_HEADER_BYTES + 4 * count, list[bytes]()
        for length in struct.unpack_from(f">{count}I", data, at + FRAME_HEADER_BYTES):
            events.append(data[position : position + length])
            position += length
        found.append(RawFrame(first_seq, events, data[end : end + DIGEST_BYTES]))
        at = end + DIGEST_BYTES
    return found


def write_raw(store: Path, frames: Iterable[RawFrame]) -> None:
    """Write frames with lengths and checksums that fit and the stored hashes that they are said to have."""
    (path,) = (store / "log").glob("*.seg")
    out = [path.read_bytes()[:SEGMENT_HEADER_BYTES]]
    for frame in frames:
        fitting = format_frame(frame.first_seq, frame.events, Digest(bytes(DIGEST_BYTES)))[0]
        out.append(fitting[:-DIGEST_BYTES] + frame.trailer)
    path.write_bytes(b"".join(out))


class Resealer:
    """Opens events, and seals them again, with the keys that lie in the store."""

    def __init__(self, store: Path) -> None:
        files = find_store(store)
        self._sealer = Sealer(files.store_id, KeyTree(files.root_key, files.keys, Disk()))

    def words(self, event: bytes) -> str:
        """Return what a memory's event says."""
        return self._memory(event).content

    def reword(self, event: bytes, content: str, *, id: bytes | None = None) -> bytes:  # noqa: A002
        """Return a memory's event as if it had always said so."""
        body = msgspec.structs.replace(self._memory(event), content=content)
        return self._seal(event, body, id=id)

    def move(self, event: bytes, seq: int, recorded_at: int) -> bytes:
        """Return the event as if it had been written at another place and time; the same bytes where it was."""
        header = parse_event_header(event)
        if (header.seq, header.recorded_at) == (seq, recorded_at):
            return event
        return self._seal(event, self._sealer.open_body(header, event), seq=seq, recorded_at=recorded_at)

    def _memory(self, event: bytes) -> MemoryBody:
        body = self._sealer.open_body(parse_event_header(event), event)
        if not isinstance(body, MemoryBody):
            raise ValueError("the event is no memory, or an erased one")
        return body

    def _seal(
        self,
        event: bytes,
        body: Body | None,
        *,
        id: bytes | None = None,  # noqa: A002
        seq: int | None = None,
        recorded_at: int | None = None,
    ) -> bytes:
        header = parse_event_header(event)
        envelope = self._sealer.open_envelope(header, event)
        if envelope is None:
            raise ValueError("the event's scope was forgotten")
        return self._sealer.seal(
            Draft(id=Id(id or header.id), envelope=envelope, body=body),
            seq=seq or header.seq,
            recorded_at=recorded_at or header.recorded_at,
            scope_slot=header.scope_slot,
            slot=header.slot,
            nonce=os.urandom(12),
        )
