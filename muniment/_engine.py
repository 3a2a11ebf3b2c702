"""
The engine: one process's door, keys and projections over one store, put together.

Everything public goes through here under one mutex, so that handles are thread-safe and a write is never split.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

from muniment.events import (
    NO_SLOT,
    STORE_SCOPE,
    Batch,
    Body,
    Disk,
    Door,
    Draft,
    Event,
    Head,
    KeyTree,
    Log,
    Moment,
    Plan,
    Rank,
    Reader,
    RollbackAccepted,
    RolledBack,
    Sealer,
    StoreClosed,
    StoreFiles,
    ValueKeys,
    WriterLock,
    parse_event_header,
    wall_clock,
)
from muniment.gate import OPERATOR, Admission, Deeds, Guard, Policy, Preparer, StructuredScanner, words_draft
from muniment.projections import Dense, Embedder, Place, Projections, location

from ._snapshots import load_snapshots, save_snapshots


class Options:
    """How a store is opened; see `muniment.open`."""

    def __init__(
        self,
        *,
        read_only: bool = False,
        policy: Policy | None = None,
        load_embedder: Callable[[], Embedder] | None = None,
        mask_secrets: bool = False,
        exempt_secrets: Sequence[str] = (),
        clock: Callable[[], int] = wall_clock,
        disk: Disk | None = None,
    ) -> None:
        self.read_only = read_only
        self.policy = policy or Policy()
        self.load_embedder = load_embedder
        self.mask_secrets = mask_secrets
        self.exempt_secrets = tuple(exempt_secrets)
        self.clock = clock
        self.disk = disk or Disk()


class Engine:
    """A store that is open in this process."""

    def __init__(self, files: StoreFiles, options: Options, version: str) -> None:
        self.files, self.options, self._version = files, options, version
        self.mutex = threading.RLock()
        self._closed = False
        self._pid = os.getpid()
        self._open()

    def _open(self) -> None:
        options, files = self.options, self.files
        self.keys = KeyTree(files.root_key, files.keys, options.disk)
        self.lock = WriterLock(files.lock, files.log)
        self.log = Log(files.log, files.store_id, options.disk, lock=self.lock, read_only=options.read_only)
        self.sealer = Sealer(files.store_id, self.keys)
        self.state = Projections(self._open_body, self.read_body)
        self.door = Door(
            log=self.log,
            keys=self.keys,
            sealer=self.sealer,
            lock=self.lock,
            slots=self.state,
            followers=[self.state],
            clock=options.clock,
            version=self._version,
            mutex=self.mutex,
            read_only=options.read_only,
        )
        self.values = ValueKeys(self.keys.value_secret)
        scanner = StructuredScanner(options.exempt_secrets)
        self.preparer = Preparer(self.values, scanner, mask_secrets=options.mask_secrets)
        self.admission = Admission(self.state, self.preparer, options.policy)
        self.deeds = Deeds(self.state, self.admission, self.values)
        self.guard = Guard(self.state, options.policy)
        self.dense = Dense(
            self.mutex,
            self.state.recall,
            files.projections,
            self.keys.slot_key,
            self.state.read_memory,
            options.load_embedder,
        )
        self._saved_at = load_snapshots(self.files.projections, self.keys, self.log, self.state)
        self.door.catch_up()
        if self.log.damage is not None and not options.read_only:
            raise self.log.damage
        self.rolled_back = self._missing_erasures()
        if self.rolled_back:
            self.state.erase_shredded(self.keys.shredded, seq=self.head.seq, recorded_at=self.head.recorded_at)

    def _missing_erasures(self) -> int:
        # A forget is in the log before its keys are destroyed, so keys that know more than the log mean that an older
        # log was put back. Looked at twice, because another process may have forgotten something just now.
        for _ in range(2):
            if self.keys.epoch <= self.state.register.key_epoch:
                return 0
            self.door.catch_up()
        return self.state.missing_erasures(self.keys.shredded, self.keys.ledger)

    def accept_rollback(self, reason: str) -> Event:
        """Go on with an older log, keeping what its later part had erased erased, and refused."""
        self._check_open()

        def plan(at: Moment) -> Draft:
            envelope = RollbackAccepted(
                scope=STORE_SCOPE,
                actor=OPERATOR,
                origin=OPERATOR,
                rank=Rank.EXTERNAL,
                erased_slots=tuple(sorted(self.keys.shredded)),
                tombstones=self.keys.ledger,
            )
            return words_draft(envelope, at, reason)

        event = self._one(self.door.append(lambda at: [plan(at)]))
        self.rolled_back = 0
        return event

    @property
    def head(self) -> Head:
        """The last event applied."""
        return self.door.head

    def now(self) -> int:
        """Return the present: the wall clock, or the head's record time where that is later."""
        return max(self.options.clock(), self.head.recorded_at)

    def refresh(self) -> None:
        """Apply what any process appended since: reads see the present."""
        self._check_open()
        self.door.catch_up()

    def append(self, plan: Plan) -> Batch | None:
        """Append through the door; raises RolledBack while an older log waits to be accepted."""
        self._check_open()
        if self.rolled_back:
            raise RolledBack(seq=self.head.seq, count=self.rolled_back)
        return self.door.append(plan)

    def append_one(self, plan: Callable[[Moment], Draft]) -> Event:
        """Append one event through the door, and return it."""
        return self._one(self.append(lambda at: [plan(at)]))

    def _one(self, batch: Batch | None) -> Event:
        if batch is None:
            raise AssertionError("a plan of one event wrote none")
        return batch.events[0]

    def read_body(self, place: Place) -> Body | None:
        """Return an event's body by its place."""
        return self.door.read_body(location(place))

    def _open_body(self, event: Event) -> Body | None:
        return self.door.open_body(event)

    def reader(self) -> Reader:
        """Return a reader of its own position, from the first event; the caller closes its log."""
        log = Log(self.files.log, self.files.store_id, self.options.disk, lock=self.lock, read_only=True)
        return Reader(log, Sealer(self.files.store_id, self.keys))

    def slots_of_scope(self, scope: str) -> set[int]:
        """Return every key slot that the scope's events name, that of its envelopes included."""
        scope_slot = self.state.register.scopes[scope]
        slots = {scope_slot}
        reader = self.reader()
        try:
            for located in reader.log.read_new():
                headers = [parse_event_header(raw) for raw in located.frame.events]
                slots.update(h.slot for h in headers if h.scope_slot == scope_slot and h.slot != NO_SLOT)
        finally:
            reader.log.close()
        return slots

    def save(self) -> None:
        """Save the projections, so that the next opening starts from here."""
        if self.options.read_only:
            return
        self.dense.save()
        if self.head.seq > self._saved_at:
            with self.lock.hold():
                self.door.settle()
                self._saved_at = save_snapshots(self.files.projections, self.keys, self.head, self.state)

    def close(self) -> None:
        """Save and release everything. Closing twice is allowed."""
        with self.mutex:
            if self._closed:
                return
            try:
                if self._pid == os.getpid():
                    self.save()
            finally:
                self._closed = True
                self.log.close()
                self.lock.close()
                self.keys.close()

    def abandon(self) -> None:
        """Release everything without saving, as a kill would."""
        with self.mutex:
            self._closed = True
            self.log.close()
            self.lock.close()
            self.keys.close()

    def rebuild(self) -> None:
        """Drop what is in memory and on disk of the projections, and fold the log again."""
        self.dense.save()
        for path in self.files.projections.glob("*.snap"):
            path.unlink()
        self.log.close()
        self._open()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(path=str(self.files.path))
        if self._pid != os.getpid():
            # After a fork both processes would share one file position and one idea of the lock.
            self.mutex = threading.RLock()
            self._pid = os.getpid()
            self.log.close()
            self.lock.close()
            self._open()
