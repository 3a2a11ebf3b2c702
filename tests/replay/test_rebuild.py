"""A rebuild goes on beside everybody else, ends in what the log says, and is taken up again where it was stopped."""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muniment
from muniment import KeyFile, Session, Store
from muniment.events import BadArgument, RebuildRunning, StoreReadOnly, find_store
from muniment.projections._segments import ScopeWords, Segment
from muniment.replay import PROJECTIONS, Bench, Held, Rebuild, plan_rebuild
from tests import processes
from tests.erasure.stores import AGENT, RARE, SCOPE, SECRET, ann, create_store, open_store, readable

EVENTS = 40
WRITER = """
import os, sys, muniment
with muniment.open(sys.argv[1], model="none") as store:
    store.session(scope="acme/apollo", actor="agent:other").remember(f"said by process {os.getpid()}")
"""


class Stopped(BaseException):
    """As a kill would: nothing after the place where it is raised is done."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let forty events be a long log: the state is kept every eight, and a chunk of words has eight."""
    monkeypatch.setattr("muniment.replay._rebuild.KEPT_EVERY", 8)
    monkeypatch.setattr("muniment.replay._rebuild._CHUNKS_AT_ONCE", 2)
    for module in ("_segments", "_recall", "_bundle"):
        monkeypatch.setattr(f"muniment.projections.{module}.SEGMENT_BITS", 3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def key(path: Path) -> KeyFile:
    key = create_store(path)
    with open_store(path) as store:
        fill(agent(store), EVENTS)
    return key


def agent(store: Store, scope: str = SCOPE) -> Session:
    return store.session(scope=scope, actor=AGENT)


def fill(session: Session, count: int, start: int = 0) -> list[str]:
    return [
        session.remember(f"note {n} of the harbour", about=("ship", f"berth {n % 5}"), value=str(n)).id
        for n in range(start, start + count)
    ]


def stop_at(step: str, done: int | None = 0) -> Callable[[str, int, int], None]:
    def progress(now: str, at: int, of: int) -> None:
        if now == step and at >= (of if done is None else done):
            raise Stopped

    return progress


def interrupt(path: Path, step: str, done: int | None = 0, *, re_embed: bool = False) -> None:
    """Leave what a rebuild leaves that is killed there."""
    store = open_store(path)
    with pytest.raises(Stopped):
        store.rebuild(progress=stop_at(step, done), embed=False, re_embed=re_embed)
    store._engine.abandon()


def built(path: Path) -> list[str]:
    with open_store(path) as store:
        keys = store._engine.keys
        return keys.content_chunks("build/") + keys.content_chunks("content/build/")


def files(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "projections").iterdir())


def folded(path: Path) -> dict[str, str]:
    """Return the digests of a copy of the store that has no projections to start from."""
    copy = path.with_name("copy")
    shutil.copytree(path, copy)
    shutil.rmtree(copy / "projections")
    with muniment.open(copy, model="none", read_only=True) as store:
        digests = store.digests()
    shutil.rmtree(copy)
    return digests


def changes(store: Store) -> None:
    """Change the live projections as a fault in the code would: nothing of it is in the log."""
    engine = store._engine
    engine.state.register.refusals[SCOPE, "made_up"] = 7
    engine.state.tombstones.all.clear()
    engine.save(force=True)


# --- the plan ---------------------------------------------------------------------------------------------------------


def test_a_plan_says_what_is_folded_and_what_the_projections_are_made_with(path: Path, key: KeyFile) -> None:
    head = open_store(path).head.seq
    bench = Bench(find_store(path), alone=True)
    whole, words = plan_rebuild(bench, head), plan_rebuild(bench, head, projection="recall")
    check = plan_rebuild(bench, head, projection="recall", check=True)
    bench.close()

    assert (PROJECTIONS, "origin", 0, head) == (whole.projections, whole.start, whole.after, whole.until)
    assert ("snapshot", head, head) == (words.start, words.after, words.until)
    assert ("origin", 0, True) == (check.start, check.after, check.check)
    assert {"recall"} == set(words.fingerprints)
    assert set(PROJECTIONS) == set(whole.fingerprints)


