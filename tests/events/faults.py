"""
A disk that fails on command and loses what was not synced.

`FaultyDisk` works on real files below one directory, and keeps beside each of them what a power cut would leave: the
bytes that a sync made durable, the writes since, and for each directory the entries that a sync made durable and the
changes since. `materialise` writes the directory as the next boot could find it; what survives of the changes that
nobody synced is up to a `Survival`.

A sync that fails without having written dooms the writes before it: the kernel reports the error once, marks the pages
clean, and shows the bytes to whoever reads, while a later sync that succeeds does not write them.
"""

from __future__ import annotations

import fcntl
import os
import random
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeAlias

from muniment.events._disk import Disk, typed

SECTOR: Final = 512


class Outcome(Enum):
    """How much of a failing operation was carried out before it failed."""

    NOTHING = "nothing"
    HALF = "half"
    ALL = "all"


class PowerCut(BaseException):
    """The machine stops. Not an Exception: no handler in the code under test may survive it."""


class Operation(NamedTuple):
    """One call to the system that changes the disk, and the name of the file or directory."""

    kind: str
    name: str


class Fault(NamedTuple):
    """Operation number `at`, from 1, fails with an errno after `outcome` of it was carried out."""

    at: int
    error: int
    outcome: Outcome


class Write(NamedTuple):
    """Bytes at an offset that no sync has made durable."""

    at: int
    data: bytes


class Truncation(NamedTuple):
    """A cut to a size that no sync has made durable."""

    size: int


Change: TypeAlias = Write | Truncation


class Survival(Protocol):
    """Decides what a power cut leaves of the changes that were not synced."""

    def entry(self) -> bool:
        """Tell whether the next change of a directory survives; asked in the order of the changes."""
        ...

    def change(self, change: Change) -> Sequence[Change]:
        """Return what survives of a change to a file."""
        ...


class NothingSurvives:
    """Only what was synced is there."""

    def entry(self) -> bool:
        """Lose it."""
        return False

    def change(self, change: Change) -> Sequence[Change]:
        """Lose it."""
        return ()


class EverythingSurvives:
    """All is there, as after a kill: the kernel lives on."""

    def entry(self) -> bool:
        """Keep it."""
        return True

    def change(self, change: Change) -> Sequence[Change]:
        """Keep it."""
        return (change,)


