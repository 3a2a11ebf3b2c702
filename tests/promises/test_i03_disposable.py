"""I3: `projections/` may be deleted at any time; live and rebuilt projections have equal digests after every event."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings

import muniment
from muniment import Action
from tests.asking import answers
from tests.strategies import histories
from tests.worlds import AGENT, SCOPE, START, Step, World, one_of_each, perform

MakeWorld = Callable[[], World]


def _rebuilt_digests(world: World) -> dict[str, str]:
    """Return the digests of a second handle that finds no snapshot and folds the log from its first event."""
    shutil.rmtree(world.path / "projections", ignore_errors=True)
    with world.open_again() as other:
        digests = other.digests()
    shutil.rmtree(world.path / "projections", ignore_errors=True)
    return digests


def test_i03_digests_are_equal_live_and_rebuilt_after_every_kind_of_event(world: World) -> None:
    for step in one_of_each():
        perform(world, step)

        assert _rebuilt_digests(world) == world.store.digests(), step


def test_i03_digests_are_equal_after_a_scope_was_forgotten(world: World) -> None:
    for step in one_of_each():
        perform(world, step)
    world.speaker(AGENT, "acme/zeus").remember("another scope")
    receipt = world.ann().forget_scope(reason="the customer left")
    assert _rebuilt_digests(world) == world.store.digests()

    world.ann().lift(receipt.id or "", reason="the customer came back")
    world.reopen()
    world.speaker(AGENT).remember("a new beginning")
    assert _rebuilt_digests(world) == world.store.digests()


@given(history=histories)
@settings(max_examples=60, deadline=None)
def test_i03_digests_are_equal_after_any_history(make_world: MakeWorld, history: list[Step]) -> None:
    world = make_world()
    for step in history:
        perform(world, step)

    assert _rebuilt_digests(world) == world.store.digests()


@given(history=histories)
@settings(max_examples=30, deadline=None)
def test_i03_a_store_without_its_projections_answers_the_same(make_world: MakeWorld, history: list[Step]) -> None:
    world = make_world()
    for step in history:
        perform(world, step)
    before = answers(world.speaker(AGENT), world.ids)
    denied = world.speaker(AGENT).decide(Action("email.send", {"to": "red"}), dry_run=True)
    refused = _what_is_refused(world)

    world.store.close()
    shutil.rmtree(world.path / "projections")
    world.store = world.open_again()

    assert before == answers(world.speaker(AGENT), world.ids)
    again = world.speaker(AGENT).decide(Action("email.send", {"to": "red"}), dry_run=True)
    assert (denied.allowed, denied.reasons, denied.prohibition) == (again.allowed, again.reasons, again.prohibition)
    assert refused == _what_is_refused(world)


def _what_is_refused(world: World) -> list[tuple[str, str, bool]]:
    return [(view.scope, view.how, view.lifted) for view in world.store.operator().tombstones()]


@given(history=histories)
@settings(max_examples=30, deadline=None)
def test_i03_a_snapshot_in_mid_history_is_followed_by_the_rest(make_world: MakeWorld, history: list[Step]) -> None:
    """Closing saves a snapshot; opening starts from it. The answers are those of a log that was folded in one go."""
    world = make_world()
    for step in history[: len(history) // 2]:
        perform(world, step)
    world.reopen()
    for step in history[len(history) // 2 :]:
        perform(world, step)

    live = world.store.digests()
    assert live == _rebuilt_digests(world)


def _damages(projections: Path) -> list[Callable[[], object]]:
    def each(change: Callable[[Path], object]) -> Callable[[], object]:
        return lambda: [change(path) for path in projections.iterdir()]

    return [
        each(lambda path: path.unlink()),
        each(lambda path: path.write_bytes(b"")),
        each(lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])),
        each(lambda path: path.write_bytes(path.read_bytes()[:-1] + b"?")),
        each(lambda path: path.write_bytes(bytes(path.stat().st_size))),
        lambda: sorted(projections.iterdir())[0].unlink(),
        lambda: sorted(projections.iterdir())[-1].write_bytes(b"not a snapshot"),
    ]


@pytest.mark.parametrize("damage", range(7))
def test_i03_a_damaged_projection_is_made_anew_and_never_believed(world: World, damage: int) -> None:
    for step in one_of_each():
        perform(world, step)
    before, digests = answers(world.speaker(AGENT), world.ids), world.store.digests()
    world.store.close()

    _damages(world.path / "projections")[damage]()
    world.store = world.open_again()

    assert digests == world.store.digests()
    assert before == answers(world.speaker(AGENT), world.ids)
    assert world.store.verify().ok


def test_i03_a_snapshot_from_before_the_latest_events_is_caught_up(world: World, tmp_path: Path) -> None:
    steps = list(one_of_each())
    for step in steps[:10]:
        perform(world, step)
    world.reopen()
    shutil.copytree(world.path / "projections", tmp_path / "old")
    for step in steps[10:]:
        perform(world, step)
    digests = world.store.digests()
    world.store.close()

    shutil.rmtree(world.path / "projections")
    shutil.copytree(tmp_path / "old", world.path / "projections")
    world.store = world.open_again()

    assert digests == world.store.digests()


def test_i03_rebuilding_says_that_nothing_changed(world: World) -> None:
    for step in one_of_each():
        perform(world, step)

    report = world.store.rebuild()

    assert report.ok
    assert report.before == report.after
    assert world.store.head.seq == report.events


def test_i03_vectors_come_back_equal_when_they_are_made_again(tmp_path: Path) -> None:
    """With the packaged model: the ranking by meaning is the same after all projections were deleted."""
    path = tmp_path / "store"
    clock = lambda: int(START.timestamp() * 1_000_000)  # noqa: E731  # a clock that stands
    with muniment.open(path, create=True, clock=clock) as store:
        session = store.session(scope=SCOPE, actor=AGENT)
        session.remember_many([{"content": text} for text in ("Ann has a dog", "rain in the hills", "a loan of money")])
        before = [(hit.content, hit.dense_rank) for hit in session.recall("which pet does she keep?")]
    shutil.rmtree(path / "projections")

    with muniment.open(path, clock=clock) as store:
        store.embed()
        session = store.session(scope=SCOPE, actor=AGENT)
        assert before == [(hit.content, hit.dense_rank) for hit in session.recall("which pet does she keep?")]
    assert "Ann has a dog" == before[0][0]
