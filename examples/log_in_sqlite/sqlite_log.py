"""
A log in one table of SQLite, as it would be in one table of PostgreSQL.

    first_seq  the frame's first event: the primary key, and so the compare-and-set
    last_seq   the frame's last event
    chain      the chain hash of that one
    data       the frame, as it is

Row 0 holds the log's id and the chain hash before the first event, so that the head is always the last row.

The one statement that appends asks for the head and inserts behind it. Where two of them see the same head, as they can
in PostgreSQL, both insert the same key, and one is refused; SQLite lets one write at a time anyway. In WAL with
`synchronous=FULL` a commit is synced before it returns.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from muniment.events import (
    BadArgument,
    ChainHead,
    Digest,
    DiskFailed,
    DiskFull,
    LogCorrupt,
    StoreReadOnly,
    WriterPoisoned,
    check_frame,
    genesis,
    head_moved,
    wait_for,
)

MAKE = """
begin immediate;
create table if not exists frame (
    first_seq integer primary key, last_seq integer not null, chain blob not null, data blob not null
);
"""
FIRST = "insert or ignore into frame values (0, 0, ?, ?)"
APPEND = """
insert into frame select :first_seq, :last_seq, :chain, :data
where (:expected_seq, :expected_chain) = (select last_seq, chain from frame order by first_seq desc limit 1)
"""
HEAD = "select last_seq, chain from frame order by first_seq desc limit 1"
HOLDING = "select max(first_seq) from frame where first_seq <= ?"
PAGE = "select first_seq, last_seq, data from frame where first_seq >= ? order by first_seq limit 16"
NOTHING_WRITTEN = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)


class SqliteLog:
    """A `muniment.events.LogBackend`; one object is one thread's."""

    def __init__(self, path: Path, log_id: bytes) -> None:
        """Open the log of that id, or make it."""
        self._path = path
        self._poisoned = False
        self._database = sqlite3.connect(path, isolation_level=None, timeout=60)
        try:
            with self._typed():
                self._open(log_id)
        except BaseException:
            self.close()
            raise

    def append(self, expected_seq: int, expected_chain: bytes, frame: bytes) -> None:
        """Append one frame, as `LogBackend.append` promises."""
        chain = check_frame(frame, expected_seq, expected_chain).chain
        if self._poisoned:
            raise WriterPoisoned(step="append", detail="an earlier one has an unknown outcome")
        row = {
            "expected_seq": expected_seq, "expected_chain": expected_chain, "first_seq": expected_seq + 1,
            "last_seq": expected_seq + len(chain), "chain": chain[-1], "data": frame,
        }  # fmt: skip
        with self._typed():
            try:
                appended = self._database.execute(APPEND, row).rowcount == 1
            except sqlite3.IntegrityError:
                appended = False
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode & 0xFF in NOTHING_WRITTEN:
                    raise
                self._poisoned = True
                raise WriterPoisoned(step="append", detail=str(error)) from error
        if not appended:
            raise head_moved(expected_seq, expected_chain, self.head())

    def read(self, from_seq: int) -> Iterator[bytes]:
        """Yield frames, as `LogBackend.read` promises."""
        if from_seq < 1:
            raise BadArgument(argument="from_seq", detail=f"expected 1 or more, got {from_seq}")
        return self._frames(from_seq)

    def head(self) -> ChainHead:
        """Return the head."""
        with self._typed():
            seq, chain = self._database.execute(HEAD).fetchone()
        return ChainHead(seq, Digest(chain))

    def wait(self, seq: int, timeout: float | None = None) -> bool:
        """Wait for an event, as `LogBackend.wait` promises. PostgreSQL would tell: LISTEN here, NOTIFY in `append`."""
        return wait_for(self.head, seq, timeout)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _open(self, log_id: bytes) -> None:
        run = self._database.execute
        run("pragma synchronous=full")
        if run("select 1 from sqlite_master where name = 'frame'").fetchone() is None:
            run("pragma journal_mode=wal")
            self._database.executescript(MAKE)
            run(FIRST, (genesis(log_id), log_id))
            run("commit")
        (found,) = run("select data from frame where first_seq = 0").fetchone()
        if found != log_id:
            raise BadArgument(argument="log_id", detail=f"`{self._path}` holds another log")

    def _frames(self, from_seq: int) -> Iterator[bytes]:
        # By pages: a statement that is not read to its end would hold its view of the database, and the WAL with it.
        with self._typed():
            (first,) = self._database.execute(HOLDING, (from_seq,)).fetchone()
        first = max(first, 1)
        while True:
            with self._typed():
                page = self._database.execute(PAGE, (first,)).fetchall()
            if not page:
                return
            for first_seq, last_seq, data in page:
                if last_seq >= from_seq:
                    yield data
                first = first_seq + 1

    @contextmanager
    def _typed(self) -> Generator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            match error.sqlite_errorcode & 0xFF:
                case sqlite3.SQLITE_FULL:
                    raise DiskFull(what="the log") from error
                case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                    raise StoreReadOnly(path=str(self._path), detail=str(error)) from error
                case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                    where = self._path.name
                    raise LogCorrupt(seq=0, segment=where, offset=0, detail=str(error)) from error
                case _:
                    raise DiskFailed(what="the log", detail=str(error)) from error
