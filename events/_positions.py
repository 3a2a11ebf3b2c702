"""Places in the log: a head that commits to a prefix, and where an event or a frame lies."""

from __future__ import annotations

import msgspec

from ._codec import Frame


class Head(msgspec.Struct, frozen=True, array_like=True):
    """
    A place in the log that commits to everything before it, and where to read on.

    `seq` and `chain` are the last event's; `segment` is the first sequence number of its segment, `offset` the end of
    its frame there. `recorded_at` is the last record time, `next_slot` the first key slot that no event names.
    """

    log_id: bytes
    seq: int
    chain: bytes
    segment: int
    offset: int
    recorded_at: int
    next_slot: int


class Location(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Where an event's bytes lie."""

    segment: int
    offset: int
    length: int


class LocatedFrame(msgspec.Struct, frozen=True, gc=False):
    """A frame, the segment and offset at which it begins."""

    frame: Frame
    segment: int
    offset: int

    def location(self, index: int) -> Location:
        """Return where the frame's event number `index` lies."""
        return Location(self.segment, self.offset + self.frame.offsets[index], len(self.frame.events[index]))
