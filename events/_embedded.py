"""The embedded files as a back end: the store's own segments, writer lock and mark behind the four operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ._backend import ChainHead, check_frame, wait_for
from ._codec import SEGMENT_HEADER_BYTES, Damaged, Digest, parse_segment_header
from ._disk import Disk
from ._errors import BadArgument, LogCorrupt, WriterPoisoned
from ._files import StoreFiles
from ._lock import WriterLock
from ._log import SEGMENT_BYTES, Log
from ._positions import Head, Location


class EmbeddedLog:
    """
    The log of a store, below the door: nobody asks whether what is appended here may be said.

    It is written and read by the code that the door and every reader use, under the same lock. `wait` in another
    process looks at what stands behind the head and at the mark, by two system calls a time.

    Segments, their sealing, the mark and torn tails stay behind it. What a writer that died left unfinished is set
    aside by the next append, and the key slots that it names are given to `condemn`, which destroys their keys. Without
    `condemn` such an append raises WriterPoisoned: opening the store does both.
    """

    def __init__(
        self,
        files: StoreFiles,
        *,
        condemn: Callable[[frozenset[int]], None] | None = None,
        read_only: bool = False,
        disk: Disk | None = None,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        """Open the log, and make an empty one where the store's directory has none, unless `read_only`."""
        self._files, self._condemn, self._disk = files, condemn, disk or Disk()
        if not (read_only or files.log.exists()):
            Log.create(files.log, files.store_id, self._disk).close()
            self._disk.sync_directory(files.path)
        self._lock = WriterLock(files.lock, files.log)
        self._log = Log(
            files.log, files.store_id, self._disk, lock=self._lock, read_only=read_only, segment_bytes=segment_bytes
        )
        self._reached = self._log.start
        self._has_appended = False

    def append(self, expected_seq: int, expected_chain: bytes, frame: bytes) -> None:
        """Append one frame, as `LogBackend.append` promises."""
        check_frame(frame, expected_seq, expected_chain)
        with self._lock.hold():
            self._lock.check_present()
            self._log.complete()
            self._catch_up()
            if self._condemn is not None:
                self._log.recover(self._condemn)
            elif self._log.remains():
                raise WriterPoisoned(
                    step="append",
                    detail="an unfinished commit lies at the end of the log",
                    hint="open the store: it sets that aside, and destroys its keys",
                )
            self._has_appended = True
            self._log.append_frame(expected_seq, expected_chain, frame)
            self._catch_up()

    def read(self, from_seq: int) -> Iterator[bytes]:
        """Yield frames, as `LogBackend.read` promises."""
        if from_seq < 1:
            raise BadArgument(argument="from_seq", detail=f"expected 1 or more, got {from_seq}")
        return self._frames(from_seq)

    def head(self) -> ChainHead:
        """Return the head; the first time, after reading the whole log."""
        self._catch_up()
        return ChainHead(self._log.head.seq, Digest(self._log.head.chain))

    def wait(self, seq: int, timeout: float | None = None) -> bool:
        """Wait for an event, as `LogBackend.wait` promises."""
        return wait_for(self.head, seq, timeout)

    def close(self) -> None:
        """Release the descriptors; the room behind what was appended goes."""
        if self._has_appended:
            with self._lock.hold():
                for _ in self._log.read_new():
                    pass
                if self._log.damage is None:
                    self._log.cut_room()
        self._log.close()
        self._lock.close()

    def _catch_up(self) -> None:
        for _ in self._log.read_new():
            pass
        if self._log.damage is not None:
            raise self._log.damage

    def _frames(self, from_seq: int) -> Iterator[bytes]:
        # A position of its own: others may be read, and frames appended, while this one is not exhausted.
        log = Log(self._files.log, self._files.store_id, self._disk, lock=self._lock, read_only=True)
        try:
            log.head = self._before(from_seq)
            for located in log.read_new():
                if log.head.seq >= from_seq:
                    yield log.read_at(Location(located.segment, located.offset, located.frame.size))
                    self._reached = log.head
            if log.damage is not None:
                raise log.damage
        finally:
            log.close()

    def _before(self, from_seq: int) -> Head:
        # The nearest known place before the event: its segment's beginning, or where this object has read already.
        near = [head for head in (self._log.start, self._log.head, self._reached) if head.seq < from_seq]
        firsts = [int(path.stem) for path in self._log.segments()]
        first = max((first for first in firsts if first <= from_seq), default=1)
        if first > 1 + max(head.seq for head in near):
            near.append(self._beginning(first))
        return max(near, key=lambda head: head.seq)

    def _beginning(self, first: int) -> Head:
        # Record time and slots are for who appends, and nobody does from here.
        name = self._log.segment_name(first)
        try:
            header = self._log.read_at(Location(first, 0, SEGMENT_HEADER_BYTES))
            log_id, found, before = parse_segment_header(header)
        except Damaged as error:
            raise LogCorrupt(seq=first, segment=name, offset=0, detail=str(error)) from error
        if (log_id, found) != (self._files.store_id, first):
            raise LogCorrupt(seq=first, segment=name, offset=0, detail="the segment is another one")
        return Head(log_id, first - 1, before, first, SEGMENT_HEADER_BYTES, 0, 0)
