"""
Opening a long log without a snapshot that fits: the log is folded by a thread of its own, and what can answer does.

What is written, decided or asked of the past waits for the whole. Memories as they are now are read meanwhile

  - from the refused snapshot, where the memories in it are as this program would fold them: at once;
  - otherwise from a fold of the scopes that are asked alone, made before the rest goes on: it takes as long as they do.
    Scopes that hold most of the log have no use for it, and wait.

Both follow the log's tail at each read, as the whole does, and neither is ever saved.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from muniment.events import KeyTree, Log, MunimentError, Reader, ValueKeys
from muniment.projections import Dense, Projections, Snapshots

FOLD_WHILE_OPENING: Final = 32 << 20
"""Bytes of log that an opening waits for, less than a second's worth; more are folded beside."""
_SAMPLE: Final = 16_384
"""Events after which it is known whether some scopes are a small part of the log."""
_WORTHWHILE: Final = 0.5
_PATIENCE: Final = 1.0
"""Seconds for which the fold stands still, at most, so that somebody is answered."""
Between = Callable[[], None]
Wanted = Callable[[str], bool]


class Answering(Protocol):
    """What answers about memories as they are."""

    @property
    def state(self) -> Projections: ...

    @property
    def dense(self) -> Dense: ...

    @property
    def values(self) -> ValueKeys: ...

    def now(self) -> int: ...

    def refresh(self) -> None: ...


class Folded(NamedTuple):
    """How far the fold of a store's log is: the last event folded, and the bytes that it and the whole log end at."""

    events: int
    bytes: int
    of_bytes: int


class Setting(NamedTuple):
    """What the parts of one open store share; a reader is at the first event, and the caller closes its log."""

    keys: KeyTree
    values: ValueKeys
    mutex: threading.RLock
    clock: Callable[[], int]
    read_only: bool
    new_reader: Callable[[], Reader]
    new_shelf: Callable[[], Snapshots]


class Meanwhile:
    """The memories of some scopes, or of all, until the whole log was folded. Words only; used under the mutex."""

    def __init__(self, state: Projections, reader: Reader, setting: Setting) -> None:
        self.state, self.values = state, setting.values
        self.dense = Dense(setting.mutex, state.recall, None, setting.keys.live_key, None)
        self.dense.waits_for = "the log is being folded"
        self._reader, self._setting = reader, setting
        self._erased_at = 0

    def now(self) -> int:
        """Return the present: the wall clock, or the head's record time where that is later."""
        return max(self._setting.clock(), self._reader.head.recorded_at)

    def refresh(self) -> None:
        """Apply what any process appended since."""
        self.catch_up(lambda: None)
        keys = self._setting.keys
        # An older log was put back: what its later part had erased is gone, and is said to be.
        if self.state.register.key_epoch < keys.epoch != self._erased_at:
            self.catch_up(lambda: None)
            head = self._reader.head
            self.state.erase_shredded(keys.shredded, seq=head.seq, recorded_at=head.recorded_at)
            self._erased_at = keys.epoch

    def catch_up(self, between: Between) -> None:
        """Apply the rest of the log, calling `between` after each batch; raises where the log is damaged."""
        log = self._reader.log
        if log.is_behind():
            for batch in self._reader.read_new():
                self.state.apply_records(batch)
                between()
        if log.damage is not None and not self._setting.read_only:
            raise log.damage

    def close(self) -> None:
        """Release the descriptors."""
        self._reader.log.close()


