"""
The rebuild: a plan, and the fold that carries it out beside the live projections.

Everything is made anew from the log under names of its own, while others read and write. At intervals what is done so
far is kept, sealed as snapshots are, so that the next run after a kill goes on from there. The writer lock is held for
moments only: when a key is kept. Steps, with what a crash after each leaves:

    1. fold: now and then the state so far is kept as `build/GENERATION`: the next rebuild goes on from it
    2. words: each few chunks are kept as `content/build/CHUNK`: likewise
    3. the state at the end is written beside: a file that no key opens
    4. one revision of the key table names all of it instead of what was there: the new generation counts from here on
    5. what no name stands for any more is removed: leftovers, which the next save removes
    6. the lock file says that there was a swap: until then whoever has the store open goes on with what is in memory

A forget meanwhile drops the keys of built words as it does those of saved ones. Whatever was read before some key was
destroyed is not kept after it, but read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

from muniment.events import BadArgument, ProjectionStale
from muniment.projections import FAR_FUTURE, Made, fingerprints

from ._bench import Bench, Held

PROJECTIONS: Final = ("recall", "beliefs", "tombstones")
KEPT_EVERY: Final = 65_536
"""Events after which the state is kept; more in a long log, so that keeping it takes a small part of the time."""
_CHUNKS_AT_ONCE: Final = 4
_ATTEMPTS: Final = 5
_NEAR: Final = 256
Hold = Callable[[], AbstractContextManager[Held]]
Progress = Callable[[str, int, int], None]


class RebuildPlan(NamedTuple):
    """
    What a rebuild will do: fold the events after `after` up to `until`, and what others append meanwhile.

    `start` is `origin`, `partial` (what a rebuild that was interrupted has kept) or `snapshot` (the saved register, on
    which only words are made anew).
    """

    projections: tuple[str, ...]
    fingerprints: Mapping[str, str]
    start: str
    after: int
    until: int
    check: bool = False


def plan_rebuild(bench: Bench, until: int, *, projection: str | None = None, check: bool = False) -> RebuildPlan:
    """
    Return the plan for one projection, or for all. A check starts from the first event and keeps nothing.

    Raises:
        BadArgument: there is no such projection.
    """
    if projection is not None and projection not in PROJECTIONS:
        raise BadArgument(argument="projection", detail=f"expected {', '.join(PROJECTIONS)}, got `{projection}`")
    names = PROJECTIONS if projection is None else (projection,)
    start, after = "origin", 0
    if not check:
        shelf, start = (bench.saved, "snapshot") if names == ("recall",) else (bench.shelf, "partial")
        after = shelf.load(bench.log, bench.fresh(), words=bench.shelf)
        bench.log.rewind()
    # A snapshot that is ahead of the log is none of this log: the log would not have confirmed it.
    made_with = {name: found for name, found in fingerprints().items() if name in names}
    return RebuildPlan(names, made_with, start if after else "origin", after, max(until, after), check)


class Rebuild:
    """A plan under way. Not thread-safe, and in nobody's way."""

    def __init__(
        self, plan: RebuildPlan, bench: Bench, *, hold: Hold, now: Callable[[], int], progress: Progress | None = None
    ) -> None:
        self.plan, self._bench, self._hold, self._now = plan, bench, hold, now
        self._tell = progress or _say_nothing
        self.state = bench.fresh()
        self._told = 0

    def run(self) -> None:
        """Do what takes long: fold, and make the words. What comes meanwhile is left to `catch_up` and `swap`."""
        bench, plan = self._bench, self.plan
        if plan.start != "origin":
            shelf = bench.shelf if plan.start == "partial" else bench.saved
            try:
                shelf.load(bench.log, self.state, words=bench.shelf)
                self._fold()
            except ProjectionStale:
                self.start_over()
        elif not plan.check:
            self.state.recall.take_from(bench.shelf)
        self._fold()
        if not plan.check and "recall" in plan.projections:
            self._make_words()

    def catch_up(self, until: int = FAR_FUTURE) -> None:
        """Fold what was appended since, up to the end of the batch that holds a sequence number."""
        if self.state.seq >= until:
            return
        for batch in self._bench.reader.read_new():
            self.state.apply(batch)
            if batch.head.seq >= until:
                return
        if self._bench.log.damage is not None:
            raise self._bench.log.damage

    def come_near(self, head: Callable[[], int]) -> None:
        """Catch up until hardly anything is left."""
        while head() - self.state.seq > _NEAR:
            self._bench.epoch()
            self.catch_up()

    def start_over(self) -> None:
        """Drop what was folded so far, and begin at the first event."""
        bench = self._bench
        bench.epoch()
        bench.log.rewind()
        self._told, self.state = 0, bench.fresh()
        self.state.recall.take_from(bench.shelf)
        self.plan = self.plan._replace(start="origin", after=0)

    def swap(self, prepare: Callable[[], None]) -> None:
        """
        Put what was built in the place of what is saved, at once and wholly.

        `prepare` is called each time before the state is written.
        """
        for _ in range(_ATTEMPTS):
            if self._try_swap(prepare):
                return
        with self._hold():
            # Forgets came faster than the state is written: now nobody forgets.
            if not self._try_swap(prepare):
                raise AssertionError("a key was destroyed under the lock")

    # --- the fold -----------------------------------------------------------------------------------------------------

    def _fold(self) -> None:
        reader, state, until = self._bench.reader, self.state, self.plan.until
        # Not to the end, which others move: that is for `catch_up`.
        while state.seq < until:
            due = state.seq + max(KEPT_EVERY, state.seq // 16)
            for batch in reader.read_new():
                state.apply(batch)
                self._say("fold", state.seq, until)
                if state.seq >= min(due, until):
                    break
            else:
                break
            if state.seq < until:
                self._keep_state()
                state = self.state
        if reader.log.damage is not None:
            raise reader.log.damage

    def _keep_state(self) -> None:
        bench, head = self._bench, self._bench.log.head
        if self.plan.check:
            bench.rest(self.state, self._now())
            return
        if self.plan.start == "snapshot":
            return
        made = bench.shelf.write_state(head, self.state, self._now())
        try:
            with self._hold() as held:
                overtaken = self._holds_a_closed_scope(held)
                if not overtaken:
                    held.shelf.keep([made], instead_of=("build/",))
        finally:
            made.drop()
        if overtaken:
            self.start_over()
            return
        bench.epoch()
        bench.shelf.stand_on(made, head, self.state)

    def _holds_a_closed_scope(self, held: Held) -> bool:
        # Its envelopes are in here, and its key was destroyed: nothing that was read with that may be written.
        scopes = self.state.register.scopes
        return any(seq > self.state.seq and scope in scopes for scope, seq in held.closed.items())

    # --- words --------------------------------------------------------------------------------------------------------

    def _make_words(self) -> None:
        recall = self.state.recall
        self._told = 0
        while True:
            self._bench.epoch()
            # Keys may be gone although nothing in the chunk was forgotten: some forgets drop them all.
            recall.unsave(recall.saved_upto.keys() - self._bench.shelf.chunks())
            todo = recall.unsaved()
            if not todo:
                return
            done = recall.chunks - len(todo)
            for start in range(0, len(todo), _CHUNKS_AT_ONCE):
                group = todo[start : start + _CHUNKS_AT_ONCE]
                self._make_chunks(group)
                self._say("words", done + start + len(group), recall.chunks)

    def _make_chunks(self, chunks: list[int]) -> None:
        bench, recall = self._bench, self.state.recall
        epoch = bench.epoch()
        built = bench.shelf.chunks()
        made: list[Made] = []
        try:
            for chunk in chunks:
                recall.absorb_chunk(chunk)
                if chunk not in built or recall.differs(chunk):
                    made.append(bench.shelf.write_words(recall, chunk))
            with self._hold() as held:
                kept = held.epoch == epoch and not self._holds_a_closed_scope(held)
                if kept and made:
                    held.shelf.keep(made)
        finally:
            for one in made:
                one.drop()
        for chunk in chunks:
            if kept:
                recall.saved_chunk(chunk)
            recall.release(chunk)
        if not kept:
            self.catch_up()

    # --- the end ------------------------------------------------------------------------------------------------------

    def _try_swap(self, prepare: Callable[[], None]) -> bool:
        bench = self._bench
        epoch = bench.epoch()
        self.catch_up()
        words = "recall" in self.plan.projections
        if words:
            self._make_words()
        prepare()
        made = bench.shelf.write_state(bench.log.head, self.state, self._now())
        try:
            with self._hold() as held:
                if held.epoch != epoch:
                    return False
                held.shelf.replace_by_built(made, words=words)
                held.announce_swap()
                return True
        finally:
            made.drop()

    def _say(self, step: str, done: int, of: int) -> None:
        if done >= min(self._told, of):
            self._tell(step, done, of)
            self._told = done + max(1, of // 100)


def _say_nothing(_step: str, _done: int, _of: int) -> None:
    pass
