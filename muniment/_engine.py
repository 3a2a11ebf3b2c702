"""
The engine: one process's door, keys and projections over one store, put together.

Everything public goes through here under one mutex, so that handles are thread-safe and a write is never split.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from muniment.events import (
    NO_SLOT,
    STORE_SCOPE,
    Batch,
    Body,
    Disk,
    DiskFull,
    Door,
    Draft,
    Event,
    Forgotten,
    Head,
    KeyTree,
    Location,
    Log,
    Moment,
    NoteSigner,
    Plan,
    Rank,
    Reader,
    RollbackAccepted,
    RolledBack,
    Sealer,
    StoreClosed,
    StoreFiles,
    StoreReadOnly,
    ValueKeys,
    WriterLock,
    parse_event_header,
    wall_clock,
)
from muniment.events._log import SEGMENT_BYTES
from muniment.gate import OPERATOR, Admission, Deeds, Guard, Policy, Preparer, StructuredScanner, words_draft
from muniment.projections import Dense, Embedder, Graph, Projections, Snapshots, without_collection
from muniment.replay import Held

from . import _folding
from ._folding import Answering, Folded, Folding, Setting
from ._reach import Reach
from ._witness import Checkpoint, Witness, quietly

_SAVED_AFTER: Final = 65_536
"""Events after which the projections are saved without being asked, so that a kill leaves few to fold again."""


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
        log_key: NoteSigner | None = None,
        anchor: Path | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        graph: bool = False,
    ) -> None:
        self.read_only = read_only
        self.policy = policy or Policy()
        self.load_embedder = load_embedder
        self.mask_secrets = mask_secrets
        self.exempt_secrets = tuple(exempt_secrets)
        self.clock = clock
        self.disk = disk or Disk()
        self.log_key, self.anchor, self.segment_bytes, self.graph = log_key, anchor, segment_bytes, graph


class Engine:
    """A store that is open in this process."""

    def __init__(self, files: StoreFiles, options: Options, version: str) -> None:
        self.files, self.options, self._version = files, options, version
        self.mutex = threading.RLock()
        self._closed = False
        self._pid = os.getpid()
        self.witness = Witness(files, options.disk, key=options.log_key, anchor=options.anchor)
        self._open()

    def _open(self, *, beside: bool = True) -> None:
        options, files = self.options, self.files
        self.keys = KeyTree(files.root_key, files.keys, options.disk)
        self.lock = WriterLock(files.lock, files.log)
        self.log = Log(
            files.log, files.store_id, options.disk, lock=self.lock, read_only=options.read_only,
            segment_bytes=options.segment_bytes,
        )  # fmt: skip
        self.sealer = Sealer(files.store_id, self.keys)
        self._state = self._projections()
        self.door = Door(
            log=self.log,
            keys=self.keys,
            sealer=self.sealer,
            lock=self.lock,
            slots=self._state,
            followers=[self._state],
            clock=options.clock,
            version=self._version,
            mutex=self.mutex,
            read_only=options.read_only,
            chunks_of=lambda forgotten: self.snapshots.touched_by(forgotten, self._state),
            start_again=self._start_again,
        )
        self.snapshots = Snapshots(files.projections, self.keys, self._fold_upto)
        self.graph = Graph(self._state)
        self.values = ValueKeys(self.keys.value_secret)
        scanner = StructuredScanner(options.exempt_secrets)
        self.preparer = Preparer(self.values, scanner, mask_secrets=options.mask_secrets)
        self.admission = Admission(self._state, self.preparer, options.policy)
        self.deeds = Deeds(self._state, self.admission, self.values)
        self.guard = Guard(self._state, options.policy)
        self.dense = Dense(
            self.mutex, self._state.recall, files.projections, self.keys.live_key, options.load_embedder,
            shelf=self.snapshots, beside=not options.read_only, graph=options.graph,
        )  # fmt: skip
        self.rolled_back = 0
        self._saved_at = self.snapshots.load(self.log, self._state)
        # Made by another analyser, or lost: closing saves what is made in their place.
        self._words_wait = self._saved_at > 0 and bool(self._state.recall.unsaved())
        self._folding: Folding | None = None
        try:
            beside = beside and not self._saved_at and self.log.size() > _folding.FOLD_WHILE_OPENING
            # With an anchor the log is compared before anything of it is told.
            if beside and self.witness.is_led_to(lambda: self.reader().log):
                self._begin_beside()
            else:
                with without_collection():
                    self._begin(self.door.catch_up)
        except BaseException:
            self.log.close()
            self.lock.close()
            raise

    def _begin_beside(self) -> None:
        options, shelf = self.options, lambda: Snapshots(self.files.projections, self.keys, self._fold_upto)
        setting = Setting(self.keys, self.values, self.mutex, options.clock, options.read_only, self.reader, shelf)
        self._folding = Folding(setting, lambda between: self._begin(lambda: self.door.catch_up_beside(between)))
        self._folding.start()

    def _begin(self, catch_up: Callable[[], None]) -> None:
        anchor = self.witness.read_anchor()
        if anchor is not None:
            self._state.tree.watch(anchor.tip.size)
        catch_up()
        if self.log.damage is not None and not self.options.read_only:
            raise self.log.damage
        if not self.options.read_only and not self.door.is_settled():
            # A kill may have interrupted a forget. On a disk that is full it waits for the next writer, who says so.
            with suppress(DiskFull, StoreReadOnly):
                self.door.settle()
        if anchor is not None and self.log.damage is None:
            log = self.reader().log
            try:
                self.witness.compare(anchor, self._state.tree, log)
            finally:
                log.close()
        self.witness.note_place(self.head, self._state.tree)
        self.rolled_back = self._missing_erasures()
        if self.rolled_back:
            self._state.erase_shredded(self.keys.shredded, seq=self.head.seq, recorded_at=self.head.recorded_at)
        if anchor is None and self.witness.path is not None and not self.options.read_only:
            self.checkpoint()

    def _missing_erasures(self) -> int:
        # A forget is in the log before its keys are destroyed, so keys that know more than the log mean that an older
        # log was put back. Looked at twice, because another process may have forgotten something just now.
        for _ in range(2):
            if self.keys.epoch <= self._state.register.key_epoch:
                return 0
            self.door.catch_up()
        return self._state.missing_erasures(self.keys.shredded, self.keys.ledger)

    def rollback_draft(self, at: Moment, reason: str) -> Draft:
        """Return what goes on with an older log: what its later part had erased stays erased, and refused."""
        envelope = RollbackAccepted(
            scope=STORE_SCOPE,
            actor=OPERATOR,
            origin=OPERATOR,
            rank=Rank.EXTERNAL,
            erased_slots=tuple(sorted(self.keys.shredded)),
            tombstones=self.keys.ledger,
        )
        return words_draft(envelope, at, reason)

    def append_acceptance(self, plan: Plan) -> Batch | None:
        """Append what accepts the older log, or find it accepted; from then on this process appends again."""
        self._check_open()
        batch = self.door.append(plan)
        self.rolled_back = 0
        log = self.reader().log
        try:
            self.witness.drop_contradicted(log)
        finally:
            log.close()
        return batch

    @property
    def store_id(self) -> bytes:
        """The store's id."""
        return self.files.store_id

    @property
    def state(self) -> Projections:
        """The projections; asked for while the log is folded beside, they are waited for."""
        self._wait_for_all()
        return self._state

    def _wait_for_all(self) -> None:
        if self._folding is not None:
            self._folding.wait()

    @property
    def folded(self) -> Folded | None:
        """How far the fold of the log is, or None when all of it was folded."""
        return None if self._folding is None else self._folding.progress(self.log)

    def answering(self, reach: Reach) -> Answering:
        """Return what answers now about the memories of some scopes as they are; the mutex is held."""
        if self._folding is None or self._closed or self._pid != os.getpid():
            return self
        return self._folding.answering(reach) or self

    @property
    def head(self) -> Head:
        """The last event applied; waited for as `state` is."""
        self._wait_for_all()
        return self.door.head

    def now(self) -> int:
        """Return the present: the wall clock, or the head's record time where that is later."""
        return max(self.options.clock(), self.log.head.recorded_at)

    def refresh(self) -> None:
        """Apply what any process appended since: reads see the present, or raise where the log is damaged."""
        self._check_open()
        self.door.catch_up()
        if self.log.damage is not None and not self.options.read_only:
            raise self.log.damage

    def append(self, plan: Plan) -> Batch | None:
        """Append through the door; raises RolledBack while an older log waits to be accepted."""
        self._check_open()
        if self.rolled_back:
            raise RolledBack(seq=self.head.seq, count=self.rolled_back)
        if self.witness.problem is not None:
            raise self.witness.problem
        batch = self.door.append(plan)
        head = self.log.head
        if self.witness.is_due(batch, head):
            quietly(lambda: self.checkpoint(synced=False), self.witness)
        if (since := head.seq - self._saved_at) > _SAVED_AFTER and since > self._saved_at // 8:
            with self.mutex:
                self._save(words=False)
        return batch

    def checkpoint(self, *, synced: bool = True) -> Checkpoint:
        """Write a checkpoint of the head, and advance the anchor; only made, not written, when opened for reading."""
        self._check_open()
        with self.mutex:
            if self.options.read_only:
                self.door.catch_up()
                return self.witness.make(self.state.tree)[0]
            with self.lock.hold():
                self.door.settle()
                return self.witness.write(self.state.tree, self.head, lambda: self.reader().log, synced=synced)

    def read_body(self, place: Location) -> Body | None:
        """Return an event's body by its place."""
        return self.door.read_body(place)

    def _open_body(self, event: Event) -> Body | None:
        return self.door.open_body(event)

    def _projections(self) -> Projections:
        return Projections(self._open_body, self.read_body, salvage=self.options.read_only)

    def reader(self) -> Reader:
        """Return a reader of its own position, from the first event; the caller closes its log."""
        log = Log(self.files.log, self.files.store_id, self.options.disk, lock=self.lock, read_only=True)
        return Reader(log, Sealer(self.files.store_id, self.keys))

    def settle(self) -> None:
        """Finish a forget that is in the log and was interrupted, so that a receipt may say that it was done."""
        self._check_open()
        if not self.door.is_settled():
            self.door.settle()

    def find_forget(self, identity: bytes) -> Forgotten | None:
        """Return a forget's envelope by its event's id. Reads the log from its start: for receipts asked for again."""
        reader = self.reader()
        try:
            for batch in reader.read_new():
                for event in batch.events:
                    if event.header.id == identity and isinstance(event.envelope, Forgotten):
                        return event.envelope
        finally:
            reader.log.close()
        return None

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

    def save(self, *, closing: bool = False, force: bool = False) -> None:
        """
        Save the projections, so that the next opening starts from here.

        With `closing` nothing is asked after; `force` saves what was saved before, too.
        """
        if self.options.read_only:
            return
        self.dense.save()
        if force or self.head.seq > self._saved_at or self._words_wait or self.dense.signs_wait:
            self._save(words=True, closing=closing)

    def _save(self, *, words: bool, closing: bool = False) -> None:
        with self.lock.hold():
            self.door.settle()
            signs = self.dense.unsaved_signs() if words else ()
            self._saved_at = self.snapshots.save(
                self.head, self.state, self.now(), words=words, closing=closing, signs=signs
            )
            if words:
                self.dense.signs_were_saved()
            self._words_wait = not words

    def _fold_upto(self, seq: int) -> Projections:
        state = self._projections()
        reader = self.reader()
        try:
            with without_collection():
                for batch in reader.read_new():
                    if batch.head.seq > seq:
                        break
                    state.apply(batch)
        finally:
            reader.log.close()
        return state

    def close(self) -> None:
        """Save and release everything. Closing twice is allowed."""
        # Without the mutex: what goes on beside needs it to come to an end.
        self._stop()
        try:
            with self.mutex:
                if self._closed:
                    return
                try:
                    if self._pid == os.getpid() and (self._folding is None or self._folding.is_whole):
                        self.door.leave()
                        self.save(closing=True)
                        if not self.options.read_only and self.witness.is_behind(self.head):
                            self.checkpoint()
                finally:
                    self._closed = True
                    self._release()
        finally:
            # Without the mutex: whoever holds the graph's lock may be waiting for it.
            self.graph.close()

    def abandon(self) -> None:
        """Release everything without saving, as a kill would."""
        self._stop()
        with self.mutex:
            self._closed = True
            self._release()

    @contextmanager
    def hold(self) -> Generator[Held, None, None]:
        """Hold the writer lock for a moment, with nothing left to finish: keys may be kept now."""
        with self.mutex:
            self._check_open()
            with self.lock.hold():
                self.door.settle()
                closed = {scope: seq for scope, (seq, _, _) in self.state.register.closed.items()}
                yield Held(self.keys.epoch, closed, self.snapshots, self.lock.announce_swap)

    def _start_again(self) -> None:
        """Go on from what a rebuild, whoever's it was, has put in the place of what is in memory. The mutex is held."""
        self.keys.reload()
        self.sealer.forget_ciphers()
        state, before = self._state, self._state.recall
        fresh = self._projections()
        saved_at = self.snapshots.load(self.log, fresh)
        if not saved_at:
            self.log.rewind()  # lost since, or made by another version: what is in memory may be wrong all the same
        state.become(fresh)
        self._saved_at = saved_at
        self.guard = Guard(state, self.options.policy)
        self.dense.follow(state.recall)
        with without_collection():
            self.door.catch_up()
        self._words_wait = saved_at > 0 and bool(state.recall.unsaved())
        if self.rolled_back:
            head = self.door.head
            state.erase_shredded(self.keys.shredded, seq=head.seq, recorded_at=head.recorded_at)
        if self.dense.is_outdated() or not state.recall.inherit_vectors(before):
            self.dense.take_again()

    def _stop(self) -> None:
        self.dense.stop()
        if self._folding is not None and self._pid == os.getpid():
            self._folding.stop(StoreClosed(path=str(self.files.path)))

    def _release(self) -> None:
        self.dense.release()
        self.snapshots.close()
        self.log.close()
        self.lock.close()
        self.keys.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(path=str(self.files.path))
        if self._pid != os.getpid():
            # After a fork both processes would share one file position and one idea of the lock.
            self.mutex = threading.RLock()
            self._pid = os.getpid()
            self._release()
            self._open(beside=False)  # the sessions hold a mutex that is no longer this one's
        self._wait_for_all()
