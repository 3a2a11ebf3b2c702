"""
Room behind the end of a file, asked for before it is needed.

A sync of a file that has grown must find space for what was added, and write down where it is. With the space found
ahead, part of that is spared. The file is no longer for it: its length says where the log ends.
"""

from __future__ import annotations

from typing import Final

from ._disk import Disk

_LEAST: Final = 64 << 10
_MOST: Final = 4 << 20


class Room:
    """The room of the segment that is being written, as far as this process asked for it."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._upto = 0

    def make(self, fd: int, start: int, end: int, limit: int) -> None:
        """See to it that there is room from `start` to `end`; as much again is asked for, but not beyond `limit`."""
        if end <= self._upto:
            return
        self._upto = max(end, min(end + max(_LEAST, min(end, _MOST)), limit))
        self._disk.reserve(fd, start, self._upto - start)

    def give_back(self, fd: int) -> None:
        """Give back what was not used; the caller holds the lock."""
        if self._upto:
            self._disk.release(fd)
        self.leave()

    def leave(self) -> None:
        """Forget about the segment: another one is written now."""
        self._upto = 0
