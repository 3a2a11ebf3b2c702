"""
Room: zeros behind the last frame of the segment that is being written, over which the next frames are written.

The sync of a file that has grown also waits until the file system's journal knows how long it is; that of bytes which
were there before does not, and takes about half as long. So zeros are written now and then, many frames' worth. A frame
begins with its magic: where zeros begin, the log ends. SQLite's and etcd's logs are written so.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ._codec import FRAME_MAGIC
from ._disk import Disk

_LEAST: Final = 16 << 10
_MOST: Final = 256 << 10
MAGIC_BYTES: Final = len(FRAME_MAGIC)
_NO_MAGIC: Final = bytes(MAGIC_BYTES)


def begins_with_room(data: bytes, at: int = 0) -> bool:
    """Tell whether what begins at an offset is nothing, or zeros as far as a frame's magic reaches."""
    return _NO_MAGIC.startswith(data[at : at + MAGIC_BYTES])


def is_room(data: bytes, at: int) -> bool:
    """Tell whether there are only zeros from an offset on."""
    return data[at:] == bytes(len(data) - at)


def make_room(disk: Disk, fd: int, size: int, end: int, limit: int) -> None:
    """
    See to it that a frame that ends at `end` does not make a file of `size` bytes longer.

    Room for others is made with it: as much as the file holds, but not beyond `limit`. Where the disk has no such room,
    there is none: only the write of a frame may say that it is full.
    """
    if end <= size:
        return
    upto = max(end, min(end + max(_LEAST, min(end, _MOST)), limit))
    try:
        disk.overwrite(fd, bytes(upto - size), size)
    except OSError:
        with suppress(OSError):
            disk.truncate(fd, size)
