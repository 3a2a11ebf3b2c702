"""
The log: 64 MiB segments of frames, append-only, followed by any number of readers without a daemon.

Steps of an append, with what a crash after each leaves (the caller holds the writer lock and has caught up):

    1. if the segment is full: its room is cut off, and that synced: a full segment that has no room
    2. the next one is created, its header written and synced, and renamed into place; fsync of log/: an empty segment,
       or none, or a leftover that the next roll replaces
    3. the old segment becomes read-only: cosmetic, readers go by the next one's name
    4. if there is no room left: zeros are written behind the end, which is where it was
    5. the mark is set: the next holder of the lock recovers, and finds nothing to do
    6. write of the frame over the room: nothing, or a torn frame that nobody was told about
    7. fdatasync: the whole frame; only now is it acknowledged
    8. the mark is cleared: the next holder writes the whole frame over itself once more, for nothing
    9. the head in memory moves: lost with the process, found again by reading

Every byte of a frame is written once, behind the last frame. Room is not part of the log: closing the store cuts it
off, and after a kill whoever writes next goes on in it.

`read_new` is how opening, catching up, replay and verification all read; `recover` sets a torn frame aside.
After a sync that failed the outcome is unknown, and this process writes no more. The mark stays: the next holder of the
lock, in whatever process, writes the tail over itself and syncs that, because the kernel may have marked pages clean
that never reached the disk (a second fsync would then succeed without having written them).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from blake3 import blake3

from ._backend import ChainHead, head_moved
from ._codec import (
    DIGEST_BYTES,
    FRAME_HEADER_BYTES,
    NO_SLOT,
    SEGMENT_HEADER_BYTES,
    Damaged,
    Digest,
    Frame,
    describe_frame,
    event_of,
    first_seq_of,
    format_frame,
    format_segment_header,
    frame_size,
    genesis,
    is_frame_header,
    parse_frame,
    parse_segment_header,
)
from ._disk import Disk, raise_typed
from ._errors import Corrupt, LogCorrupt, StoreReadOnly, WriterPoisoned
from ._lock import Mark, WriterLock
from ._positions import Head, LocatedFrame, Location
from ._room import MAGIC_BYTES, begins_with_room, is_room, make_room
from ._segments import Segments
from ._torn import SLOTS, TornTail, is_torn, slots_named

SEGMENT_BYTES: Final = 64 << 20
_RECORDED_AT: Final = struct.Struct(">12xq")
_SEQ: Final = slice(4, 12)
_slots_of: Final = SLOTS.unpack_from
_ALL: Final = SEGMENT_BYTES << 16
_FOLLOWED: Final = 16 << 10


class Log:
    """
    One log directory, as one process reads and appends to it.

    Not thread-safe, and `append` and `recover` need the writer lock: the door takes care of both.
    """

    def __init__(
        self,
        directory: Path,
        log_id: bytes,
        disk: Disk,
        *,
        lock: WriterLock | None = None,
        read_only: bool = False,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        """Read the log from its start. Without a lock nobody else may write: for copies, and for creation."""
        self._directory, self._log_id, self._disk, self._read_only = directory, log_id, disk, read_only
        self._lock, self._segment_bytes = lock, segment_bytes
        self._segments = Segments(directory, lock, read_only=read_only)
        self._poison: str | None = None
        self._is_end_known = False
        self.damage: Corrupt | None = None
        self.start: Final = Head(log_id, 0, genesis(log_id), 1, SEGMENT_HEADER_BYTES, 0, 0)
        """The head of the empty log."""
        self.head = self.start

    @classmethod
    def create(cls, directory: Path, log_id: bytes, disk: Disk) -> Log:
        """Make an empty log; the caller syncs the directory that holds it."""
        directory.mkdir(mode=0o700, exist_ok=True)
        log = cls(directory, log_id, disk)
        log._create_segment(1, genesis(log_id))
        return log

    def resume(self, head: Head) -> bool:
        """Continue reading from a head that was kept elsewhere; False when this log does not contain it."""
        if head.log_id != self._log_id:
            return False
        self._is_end_known = False
        if head == self.start:
            self.head = head
            return True
        try:
            link = self._segments.read(head.segment, head.offset - DIGEST_BYTES, DIGEST_BYTES)
        except (OSError, LogCorrupt):
            return False
        if link != head.chain:
            return False
        self.head = head
        return True

    def rewind(self) -> None:
        """Read again from the first event."""
        self._is_end_known = False
        self.head = self.start

    def read_new(self) -> Iterator[LocatedFrame]:
        """
        Yield the frames after the head, moving it past each one.

        Stops at the end, at an unfinished frame, and at damage, which it leaves in `damage`.
        """
        self.damage = None
        if not self.head.seq and self.head == self.start and not self._continues(self.head.segment):
            return
        most = _FOLLOWED if self._is_end_known else _ALL
        while True:
            data = self._segments.after(self.head, most)
            at = 0
            while at < len(data):
                located = self._next_frame(data, at)
                if located is None:
                    break
                yield located
                at += located.frame.size
            is_whole = self.damage is None and (at == len(data) or self._is_end(data, at))
            if len(data) == most and (at == len(data) or not is_whole):
                # What stands here may go on beyond what was read.
                most = most if at else _ALL
            elif is_whole and self._enter_next_segment(has_room=at < len(data)):
                most = _ALL
            elif (is_whole and self.damage) or not self._must_go_on(data[at:], is_whole=is_whole):
                return
            self.damage = None

    def read_at(self, where: Location) -> bytes:
        """Return an event's bytes; they were checked when it was first read."""
        return self._segments.read(where.segment, where.offset, where.length)

    def is_sound_at(self, where: Location) -> bool:
        """Tell whether the frame that holds an event is still the one that follows what stands before it."""
        found = self._segments.frame_around(where)
        if found is None:
            return False
        offset, frame = found
        try:
            if offset == SEGMENT_HEADER_BYTES:
                _, _, before = parse_segment_header(self._segments.read(where.segment, 0, SEGMENT_HEADER_BYTES))
            else:
                before = Digest(self._segments.read(where.segment, offset - DIGEST_BYTES, DIGEST_BYTES))
            return parse_frame(frame, 0, first_seq_of(frame), before) is not None
        except Damaged:
            return False

    def corrupt_at(self, where: Location, raw: bytes, detail: str) -> LogCorrupt:
        """Return the error that names an event whose bytes are not those that were written."""
        # What the bytes say of their number may be what is damaged.
        found = self._segments.frame_around(where)
        seq = None if found is None else event_of(found[1], where.offset - found[0])
        if seq is None:
            seq = int.from_bytes(raw[_SEQ], "big")
        return LogCorrupt(seq=seq, segment=self.segment_name(where.segment), offset=where.offset, detail=detail)

    def is_behind(self) -> bool:
        """Tell, by three system calls, whether there are frames after the head."""
        return self._segments.shows_more(self.head) or self._has_next_segment()

    def stands_at_end(self) -> bool:
        """Tell whether the head is the end of the log; False for a full segment, which may not be the last one."""
        known = self._is_end_known and self.damage is None and self.head.offset < self._segment_bytes
        return known and self._segments.is_free_after(self.head)

    def remains(self) -> bytes:
        """Return what lies after the head in its segment, without the room behind it."""
        if self.stands_at_end():
            return b""
        head = self.head
        size = max(0, self._segments.size(head.segment) - head.offset)
        return self._segments.read(head.segment, head.offset, size).rstrip(b"\0")

    def append(self, events: Sequence[bytes], recorded_at: int) -> LocatedFrame:
        """
        Append one frame, durably, and return it.

        Raises:
            WriterPoisoned: an earlier write failed, or this one did with an unknown outcome.
            DiskFull: there was no room; nothing of the frame is left.
        """
        before = self.head
        data, chain = format_frame(before.seq + 1, events, Digest(before.chain))
        self.append_frame(before.seq, before.chain, data)
        frame = describe_frame(before.seq + 1, events, chain, len(data))
        located = LocatedFrame(frame, self.head.segment, self.head.offset)
        self._advance(frame, recorded_at)
        return located

    def append_frame(self, expected_seq: int, expected_chain: bytes, frame: bytes) -> None:
        """Write a frame behind the head if that is the one expected, durably; the caller moves the head past it."""
        self._check_writable()
        if (expected_seq, expected_chain) != (self.head.seq, self.head.chain):
            raise head_moved(expected_seq, expected_chain, ChainHead(self.head.seq, Digest(self.head.chain)))
        if self.head.offset >= self._segment_bytes:
            self._roll()
        self._write_frame(frame, self.head)

    def cut_room(self) -> None:
        """Cut off the room that was not used; the caller holds the lock and has caught up."""
        head = self.head
        if self._segments.size(head.segment) > head.offset and not self.remains():
            self._disk.truncate(self._segments.fd(head.segment), head.offset)

    def complete(self) -> None:
        """
        Make durable what the last holder of the lock wrote and perhaps never synced; called before catching up.

        What lies behind the mark is written over itself and synced: a whole frame there is then part of the log.
        """
        mark = None if self._lock is None else self._lock.mark()
        if mark is not None:
            self._is_end_known = False
            self._rewrite(mark)
            self._clear_mark()

    def recover(self, condemn: Callable[[frozenset[int]], None]) -> TornTail | None:
        """
        Set aside the remains of an unfinished commit after the head, and return what they were.

        Called by the holder of the lock, after `complete` and after reading everything that is whole. `condemn` is
        given the key slots that the remains name, and destroys their keys.

        Raises:
            LogCorrupt: the bytes after the head are not the remains of an unfinished commit.
        """
        if self.damage is not None:
            raise self.damage
        data = self.remains()
        if not data:
            return None
        # The same name and bytes each time: a recovery that was interrupted is simply done again.
        name = f"{self.head.segment:016d}.torn-{self.head.offset}-{blake3(data).hexdigest(4)}"
        torn = TornTail(self.head.seq + 1, len(data), name, slots_named(data, self.head.next_slot))
        self._disk.write_file(self._directory / name, data)
        self._disk.sync_directory(self._directory)
        # Before the cut: after it, nobody would know that these slots were used, and give them to others.
        condemn(torn.slots)
        fd = self._segments.fd(self.head.segment)
        self._disk.truncate(fd, self.head.offset)
        self._disk.sync(fd)
        return torn

    def segment_name(self, first_seq: int) -> str:
        """Return the file name of a segment."""
        return self._segments.path(first_seq).name

    def size(self) -> int:
        """Return the bytes of all segments."""
        return sum(path.stat().st_size for path in self.segments())

    def segments(self) -> list[Path]:
        """Return the paths of all segments in order."""
        return self._segments.paths()

    def __del__(self) -> None:
        # A store that nobody closed must not keep its descriptors until the process ends.
        self.close()

    def close(self) -> None:
        """Release the descriptors."""
        self._segments.close()

    def _next_frame(self, data: bytes, at: int) -> LocatedFrame | None:
        head = self.head
        try:
            frame = parse_frame(data, at, head.seq + 1, Digest(head.chain))
        except Damaged as error:
            if not (self._is_end(data, at) or is_torn(data, at, head.offset, error)):
                self.damage = self._corrupt(str(error))
            return None
        if frame is None:
            return None
        located = LocatedFrame(frame, head.segment, head.offset)
        try:
            (recorded_at,) = _RECORDED_AT.unpack_from(frame.events[-1])
            self._advance(frame, recorded_at)
        except struct.error:  # the chain holds: a forger's, who can hash as well as we
            self.damage = self._corrupt("an event is shorter than its header")
            return None
        return located

    def _advance(self, frame: Frame, recorded_at: int) -> None:
        head = self.head
        seq = head.seq + len(frame.events)
        next_slot = head.next_slot
        for scope_slot, slot in map(_slots_of, frame.events):
            if next_slot <= scope_slot != NO_SLOT:
                next_slot = scope_slot + 1
            if next_slot <= slot != NO_SLOT:
                next_slot = slot + 1
        self.head = Head(
            head.log_id, seq, frame.chain[-1], head.segment, head.offset + frame.size, recorded_at, next_slot
        )

    def _is_end(self, data: bytes, at: int) -> bool:
        # Once the room was seen to be nothing but zeros, only frames have been written over it.
        return begins_with_room(data, at) and (self._is_end_known or is_room(data, at))

    def _has_next_segment(self) -> bool:
        following = self.head.seq + 1
        return following > self.head.segment and self._segments.exists(following)

    def _must_go_on(self, rest: bytes, *, is_whole: bool) -> bool:
        # Where reading stops must be the last segment. A reader may stop while a writer appends and rolls, so what it
        # stopped at is read again: when there is a later segment, this one is final now, and lacks nothing. Listing is
        # slow, so a whole end is believed but for the first time.
        if is_whole and self._is_end_known:
            return False
        is_last = not self._segments.has_later(self.head.segment)
        if self._differs_now(rest, is_whole=is_whole):
            return True
        if is_last:
            self._is_end_known = is_whole
            return False
        if is_whole and self._has_next_segment():
            return True
        self.damage = self.damage or self._corrupt("the segment ends before the next one begins")
        return False

    def _differs_now(self, rest: bytes, *, is_whole: bool) -> bool:
        # Of what reading stopped at, and no more: behind damage that nobody has met yet, others may go on appending.
        if is_whole:
            return not begins_with_room(self._segments.after(self.head, MAGIC_BYTES))
        size = frame_size(rest) if is_frame_header(rest, 0) else FRAME_HEADER_BYTES
        return self._segments.after(self.head, size) != rest[:size]

    def _enter_next_segment(self, *, has_room: bool) -> bool:
        head = self.head
        if not self._has_next_segment():
            return False
        if has_room and self._segments.size(head.segment) > head.offset:
            self.damage = self._corrupt("zeros follow the last frame of a segment that was sealed")
            return False
        if not self._continues(head.seq + 1):
            return False
        self._move_to_segment(head.seq + 1)
        return True

    def _continues(self, first_seq: int) -> bool:
        head = self.head
        header = self._segments.read(first_seq, 0, SEGMENT_HEADER_BYTES)
        try:
            found = parse_segment_header(header)
        except Damaged as error:
            self.damage = self._corrupt(str(error))
            return False
        if found != (self._log_id, head.seq + 1, head.chain):
            self.damage = self._corrupt("the segment does not continue what stands before it")
            return False
        return True

    def _roll(self) -> None:
        first = self.head.seq + 1
        self.cut_room()
        self._sync(self._segments.fd(self.head.segment), "fdatasync")
        self._create_segment(first, Digest(self.head.chain))
        self._disk.sync_directory(self._directory)
        self._segments.path(self.head.segment).chmod(0o444)
        self._move_to_segment(first)

    def _move_to_segment(self, first_seq: int) -> None:
        self.head = msgspec.structs.replace(self.head, segment=first_seq, offset=SEGMENT_HEADER_BYTES)

    def _create_segment(self, first_seq: int, before: Digest) -> None:
        path = self._segments.path(first_seq)
        self._disk.replace_file(path, format_segment_header(self._log_id, first_seq, before))

    def _write_frame(self, data: bytes, head: Head) -> None:
        fd, size = self._segments.fd(head.segment), self._segments.size(head.segment)
        if size < head.offset or not self._segments.is_free_after(head):
            raise self._corrupt("it does not end where it was read to: somebody wrote there without the lock")
        make_room(self._disk, fd, size, head.offset + len(data), self._segment_bytes)
        if self._lock is not None:
            self._lock.set_mark(Mark(head.segment, head.offset))
        try:
            self._disk.overwrite(fd, data, head.offset)
        except OSError as error:
            self._take_back(fd, head.offset, error)
            raise_typed(error, self._segments.path(head.segment), "the log")
        self._sync(fd, "fdatasync")
        self._clear_mark()

    def _take_back(self, fd: int, size: int, error: OSError) -> None:
        try:
            self._disk.truncate(fd, size)
        except OSError:
            self._poison = "write"
            raise WriterPoisoned(step="write", detail=str(error)) from error
        self._sync(fd, "write")
        self._clear_mark()

    def _rewrite(self, mark: Mark) -> None:
        fd, size = self._segments.fd(mark.segment), self._segments.size(mark.segment)
        if size > mark.offset:
            self._disk.overwrite(fd, self._segments.read(mark.segment, mark.offset, size - mark.offset), mark.offset)
        self._sync(fd, "fdatasync")

    def _sync(self, fd: int, step: str) -> None:
        try:
            self._disk.sync(fd)
        except OSError as error:
            self._poison = step
            raise WriterPoisoned(step=step, detail=str(error)) from error

    def _clear_mark(self) -> None:
        if self._lock is not None:
            self._lock.clear_mark()

    def _check_writable(self) -> None:
        if self._poison:
            raise WriterPoisoned(step=self._poison, detail="an earlier commit has an unknown outcome")
        if self._read_only:
            raise StoreReadOnly(path=str(self._directory), detail="it was opened for reading")
        if self.damage is not None:
            raise self.damage

    def _corrupt(self, detail: str) -> LogCorrupt:
        head = self.head
        return LogCorrupt(seq=head.seq + 1, segment=self.segment_name(head.segment), offset=head.offset, detail=detail)