class ChanceSurvives:
    """
    Each change survives wholly, in part or not at all, as a seed decides.

    With `ordered`, the changes of a directory survive up to a point in time, as with a journal; else any of them do,
    as POSIX allows. Of a write, nothing survives, or all, or the beginning, or some of the device's sectors: the
    others read as zeros where the file has grown, and keep their old bytes elsewhere.
    """

    def __init__(self, seed: int, *, ordered: bool) -> None:
        self._random = random.Random(seed)
        self._ordered = ordered
        self._journal_ended = False

    def entry(self) -> bool:
        """Toss a coin; in order, the first that is lost loses all after it."""
        if self._ordered and self._journal_ended:
            return False
        kept = self._random.random() < 0.6
        self._journal_ended = not kept
        return kept

    def change(self, change: Change) -> Sequence[Change]:
        """Keep none, all, a beginning, or some sectors."""
        if isinstance(change, Truncation):
            return (change,) if self._random.random() < 0.5 else ()
        match self._random.randrange(4):
            case 0:
                return ()
            case 1:
                return (change,)
            case 2:
                return (Write(change.at, change.data[: self._random.randrange(len(change.data) + 1)]),)
            case _:
                return self._sectors(change)

    def _sectors(self, write: Write) -> list[Write]:
        kept: list[Write] = []
        end = write.at + len(write.data)
        at = write.at
        while at < end:
            upto = min(end, (at // SECTOR + 1) * SECTOR)
            if self._random.random() < 0.5:
                kept.append(Write(at, write.data[at - write.at : upto - write.at]))
            at = upto
        # The inode knows the new size although not all of the data is there.
        kept.append(Write(end, b""))
        return kept


class _File:
    def __init__(self, durable: bytes) -> None:
        self.durable = durable
        self.pending: list[Change] = []

    def image(self, survival: Survival) -> bytes:
        data = bytearray(self.durable)
        for change in self.pending:
            for surviving in survival.change(change):
                _apply(data, surviving)
        return bytes(data)

    def sync(self) -> None:
        self.durable = self.image(EverythingSurvives())
        self.pending.clear()

    def doom(self, outcome: Outcome) -> None:
        if outcome is not Outcome.NOTHING:
            data = bytearray(self.durable)
            for change in self.pending:
                _apply(data, change if outcome is Outcome.ALL else _half(change))
            self.durable = bytes(data)
        self.pending.clear()


class _Directory:
    def __init__(self) -> None:
        self.live: dict[str, _File | _Directory] = {}
        self.durable: dict[str, _File | _Directory] = {}
        self.pending: list[dict[str, _File | _Directory | None]] = []

    def change(self, entries: dict[str, _File | _Directory | None]) -> None:
        self.pending.append(entries)
        _set_entries(self.live, entries)

    def sync(self) -> None:
        self.durable = dict(self.live)
        self.pending.clear()

    def write_to(self, target: Path, survival: Survival) -> None:
        target.mkdir()
        entries = dict(self.durable)
        for change in self.pending:
            if survival.entry():
                _set_entries(entries, change)
        for name, node in entries.items():
            if isinstance(node, _Directory):
                node.write_to(target / name, survival)
            else:
                (target / name).write_bytes(node.image(survival))


class HastyDisk(Disk):
    """A disk that syncs nothing, for checks after which no power will be cut."""

    def sync(self, fd: int) -> None:
        """Do nothing."""

    def sync_directory(self, path: Path) -> None:
        """Do nothing."""


class FaultyDisk(Disk):
    """
    A disk whose operations are numbered from 1, one of which may fail or be the last.

    What lies below `root` when it is made counts as durable. Changes made past it (a `mkdir`, a file opened by other
    means) are noticed when the directory is next used, and are not durable before it is synced.
    """

    def __init__(self, root: Path, *, fault: Fault | None = None, cut_after: int | None = None) -> None:
        self._root = root
        self._top = _scan(root)
        self._files: dict[tuple[int, int], _File] = {}
        self._index(self._top, root)
        self._off = False
        self.operations: list[Operation] = []
        self.arm(fault=fault, cut_after=cut_after)

    def arm(self, *, fault: Fault | None = None, cut_after: int | None = None) -> None:
        """Number the operations anew from here, and set which of them fails, or is the last before a power cut."""
        self.operations.clear()
        self._fault, self._cut_after = fault, cut_after

    def materialise(self, target: Path, survival: Survival) -> None:
        """Write what the next boot finds into a new directory."""
        self._top.write_to(target, survival)

    def create(self, path: Path, *, mode: int = 0o600) -> int:
        """As the real disk."""
        with typed(path, "a new file"):
            return self._open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND, mode)

    def write(self, fd: int, data: bytes) -> None:
        """As the real disk; half of a write is a short one."""
        file = self._file(fd)
        with self._step("write", _name(fd)) as outcome:
            share = _share(data, outcome)
            appends = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
            at = os.fstat(fd).st_size if appends else os.lseek(fd, 0, os.SEEK_CUR)
            super().write(fd, share)
            file.pending.append(Write(at, share))

    def overwrite(self, fd: int, data: bytes, at: int) -> None:
        """As the real disk."""
        file = self._file(fd)
        with self._step("overwrite", _name(fd)) as outcome:
            share = _share(data, outcome)
            super().overwrite(fd, share, at)
            file.pending.append(Write(at, share))

    def sync(self, fd: int) -> None:
        """Make durable what is pending; when it fails, what it did not write is never written by a later one."""
        file = self._file(fd)
        with self._step("sync", _name(fd)) as outcome:
            if self._failing():
                file.doom(outcome)
            else:
                file.sync()

    def sync_directory(self, path: Path) -> None:
        """Make the entries durable."""
        with self._step("sync_directory", path.name) as outcome:
            directory = self._directory(path)
            if outcome is Outcome.ALL:
                directory.sync()

    def truncate(self, fd: int, size: int) -> None:
        """As the real disk."""
        file = self._file(fd)
        with self._step("truncate", _name(fd)) as outcome:
            if outcome is Outcome.ALL:
                super().truncate(fd, size)
                file.pending.append(Truncation(size))

    def rename(self, old: Path, new: Path) -> None:
        """As the real disk, within one directory."""
        directory = self._directory(old.parent)
        with self._step("rename", new.name) as outcome:
            if outcome is Outcome.ALL:
                super().rename(old, new)
                directory.change({old.name: None, new.name: directory.live[old.name]})

    def remove(self, path: Path) -> None:
        """As the real disk."""
        directory = self._directory(path.parent)
        with self._step("remove", path.name) as outcome:
            if outcome is Outcome.ALL and path.name in directory.live:
                identity = _identity(path.stat())
                super().remove(path)
                self._files.pop(identity, None)
                directory.change({path.name: None})

    def write_file(self, path: Path, data: bytes, *, synced: bool = True) -> None:
        """As the real disk, in three operations, or two."""
        with typed(path, path.name):
            fd = self._open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            try:
                self.write(fd, data)
                if synced:
                    self.sync(fd)
            finally:
                os.close(fd)

    def _open(self, path: Path, flags: int, mode: int) -> int:
        directory = self._directory(path.parent)
        fd = -1
        with self._step("open", path.name) as outcome:
            if outcome is Outcome.ALL:
                fd = os.open(path, flags | os.O_CLOEXEC, mode)
                known = directory.live.get(path.name)
                if isinstance(known, _File):
                    known.pending.append(Truncation(0))
                else:
                    made = self._files[_identity(os.fstat(fd))] = _File(b"")
                    directory.change({path.name: made})
        return fd

    @contextmanager
    def _step(self, kind: str, name: str) -> Generator[Outcome]:
        if self._off:
            raise PowerCut
        self.operations.append(Operation(kind, name))
        yield self._fault.outcome if self._fault and self._failing() else Outcome.ALL
        if self._fault and self._failing():
            raise OSError(self._fault.error, os.strerror(self._fault.error), name)
        if len(self.operations) == self._cut_after:
            self._off = True
            raise PowerCut

    def _failing(self) -> bool:
        return self._fault is not None and len(self.operations) == self._fault.at

    def _file(self, fd: int) -> _File:
        status = os.fstat(fd)
        file = self._files.get(_identity(status))
        if file is None:
            self._directory(Path(os.readlink(f"/proc/self/fd/{fd}")).parent)
            file = self._files[_identity(status)]
        return file

    def _directory(self, path: Path) -> _Directory:
        directory, at = self._top, self._root
        self._notice(directory, at)
        for part in path.relative_to(self._root).parts:
            below, at = directory.live[part], at / part
            if not isinstance(below, _Directory):
                raise NotADirectoryError(at)
            self._notice(below, at)
            directory = below
        return directory

    def _notice(self, directory: _Directory, path: Path) -> None:
        # What was made or removed past this class.
        found = {entry.name: entry for entry in os.scandir(path)}
        for name in [name for name in directory.live if name not in found]:
            directory.change({name: None})
        for name in [name for name in found if name not in directory.live]:
            if found[name].is_dir():
                directory.change({name: _Directory()})
            else:
                made = self._files[_identity(found[name].stat())] = _File(b"")
                made.pending.append(Write(0, (path / name).read_bytes()))
                directory.change({name: made})

    def _index(self, directory: _Directory, path: Path) -> None:
        for name, node in directory.live.items():
            if isinstance(node, _Directory):
                self._index(node, path / name)
            else:
                self._files[_identity((path / name).stat())] = node


def _scan(path: Path) -> _Directory:
    directory = _Directory()
    for entry in os.scandir(path):
        directory.live[entry.name] = _scan(path / entry.name) if entry.is_dir() else _File(Path(entry).read_bytes())
    directory.sync()
    return directory


def _set_entries(entries: dict[str, _File | _Directory], change: dict[str, _File | _Directory | None]) -> None:
    for name, node in change.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


def _apply(data: bytearray, change: Change) -> None:
    if isinstance(change, Truncation):
        del data[change.size :]
        data.extend(bytes(change.size - len(data)))
        return
    data.extend(bytes(max(0, change.at - len(data))))
    data[change.at : change.at + len(change.data)] = change.data


def _half(change: Change) -> Change:
    return change if isinstance(change, Truncation) else Write(change.at, change.data[: len(change.data) // 2])


def _share(data: bytes, outcome: Outcome) -> bytes:
    match outcome:
        case Outcome.NOTHING:
            return b""
        case Outcome.HALF:
            return data[: len(data) // 2]
        case Outcome.ALL:
            return data


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _name(fd: int) -> str:
    return os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))
