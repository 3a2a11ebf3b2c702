"""
The door: the one function through which every event enters the log (I1).

Under the writer lock, in this order: catch up with what other processes appended; set aside what an unfinished commit
left; finish an erasure that was interrupted; ask admission what may be written, against the state that is now current;
seal; append one frame, durably; let the followers see it; destroy the keys that it condemns.

Admission is somebody else's (`gate` implements it, `muniment` puts the two together): here it is a function from the
moment to drafts, which may raise, and then nothing was written.

Threads that arrive while a frame is being synced are served together by whichever of them comes next: their batches
become one frame, as long as no plan could have seen what another one of them writes. There is no timer and no thread of
our own.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

import msgspec

from ._codec import EVENT_HEADER, parse_event_header
from ._errors import StoreReadOnly
from ._ids import new_id
from ._keys import KeyTree
from ._kinds import Rank
from ._ledger import LedgerTombstone
from ._lock import WriterLock
from ._log import Log
from ._model import (
    Body,
    Draft,
    Forgotten,
    MemoryEnvelope,
    Opened,
)
from ._positions import Head, LocatedFrame, Location
from ._reader import Batch, Event, Follower, Reader
from ._scope import STORE_SCOPE
from ._seal import NONCE_BYTES, Sealer
from ._torn import TornTail

CONTENT_CHUNK = "content/"
"""Chunks of projections whose names begin so hold what was derived from bodies: a forget destroys their keys."""


class Moment(msgspec.Struct, frozen=True, gc=False):
    """When and where the batch that is being admitted will stand; `key_epoch` is what a forget in it must reach."""

    recorded_at: int
    first_seq: int
    key_epoch: int


class ScopeSlots(Protocol):
    """Where the key slot of each scope is known."""

    def scope_slot(self, scope: str) -> int | None:
        """Return the key slot of a scope's envelopes, or None before its first event."""
        ...


Plan = Callable[[Moment], Sequence[Draft]]
_MOST_GROUPED: Final = 1_000
"""Drafts after which a frame takes in no further thread's batch."""