class Folding:
    """The fold of one store's log, by a thread of its own."""

    def __init__(self, setting: Setting, fold: Callable[[Between], None]) -> None:
        """Prepare the fold: `fold` does it, calling what it is given after each batch."""
        self._setting, self._fold = setting, fold
        self._shelf = setting.new_shelf()
        self._standing = self._from_snapshot()
        self._changed = threading.Condition(setting.mutex)
        self._asked: dict[Wanted, None] = {}
        self._answering: dict[Wanted, Meanwhile | None] = {}
        self._stopping, self._over = threading.Event(), False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="muniment-fold", daemon=True)
        self._started = self._lent = 0.0
        weakref.finalize(self, _stop, self._stopping, self._thread)

    def start(self) -> None:
        """Begin."""
        self._started = time.monotonic()
        self._thread.start()

    def wait(self) -> None:
        """Return when the whole log was folded; the caller may hold the mutex, which is let go meanwhile."""
        if threading.current_thread() is self._thread:
            return
        with self._changed:
            while not self._over:
                self._changed.wait()
            if self._error is not None:
                raise self._error

    def answering(self, reach: Wanted) -> Answering | None:
        """Return what answers about the memories of the scopes, waiting for it; None when the whole log was folded."""
        with self._changed:
            while not self._over:
                found = self._standing or self._answering.get(reach)
                if found is not None:
                    return found
                if reach not in self._answering:
                    self._asked[reach] = None
                self._changed.wait()
        self.wait()
        return None

    def progress(self, log: Log) -> Folded | None:
        """Return how far the fold is, by the log that it moves over; None when the whole was folded."""
        if self.is_whole:
            return None
        head = log.head
        before = sum(path.stat().st_size for path in log.segments() if int(path.stem) < head.segment)
        return Folded(head.seq, before + head.offset, log.size())

    @property
    def is_whole(self) -> bool:
        """Tell whether the whole log was folded."""
        return self._over and self._error is None

    def stop(self, error: MunimentError) -> None:
        """End the fold where it is, and wait for that; whoever waits for the whole gets the error."""
        self._stopping.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        with self._changed:
            if not self._over:
                self._finish(error)

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._fold(self._between)
        except _Stopped:
            return
        except BaseException as raised:  # whoever asks next gets it, whatever it is
            error = raised
        with self._changed:
            self._finish(error)

    def _finish(self, error: BaseException | None) -> None:
        self._over, self._error = True, error
        for found in (self._standing, *self._answering.values()):
            if found is not None:
                found.close()
        self._standing = None
        self._answering.clear()
        self._shelf.close()
        self._changed.notify_all()

    def _between(self) -> None:
        if self._stopping.is_set():
            raise _Stopped
        started = time.monotonic()
        # Half of the time at most: what waits for the whole would otherwise wait for ever.
        if self._lent > started - self._started - self._lent:
            return
        self._give_way()
        if self._asked:
            with self._changed:
                reach = next(iter(self._asked))
                del self._asked[reach]
            found = self._fold_scopes(reach)
            with self._changed:
                self._answering[reach] = found
                self._changed.notify_all()
        self._lent += time.monotonic() - started

    def _give_way(self) -> None:
        # Whoever is answering holds the mutex. If the fold went on, an answer would wait for Python's lock, which is
        # handed over every five milliseconds, after each of the many files that it reads.
        if self._setting.mutex.acquire(timeout=_PATIENCE):
            self._setting.mutex.release()

    def _from_snapshot(self) -> Meanwhile | None:
        reader = self._setting.new_reader()
        state = Projections(reader.open_body, reader.read_body)
        if self._shelf.load_records(reader.log, state):
            return Meanwhile(state, reader, self._setting)
        reader.log.close()
        return None

    def _fold_scopes(self, reach: Wanted) -> Meanwhile | None:
        reader = self._setting.new_reader().of_scopes(reach)
        state = Projections(reader.open_body, reader.read_body)
        state.recall.take_from(self._setting.new_shelf())
        found = Meanwhile(state, reader, self._setting)

        def between() -> None:
            if self._stopping.is_set():
                raise _Stopped
            if reader.passed >= _SAMPLE and reader.opened > _WORTHWHILE * reader.passed:
                raise _NotWorthwhile

        try:
            found.catch_up(between)
        except _NotWorthwhile:
            found.close()
            return None
        except BaseException:
            found.close()
            raise
        return found


class _Stopped(Exception):
    """The store is being closed."""


class _NotWorthwhile(Exception):
    """The scopes are most of the log."""


def _stop(stopping: threading.Event, thread: threading.Thread) -> None:
    stopping.set()
    if thread.is_alive() and thread is not threading.current_thread():
        thread.join()
