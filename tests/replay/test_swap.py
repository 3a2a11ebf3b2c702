"""Whoever has a store open goes over to what a rebuild has swapped in at the next read, write or save."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from muniment import Store
from muniment._engine import Engine, Options
from muniment._version import VERSION
from muniment.events import WriterLock, find_store
from muniment.events._lock import Mark
from muniment.projections import Fate, FateKind
from tests import processes
from tests.erasure.stores import AGENT, SCOPE, Letters, clock, create_store, open_store

REBUILD = """
import sys, muniment
with muniment.open(sys.argv[1], model="none") as store:
    print(store.rebuild(embed=False).ok)
"""
HOLDS = """
import sys, muniment
store = muniment.open(sys.argv[1], model="none", read_only=sys.argv[2] == "r")
mem = store.session(scope="acme/apollo", actor="agent:planner")
loads, load = [], store._engine.snapshots.load
store._engine.snapshots.load = lambda *args: loads.append(None) or load(*args)

def answer(asked):
    if asked == "beliefs":
        return [one.content for one in mem.beliefs(about=("ship", "berth"))]
    if asked == "recall":
        return [hit.content for hit in mem.recall("berth of the ship")]
    if asked == "sql":
        return mem.sql("SELECT status FROM memories WHERE subject = 'ship'")[1]
    if asked == "door":
        try:
            return mem.remember("the password is swordfish").status
        except muniment.Refused as error:
            return error.code
    if asked == "loads":
        return len(loads)
    store.close()

print(flush=True)
for line in sys.stdin:
    print(answer(line.strip()), flush=True)
"""


class Holder:
    """Another process that has the store open."""

    def __init__(self, path: Path, mode: str = "w") -> None:
        self._process = processes.start(HOLDS, path, mode)
        self._answer()

    def ask(self, what: str) -> str:
        """Return what the other process prints."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        """End the process as a kill would."""
        self._process.kill()
        self._process.communicate(timeout=30)


def damage(store: Store, belief: str) -> None:
    """Save projections as a fault in the code would leave them: the belief is retired, and nothing was forgotten."""
    state = store._engine.state
    memory = state.register.memories[bytes.fromhex(belief)]
    memory.fates = (Fate(FateKind.RETIRED, memory.seq, memory.recorded_at, memory.id, AGENT, 1, until=0),)
    state.register.memories.changed(memory)
    state.tombstones.all.clear()
    store._engine.save(force=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a store whose saved projections are wrong."""
    path = tmp_path / "store"
    create_store(path)
    store = open_store(path)
    mem = store.session(scope=SCOPE, actor=AGENT)
    mem.forget(mem.remember("the password is swordfish").id, reason="asked")
    damage(store, mem.remember("the berth of the ship is 7", about=("ship", "berth")).id)
    store._engine.abandon()
    return path


def rebuild(path: Path) -> str:
    return processes.run(REBUILD, path).strip()


RIGHT = {
    "beliefs": "['the berth of the ship is 7']",
    "recall": "['the berth of the ship is 7']",
    "sql": "[('active',)]",
    "door": "tombstoned",
}
WRONG = {"beliefs": "[]", "recall": "[]", "sql": "[('retired',)]", "door": "active"}


@pytest.mark.parametrize("asked", RIGHT)
def test_another_process_that_holds_wrong_projections_answers_rightly_at_its_next_question(
    path: Path, asked: str
) -> None:
    holder = Holder(path)
    try:
        assert WRONG["beliefs"] == holder.ask("beliefs")
        assert WRONG["sql"] == holder.ask("sql")
        assert "False" == rebuild(path)
        assert RIGHT[asked] == holder.ask(asked)
        assert "1" == holder.ask("loads")
        assert RIGHT == {question: holder.ask(question) for question in RIGHT}
        assert "1" == holder.ask("loads"), "once for each swap"
    finally:
        holder.end()


def test_without_a_rebuild_it_goes_on_with_what_it_loaded(path: Path) -> None:
    """The control: the damage is one that nothing else notices."""
    holder = Holder(path)
    try:
        assert WRONG == {question: holder.ask(question) for question in WRONG}
        assert "0" == holder.ask("loads")
    finally:
        holder.end()


