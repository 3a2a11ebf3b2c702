"""Reads batches: frames of the log with their envelopes opened. The door, replay and verification all read so."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import msgspec

from ._codec import Damaged, Digest, EventHeader, parse_event_header
from ._errors import KeyMissing, LogCorrupt
from ._kinds import EventType
from ._log import Log
from ._model import Body, Envelope
from ._positions import Head, LocatedFrame, Location
from ._seal import Sealer


class Event(msgspec.Struct, frozen=True, gc=False):
    """An event as followers see it. The envelope is None when its whole scope was forgotten."""

    header: EventHeader
    envelope: Envelope | None
    where: Location
    hash: Digest
    raw: bytes

    @property
    def seq(self) -> int:
        """Its place in the log."""
        return self.header.seq

    @property
    def recorded_at(self) -> int:
        """Its record time."""
        return self.header.recorded_at


class Batch(msgspec.Struct, frozen=True, gc=False):
    """The events of one commit: visible wholly or not at all."""

    events: list[Event]
    head: Head


class Follower(Protocol):
    """What sees every batch, in order, once."""

    def apply(self, batch: Batch) -> None:
        """Take in the next batch."""
        ...


class Reader:
    """One position in one log, with the keys to open what lies there. Not thread-safe."""

    def __init__(self, log: Log, sealer: Sealer) -> None:
        self.log, self._sealer = log, sealer

    @property
    def head(self) -> Head:
        """The position."""
        return self.log.head

    def read_new(self) -> Iterator[Batch]:
        """Yield the batches after the position, moving past each one; stops before damage, and leaves it in the log."""
        before = self.log.head
        for located in self.log.read_new():
            try:
                batch = self.open_frame(located)
            except (LogCorrupt, KeyMissing) as error:
                self.log.head, self.log.damage = before, error
                return
            yield batch
            before = self.log.head

    def of_scopes(self, wanted: Callable[[str], bool]) -> ScopeReader:
        """Return a reader of the same log that opens what bears on some scopes, and takes this one's place."""
        return ScopeReader(self.log, self._sealer, wanted)

    def open_frame(self, located: LocatedFrame) -> Batch:
        """Return a frame with its envelopes opened; the log's head must stand at its end."""
        open_event = self.open_event
        return Batch([open_event(located, index) for index in range(len(located.frame.events))], self.log.head)

    def open_event(self, located: LocatedFrame, index: int) -> Event:
        """
        Return one event of a frame, its envelope opened.

        Raises:
            LogCorrupt: the chain holds, but what it chains is no event of ours: a forger's, who can hash as well as we.
            KeyMissing: its key does not fit, and no forget explains it.
        """
        frame, segment, offset = located.frame, located.segment, located.offset
        raw, at = frame.events[index], offset + frame.offsets[index]
        try:
            header = parse_event_header(raw)
            if header.seq != frame.first_seq + index:
                raise Damaged(f"it says that it is event {header.seq}")
            envelope = self._sealer.open_envelope(header, raw)
        except (Damaged, msgspec.MsgspecError) as error:
            name, seq = self.log.segment_name(segment), frame.first_seq + index
            raise LogCorrupt(seq=seq, segment=name, offset=at, detail=str(error)) from error
        return Event(header, envelope, Location(segment, at, len(raw)), frame.chain[index], raw)

    def open_body(self, event: Event) -> Body | None:
        """Return the body of an event that is in hand; None when it has none, or its key was destroyed."""
        try:
            return self._sealer.open_body(event.header, event.raw)
        except Damaged as error:
            raise self.log.corrupt_at(event.where, event.raw, str(error)) from error

    def read_body(self, where: Location) -> Body | None:
        """
        Return the body of an event by its place; None when it has none, or its key was destroyed.

        Raises:
            LogCorrupt: the bytes there are no longer those that were read first, perhaps by another process, long ago.
        """
        raw = self.log.read_at(where)
        try:
            return self._sealer.open_body(parse_event_header(raw), raw)
        except Damaged as error:
            raise self.log.corrupt_at(where, raw, str(error)) from error
        except KeyMissing as error:
            # The key that it names may be what is damaged.
            if self.log.is_sound_at(where):
                raise
            raise self.log.corrupt_at(where, raw, str(error)) from error


class ScopeReader(Reader):
    """
    Opens what bears on the memories of some scopes: all that is said in them, and of the others what reaches beyond.

    A batch has its first event, so that none seems to be missing, and those that were opened. `opened` of the `passed`
    events were.
    """

    def __init__(self, log: Log, sealer: Sealer, wanted: Callable[[str], bool]) -> None:
        super().__init__(log, sealer)
        self._wants, self._of_slot = wanted, dict[int, bool]()
        self.passed = self.opened = 0

    def open_frame(self, located: LocatedFrame) -> Batch:
        """Return a frame with the envelopes opened that were asked for; the log's head must stand at its end."""
        found = [
            event for index, raw in enumerate(located.frame.events) if (event := self._opened(located, index, raw))
        ]
        self.passed += len(located.frame.events)
        self.opened += len(found)
        if not found or found[0].header.seq != located.frame.first_seq:
            found.insert(0, self._closed(located))
        return Batch(found, self.log.head)

    def _opened(self, located: LocatedFrame, index: int, raw: bytes) -> Event | None:
        if raw[_TYPE_AT] not in _IN_ITS_SCOPE_ALONE:
            return self.open_event(located, index)
        (slot,) = _SLOT.unpack_from(raw, _SLOT_AT)
        wanted = self._of_slot.get(slot)
        if wanted is False:
            return None
        event = self.open_event(located, index)
        if wanted is None and event.envelope is not None:
            wanted = self._of_slot[slot] = self._wants(event.envelope.scope)
        return event if wanted else None

    def _closed(self, located: LocatedFrame) -> Event:
        frame = located.frame
        raw, at = frame.events[0], located.offset + frame.offsets[0]
        return Event(parse_event_header(raw), None, Location(located.segment, at, len(raw)), frame.chain[0], raw)


_TYPE_AT: Final = 1
_SLOT: Final = struct.Struct(">I")
_SLOT_AT: Final = 36
_IN_ITS_SCOPE_ALONE: Final = frozenset(
    {EventType.REMEMBERED, EventType.SUPERSEDED, EventType.DECIDED, EventType.REFUSED}
)
"""Nearly all events are of these types, and none of them changes what is known of a memory of another scope."""
