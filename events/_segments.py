"""The files of a log, and what of them may be read while others write: segments named by their first event."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ._codec import FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES, frame_size, is_frame_header
from ._disk import names_in, open_file
from ._errors import LogCorrupt
from ._lock import Mark, WriterLock
from ._positions import Head, Location
from ._room import MAGIC_BYTES, begins_with_room

_SUFFIX: Final = ".seg"


class Segments:
    """One log directory, with the descriptors that one process has of it. Not thread-safe."""

    def __init__(self, directory: Path, lock: WriterLock | None, *, read_only: bool) -> None:
        self._directory, self._lock, self._read_only = directory, lock, read_only
        self._prefix = f"{directory}{os.sep}"
        self._fds: dict[int, int] = {}

    def path(self, first_seq: int) -> Path:
        """Return the path of the segment that begins with an event."""
        return self._directory / f"{first_seq:016d}{_SUFFIX}"

    def paths(self) -> list[Path]:
        """Return the paths of all segments in order."""
        return [self._directory / name for name in sorted(names_in(self._directory, f"*{_SUFFIX}"))]

    def exists(self, first_seq: int) -> bool:
        """Tell whether there is a segment that begins with an event."""
        # Asked on every read and every write: no Path objects, and no exception when it is absent, as nearly always.
        return os.access(f"{self._prefix}{first_seq:016d}{_SUFFIX}", os.F_OK)

    def has_later(self, first_seq: int) -> bool:
        """Tell whether there is a segment that begins after an event, by listing all."""
        return any(int(path.stem) > first_seq for path in self.paths())

    def fd(self, first_seq: int) -> int:
        """
        Return a descriptor of a segment, for writing too where that is allowed.

        Raises:
            LogCorrupt: it is missing.
        """
        fd = self._fds.get(first_seq)
        if fd is None:
            path = self.path(first_seq)
            try:
                fd = open_file(path, os.O_RDONLY if self._read_only else os.O_RDWR)
            except PermissionError:
                fd = open_file(path, os.O_RDONLY)  # sealed, or a read-only copy
            except FileNotFoundError as error:
                raise LogCorrupt(seq=first_seq, segment=path.name, offset=0, detail="the segment is missing") from error
            self._fds[first_seq] = fd
        return fd

    def size(self, first_seq: int) -> int:
        """Return how long a segment is, its room included."""
        # A third of what fstat takes; nobody reads or writes where the descriptor stands.
        return os.lseek(self.fd(first_seq), 0, os.SEEK_END)

    def read(self, first_seq: int, offset: int, size: int) -> bytes:
        """Return bytes of a segment, fewer where it ends."""
        return os.pread(self.fd(first_seq), size, offset)

    def after(self, head: Head, most: int) -> bytes:
        """Return what lies after a head in its segment, room included, but nothing of a frame that is being written."""
        data = self.read(head.segment, head.offset, min(most, max(0, self.size(head.segment) - head.offset)))
        # Bytes first, mark second: a frame among them had its mark set before, and either it is still set, or the frame
        # has been synced in between. It may have been half-written when it was read: what does not parse is read again.
        mark = self._mark()
        if mark is not None and mark.segment == head.segment:
            return data[: max(0, mark.offset - head.offset)]
        return data

    def frame_around(self, where: Location) -> tuple[int, bytes] | None:
        """Return the frame that holds a place, and its offset; None when the headers before it do not lead there."""
        offset = SEGMENT_HEADER_BYTES
        while is_frame_header(header := self.read(where.segment, offset, FRAME_HEADER_BYTES), 0):
            size = frame_size(header)
            if where.offset < offset + size:
                return offset, self.read(where.segment, offset, size)
            offset += size
        return None

    def shows_more(self, head: Head) -> bool:
        """Tell, by two system calls, whether a reader would find something after a head in its segment."""
        is_free = self.is_free_after(head)
        mark = self._mark()
        return not is_free and (mark is None or mark.segment != head.segment or mark.offset > head.offset)

    def is_free_after(self, head: Head) -> bool:
        """Tell whether a segment ends after a head, or goes on with room."""
        return begins_with_room(self.read(head.segment, head.offset, MAGIC_BYTES))

    def close(self) -> None:
        """Release the descriptors."""
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()

    def _mark(self) -> Mark | None:
        return None if self._lock is None else self._lock.mark()
