"""Where a rebuild works: a reader, keys and a shelf of its own, so that it holds up nobody who reads or writes."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from muniment.events import (
    KEY_BYTES,
    Disk,
    KeyTree,
    Log,
    ProjectionStale,
    Reader,
    RebuildRunning,
    Sealer,
    StoreFiles,
    WriterLock,
    open_file,
)
from muniment.projections import NothingSaved, Projections, SealedSections, Snapshots, write_sections


class Held(NamedTuple):
    """
    What is seen while the writer lock is held, and nothing interrupted is left behind.

    `epoch` counts the destructions of keys, `closed` has the sequence numbers at which scopes were forgotten,
    `shelf` is where keys are kept, and `announce_swap` tells all who have the store open of a swap.
    """

    epoch: int
    closed: Mapping[str, int]
    shelf: Snapshots
    announce_swap: Callable[[], None]


class Bench:
    """One rebuild's own eyes on a store. Not thread-safe; the caller closes it."""

    def __init__(self, files: StoreFiles, *, alone: bool) -> None:
        """
        Open the log and the keys as another process would.

        Raises:
            RebuildRunning: with `alone`, when another rebuild of this store has not ended.
        """
        self._files = files
        self._running = _claim(files.projections) if alone else -1
        self._keys = KeyTree(files.root_key, files.keys, Disk())
        self._lock = WriterLock(files.lock, files.log)
        self.log = Log(files.log, files.store_id, Disk(), lock=self._lock, read_only=True)
        self._sealer = Sealer(files.store_id, self._keys)
        self.reader = Reader(self.log, self._sealer)
        self.shelf = Snapshots(files.projections, self._keys, _never, building=True)
        self.saved = Snapshots(files.projections, self._keys, _never)

    def fresh(self) -> Projections:
        """Return projections of the empty log, over this reader, whose words are taken from nothing that was saved."""
        state = Projections(self.reader.open_body, self.reader.read_body)
        state.recall.take_from(NothingSaved())
        return state

    def epoch(self) -> int:
        """Read the keys again, and return how often some were destroyed: what is read from now on is without those."""
        self._keys.reload()
        self._sealer.forget_ciphers()
        return self._keys.epoch

    def live_key(self, slot: int) -> bytes | None:
        """Return the key of a slot, or None when it was destroyed."""
        return self._keys.live_key(slot)

    def rest(self, state: Projections, now: int) -> None:
        """Let the state read from a nameless file outside the store, under a key that is in memory only."""
        key = os.urandom(KEY_BYTES)
        with suppress(OSError), tempfile.NamedTemporaryFile(prefix="muniment-check-") as file:
            path = Path(file.name)
            write_sections(path, key, state.sections(now))
            state.register.rest_on(SealedSections(path, key))

    def close(self) -> None:
        """Release everything, and let others rebuild."""
        self.shelf.close()
        self.saved.close()
        self.log.close()
        self._lock.close()
        self._keys.close()
        if self._running >= 0:
            os.close(self._running)
            self._running = -1


def _claim(directory: Path) -> int:
    directory.mkdir(mode=0o700, exist_ok=True)
    fd = open_file(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise RebuildRunning(path=str(directory.parent)) from error
    return fd


def _never(_seq: int) -> Projections:
    raise ProjectionStale(name="build", detail="what was built so far is damaged")
