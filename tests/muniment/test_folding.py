"""A long log without a snapshot that fits is folded beside, and memories are read rightly meanwhile."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path

import pytest

import muniment
from muniment import Action, Session, Store, Subtree
from muniment import _folding as folding
from muniment.errors import AnchorMismatch
from muniment.projections import PROJECTION_VERSIONS, _snapshots
from tests.asking import answers
from tests.processes import run
from tests.worlds import AGENT, SCOPE, World, one_of_each, perform

SIDE, FAR = "acme/side", "globex"
SESSIONS: tuple[tuple[str, tuple[str | Subtree, ...]], ...] = (
    (SCOPE, ()), (SIDE, ()), (FAR, (SCOPE,)), ("acme", (Subtree("acme"),)), ("acme/new", ()),
)  # fmt: skip
Before = tuple[list[dict[str, object]], dict[str, str]]
Spoil = Callable[[Path, pytest.MonkeyPatch], None]


def _versions(at: int) -> Spoil:
    def spoil(_path: Path, patch: pytest.MonkeyPatch) -> None:
        raised = [version + 9_000 * (n == at) for n, version in enumerate(PROJECTION_VERSIONS)]
        patch.setattr(_snapshots, "PROJECTION_VERSIONS", tuple(raised))

    return spoil


def _constant(name: str) -> Spoil:
    return lambda _path, patch: patch.setattr(_snapshots, name, 9_999)


def _delete(path: Path, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(path / "projections")


RECORDS_STAND: dict[str, Spoil] = {
    "normal form": _constant("NORMAL_FORM"),
    "acts": _constant("ACTS_VERSION"),
    "tombstones": _versions(1),
    "tree": _versions(3),
}
RECORDS_DIFFER: dict[str, Spoil] = {"register": _versions(0), "recall": _versions(2), "deleted": _delete}
ALL = RECORDS_STAND | RECORDS_DIFFER
SOME = ("normal form", "register", "deleted")


class Gate:
    """Holds every fold that goes on beside after its first batch; what is asked is served meanwhile."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.go, self.held = threading.Event(), threading.Event()
        between = folding.Folding._between

        def wait(fold: folding.Folding) -> None:
            between(fold)
            self.held.set()
            while not self.go.wait(0.001):
                between(fold)

        patch.setattr(folding.Folding, "_between", wait)
        patch.setattr(folding, "FOLD_WHILE_OPENING", 0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("made") / "store")
    for step in one_of_each():
        perform(world, step)
    for scope in (SIDE, FAR, "acme/side/deep"):
        session = world.speaker(AGENT, scope, reads=(SCOPE,))
        for n in range(4):
            world.clock.advance()
            session.remember(f"the colours of {scope} are red {n}", about=("hall", f"colour {n % 2}"))
        last = session.remember(f"the launch in the hall of {scope} is on Monday", derived_from=[world.ids[0]])
        world.ids += [last.id, *(record.id for record in session.list())]
        session.forget(last.id, reason="asked to")
    world.speaker(AGENT, "acme/old").remember("the launch of a project that was dropped")
    world.ann("acme/old").forget_scope(reason="dropped")
    operator = world.store.operator()
    operator.quarantine([world.ids[-1], world.ids[4]], reason="poisoned")
    operator.forget(world.ids[-2], reason="asked to")
    world.store.close()
    return world


@pytest.fixture
def world(made: World, tmp_path: Path) -> World:
    found = copy(made)
    found.path = tmp_path / "store"
    shutil.copytree(made.path, found.path)
    return found


@pytest.fixture(scope="module")
def before(made: World) -> Before:
    with opened(made) as store:
        return asked(made, store), store.digests()


def asked(world: World, store: Store) -> list[dict[str, object]]:
    sessions = (store.session(scope=scope, actor=AGENT, reads=reads) for scope, reads in SESSIONS)
    found = []
    for session in sessions:
        now = answers(session, world.ids)
        briefing = session.briefing()
        now["proposals"] = [found.to_dict() for found in session.proposals()]
        now["briefing"] = briefing.to_dict()
        now["context"] = session.context("launch monday").text
        found.append(now)
    return found


def opened(world: World, *, read_only: bool = False, anchor: Path | None = None) -> Store:
    return muniment.open(world.path, model="none", clock=world.clock, read_only=read_only, anchor=anchor)