def test_a_plan_takes_up_what_an_interrupted_rebuild_has_kept(path: Path, key: KeyFile) -> None:
    interrupt(path, "words")
    bench = Bench(find_store(path), alone=True)
    plan = plan_rebuild(bench, 100)
    bench.close()

    assert "partial" == plan.start
    assert 0 < plan.after <= plan.until


def test_there_are_three_projections_to_name(path: Path, key: KeyFile) -> None:
    with (
        open_store(path) as store,
        pytest.raises(BadArgument, match="expected recall, beliefs, tombstones, got `tree`"),
    ):
        store.rebuild("tree")


# --- what comes out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("projection", [None, *PROJECTIONS])
def test_what_was_rebuilt_answers_as_before_and_as_a_fold_of_the_log(
    path: Path, key: KeyFile, projection: str | None
) -> None:
    with open_store(path) as store:
        hits = [(hit.id, hit.score) for hit in agent(store).recall("harbour 7", k=20)]
        beliefs = agent(store).beliefs()
        report = store.rebuild(projection)
        assert (True, store.head.seq) == (report.ok, report.events)
        assert report.before == report.after
        assert hits == [(hit.id, hit.score) for hit in agent(store).recall("harbour 7", k=20)]
        assert beliefs == agent(store).beliefs()
    with open_store(path) as store:
        assert hits == [(hit.id, hit.score) for hit in agent(store).recall("harbour 7", k=20)]
        agent(store).remember("and after it")
        assert folded(path) == store.digests()


