"""
The few file operations through which everything durable is written, and every file of the store is opened.

One place, so that the crash campaign can put a layer in between that keeps *written* apart from *synced*, and so that
each caller's order of durable steps can be read off its calls. Reading needs only that a process which may open no more
files is told so by name, and that nobody takes this for a file that is missing or damaged.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO, Final

from ._errors import DiskFailed, DiskFull, ResourcesExhausted, StoreReadOnly, StoreUnsafe

_NETWORK: Final = {0x6969: "NFS", 0xFF534D42: "CIFS", 0xFE534D42: "SMB2", 0x65735546: "FUSE", 0x01021997: "9p"}
_COPY_ON_WRITE: Final = {0x9123683E: "btrfs", 0x2FC12FC1: "ZFS", 0x794C7630: "overlayfs", 0xCA451A4E: "bcachefs"}
_LOG_STRUCTURED: Final = {0xF2F52010: "F2FS"}
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_FIRST_OWN: Final = 3  # descriptors below are standard input, output and error, closed or not


def open_file(path: Path, flags: int, mode: int = 0o600) -> int:
    """
    Return a descriptor of a file that stays with this process, and is never that of a standard stream.

    Raises:
        ResourcesExhausted: there is none to be had. Anything else is the system's own error.
    """
    try:
        fd = os.open(path, flags | os.O_CLOEXEC, mode)
    except OSError as error:
        raise_exhausted(error, path)
        raise
    if fd >= _FIRST_OWN:
        return fd
    # A daemon has closed its streams. What any library prints would go into the file that has the number of one.
    try:
        return duplicate(fd, path)
    finally:
        os.close(fd)


def duplicate(fd: int, path: Path) -> int:
    """Return another descriptor of an open file, as `open_file` does."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN)
    except OSError as error:
        raise_exhausted(error, path)
        raise


@contextmanager
def off_the_streams() -> Generator[None, None, None]:
    """Let what a library opens meanwhile, by itself, have no standard stream's number either."""
    taken: list[int] = []
    try:
        while (fd := os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)) < _FIRST_OWN:
            taken.append(fd)
        os.close(fd)
        yield
    finally:
        for fd in taken:
            os.close(fd)


def open_reading(path: Path) -> BinaryIO:
    """Return a file to read from, opened by `open_file`."""
    return open(path, "rb", opener=lambda _path, flags: open_file(path, flags))  # which has no opener


def read_file(path: Path) -> bytes:
    """Return the bytes of a whole file, opened by `open_file`."""
    with open_reading(path) as file:
        return file.read()


def names_in(directory: Path, pattern: str = "*") -> list[str]:
    """
    Return the names in a directory that match a pattern, in no order; none where there is no such directory.

    Raises:
        ResourcesExhausted: it cannot be listed for want of a descriptor; `Path.glob` may say that nothing is there.
    """
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise_exhausted(error, directory)
        raise
    return [name for name in names if fnmatchcase(name, pattern)]


class Disk:
    """The real disk. Every method either did all it says, or raises."""

    def create(self, path: Path, *, mode: int = 0o600) -> int:
        """Return a descriptor of a new file, opened for appending; the directory is not synced yet."""
        with typed(path, "a new file"):
            return open_file(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND, mode)

    def write(self, fd: int, data: bytes) -> None:
        """Write all of the data; a short write is continued until the system says why it was short."""
        written = os.write(fd, data)
        while written < len(data):
            written += os.write(fd, memoryview(data)[written:])

    def overwrite(self, fd: int, data: bytes, at: int) -> None:
        """Write the data over what stands at an offset, in place."""
        view = memoryview(data)
        while view:
            count = os.pwrite(fd, view, at)
            view, at = view[count:], at + count

    def sync(self, fd: int) -> None:
        """Make the file's data durable, and its size; a failure is final, and must not be retried."""
        os.fdatasync(fd)

    def sync_directory(self, path: Path) -> None:
        """Make creations, renames and removals in the directory durable."""
        fd = open_file(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Cut the file to a size."""
        os.ftruncate(fd, size)

    def rename(self, old: Path, new: Path) -> None:
        """Put one file in the place of another, atomically; durable after `sync_directory`."""
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        """Remove a file; one that is already gone is not an error."""
        path.unlink(missing_ok=True)

    def write_file(self, path: Path, data: bytes, *, synced: bool = True) -> None:
        """
        Write a whole file and make it durable under its final name; not for secrets that must be replaceable.

        Unless `synced`, a power cut may take it back, or leave it empty.
        """
        with typed(path, path.name):
            fd = open_file(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            try:
                self.write(fd, data)
                if synced:
                    self.sync(fd)
            finally:
                os.close(fd)

    def replace_file(self, path: Path, data: bytes) -> None:
        """Write a file beside `path`, make it durable, and put it in its place, atomically and durably."""
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            self.write_file(beside, data)
            self.rename(beside, path)
        except BaseException:
            self.remove(beside)
            raise
        self.sync_directory(path.parent)


class typed:  # noqa: N801  # a context manager that reads as a word
    """Turns the system's errors into ours, once, at the boundary."""

    def __init__(self, path: Path, what: str) -> None:
        self._path, self._what = path, what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise_typed(error, self._path, self._what)


def raise_typed(error: OSError, path: Path, what: str) -> None:
    """
    Raise our error for one of the system's, or the system's own when none fits.

    Raises:
        DiskFull: no space or quota is left, or the file may not grow.
        StoreReadOnly: the file system or the permissions do not allow writing.
        DiskFailed: the device reports an error.
        ResourcesExhausted: no more files can be opened, or no memory is left.
    """
    raise_exhausted(error, path)
    if error.errno == errno.EIO:
        raise DiskFailed(what=what, detail=error.strerror) from error
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise DiskFull(what=what) from error
    if error.errno == errno.EFBIG:
        raise DiskFull(what=what, hint="raise the limit on the size of a file: `ulimit -f`") from error
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        raise StoreReadOnly(path=str(path), detail=error.strerror) from error
    raise error


def raise_exhausted(error: OSError, path: Path) -> None:
    """Raise ResourcesExhausted when the system's error says that; return for any other."""
    if error.errno in _EXHAUSTED:
        raise ResourcesExhausted(path=str(path), detail=str(error.strerror)) from error


def check_file_system(path: Path) -> str | None:
    """
    Return a warning when overwriting in place does not overwrite on this file system, else None.

    Raises:
        StoreUnsafe: a network file system, where locks and durability cannot be trusted.
    """
    magic = _file_system_magic(path)
    if name := _NETWORK.get(magic):
        raise StoreUnsafe(filesystem=name, detail="locks and fsync cannot be trusted there", hint="use a local disk")
    if name := (_COPY_ON_WRITE.get(magic) or _LOG_STRUCTURED.get(magic)):
        return (
            f"{name} does not overwrite in place: an erased key may survive on the device. "
            "Put root.key on ext4 or XFS, or on an encrypted volume whose key you can destroy."
        )
    return None


class _StatFs(ctypes.Structure):
    # Linux struct statfs on 64-bit machines: f_type is the first word; the rest is only room.
    _fields_ = [("f_type", ctypes.c_long), ("rest", ctypes.c_char * 248)]  # ctypes wants a list


def _file_system_magic(path: Path) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result = _StatFs()
    if libc.statfs(os.fsencode(path), ctypes.byref(result)) != 0:
        return 0
    return int(result.f_type) & 0xFFFFFFFF
