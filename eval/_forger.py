"""
An attacker with the store's whole directory: reads the log frame by frame and puts back what he likes.

He knows the format and can hash as well as we can. The store's own keys lie in the store, so he can seal as well. What
he has not got is what is kept elsewhere: the log key and the anchor.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from muniment.events import Disk, Draft, Id, KeyTree, MemoryBody, Sealer, find_store, genesis, parse_event_header
from muniment.events._codec import (
    SEGMENT_HEADER_BYTES,
    Digest,
    format_frame,
    format_segment_header,
    parse_frame,
    parse_segment_header,
)


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
        while at < len(data):
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
        placed = [renumber(event, seq + n) for n, event in enumerate(events)]
        data, chain = format_frame(seq, placed, Digest(link))
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


def renumber(event: bytes, seq: int) -> bytes:
    """Return the event with another sequence number in its clear part; its seals then no longer fit that."""
    return event if parse_event_header(event).seq == seq else event[:4] + seq.to_bytes(8) + event[12:]


def reword(store: Path, event: bytes, content: str) -> bytes:
    """Return a memory's event with other words, sealed with the store's own keys as if it had always said so."""
    files = find_store(store)
    sealer = Sealer(files.store_id, KeyTree(files.root_key, files.keys, Disk()))
    header = parse_event_header(event)
    envelope, body = sealer.open_envelope(header, event), sealer.open_body(header, event)
    if envelope is None or not isinstance(body, MemoryBody):
        raise ValueError(f"event {header.seq} is no memory")
    draft = Draft(id=Id(header.id), envelope=envelope, body=msgspec.structs.replace(body, content=content))
    return sealer.seal(
        draft, seq=header.seq, recorded_at=header.recorded_at, scope_slot=header.scope_slot, slot=header.slot,
        nonce=os.urandom(12),
    )  # fmt: skip