def test_the_report_has_the_digests_that_the_store_has(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        assert store.digests() == store.rebuild().before == store.rebuild(check=True).after


@pytest.mark.parametrize(("projection", "differing"), [("beliefs", "beliefs"), ("tombstones", "tombstones")])
def test_a_projection_that_is_not_the_log_s_is_found_and_replaced(
    path: Path, key: KeyFile, projection: str, differing: str
) -> None:
    with open_store(path) as store:
        agent(store).forget(agent(store).remember("wrong").id, reason="asked")
        changes(store)
        check = store.rebuild(projection, check=True)
        assert not check.ok
        assert not store.rebuild(projection, check=True).ok, "a check repairs nothing"
        report = store.rebuild(projection)
        assert [differing] == [name for name in report.before if report.before[name] != report.after[name]]
        assert store.rebuild(projection, check=True).ok
        assert ("tombstones" == projection) == (not store.rebuild("beliefs", check=True).ok)
    with open_store(path) as store:
        assert store.rebuild(projection, check=True).ok
        assert store.rebuild().ok is False
        assert store.rebuild(check=True).ok


def test_a_check_writes_nothing_and_needs_no_right_to_write(path: Path, key: KeyFile) -> None:
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    with muniment.open(path, model="none", read_only=True) as store:
        assert store.rebuild(check=True).ok
        with pytest.raises(StoreReadOnly):
            store.rebuild()
    assert before == {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_vectors_are_kept_and_missing_ones_made(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        assert EVENTS == store.embed()
        vectors = [hit.dense_score for hit in agent(store).recall("harbour")]
        agent(store).remember("one more")
        assert 1 == store.rebuild().embedded
        assert vectors == [hit.dense_score for hit in agent(store).recall("harbour") if hit.content != "one more"]
        assert EVENTS + 1 == store.rebuild(re_embed=True).embedded
        assert vectors == [hit.dense_score for hit in agent(store).recall("harbour") if hit.content != "one more"]


# --- beside the others ------------------------------------------------------------------------------------------------


def test_others_write_and_read_at_every_step(path: Path, key: KeyFile) -> None:
    """Neither the store's mutex nor the writer lock is held when progress is told: whoever comes then is served."""
    served: set[str] = set()
    with open_store(path) as store:

        def progress(step: str, done: int, _of: int) -> None:
            def visit() -> None:
                agent(store).remember(f"while {step} was at {done}")
                assert agent(store).recall("harbour")
                served.add(step)

            thread = threading.Thread(target=visit)
            thread.start()
            thread.join(timeout=20)

        report = store.rebuild(re_embed=True, progress=progress)

        assert {"fold", "words", "compare"} <= served
        assert report.ok
        assert store.head.seq >= report.events > EVENTS
        assert folded(path) == store.digests()


def test_another_process_writes_meanwhile(path: Path, key: KeyFile) -> None:
    told: list[str] = []
    with open_store(path) as store:

        def progress(step: str, _done: int, _of: int) -> None:
            if step in ("words", "compare") and step not in told:
                told.append(step)
                processes.run(WRITER, path)

        assert store.rebuild(progress=progress, embed=False).ok
        assert len(told) == sum(str(r.content).startswith("said by process") for r in agent(store).list(limit=1000))
        assert folded(path) == store.digests()
    with open_store(path) as store:
        assert folded(path) == store.digests()
        assert [] == [name for name in files(path) if name.endswith(".part")]


def test_two_rebuilds_of_one_store_do_not_run_at_once(path: Path, key: KeyFile) -> None:
    refused: list[str] = []
    with open_store(path) as store, open_store(path) as other:

        def progress(_step: str, _done: int, _of: int) -> None:
            with pytest.raises(RebuildRunning) as caught:
                other.rebuild()
            refused.append(caught.value.code)

        assert store.rebuild(progress=progress, embed=False).ok
        assert {"rebuild_running"} == set(refused)
        assert other.rebuild(embed=False).ok


def test_the_state_is_handed_over_to_files_while_it_is_folded(
    path: Path, key: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded: what was kept is read from its file, and words are let go of."""
    jobs: list[Rebuild] = []
    held: list[tuple[int, int]] = []

    def progress(step: str, _done: int, _of: int) -> None:
        if step == "words":
            state = jobs[0].state
            words = sum(len(partition.words._segments) for partition in state.recall._partitions.values())
            held.append((len(state.register.timeline.table.fresh), words))

    class Recording(Rebuild):
        def run(self) -> None:
            jobs.append(self)
            super().run()

    monkeypatch.setattr("muniment._rebuilding.Rebuild", Recording)
    with open_store(path) as store:
        store.rebuild(progress=progress, embed=False)
    assert held
    assert max(events for events, _ in held) <= 16 < EVENTS
    assert {0} == {words for _, words in held}


# --- stopped, and taken up again --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "done"), [("fold", 1), ("fold", 20), ("words", 0), ("words", 4), ("compare", 1)])
def test_a_rebuild_that_was_stopped_leaves_the_live_ones_right_and_is_taken_up(
    path: Path, key: KeyFile, step: str, done: int
) -> None:
    interrupt(path, step, done)

    with open_store(path) as store:
        assert folded(path) == store.digests()
        agent(store).remember("between the two")
        report = store.rebuild(embed=False)
        assert report.ok
        assert ("partial" if (step, done) > ("fold", 8) or step != "fold" else "origin") == report.start
        assert folded(path) == store.digests()
    assert [] == built(path)
    with open_store(path) as store:
        assert store.head.seq == store._engine._saved_at or store._engine._saved_at > 0
        assert folded(path) == store.digests()


def test_words_that_were_made_before_the_stop_are_not_made_again(
    path: Path, key: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(path, "words", 4)
    before = [name for name in built(path) if name.startswith("content/")]
    assert len(before) >= 2
    read: list[int] = []
    with open_store(path) as store:
        extend = ScopeWords._extend

        def count(self: ScopeWords, segment: Segment, end: int) -> None:
            read.append(end)
            extend(self, segment, end)

        monkeypatch.setattr(ScopeWords, "_extend", count)
        assert store.rebuild(embed=False).ok
    assert 0 < len(read) <= EVENTS // 8 + 2 - len(before) + 1


def test_vectors_that_were_made_before_the_stop_are_not_made_again(
    path: Path, key: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muniment.projections._anew._AT_ONCE", 10)
    with open_store(path) as store:
        store.embed()
    interrupt(path, "embed", 20, re_embed=True)
    assert any(name.endswith(".anew") for name in files(path))
    with open_store(path) as store:
        assert agent(store).recall("harbour")[0].dense_score is not None
        assert 0 < store.rebuild(re_embed=True).embedded < EVENTS
        assert 0 == store.embed()
        assert agent(store).recall("harbour")[0].dense_score is not None
    assert not any(name.endswith(".anew") for name in files(path))


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
@pytest.mark.parametrize("step", ["fold", "words"])
def test_a_damaged_partial_is_never_believed(path: Path, key: KeyFile, damage: str, step: str) -> None:
    with open_store(path) as store:
        saved = set(files(path))
        store._engine.abandon()
    interrupt(path, step, 30 if step == "fold" else 4)
    for name in set(files(path)) - saved:
        file = path / "projections" / name
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 8
        file.unlink()
        if damage != "remove":
            file.write_bytes(data if damage == "flip" else data[: len(data) // 3])
    with open_store(path) as store:
        assert folded(path) == store.digests()
        assert store.rebuild(embed=False).ok
        assert folded(path) == store.digests()
    assert [] == built(path)


def test_what_is_left_of_older_ones_and_of_a_killed_writer_is_removed(path: Path, key: KeyFile) -> None:
    interrupt(path, "words", 4)
    folder = path / "projections"
    for name in (
        "state-0-0.99999.part",
        "state-0123456789abcdef-00.snap",
        "words-0-00000000-00.snap",
        "vectors-0.anew",
    ):
        (folder / name).write_bytes(b"left behind")
    with open_store(path) as store:
        assert store.rebuild(embed=False).ok
        keys = store._engine.keys
        names = keys.content_chunks("state/") + keys.content_chunks("content/")
        assert len(names) == len(files(path))
        assert 1 == len(keys.content_chunks("state/"))


def test_a_file_that_somebody_is_writing_is_not_taken_for_a_leftover(
    path: Path, key: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rebuild writes without the writer lock: whoever saves meanwhile tidies up, and must leave it alone."""
    with open_store(path) as store, open_store(path) as other:
        tidied: list[str] = []
        hold = store._engine.hold

        def save_first() -> AbstractContextManager[Held]:
            if not tidied:
                tidied.extend(name for name in files(path) if name.endswith(".part"))
                agent(other).remember("something to save")
                other._engine.save(force=True)
                assert tidied == [name for name in files(path) if name.endswith(".part")]
            return hold()

        monkeypatch.setattr(store._engine, "hold", save_first)
        assert store.rebuild(embed=False).ok
        assert tidied


# --- forgets meanwhile ------------------------------------------------------------------------------------------------


def _told_secret(path: Path) -> str:
    with open_store(path) as store:
        identity = agent(store).remember(SECRET).id
        agent(store).remember("the last word")
        return identity


@pytest.mark.parametrize("by", ["this process", "another handle"])
@pytest.mark.parametrize("step", ["fold", "words", "compare"])
def test_i05_what_is_forgotten_during_a_rebuild_is_in_no_file_of_it(
    path: Path, key: KeyFile, step: str, by: str
) -> None:
    identity = _told_secret(path)
    told: list[list[str]] = []
    with open_store(path) as store, open_store(path) as other:

        def progress(now: str, done: int, of: int) -> None:
            if now == step and done == of and not told:
                agent(other if by == "another handle" else store).forget(identity, reason="asked")
                told.append(readable(path, RARE))

        assert store.rebuild(progress=progress).ok
        assert [[]] == told
        assert [] == readable(path, RARE)
        assert folded(path) == store.digests()
        assert SECRET not in [hit.content for hit in agent(store).recall(RARE, k=100)]
    with open_store(path) as store:
        assert folded(path) == store.digests()
    assert [] == readable(path, RARE)


@pytest.mark.parametrize("step", ["words", "compare"])
def test_i05_a_partial_that_was_left_behind_keeps_nothing_of_what_is_forgotten(
    path: Path, key: KeyFile, step: str
) -> None:
    identity = _told_secret(path)
    interrupt(path, step, None)
    assert any(":content/build/" in where for where in readable(path, RARE)), "the control"
    store = open_store(path)
    agent(store).forget(identity, reason="asked")
    assert [] == readable(path, RARE)
    assert store.rebuild(embed=False).ok
    assert [] == readable(path, RARE)
    assert folded(path) == store.digests()
    store.close()


@pytest.mark.parametrize("step", ["fold", "words", "compare"])
def test_i05_a_scope_that_is_forgotten_during_a_rebuild_leaves_no_envelope_in_it(
    path: Path, key: KeyFile, step: str
) -> None:
    with open_store(path) as store:
        store.session(scope=SCOPE, actor="agent:distinctivename").remember(SECRET)
        fill(agent(store, "acme/other"), 20)
    told: list[list[str]] = []
    with open_store(path) as store:

        def progress(now: str, done: int, of: int) -> None:
            if now == step and done >= of * 3 // 4 and not told:
                ann(store, key).forget_scope(reason="the customer left")
                told.append(readable(path, "agent:distinctivename", RARE))
            elif told:
                told.append(readable(path, "agent:distinctivename", RARE))

        assert store.rebuild(progress=progress, embed=False).ok
        assert not any(told)
        assert folded(path) == store.digests()
        assert 20 == len(agent(store, "acme/other").list(limit=100))
    assert [] == readable(path, "agent:distinctivename", RARE)


def test_a_forget_that_was_interrupted_is_finished_before_anything_is_kept(
    path: Path, key: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log says that it is forgotten, and its key is still there: what is kept now would be readable for ever."""
    identity = _told_secret(path)
    done: list[bool] = []
    with open_store(path) as store, open_store(path) as other:

        def progress(step: str, at: int, of: int) -> None:
            if step == "words" and at == of and not done:
                done.append(True)
                with monkeypatch.context() as patch:
                    patch.setattr(other._engine.keys, "shred", _stop)
                    with pytest.raises(Stopped):
                        agent(other).forget(identity, reason="asked")

        assert store.rebuild(progress=progress, embed=False).ok
        assert done
        other._engine.abandon()
    assert [] == readable(path, RARE)


def _stop(*_: object, **__: object) -> None:
    raise Stopped


# --- any history ------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000), stops=st.lists(st.integers(1, 40), max_size=3))
@settings(max_examples=5, deadline=None)
def test_any_deeds_during_any_rebuild_end_in_what_the_log_says(
    tmp_path_factory: pytest.TempPathFactory, seed: int, stops: list[int]
) -> None:
    path, drawn = tmp_path_factory.mktemp("any") / "store", random.Random(seed)
    key = create_store(path)
    ids: list[str] = []
    store = open_store(path)
    ids += fill(agent(store), 20)

    def deed() -> None:
        session, some = agent(store), drawn.choice(ids)
        try:
            match drawn.randrange(8):
                case 0:
                    ids.extend(fill(session, 3, drawn.randrange(1000)))
                case 1:
                    session.forget(some, reason="asked")
                case 2:
                    session.retire(some, reason="no longer so")
                case 3:
                    ids.append(session.supersede(some, f"instead {drawn.random()}").id)
                case 4:
                    agent(store, "acme/side").remember(f"aside {drawn.random()}")
                case 5 if drawn.random() < 0.3:
                    ann(store, key, "acme/side").forget_scope(reason="gone")
                case 6:
                    store._engine.save(force=True)
                case _:
                    session.recall("harbour")
        except muniment.MunimentError as error:
            if not isinstance(error, (muniment.Refused, muniment.InvalidInput)):
                raise

    for stop in [*stops, 10**9]:
        left = [stop]

        def progress(_step: str, _done: int, _of: int, left: list[int] = left) -> None:
            left[0] -= 1
            if not left[0]:
                raise Stopped
            if drawn.random() < 0.5:
                deed()

        try:
            assert store.rebuild(drawn.choice((None, None, *PROJECTIONS)), progress=progress, embed=False).ok
        except Stopped:
            store._engine.abandon()
            store = open_store(path)
        assert folded(path) == store.digests()
    assert store.rebuild(embed=False).ok
    store.close()
    with open_store(path) as store:
        assert folded(path) == store.digests()
    assert [] == built(path)
    assert os.listdir(path / "projections")
