"""The back ends that the contract is asked of: how each is opened, left by a dying writer, and altered."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Protocol

from muniment.events import ChainHead, Digest, Disk, EmbeddedLog, LogBackend, StoreFiles, check_frame
from muniment.events._codec import EVENT_HEADER, NO_COMMITMENT, NO_SLOT, format_frame
from muniment.events._lock import Mark, WriterLock
from tests.checkout import ROOT
from tests.processes import start

from .stores import end_of_log

LOG_ID = bytes(range(16))


class Backend(LogBackend, Protocol):
    """A back end that is open."""

    def close(self) -> None:
        """Release what it holds."""
        ...


class Kind(Protocol):
    """One kind of back end."""

    def opened(self, where: Path) -> Backend:
        """Open the log in a directory, or make it there."""
        ...

    def die_within(self, where: Path, frame: bytes, share: float) -> None:
        """Leave what a writer leaves that was killed when a share of an append was done."""
        ...

    def alter(self, where: Path) -> None:
        """Change one bit of the first frame, past every check."""
        ...

    def kept(self, where: Path) -> dict[str, bytes]:
        """Return all that is kept, byte for byte."""
        ...


class Embedded:
    """The embedded files."""

    def opened(self, where: Path, *, disk: Disk | None = None) -> EmbeddedLog:
        """Open the log in a directory, or make it there, with no keys beside it."""
        return EmbeddedLog(StoreFiles(where, LOG_ID, "", None), condemn=lambda _slots: None, disk=disk)

    def die_within(self, where: Path, frame: bytes, share: float) -> None:
        """Leave the mark, and a beginning of the frame behind the last one."""
        path = self._last_segment(where)
        end = end_of_log(path)
        lock = WriterLock(where / "lock", where / "log")
        with lock.hold():
            lock.set_mark(Mark(int(path.stem), end))
        lock.close()
        with path.open("r+b") as file:
            file.seek(end)
            file.write(frame[: int(share * len(frame))])

    def alter(self, where: Path) -> None:
        """Flip a bit of the first event."""
        path = self._last_segment(where)
        data = bytearray(path.read_bytes())
        data[128 + 32 + 4 + 60] ^= 1
        path.write_bytes(data)

    def kept(self, where: Path) -> dict[str, bytes]:
        """Return every file."""
        return {str(file): file.read_bytes() for file in sorted(where.rglob("*")) if file.is_file()}

    def _last_segment(self, where: Path) -> Path:
        return max((where / "log").glob("*.seg"))


class Sqlite:
    """One table in SQLite."""

    def opened(self, where: Path) -> Backend:
        """Open the log in a directory, or make it there."""
        return sqlite_log(where / "log.db", LOG_ID)

    def die_within(self, where: Path, frame: bytes, share: float) -> None:
        """Kill a process in the middle of the transaction, with what does not fit its cache written."""
        dying = start(_DYING_IN_SQLITE, where / "log.db")
        dying.communicate(frame.hex(), timeout=120)
        assert -9 == dying.returncode
        assert share < 1

    def alter(self, where: Path) -> None:
        """Flip a bit of the first event."""
        with closing(sqlite3.connect(where / "log.db")) as database, database:
            ((data,),) = database.execute("select data from frame where first_seq = 1").fetchall()
            bad = bytearray(data)
            bad[32 + 4 + 60] ^= 1
            database.execute("update frame set data = ? where first_seq = 1", (bytes(bad),))

    def kept(self, where: Path) -> dict[str, bytes]:
        """Return the database and its log; not the index of the latter, which is shared memory, and holds locks."""
        return {str(file): file.read_bytes() for file in sorted(where.iterdir()) if not file.name.endswith("-shm")}


KINDS: dict[str, Kind] = {"embedded": Embedded(), "sqlite": Sqlite()}

_DYING_IN_SQLITE = """
import os, signal, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("pragma synchronous=full")
database.execute("pragma cache_size=8")
frame = bytes.fromhex(sys.stdin.read())
database.execute("begin immediate")
((seq,),) = database.execute("select max(last_seq) from frame").fetchall()
database.execute("insert into frame values (?, ?, ?, ?)", (seq + 1, seq + 1, frame[-32:], frame))
os.kill(os.getpid(), signal.SIGKILL)
"""


def sqlite_log(path: Path, log_id: bytes) -> Backend:
    """Open the log in a table of SQLite, or make it."""
    opened: Backend = _example("sqlite_log").SqliteLog(path, log_id)
    return opened


@cache
def _example(name: str) -> ModuleType:
    path = ROOT / "examples" / "log_in_sqlite" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    if spec is None or spec.loader is None:
        raise AssertionError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def event(seq: int, size: int, *, salt: bytes = b"") -> bytes:
    """Return an event of a header and that many bytes, which begin with the salt."""
    numbers = (1, 2, 0, seq, 1000 + seq, b"i" * 16, 0, NO_SLOT, b"n" * 12, NO_COMMITMENT, NO_COMMITMENT, size, 0)
    return EVENT_HEADER.pack(*numbers) + (salt + os.urandom(size))[:size]


def framed(head: ChainHead, *sizes: int, salt: bytes = b"") -> tuple[bytes, ChainHead]:
    """Return a frame of events of these sizes that follows a head, and the head behind it."""
    events = [event(head.seq + 1 + n, size, salt=salt) for n, size in enumerate(sizes)]
    frame, chain = format_frame(head.seq + 1, events, head.chain)
    return frame, ChainHead(head.seq + len(sizes), chain[-1])


def checked(frames: Iterator[bytes], head: ChainHead) -> ChainHead:
    """Follow the chain through frames, and return where it ends; raises where it does not hold."""
    for frame in frames:
        chain = check_frame(frame, *head).chain
        head = ChainHead(head.seq + len(chain), Digest(chain[-1]))
    return head
