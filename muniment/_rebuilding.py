"""Rebuilds a store's projections while it is in use: folds beside, compares, swaps, and takes over what was made."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NamedTuple

from muniment.events import ProjectionStale, StoreReadOnly
from muniment.projections import VectorsAnew, WordsDigest, remove_unfinished_vectors
from muniment.replay import Bench, Progress, Rebuild, RebuildPlan, plan_rebuild

from ._answers import RebuildReport
from ._engine import Engine

Digests = dict[str, str]


class Asked(NamedTuple):
    """What a rebuild was asked for; see `Store.rebuild`."""

    projection: str | None = None
    re_embed: bool = False
    check: bool = False
    embed: bool = True
    progress: Progress | None = None

    def tell(self, step: str) -> Callable[[int, int], None]:
        """Return what tells how far one step is."""
        return lambda done, of: None if self.progress is None else self.progress(step, done, of)


def rebuilt(engine: Engine, asked: Asked) -> RebuildReport:
    """Rebuild, or check, and return what was found; see `Store.rebuild`."""
    if engine.options.read_only and not asked.check:
        raise StoreReadOnly(path=str(engine.files.path), detail="it was opened for reading")
    started = time.perf_counter()
    with _bench(engine, alone=not asked.check) as bench:
        plan = plan_rebuild(bench, engine.head.seq, projection=asked.projection, check=asked.check)
        job = Rebuild(plan, bench, hold=engine.hold, now=engine.now, progress=asked.progress)
        embedded = 0
        try:
            before, after = _carry_out(engine, job, asked)
        except ProjectionStale:
            # What an interrupted rebuild had kept is damaged: nothing of it is believed.
            job.start_over()
            before, after = _carry_out(engine, job, asked)
        if asked.re_embed and not asked.check:
            embedded = _make_vectors_anew(engine, bench, job, asked)
    if not asked.check:
        remove_unfinished_vectors(engine.files.projections)
        if asked.embed and not asked.re_embed:
            embedded = engine.dense.embed_all(asked.tell("embed"))
        engine.dense.save()
    return RebuildReport(
        ok=before == after,
        events=job.state.seq,
        seconds=round(time.perf_counter() - started, 3),
        before=before,
        after=after,
        projections=plan.projections,
        start=plan.start,
        resumed_after=plan.after,
        embedded=embedded,
    )


@contextmanager
def _bench(engine: Engine, *, alone: bool) -> Generator[Bench, None, None]:
    with engine.mutex:
        engine.refresh()
    bench = Bench(engine.files, alone=alone)
    try:
        yield bench
    finally:
        bench.close()


def _carry_out(engine: Engine, job: Rebuild, asked: Asked) -> tuple[Digests, Digests]:
    plan = job.plan
    job.run()
    before, after = _compared(engine, job, asked)
    if not plan.check:
        if plan.projections == ("tombstones",):
            _take_tombstones(engine, job)
        else:
            job.swap(lambda: _complete(engine, job))
        with engine.mutex:
            engine.refresh()  # goes over to what was swapped in, as every other process does
    return before, after


def _compared(engine: Engine, job: Rebuild, asked: Asked) -> tuple[Digests, Digests]:
    """Return the digests of the live projections and of the new ones, at one position. Nobody waits but for moments."""
    names = job.plan.projections
    live, made = WordsDigest(engine.state.recall, only_made=True), WordsDigest(job.state.recall)
    if "recall" in names:
        tell, waiting = asked.tell("compare"), made.waiting()
        for number in waiting:
            made.make(number)
            if number != waiting[-1]:
                job.state.recall.release(number)
            with engine.mutex:
                engine.refresh()
                live.make(number)
            tell(number + 1, len(waiting))
    job.come_near(lambda: engine.head.seq)
    if "recall" in names:
        _made_at_last(made)
    before: Digests = {}
    with engine.mutex:
        engine.refresh()
        job.catch_up(engine.head.seq)
        _erase_rolled_back(engine, job)
        register = engine.state.register.digest_later() if "beliefs" in names else None
        if "recall" in names:
            before["recall"] = live.digest(_made_at_last(made)).hex()
        if "tombstones" in names:
            before["tombstones"] = engine.state.tombstones.digest().hex()
        if "beliefs" in names:
            before["tree"] = engine.state.tree.digest().hex()
    if register is not None:
        before["beliefs"] = register().hex()
    after = _digests_of(job, names, made)
    return dict(sorted(before.items())), after


def _made_at_last(made: WordsDigest) -> WordsDigest:
    for number in made.waiting():
        made.make(number)
    return made


def _digests_of(job: Rebuild, names: tuple[str, ...], words: WordsDigest) -> Digests:
    state, found = job.state, Digests()
    if "beliefs" in names:
        found |= {"beliefs": state.register.digest().hex(), "tree": state.tree.digest().hex()}
    if "recall" in names:
        found["recall"] = words.digest().hex()
    if "tombstones" in names:
        found["tombstones"] = state.tombstones.digest().hex()
    return dict(sorted(found.items()))


def _erase_rolled_back(engine: Engine, job: Rebuild) -> None:
    # While an older log waits to be accepted nothing is appended, so that this holds until the swap.
    if engine.rolled_back:
        head = engine.head
        job.state.erase_shredded(engine.keys.shredded, seq=head.seq, recorded_at=head.recorded_at)


def _complete(engine: Engine, job: Rebuild) -> None:
    """Take from the live projections what was not to be rebuilt, at the position of the new ones."""
    names = job.plan.projections
    with engine.mutex:
        engine.refresh()
        job.catch_up(engine.head.seq)
        if "recall" not in names:
            job.state.recall.trust(engine.state.recall.saved_upto)
        if "tombstones" not in names and engine.head.seq == job.state.seq:
            job.state.tombstones.load(engine.state.tombstones.save())


def _take_tombstones(engine: Engine, job: Rebuild) -> None:
    """Put the new tombstones into the live projections, and save them together."""
    with engine.hold() as held:
        job.catch_up()
        engine.state.tombstones.load(job.state.tombstones.save())
        held.shelf.replace_by_built(None, words=False)
        engine.save(force=True)
        held.announce_swap()


def _make_vectors_anew(engine: Engine, bench: Bench, job: Rebuild, asked: Asked) -> int:
    embedder = engine.dense.embedder()
    if embedder is None:
        if engine.dense.problem is not None:
            raise engine.dense.problem
        return 0
    anew = VectorsAnew(engine.files.projections, embedder, bench.live_key)
    memories = job.state.register.memories
    made = anew.make(
        memories.values(), len(memories), read_body=job.state.read_memory, refresh=bench.epoch,
        progress=asked.tell("embed"),
    )  # fmt: skip
    engine.dense.save()
    anew.swap()
    with engine.hold() as held:
        held.announce_swap()
    with engine.mutex:
        engine.refresh()  # goes over to the new ones, as every other process does
    return made


__all__ = ["Asked", "RebuildPlan", "rebuilt"]
