"""The projections of one process, fed together: whoever has one at a head has all of them at that head."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, cast

from muniment.events import (
    Batch,
    Body,
    Event,
    Forgotten,
    LedgerTombstone,
    Location,
    LogCorrupt,
    MemoryBody,
    MemoryEnvelope,
    RollbackAccepted,
    Status,
    normal_form,
)

from ._beliefs import Beliefs
from ._recall import Recall
from ._register import ROLLED_BACK, Register
from ._resolve import retired_from
from ._sections import Buffer, Sections
from ._segments import SEGMENT_BITS
from ._standings import LIVE, Standing
from ._state import FAR_FUTURE, LATEST, Erasure, Memory
from ._tombstones import Tombstones
from ._tree import Tree

# A quarantined record among them: reading the poisoned page again must not undo its quarantine.
_STANDING: Final = frozenset({*LIVE, Status.DISPUTED, Status.PENDING, Status.QUARANTINED})


@contextmanager
def without_collection() -> Generator[None, None, None]:
    """Fold a long log without the cyclic collector, which would go through all that was folded again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Projections:
    """Register, tombstones, recall and tree over one log, and the beliefs that are read from the register."""

    def __init__(
        self,
        open_body: Callable[[Event], Body | None],
        read_body: Callable[[Location], Body | None],
        *,
        salvage: bool = False,
    ) -> None:
        """Begin before the first event. With `salvage`, a body that is damaged is None, and why is in `unreadable`."""
        self.register = Register(open_body)
        self.tombstones = Tombstones()
        self.tree = Tree()
        self.beliefs = Beliefs(self.register)
        self._read_body, self._salvage = read_body, salvage
        self.unreadable: dict[Location, str] = {}
        self.recall = Recall(self.register, self.read_memory)

    @property
    def seq(self) -> int:
        """The last event applied."""
        return self.register.seq

    def become(self, other: Projections) -> None:
        """Hold from now on what other projections of the same log hold, which nobody uses any more."""
        self.register, self.tombstones, self.tree = other.register, other.tombstones, other.tree
        self.beliefs, self.recall = other.beliefs, other.recall

    def apply(self, batch: Batch) -> None:
        """Take in the next batch."""
        self.apply_records(batch)
        self.tombstones.apply(batch)
        self.tree.apply(batch)

    def apply_records(self, batch: Batch) -> None:
        """Take in of the next batch what memories, links and words are read from, and nothing else."""
        self.register.apply(batch)
        self.recall.apply(batch)
        for event in batch.events:
            if isinstance(event.envelope, RollbackAccepted):
                slots = set(event.envelope.erased_slots)
                self.recall.erase(memory.id for memory in self.register.memories.with_slots(slots))

    def erase_shredded(self, slots: Collection[int], *, seq: int, recorded_at: int) -> None:
        """Mark as erased what a forget that this log does not hold has erased: its keys are gone all the same."""
        erasure = Erasure(b"", seq, recorded_at, "unknown", ROLLED_BACK)
        self.recall.erase(self.register.erase_shredded(slots, erasure))

    def missing_erasures(self, slots: Collection[int], ledger: Sequence[LedgerTombstone]) -> int:
        """Return how many destroyed keys and refused values of the key tree the log does not account for."""
        known = {(t.domain, t.digest, t.scope, t.recorded_at) for t in self.tombstones.all}
        # A forgotten scope took its tombstones along: the log accounts for them by having closed it.
        closed = self.register.closed
        unknown = sum(e[4] not in closed and (e[0], e[1], e[4], e[7]) not in known for e in ledger)
        shredded = self.register.memories.with_slots(set(slots)) if slots else []
        return unknown + sum(memory.erasure is None for memory in shredded)

    def erase_later(self, event: Event, envelope: Forgotten) -> None:
        """Mark what a forget after the end of these projections has erased."""
        self.register.note_later_erasure(event, envelope)
        self.recall.forget(envelope)
        if envelope.closed_scope is not None:
            self.tombstones.drop_scope(envelope.closed_scope, event.seq)

    def scope_slot(self, scope: str) -> int | None:
        """Return the key slot of a scope's envelopes, or None before its first event."""
        return self.register.scope_slot(scope)

    def read_memory(self, place: Location) -> MemoryBody | None:
        """Return the words of a memory, or None when they were forgotten."""
        return cast("MemoryBody | None", self.read_body(place))

    def read_body(self, place: Location) -> Body | None:
        """
        Return any event's body, or None when it has none or it was forgotten.

        Raises:
            LogCorrupt: its bytes are no longer those that were read first, and nothing is to be salvaged.
            KeyMissing: its key is gone, and no forget explains it.
        """
        try:
            return self._read_body(place)
        except LogCorrupt as error:
            if not self._salvage:
                raise
            self.unreadable[place] = str(error)
            return None

    def digests(self) -> dict[str, str]:
        """Return a digest of each projection, equal for live and rebuilt ones of the same log."""
        return {
            "beliefs": self.register.digest().hex(),
            "recall": self.recall.digest().hex(),
            "tombstones": self.tombstones.digest().hex(),
            "tree": self.tree.digest().hex(),
        }

    # --- saving -------------------------------------------------------------------------------------------------------

    def sections(self, now: int) -> Iterator[tuple[str, Iterable[Buffer]]]:
        """Yield all but what is derived from bodies, as sections; `now` is the present that beliefs are saved at."""
        yield from self.register.sections()
        yield from self.beliefs.sections(now)
        yield "tombstones", [self.tombstones.save()]
        yield "recall", [self.recall.save()]

    def load(self, sections: Sections, chunks: Collection[int]) -> None:
        """
        Stand on what was saved; `chunks` are those of the words that still have a key.

        Raises:
            ProjectionStale, msgspec.MsgspecError: it is not what was saved.
        """
        self.load_records(sections, chunks)
        self.tombstones.load(sections.between("tombstones", 0, FAR_FUTURE))

    def load_records(self, sections: Sections, chunks: Collection[int]) -> None:
        """Stand on what was saved of memories, links and words; raises as `load` does."""
        self.register.load(sections, self.read_body)
        self.beliefs.load(sections)
        self.recall.load(sections.between("recall", 0, FAR_FUTURE), chunks)

    def chunks_of(self, envelope: Forgotten) -> set[int] | None:
        """Return the chunks of words that hold what a forget erases; None when that is not known: all of them."""
        memories = [self.register.memories.get(identity) for identity, _ in envelope.targets]
        if envelope.closed_scope is not None or any(memory is None for memory in memories):
            return None
        return {memory.seq >> SEGMENT_BITS for memory in memories if memory is not None}

    def standing(self, memory: Memory, *, valid_at: int, known: int = LATEST) -> Standing:
        """Return a memory's status at a point."""
        return self.beliefs.standing(memory, valid_at=valid_at, known=known)

    def is_live(self, memory: Memory, *, valid_at: int) -> bool:
        """Tell whether the memory is offered now."""
        standing = self.standing(memory, valid_at=valid_at)
        return standing.holds and standing.status in LIVE

    def find_live_repeat(
        self, wanted: MemoryEnvelope, *, valid_at: int, applies_when: str | None = None
    ) -> Memory | None:
        """
        Return the live memory that says the same of all that interval, from the same origin and source, or None.

        What holds without a condition says it of every condition; what holds on one, of that condition only.
        """
        for memory in self.register.texts.get((wanted.scope, wanted.text_key), ()):
            other = memory.envelope
            same = (other.belief_key, other.value_key, other.origin, other.source_key, other.many) == (
                wanted.belief_key,
                wanted.value_key,
                wanted.origin,
                wanted.source_key,
                wanted.many,
            )
            if not same or self.standing(memory, valid_at=valid_at).status not in _STANDING:
                continue
            # Said of another interval it is news: passed over, a price would be lost for the months it was not said of.
            if not spans(other, wanted) or retired_from(memory, LATEST) < _end(wanted):
                continue
            if not other.conditional or self._holds_when(memory, applies_when):
                return memory
        return None

    def _holds_when(self, memory: Memory, applies_when: str | None) -> bool:
        body = self.read_memory(memory.place)
        return body is not None and same_condition(body.applies_when, applies_when)


def spans(outer: MemoryEnvelope, inner: MemoryEnvelope) -> bool:
    """Tell whether the interval that one memory states holds that of another."""
    return outer.valid_from <= inner.valid_from and _end(inner) <= _end(outer)


def same_condition(one: str | None, other: str | None) -> bool:
    """Tell whether two conditions are one in their normal form."""
    return one is other is None or (one is not None and other is not None and normal_form(one) == normal_form(other))


def _end(envelope: MemoryEnvelope) -> int:
    return FAR_FUTURE if envelope.valid_to is None else envelope.valid_to