def test_a_store_that_is_open_for_reading_goes_over_too(path: Path) -> None:
    holder = Holder(path, "r")
    try:
        assert WRONG["beliefs"] == holder.ask("beliefs")
        assert "False" == rebuild(path)
        before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
        assert RIGHT["beliefs"] == holder.ask("beliefs")
        assert before == {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    finally:
        holder.end()


def test_what_is_wrong_in_memory_only_is_dropped_as_well(path: Path) -> None:
    """The rebuild finds no difference then, and cannot know."""
    assert "False" == rebuild(path)
    with open_store(path) as store:
        mem = store.session(scope=SCOPE, actor=AGENT)
        (belief,) = mem.beliefs()
        memory = store._engine.state.register.memories[bytes.fromhex(belief.id)]
        memory.fates = (Fate(FateKind.RETIRED, memory.seq, memory.recorded_at, memory.id, AGENT, 1, until=0),)
        store._engine.state.register.memories.changed(memory)
        assert [] == mem.beliefs()
        assert "True" == rebuild(path)
        assert [belief] == mem.beliefs()


def test_a_process_that_only_closes_does_not_save_the_wrong_ones_over_the_right_ones(path: Path) -> None:
    holder = Holder(path)
    try:
        assert WRONG["door"] == holder.ask("door")  # something to save at the end
        assert "False" == rebuild(path)
        assert "None" == holder.ask("close")
    finally:
        holder.end()
    assert "True" == rebuild(path)


def test_a_scope_that_is_forgotten_between_the_swap_and_the_next_read_leaves_no_snapshot_and_the_log_is_folded(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store"
    key = create_store(path)
    with open_store(path) as store, open_store(path) as other:
        mem = store.session(scope=SCOPE, actor=AGENT)
        mem.remember("the berth of the ship is 7", about=("ship", "berth"))
        other.session(scope="acme/side", actor=AGENT).remember("aside")
        assert other.rebuild(embed=False).ok
        other.user_session(scope="acme/side", principal="user:ann", signer=key).forget_scope(reason="gone")
        assert ["the berth of the ship is 7"] == [one.content for one in mem.beliefs()]
        assert 0 == store._engine._saved_at
        assert store.rebuild(check=True).ok


def test_vectors_stay_where_the_rows_are_the_same(path: Path) -> None:
    with open_store(path) as store:
        mem = store.session(scope=SCOPE, actor=AGENT)
        mem.remember_many([{"content": f"note {n} of the harbour"} for n in range(20)])
        assert 21 == store.embed()
        scores = [(hit.id, hit.dense_score) for hit in mem.recall("the harbour")]
        vectors = store._engine.state.recall.partition(SCOPE)
        assert "False" == rebuild(path)
        assert scores == [(hit.id, hit.dense_score) for hit in mem.recall("the harbour")]
        again = store._engine.state.recall.partition(SCOPE)
        assert vectors is not again
        assert 0 == store.embed()


class Backwards(Letters):
    """The same model by its name, as a fault in the code would have computed it."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the letters counted from the wrong end."""
        return super().embed(texts)[:, ::-1]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question, which is right."""
        return Letters().embed_query(text)


def open_backwards(path: Path) -> Store:
    return Store(Engine(find_store(path), Options(load_embedder=Backwards, clock=clock), VERSION), created=False)


def cosine(store: Store, text: str = "the harbour") -> float | None:
    """Return how near the note is to its own words."""
    (hit,) = [hit for hit in store.session(scope=SCOPE, actor=AGENT).recall(text) if hit.content == text]
    return hit.dense_score


@pytest.mark.parametrize("saved", [True, False], ids=["vectors kept before", "vectors not kept yet"])
def test_vectors_that_another_process_made_anew_are_taken_at_the_next_question(path: Path, saved: bool) -> None:
    with open_backwards(path) as holder, open_store(path) as other:
        holder.session(scope=SCOPE, actor=AGENT).remember_many([{"content": "the harbour"}, {"content": "zebra"}])
        assert 3 == holder.embed()
        if saved:
            holder._engine.dense.save()
        wrong = cosine(holder)
        assert 3 == other.rebuild(re_embed=True).embedded

        right = cosine(other)
        assert right == cosine(holder)
        assert wrong != right
        assert 0 == holder.embed()
    with open_store(path) as store:
        assert right == cosine(store)


def test_vectors_that_others_made_anew_are_not_replaced_by_what_is_saved_late(path: Path) -> None:
    """Between the swap of the vectors and the word of it, or where nobody asks before the end."""
    holder = open_backwards(path)
    mem = holder.session(scope=SCOPE, actor=AGENT)
    mem.remember("the harbour")
    holder.embed()
    holder._engine.dense.save()
    late = mem.remember("zebra").id
    holder.embed()
    with open_store(path) as other:
        other.rebuild(re_embed=True)
        right = cosine(other), cosine(other, "zebra")
    holder._engine.dense.save()
    holder._engine.abandon()

    with open_store(path) as store:
        assert right == (cosine(store), cosine(store, "zebra"))
        assert late in {record.id for record in store.session(scope=SCOPE, actor=AGENT).list()}


def test_vectors_stay_in_memory_where_another_model_s_are_all_that_is_left(path: Path) -> None:
    with open_store(path) as holder:
        holder.session(scope=SCOPE, actor=AGENT).remember("the harbour")
        assert 2 == holder.embed()
        holder._engine.dense.save()
        asked = cosine(holder)
        for file in (path / "projections").glob("vectors-*"):
            file.unlink()
        assert holder.rebuild(embed=False).ok is False
        assert asked == cosine(holder)
        assert 0 == holder.embed()


@pytest.mark.parametrize("projection", ["tombstones", "beliefs", "recall"])
def test_a_rebuild_of_one_projection_is_noticed_too(path: Path, projection: str) -> None:
    with open_store(path) as store, open_store(path) as other:
        register = other._engine.state.register
        store.rebuild(projection, embed=False)
        other.session(scope=SCOPE, actor=AGENT).beliefs()
        assert register is not other._engine.state.register


def test_a_swap_is_told_behind_the_mark_and_outlives_it(tmp_path: Path) -> None:
    one, other = (WriterLock(tmp_path / "lock", tmp_path) for _ in range(2))
    with one.hold():
        assert (None, b"") == (other.mark(), other.swap)
        one.announce_swap()
        assert other.mark() is None
        told = other.swap
        assert 8 == len(told)
        one.set_mark(Mark(1, 4711))
        assert (Mark(1, 4711), told) == (other.mark(), other.swap)
        one.clear_mark()
        assert (None, told) == (other.mark(), other.swap)
        one.announce_swap()
        other.mark()
        assert told != other.swap
    one.close()
    other.close()