def beside(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    return thread, found


def is_held(store: Store) -> bool:
    return store.folding is not None


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("what", sorted(ALL))
def test_everything_that_is_read_is_answered_while_the_log_is_folded(
    world: World,
    before: Before,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    *,
    read_only: bool,
) -> None:
    ALL[what](world.path, monkeypatch)
    gate = Gate(monkeypatch)
    with opened(world, read_only=read_only) as store:
        assert gate.held.wait(timeout=30)
        assert before[0] == asked(world, store)
        assert is_held(store)
        gate.go.set()
        assert before == (asked(world, store), store.digests())
        assert not is_held(store)
    monkeypatch.setattr(folding, "FOLD_WHILE_OPENING", 1 << 40)
    with opened(world) as store:
        assert read_only or store._engine._saved_at
        assert before == (asked(world, store), store.digests())


@pytest.mark.parametrize("what", SOME)
def test_i05_what_another_process_forgets_meanwhile_is_gone_at_the_next_read(
    world: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    with opened(world) as other:
        speaker = other.session(scope=SCOPE, actor="user")
        secret = speaker.remember("the quinquagenarian hides in the hall", about=("hall", "secret"))
        other._engine.save()
        ALL[what](world.path, monkeypatch)
        gate = Gate(monkeypatch)
        with opened(world) as store:
            assert gate.held.wait(timeout=30)
            session = store.session(scope=SCOPE, actor=AGENT)

            def seen() -> list[object]:
                hits = [hit.content for hit in session.recall("quinquagenarian") if hit.word_rank is not None]
                return [session.get(secret.id).content, [b.content for b in session.beliefs(("hall", "secret"))], hits]

            text = "the quinquagenarian hides in the hall"
            assert [text, [text], [text]] == seen()
            speaker.forget(secret.id, reason="asked to")
            assert [None, [], []] == seen()
            speaker.remember("the hall is empty", about=("hall", "secret"))
            assert ["the hall is empty"] == [b.content for b in session.beliefs(("hall", "secret"))]
            assert is_held(store)
            gate.go.set()
            store.digests()
            assert [None, ["the hall is empty"], []] == seen()
            assert store.rebuild(check=True).ok


@pytest.mark.parametrize("what", SOME)
def test_what_writes_decides_or_asks_of_the_past_waits_for_the_whole(
    world: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    with opened(world) as store:
        head = store.head.seq
        expected = [b.to_dict() for b in store.session(scope=SCOPE, actor=AGENT).beliefs(known_at=head - 3)]
        gone = store.session(scope=SCOPE, actor="user").remember("it will be forgotten").id
    ALL[what](world.path, monkeypatch)
    gate = Gate(monkeypatch)
    with opened(world) as store:
        assert gate.held.wait(timeout=30)
        session, user = store.session(scope=SCOPE, actor=AGENT), store.session(scope=SCOPE, actor="user")
        work: list[Callable[[], object]] = [
            lambda: session.remember("a write waits").status,
            lambda: session.decide(Action("email.send", {"to": "x@example.org"})).allowed,
            lambda: user.forget(gone, reason="asked to").status,
            lambda: [b.to_dict() for b in session.beliefs(known_at=head - 3)],
            lambda: len(session.diff(head - 3)) > 0,
            lambda: store.replay(to=head - 3).seq <= head,
            lambda: len(session.sql("SELECT * FROM memories")[1]) > 0,
        ]
        waiting = [beside(one) for one in work]
        for thread, _ in waiting:
            thread.join(timeout=0.02)
            assert thread.is_alive()
        assert session.recall("launch monday")
        gate.go.set()
        for thread, _ in waiting:
            thread.join(timeout=60)
        found = [got for _, (got,) in waiting]
    assert ["active", False, "erased", expected, True, True, True] == found


@pytest.mark.parametrize("what", SOME)
def test_with_an_anchor_the_log_is_compared_and_then_folded_beside(
    world: World, before: Before, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    anchor = world.path.with_name("anchor.note")
    with opened(world, anchor=anchor) as store:
        size = store.checkpoint().size
    ALL[what](world.path, monkeypatch)
    gate = Gate(monkeypatch)
    with opened(world, anchor=anchor) as store:
        assert gate.held.wait(timeout=30)
        assert before[0] == asked(world, store)
        assert is_held(store)
        waiting, done = beside(store.checkpoint)
        gate.go.set()
        waiting.join(timeout=60)
        assert not is_held(store)
        (checkpoint,) = done
        assert isinstance(checkpoint, muniment.Checkpoint)
        assert size <= checkpoint.size
        assert before == (asked(world, store), store.digests())


@pytest.mark.parametrize("sort", ["truncated", "forked"])
@pytest.mark.parametrize("what", SOME)
def test_i02_what_does_not_extend_the_anchor_is_refused_at_opening_and_nothing_of_it_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch, what: str, sort: str
) -> None:
    anchor, old = world.path.with_name("anchor.note"), world.path.with_name("old")
    opened(world, anchor=anchor).close()
    shutil.copytree(world.path, old)
    with opened(world, anchor=anchor) as store:
        store.session(scope=SCOPE, actor=AGENT).remember("one more")
    shutil.rmtree(world.path)
    old.rename(world.path)
    if sort == "forked":
        with opened(world) as store:
            for text in ("another", "and another"):
                store.session(scope=SCOPE, actor=AGENT).remember(text)
    ALL[what](world.path, monkeypatch)
    started: list[object] = []
    monkeypatch.setattr(folding, "FOLD_WHILE_OPENING", 0)
    monkeypatch.setattr(folding.Folding, "start", started.append)
    with pytest.raises(AnchorMismatch, match=sort):
        opened(world, anchor=anchor)
    assert [] == started


def test_i02_while_the_anchor_is_not_made_opening_waits_and_makes_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _delete(world.path, monkeypatch)
    monkeypatch.setattr(folding, "FOLD_WHILE_OPENING", 0)
    anchor = world.path.with_name("anchor.note")
    with opened(world, anchor=anchor) as store:
        assert not is_held(store)
        assert anchor.exists()


@pytest.mark.parametrize("what", SOME)
def test_a_close_meanwhile_is_quick_and_leaves_the_next_open_right(
    world: World,
    before: Before,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    ALL[what](world.path, monkeypatch)
    gate = Gate(monkeypatch)
    for closed in (True, False):
        store = opened(world)
        assert gate.held.wait(timeout=30)
        session = store.session(scope=SCOPE, actor=AGENT)
        session.beliefs()
        waiting, errors = beside(partial(_error_of, partial(session.remember, "too late")))
        (store.close if closed else store._engine.abandon)()
        waiting.join(timeout=30)
        assert ["store_closed"] == errors
        assert ["store_closed"] == [_error_of(session.beliefs)]
    gate.go.set()
    with opened(world) as store:
        assert before == (asked(world, store), store.digests())


def _error_of(work: Callable[[], object]) -> str:
    try:
        work()
    except muniment.MunimentError as error:
        return error.code
    return "none"


@pytest.mark.parametrize("what", SOME)
def test_two_stores_that_open_at_once_are_both_right(
    world: World,
    before: Before,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    ALL[what](world.path, monkeypatch)
    gate = Gate(monkeypatch)
    with opened(world) as one, opened(world) as other:
        assert [before[0]] * 2 == [asked(world, one), asked(world, other)]
        gate.go.set()
        assert [before] * 2 == [(asked(world, store), store.digests()) for store in (one, other)]


@pytest.mark.parametrize("what", SOME)
def test_damage_that_the_fold_finds_is_raised_by_what_is_called_next(
    world: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    ALL[what](world.path, monkeypatch)
    monkeypatch.setattr(folding, "FOLD_WHILE_OPENING", 0)
    (segment,) = (world.path / "log").glob("*.seg")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    store = opened(world)
    try:
        session = store.session(scope=SCOPE, actor=AGENT)
        for _ in range(2):
            assert "log_corrupt" == _error_of(lambda: session.remember("nothing is written"))
            assert "log_corrupt" == _error_of(session.beliefs)
    finally:
        store.close()
    assert bytes(data) == segment.read_bytes()


@pytest.mark.parametrize("what", SOME)
def test_i05_a_forget_that_a_kill_interrupted_is_finished_after_the_fold(
    world: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    store = opened(world)
    session = store.session(scope=SCOPE, actor="user")
    receipt = session.remember("the quinquagenarian hides in the hall")
    store._engine.save()
    slot = store._engine.state.register.memories[bytes.fromhex(receipt.id)].slot
    keys = store._engine.keys
    monkeypatch.setattr(keys, "shred", _killed)
    with pytest.raises(KeyboardInterrupt):
        session.forget(receipt.id, reason="asked to")
    store._engine.abandon()
    ALL[what](world.path, monkeypatch)
    gate = Gate(monkeypatch)
    with opened(world) as store:
        assert gate.held.wait(timeout=30)
        assert store._engine.keys.live_key(slot) is not None
        assert store.session(scope=SCOPE, actor=AGENT).get(receipt.id).content is None
        gate.go.set()
        store.digests()
        assert store._engine.keys.live_key(slot) is None


def _killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("what", SOME)
def test_what_a_log_that_was_put_back_does_not_know_erased_stays_erased_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    with opened(world) as store:
        session = store.session(scope=SCOPE, actor="user")
        gone = session.remember("the quinquagenarian hides in the hall")
    kept = world.path.with_name("kept")
    shutil.copytree(world.path / "log", kept)
    with opened(world) as store:
        store.session(scope=SCOPE, actor="user").forget(gone.id, reason="asked to")
        store._engine.abandon()
    shutil.rmtree(world.path / "log")
    kept.rename(world.path / "log")
    ALL[what](world.path, monkeypatch)
    gate = Gate(monkeypatch)
    with opened(world) as store:
        assert gate.held.wait(timeout=30)
        session = store.session(scope=SCOPE, actor=AGENT)
        assert (None, "erased") == (session.get(gone.id).content, session.get(gone.id).status)
        assert not [hit for hit in session.recall("quinquagenarian") if hit.word_rank is not None]
        assert is_held(store)
        gate.go.set()
        assert "rolled_back" == _error_of(lambda: session.remember("it waits to be accepted"))


def test_scopes_that_are_most_of_the_log_wait_for_the_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    RECORDS_DIFFER["register"](world.path, monkeypatch)
    monkeypatch.setattr(folding, "_SAMPLE", 1)
    monkeypatch.setattr(folding, "_WORTHWHILE", 0.3)
    gate = Gate(monkeypatch)
    with opened(world) as store:
        session: Session = store.session(scope=SCOPE, actor=AGENT)
        waiting, found = beside(lambda: len(session.recall("launch monday")))
        far = store.session(scope="nowhere", actor=AGENT)
        waiting.join(timeout=0.1)
        assert waiting.is_alive()
        gate.go.set()
        waiting.join(timeout=30)
        assert found[0]
        assert [] == far.beliefs()


def test_the_fold_stands_still_while_somebody_is_answered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that reads many files would otherwise wait for Python's lock at each of them."""
    RECORDS_STAND["normal form"](world.path, monkeypatch)
    monkeypatch.setattr(folding, "FOLD_WHILE_OPENING", 0)
    start, between, batches = folding.Folding.start, folding.Folding._between, list[int]()

    def answered_first(fold: folding.Folding) -> None:
        fold._setting.mutex.acquire()
        start(fold)

    def counted(fold: folding.Folding) -> None:
        between(fold)
        batches.append(1)

    monkeypatch.setattr(folding.Folding, "start", answered_first)
    monkeypatch.setattr(folding.Folding, "_between", counted)
    with opened(world) as store:
        time.sleep(0.1)
        folded = len(batches)
        store._engine.mutex.release()
        assert 0 == folded
        store.stats()
        assert len(batches) > 1


def test_how_far_the_fold_is_can_be_asked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(world) as store:
        head = store.head.seq
    RECORDS_DIFFER["register"](world.path, monkeypatch)
    gate = Gate(monkeypatch)
    with opened(world) as store:
        assert gate.held.wait(timeout=30)
        found = store.folding
        assert found is not None
        assert 0 < found.events < head
        assert 0 < found.bytes < found.of_bytes == (world.path / "log" / "0000000000000001.seg").stat().st_size
        assert found._asdict() == store.stats(wait=False)["folding"]
        assert store.stats(wait=False)["memories"] is None
        gate.go.set()
        store.digests()
        assert (None, None) == (store.folding, store.stats()["folding"])
        assert store.stats()["memories"]


@pytest.mark.parametrize("what", SOME)
def test_i05_a_scope_that_another_process_forgets_meanwhile_is_gone_at_the_next_read(
    world: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    with opened(world) as other:
        other._engine.save()
        ALL[what](world.path, monkeypatch)
        gate = Gate(monkeypatch)
        with opened(world) as store:
            assert gate.held.wait(timeout=30)
            wide = store.session(scope=FAR, actor=AGENT, reads=(SIDE,))
            near = store.session(scope=SIDE, actor=AGENT)
            assert near.list()
            assert {FAR, SIDE} == {record.scope for record in wide.list()}
            other.user_session(scope=SIDE, principal="user:ann", signer=world.key).forget_scope(reason="dropped")
            assert [[], [], []] == [near.list(), near.beliefs(), near.recall("colours red")]
            assert {FAR} == {hit.scope for hit in wide.recall("colours red")} == {r.scope for r in wide.list()}
            assert is_held(store)
            gate.go.set()
            assert [[], {FAR}] == [near.list(), {record.scope for record in wide.list()}]


FORKING = """
import os, sys, threading
import muniment
from muniment import _folding
between = _folding.Folding._between
held, parent = threading.Event(), os.getpid()
def wait(fold):
    held.set()
    while os.getpid() == parent and not go.wait(0.001):
        between(fold)
    between(fold)
go = threading.Event()
_folding.Folding._between, _folding.FOLD_WHILE_OPENING = wait, 0
store = muniment.open(sys.argv[1], model="none")
assert held.wait(30)
session = store.session(scope="acme/side", actor="agent:planner")
before = [belief.to_dict() for belief in session.beliefs()]
child = os.fork()
if child == 0:
    assert before and before == [belief.to_dict() for belief in session.beliefs()]
    session.remember("said by the child")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert "said by the child" in [record.content for record in session.list()]
assert store.folding is not None
go.set()
assert "said by the child" in [record.content for record in session.list()]
print(store.verify().ok, session.remember("said by the parent").status)
store.close()
"""


def test_a_process_that_forks_meanwhile_folds_the_log_itself(world: World) -> None:
    shutil.rmtree(world.path / "projections")
    assert "True active" == run(FORKING, world.path).strip()
