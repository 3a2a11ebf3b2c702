"""
The writer lock: `flock` on a file that is never deleted, a turnstile before it, and a mark in it.

Not `fcntl` locks: closing any descriptor of the file in this process would drop those, also one that a library opened.

The turnstile is a second `flock`, on the directory of the log. Whoever wants the lock first takes the turnstile, then
waits for the lock, then lets the turnstile go: a writer that has just released the lock cannot take it again before the
one that is waiting for it.

The mark is 48 bytes of the lock file: where the frame begins that is being written, or zeros. It is set before the
frame's first byte and cleared after its fdatasync. The sign behind it says who held the lock last. What follows that is
another once a rebuild has swapped what is saved.

     0  8     b"MNMARK1\0"
     8  u64   first sequence number of the segment
    16  u64   offset
    24  16    the kernel's boot id
    40  u64   inode of the lock file
    48  16    the sign of the last holder: random, drawn anew whenever a store is opened
    64  8     random, drawn anew at each swap; absent before the first

    a reader never reads past it, so it never shows what a power cut could take back
    a writer that finds it set knows that the last holder died or failed in between, and recovers before it appends

It needs no fsync of its own: it guards against processes that end, and a power cut ends all of them. So after a power
cut the file may hold any mark that it ever held, and a copy may hold the mark of another moment than its log. A mark of
another boot or another file therefore says nothing.

It is written through a mapping: two writes to the file at every append would each update its times, which the sync of
the log then waits for. Whoever takes the lock first reads the file, and makes it whole again where it was cut.

Whoever takes the lock puts its sign there before anything else. So one who finds its own knows that nobody has
appended, recovered, rotated keys or swapped anything since it let go, and need not look. It dies with the process that
drew it. Readers read on to what a swap leaves in the same call, and start again where that is another than before.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from ._disk import off_the_streams, open_file, raise_exhausted, read_file
from ._errors import StoreMissing, StoreReadOnly

_MARK: Final = struct.Struct(">8sQQ16sQ")
_PLACE: Final = struct.Struct(">8sQQ")
_OF_THIS: Final = struct.Struct(">16sQ")
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_MAGIC: Final = b"MNMARK1\0"
MARK_BYTES: Final = _MARK.size
_NONE: Final = bytes(MARK_BYTES)
_SIGN_BYTES: Final = 16
_SWAP_AT: Final = MARK_BYTES + _SIGN_BYTES
_SWAP_BYTES: Final = 8


class Mark(NamedTuple):
    """Where the frame begins that is being written: the first sequence number of its segment, and the offset."""

    segment: int
    offset: int


class WriterLock:
    """Held by at most one thread of one process on the machine."""

    def __init__(self, path: Path, turnstile: Path) -> None:
        self._path, self._turnstile_path = path, turnstile
        self._mutex = threading.RLock()
        self._depth = 0
        self._fd: int | None = None
        self._map: mmap.mmap | None = None
        self._of_this = b""
        self._untouched = _NONE + os.urandom(_SIGN_BYTES)
        self.is_touched = True
        """Whether somebody else may have held the lock, or died in a write, since its holder set this to False."""
        self._turnstile: int | None = None
        self._reading: int | None = None
        self.swap = b""
        """What stood behind the sign when the mark was last read; it is another after each swap."""

    def hold(self) -> _Hold:
        """Wait for the lock and hold it; gives True to the outermost holder, who has to catch up first."""
        return _Hold(self._enter, self._leave)

    def _enter(self) -> bool:
        self._mutex.acquire()
        try:
            if self._depth == 0:
                self._acquire()
        except BaseException:
            self._mutex.release()
            raise
        self._depth += 1
        return self._depth == 1

    def _leave(self) -> None:
        try:
            self._depth -= 1
            if self._depth == 0:
                fcntl.flock(self._fd or self._descriptor(), fcntl.LOCK_UN)
        finally:
            self._mutex.release()

    @property
    def store(self) -> Path:
        """The directory that it locks."""
        return self._path.parent

    def check_present(self) -> None:
        """
        Raise StoreMissing when the file was deleted since it was opened, as when the whole store was.

        The descriptors of a deleted store still take frames, which nobody could ever read again.
        """
        if os.fstat(self._fd or self._descriptor()).st_nlink == 0:
            raise StoreMissing(path=str(self.store.absolute()), hint="it was deleted while it was open")

    def set_mark(self, mark: Mark) -> None:
        """Say that a frame is about to be written; the lock is held."""
        mapped = self._map or self._mapped()
        mapped[:MARK_BYTES] = _PLACE.pack(_MAGIC, mark.segment, mark.offset) + self._of_this

    def clear_mark(self) -> None:
        """Say that it is durable, or gone; the lock is held."""
        mapped = self._map or self._mapped()
        mapped[:MARK_BYTES] = _NONE

    def announce_swap(self) -> None:
        """Say that what is saved was swapped, for those who look at the mark; the lock is held."""
        os.pwrite(self._fd or self._descriptor(), os.urandom(_SWAP_BYTES), _SWAP_AT)
        self.is_touched = True  # its own next holder looks, too

    def mark(self) -> Mark | None:
        """Return the mark, or None; needs neither the lock nor the right to write."""
        if self._reading is None:
            try:
                self._reading = open_file(self._path, os.O_RDONLY)
            except FileNotFoundError:
                return None  # a copy without it has no writer
        data = os.pread(self._reading, _SWAP_AT + _SWAP_BYTES, 0)
        self.swap = data[_SWAP_AT:]
        if len(data) < MARK_BYTES or data.startswith(_NONE):
            return None
        magic, segment, offset, boot, inode = _MARK.unpack_from(data)
        is_ours = (magic, boot, inode) == (_MAGIC, _boot_id(), os.fstat(self._reading).st_ino)
        return Mark(segment, offset) if is_ours else None

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Release the descriptors."""
        with self._mutex:
            if self._map is not None:
                self._map.close()
                self._map = None
            for fd in (self._fd, self._turnstile, self._reading):
                if fd is not None:
                    os.close(fd)
            self._fd = self._turnstile = self._reading = None

    def _mapped(self) -> mmap.mmap:
        fd, size = self._descriptor(), len(self._untouched)
        if os.fstat(fd).st_size < size:
            os.ftruncate(fd, size)
        try:
            with off_the_streams():
                self._map = mmap.mmap(fd, size)  # takes a descriptor of its own
        except OSError as error:
            raise_exhausted(error, self._path)
            raise
        return self._map

    def _acquire(self) -> None:
        lock = self._fd or self._descriptor()
        if self._turnstile is None:
            self._turnstile = open_file(self._turnstile_path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._turnstile, fcntl.LOCK_EX)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._turnstile, fcntl.LOCK_UN)
        try:
            self._sign(lock)
        except BaseException:
            fcntl.flock(lock, fcntl.LOCK_UN)
            raise

    def _sign(self, lock: int) -> None:
        found = os.pread(lock, len(self._untouched), 0)
        if found == self._untouched:
            return
        self.is_touched = True
        if found[MARK_BYTES:] != self._untouched[MARK_BYTES:]:
            os.pwrite(lock, self._untouched[MARK_BYTES:], MARK_BYTES)

    def _descriptor(self) -> int:
        if self._fd is None:
            try:
                self._fd = open_file(self._path, os.O_RDWR | os.O_CREAT)
            except OSError as error:
                raise StoreReadOnly(path=str(self._path.parent), detail=str(error.strerror)) from error
            self._of_this = _OF_THIS.pack(_boot_id(), os.fstat(self._fd).st_ino)
        return self._fd


class _Hold:
    # As a class: a generator would cost as much as a system call.
    __slots__ = ("_enter", "_leave")

    def __init__(self, enter: Callable[[], bool], leave: Callable[[], None]) -> None:
        self._enter, self._leave = enter, leave

    def __enter__(self) -> bool:
        return self._enter()

    def __exit__(self, *_error: object) -> None:
        self._leave()


@cache
def _boot_id() -> bytes:
    try:
        return bytes.fromhex(read_file(_BOOT_ID).decode().strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(16)  # without it, a mark of an earlier boot is believed until a writer clears it
