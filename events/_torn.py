"""What an unfinished commit leaves at the end of the log, told from damage; and which keys it may have used."""

from __future__ import annotations

import itertools
import struct
from typing import Final, NamedTuple

from ._codec import (
    EVENT_HEADER,
    FRAME_HEADER,
    FRAME_HEADER_BYTES,
    FRAME_MAGIC,
    NO_SLOT,
    Damaged,
    Unfinished,
    frame_size,
    is_frame_header,
)

SLOTS: Final = struct.Struct(">36xII")
"""The two key slots that an event names, unpacked from where it begins."""
_SECTOR: Final = 512


class TornTail(NamedTuple):
    """Bytes of a commit that was never acknowledged, set aside; `slots` are the key slots that they name."""

    seq: int
    size: int
    kept_in: str
    slots: frozenset[int]


def is_torn(data: bytes, at: int, offset: int, error: Damaged) -> bool:
    """
    Tell whether what begins at `at` of the data, and at `offset` of its file, was never wholly written.

    `error` is what `parse_frame` says of it. A torn commit is the last thing in the log, and lacks bytes: it is short
    (and no error), or its end or a sector of it was never written, and reads as zeros. A full-length frame that is
    merely wrong is damage, and so is a bad frame with another one's beginning, or anything else but room, after it.
    """
    rest = data[at:].rstrip(b"\0")
    if rest.find(FRAME_MAGIC, 1) != -1 and _another_frame(rest):
        return False
    if not is_frame_header(rest, 0):
        return len(rest) < FRAME_HEADER_BYTES or _has_zeroed_sector(rest, offset)
    frame = data[at : at + frame_size(rest)]
    if len(rest) > len(frame):
        return False
    return isinstance(error, Unfinished) or _has_zeroed_sector(frame, offset)


def _another_frame(rest: bytes) -> bool:
    position = rest.find(FRAME_MAGIC, 1)
    while position != -1:
        if is_frame_header(rest, position):
            return True
        position = rest.find(FRAME_MAGIC, position + 1)
    return False


def _has_zeroed_sector(rest: bytes, offset: int) -> bool:
    # Sectors are those of the file: the first and the last one may be partly ours, down to a byte. A frame begins with
    # its magic, so zeros there were never written. It ends in a hash, which may end in a zero of its own: for a frame
    # that was damaged elsewhere, is the last, and ends just behind a boundary, one in 256.
    start = -offset % _SECTOR
    edges = [0, *range(start, len(rest), _SECTOR), len(rest)]
    return any(high > low and not any(rest[low:high]) for low, high in itertools.pairwise(edges))


def slots_named(torn: bytes, first_free: int) -> frozenset[int]:
    """Return the key slots from `first_free` on that the remains of a commit name."""
    # Slots that the torn commit may have used. Events are walked as far as they are there; of the last one at least
    # the header must be whole for its slots to have sealed anything that can be read.
    slots: set[int] = set()
    if len(torn) < FRAME_HEADER_BYTES:
        return frozenset()
    count = FRAME_HEADER.unpack_from(torn)[3]
    position = FRAME_HEADER_BYTES + 4 * count
    for n in range(min(count, len(torn) // 4)):
        if len(torn) < position + EVENT_HEADER.size:
            break
        slots.update(SLOTS.unpack_from(torn, position))
        (length,) = struct.unpack_from(">I", torn, FRAME_HEADER_BYTES + 4 * n)
        position += length
    return frozenset(slot for slot in slots if first_free <= slot != NO_SLOT)