class _Ticket:
    """One caller's plan, and what became of it."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.done = plan, False
        self.planned = self.first = 0
        self._batch: Batch | None = None
        self._error: BaseException | None = None

    def give(self, batch: Batch | None) -> None:
        self._batch, self.done = batch, True

    def fail(self, error: BaseException) -> None:
        self._error, self.done = error, True

    def result(self) -> Batch | None:
        if self._error is not None:
            raise self._error
        return self._batch


class Door:
    """Reads the log for its followers, and appends to it. Thread-safe."""

    def __init__(
        self,
        *,
        log: Log,
        keys: KeyTree,
        sealer: Sealer,
        lock: WriterLock,
        slots: ScopeSlots,
        followers: Sequence[Follower],
        clock: Callable[[], int],
        version: str,
        mutex: threading.RLock | None = None,
        read_only: bool = False,
        chunks_of: Callable[[Forgotten], Collection[str]] | None = None,
        start_again: Callable[[], None] | None = None,
    ) -> None:
        """
        Put the parts together. `mutex` is shared with whoever reads the followers.

        `start_again` is called when a rebuild has swapped what the followers were loaded from: it loads them again,
        and catches up.
        """
        self._log, self._keys, self._sealer, self._lock = log, keys, sealer, lock
        self._reader = Reader(log, sealer)
        self._slots, self._followers, self._clock, self._version = slots, list(followers), clock, version
        self._read_only = read_only
        self._chunks_of = chunks_of or self._content_chunks
        self._mutex = threading.RLock() if mutex is None else mutex
        self._waiting: deque[_Ticket] = deque()
        self._announced = self._left_whole = self._are_keys_known = False
        self._condemned: list[tuple[int, Forgotten]] = []
        self.torn: list[TornTail] = []
        self._start_again = start_again
        # Before anything is loaded: what is swapped from now on is noticed.
        lock.mark()
        self._swap = lock.swap

    @property
    def head(self) -> Head:
        """The last event that this process has applied."""
        return self._log.head

    def catch_up(self) -> None:
        """Apply what was appended since, by whichever process."""
        with self._mutex:
            # Looking for new bytes reads the lock file as well, which tells of a swap.
            behind = self._log.is_behind()
            self._follow_swap()
            if behind:
                for batch in self._reader.read_new():
                    self._show(batch)

    def catch_up_beside(self, between: Callable[[], None]) -> None:
        """
        Apply what was appended since without holding the mutex, calling `between` after each batch; it may raise.

        Only for the thread that opens a store, while everybody else waits to use the door and its followers.
        """
        for batch in self._reader.read_new():
            self._show(batch)
            between()

    def append(self, plan: Plan) -> Batch | None:
        """
        Append what `plan` returns as one batch, durably; None when it returns nothing.

        `plan` is called under the lock, after catching up, and may raise: then nothing is written. It may be called
        again when another thread's write comes first. When this returns, the batch survives any crash, every follower
        has applied it, and the keys that it condemns are gone.
        """
        if self._read_only:
            raise StoreReadOnly(
                path=str(self._lock.store),
                detail="it was opened for reading",
                hint="open it without `read_only=True`",
            )
        ticket = _Ticket(plan)
        self._waiting.append(ticket)
        with self._mutex:
            try:
                self._serve(ticket)
            finally:
                if not ticket.done:
                    self._waiting.remove(ticket)
        return ticket.result()

    def _serve(self, ticket: _Ticket) -> None:
        if ticket.done:
            return
        with self._lock.hold() as outermost:
            if outermost:
                self._take_over()
            while not ticket.done:
                self._commit_group()

    def _commit_group(self) -> None:
        now = max(self._clock(), self._log.head.recorded_at + 1)
        group: list[_Ticket] = []
        drafts: list[Draft] = [] if self._announced else [self._opened(now)]
        touched: set[object] = set()
        written = False
        while self._waiting and len(drafts) < _MOST_GROUPED:
            ticket = self._waiting[0]
            moment = Moment(now, self._log.head.seq + len(drafts) + 1, self._keys.epoch + 1)
            try:
                planned = list(ticket.plan(moment))
            except BaseException as error:  # it belongs to the ticket's own thread, whatever it is
                ticket.fail(error)
                self._waiting.popleft()
                continue
            # Nobody else waits, and whoever comes now may have the next frame.
            touches = _touches(planned) if group or len(self._waiting) > 1 else None
            if group and (touches is None or not touched.isdisjoint(touches)):
                break
            self._waiting.popleft()
            ticket.planned, ticket.first = len(planned), len(drafts)
            group.append(ticket)
            drafts += planned
            written = written or bool(planned)
            if touches is None:
                break
            touched |= touches
        self._commit(group, drafts if written else [], now)

    def is_settled(self) -> bool:
        """Tell whether no commit, no forget and no rotation of the root was interrupted, or is just going on."""
        with self._mutex:
            if self._lock.mark() is not None or not self._keys.is_at_rest():
                return False
            return all(forgotten.key_epoch <= self._keys.epoch for _, forgotten in self._condemned)

    def settle(self) -> None:
        """Bring the files to rest, as the next writer would: torn tail aside, interrupted erasures finished."""
        with self._mutex, self._lock.hold():
            if self._take_over():
                self._left_whole = False
                self._keys.resume()
                self._left_whole = True

    def leave(self) -> None:
        """Cut off the room behind what this process wrote; one that wrote nothing leaves all as it is."""
        if self._announced:
            with self._mutex, self._lock.hold():
                self._take_over()
                self._log.cut_room()

    def open_body(self, event: Event) -> Body | None:
        """Return the body of an event that is in hand; None when it has none, or its key was destroyed."""
        return self._reader.open_body(event)

    def read_body(self, where: Location) -> Body | None:
        """Return the body of an event by its place; None when it has none, or its key was destroyed."""
        with self._mutex:
            return self._reader.read_body(where)

    def _take_over(self) -> bool:
        """Leave things as the next commit needs them; False when they were, and nobody has been here since."""
        self._lock.check_present()
        known = self._left_whole and not self._lock.is_touched and not self._condemned
        if known and self._log.stands_at_end():
            return False
        self._left_whole = self._are_keys_known = False
        # What the lock's last holder left may be anything that a kill leaves.
        if not self._keys.is_current():
            self._keys.resume()
            self._sealer.forget_ciphers()
        self._log.complete()
        self._follow_swap()
        for batch in self._reader.read_new():
            self._show(batch)
        self._finish_erasures()
        torn = self._log.recover(self._condemn_torn)
        if torn is not None:
            self.torn.append(torn)
        self._left_whole, self._lock.is_touched = True, False
        return True

    def _follow_swap(self) -> None:
        before, found = self._swap, self._lock.swap
        if found == before or self._start_again is None:
            return
        self._swap = found  # first: what starts again catches up through this door
        try:
            self._start_again()
        except BaseException:
            self._swap = before
            raise

    def _condemn_torn(self, named: frozenset[int]) -> None:
        # Its headers may be what is missing, or be read from the wrong place: slots are taken in order, so every one
        # goes that a commit of that size could have taken, and none that has no key yet.
        first = self._first_free_slot()
        most = 2 * (1 + len(self._log.remains()) // EVENT_HEADER.size)
        self._follow_keys()
        taken = named.union(range(first, first + most))
        live = {slot for slot in taken if slot < self._keys.capacity} - self._keys.shredded
        if live:
            self._keys.shred(live)
            self._sealer.forget_ciphers()

    def _show(self, batch: Batch) -> None:
        for follower in self._followers:
            follower.apply(batch)
        for event in batch.events:
            if isinstance(event.envelope, Forgotten):
                self._condemned.append((event.header.recorded_at, event.envelope))

    def _commit(self, group: Sequence[_Ticket], drafts: list[Draft], now: int) -> None:
        whole, self._left_whole = self._left_whole, False
        try:
            batch = self._write(drafts, now) if drafts else None
            # Before anyone is told: whoever asked for a forget may be another thread than this one.
            self._finish_erasures()
        except BaseException as error:
            for ticket in group:
                ticket.fail(error)
            raise
        self._left_whole = whole
        for ticket in group:
            if batch is None or not ticket.planned:
                ticket.give(None)
            else:
                ticket.give(Batch(batch.events[ticket.first : ticket.first + ticket.planned], batch.head))

    def _write(self, drafts: list[Draft], now: int) -> Batch:
        scope_slots, slots = self._assign_slots(drafts)
        seq = self._log.head.seq
        nonces = os.urandom(NONCE_BYTES * len(drafts))
        scopes = [scope_slots[draft.envelope.scope] for draft in drafts]
        events = self._sealer.seal_batch(drafts, seq + 1, now, scopes, slots, nonces)
        batch = _batch(self._log.append(events, now), drafts, self._log.head)
        self._announced = True
        self._show(batch)
        return batch

    def _assign_slots(self, drafts: Sequence[Draft]) -> tuple[dict[str, int], list[int]]:
        free = self._first_free_slot()
        scopes: dict[str, int] = {}
        slots: list[int] = []
        for draft in drafts:
            scope = draft.envelope.scope
            if scope not in scopes:
                known = self._slots.scope_slot(scope)
                if known is None:
                    known, free = free, free + 1
                scopes[scope] = known
            if draft.body is not None and draft.slot is None:
                slots.append(free)
                free += 1
            else:
                slots.append(draft.slot or 0)
        if free > self._keys.capacity:
            self._follow_keys()
            self._keys.reserve(free)
        return scopes, slots

    def _follow_keys(self) -> None:
        # Another process may have added pages; while the lock is held, and until another takes it, none does.
        if not self._are_keys_known:
            self._keys.reload()
            self._are_keys_known = True

    def _content_chunks(self, _forgotten: Forgotten) -> Collection[str]:
        return self._keys.content_chunks(CONTENT_CHUNK)

    def _first_free_slot(self) -> int:
        return max(self._log.head.next_slot, self._keys.first_never_shredded)

    def _finish_erasures(self) -> None:
        if not self._condemned:
            return
        condemned = [(at, forgotten) for at, forgotten in self._condemned if forgotten.key_epoch > self._keys.epoch]
        if condemned:
            slots = {slot for _, forgotten in condemned for _, slot in forgotten.targets}
            slots.update(slot for _, forgotten in condemned for slot in forgotten.other_slots)
            # Envelopes hold nothing of a memory's words. But the register keeps what was confirmed, which other slots
            # seal, and a forgotten scope's envelopes go too: then no chunk may stay.
            beyond = any(forgotten.other_slots or forgotten.closed_scope is not None for _, forgotten in condemned)
            self._follow_keys()
            self._keys.shred(
                slots,
                drop_chunks=self._keys.content_chunks("")
                if beyond
                else {name for _, forgotten in condemned for name in self._chunks_of(forgotten)},
                tombstones=[entry for at, forgotten in condemned for entry in ledger_entries(forgotten, at)],
            )
            self._sealer.forget_ciphers()
        self._condemned.clear()

    def _opened(self, now: int) -> Draft:
        return Draft(
            id=new_id(now),
            envelope=Opened(
                scope=STORE_SCOPE,
                actor="muniment",
                origin="muniment",
                rank=Rank.EXTERNAL,
                nonce=os.urandom(16),
                version=self._version,
            ),
        )


def _touches(drafts: Sequence[Draft]) -> set[object] | None:
    # What a plan of another thread could have decided differently by, had it seen these drafts; None when that is not
    # worth telling: such a batch is written alone.
    touched: set[object] = set()
    for draft in drafts:
        envelope = draft.envelope
        if not isinstance(envelope, MemoryEnvelope) or envelope.supersedes is not None:
            return None
        touched.add((envelope.scope, envelope.text_key))
        if envelope.belief_key is not None:
            touched.add((envelope.scope, envelope.belief_key))
        if envelope.command_id is not None:
            touched.add((envelope.scope, envelope.actor, envelope.command_id))
    return touched


def _batch(located: LocatedFrame, drafts: Sequence[Draft], head: Head) -> Batch:
    # What followers would read back, without opening the seals that were just closed.
    frame, segment, offset = located.frame, located.segment, located.offset
    return Batch(
        [
            Event(parse_event_header(raw), draft.envelope, Location(segment, offset + at, len(raw)), link, raw)
            for raw, draft, at, link in zip(frame.events, drafts, frame.offsets, frame.chain, strict=True)
        ],
        head,
    )


def ledger_entries(forgotten: Forgotten, recorded_at: int) -> list[LedgerTombstone]:
    """Return a forget's tombstones as the shred ledger keeps them."""
    return [
        (domain, digest, belief, form, forgotten.scope, forgotten.everyone, forgotten.rank, recorded_at)
        for domain, digest, belief, form in forgotten.tombstones
    ]
