"""I4: asking what was known at T, replaying to T, and a store that had stopped at T give the same answers."""

from __future__ import annotations

import contextlib
import gc
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muniment
from muniment import Action, Decision
from tests.asking import At, answers, contents, shown, without_erased
from tests.strategies import histories
from tests.worlds import AGENT, EXTERNAL, SCOPE, USER, Step, World, one_of_each, perform

MakeWorld = Callable[[], World]
MAIL = Action("email.send", {"to": "red"})


def _stopped(world: World) -> World:
    """Return the world as it would be had it stopped here: a copy of its files under a clock that stands still."""
    copy = object.__new__(World)
    copy.__dict__.update(world.__dict__)
    copy.path = world.path.with_suffix(".stopped")
    shutil.copytree(world.path, copy.path)
    now = world.clock.now
    copy.store = muniment.open(copy.path, model="none", clock=lambda: now)
    return copy


def _verdict(decision: Decision) -> tuple[object, ...]:
    evidence = tuple((item.id, item.verdict) for item in decision.excluded)
    return (decision.allowed, decision.use, decision.reasons, decision.supporting, evidence, decision.confirmation)


def _erased(world: World) -> frozenset[str]:
    operator = world.store.operator()
    return frozenset(i for i in world.ids if operator.get(i).status == "erased")


@given(history=histories, cut=st.integers(1, 23))
@settings(max_examples=80, deadline=None)
def test_i04_known_at_and_replay_and_a_stopped_store_agree(
    make_world: MakeWorld, history: list[Step], cut: int
) -> None:
    world = make_world()
    cut = min(cut, len(history) - 1)
    for step in history[:cut]:
        perform(world, step)
    instant, seq, ids = world.clock.moment, world.store.head.seq, list(world.ids)
    known_erased = _erased(world)
    stopped = _stopped(world)
    world.clock.advance(60)
    for step in history[cut:]:
        perform(world, step)
    gone = _erased(world) - known_erased

    live = answers(world.speaker(AGENT), ids, At(known_at=instant))
    by_seq = answers(world.speaker(AGENT), ids, At(valid_at=instant, known_at=seq))
    past = world.store.replay(to=instant)
    replayed = answers(past.session(scope="acme/apollo"), ids)
    then = answers(stopped.speaker(AGENT), ids)

    assert live == replayed
    assert live == by_seq
    if not gone:
        assert then == live
    assert without_erased(then, gone) == without_erased(live, gone)

    if not gone:
        evidence = [i for i in ids if i not in known_erased][:4]
        decided = past.session(scope="acme/apollo", actor=AGENT).decide(MAIL, evidence=evidence)
        assert _verdict(stopped.speaker(AGENT).decide(MAIL, evidence=evidence, dry_run=True)) == _verdict(decided)
    stopped.store.close()


@given(history=histories)
@settings(max_examples=30, deadline=None)
def test_i04_the_digests_of_a_replay_are_those_of_the_store_that_stopped(
    make_world: MakeWorld, history: list[Step]
) -> None:
    """Where nothing was erased since: an erasure reaches back to every earlier moment."""
    world = make_world()
    kept = [step for step in history if step.verb != "forget"]
    digests = []
    for step in kept:
        perform(world, step)
        digests.append((world.store.head.seq, world.store.digests()))

    for seq, then in digests[::3]:
        assert then == world.store.replay(to=seq).digests()


def test_i04_every_position_of_a_history_of_every_kind_agrees(world: World) -> None:
    for step in one_of_each():
        perform(world, step)

    for seq in range(1, world.store.head.seq + 1):
        past = world.store.replay(to=seq).session(scope="acme/apollo")
        assert answers(past, world.ids) == answers(world.speaker(AGENT), world.ids, At(known_at=seq)), seq


def test_i04_a_retirement_that_reaches_back_was_not_known_before_it(world: World) -> None:
    """Retired on the third day as of the first: on the second nobody knew."""
    agent, start = world.speaker(AGENT), world.clock.moment
    receipt = agent.remember("the offer stands", valid_from=start - timedelta(days=9))
    world.clock.advance(86_400)
    agent.remember("another note")
    seq = world.store.head.seq
    world.clock.advance(86_400)
    agent.retire(receipt.id, reason="it had ended", valid_to=start)

    past = world.store.replay(to=seq).session(scope="acme/apollo")
    for status, reading, known in (("active", agent, seq), ("active", past, None), ("retired", agent, None)):
        assert status == reading.get(receipt.id, known_at=known).status
        assert (status == "active") is bool(reading.recall("offer", known_at=known))


def test_i04_a_batch_is_visible_wholly_or_not_at_all(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("before")
    receipts = agent.remember_many([{"content": text} for text in ("first", "second", "third")])

    for receipt in receipts:
        assert ["before", "first", "second", "third"] == contents(agent.list(known_at=receipt.seq))
        past = world.store.replay(to=receipt.seq)
        assert receipts[-1].seq == past.seq
        assert ["before", "first", "second", "third"] == contents(past.session(scope="acme/apollo").list())
    assert ["before"] == contents(agent.list(known_at=receipts[0].seq - 1))


def test_i04_the_past_knows_the_words_of_its_own_time_only(world: World) -> None:
    """A word that later became common weighs in the past as it did then."""
    agent = world.speaker(AGENT)
    agent.remember("beetroot soup")
    agent.remember("leek soup")
    world.clock.advance()
    then, seq = agent.recall("beetroot soup"), world.store.head.seq
    for n in range(30):
        agent.remember(f"beetroot salad of kind {n}")

    past = agent.recall("beetroot soup", known_at=seq)

    assert [(hit.content, hit.word_score) for hit in then] == [(hit.content, hit.word_score) for hit in past]
    assert then[0].word_score != agent.recall("beetroot soup")[0].word_score


def test_i04_what_was_erased_since_is_a_stub_at_every_moment(world: World) -> None:
    agent = world.speaker(AGENT)
    receipt = agent.remember("the code word is beetroot", about=("code", "word"))
    seq = world.store.head.seq
    agent.forget(receipt.id, reason="asked")

    for reading in (agent, world.store.replay(to=seq).session(scope="acme/apollo")):
        known = seq if reading is agent else None
        stub = reading.get(receipt.id, known_at=known)
        assert ("erased", None, None) == (stub.status, stub.content, stub.about)
        assert [] == reading.recall("beetroot", known_at=known)
        assert [] == reading.beliefs(known_at=known)
        assert [] == reading.list(known_at=known)


def test_i04_a_recorded_decision_is_decided_again_at_its_own_position(world: World) -> None:
    ann, agent = world.ann(), world.speaker(AGENT)
    ann.confirm(MAIL, agent=AGENT)
    decision = agent.decide(MAIL)
    assert decision.allowed
    world.clock.advance(400 * 86_400)
    ann.prohibit(MAIL, reason="never again")

    again = world.store.replay(to=decision.id or "").session(scope="acme/apollo", actor=AGENT).decide(MAIL)

    assert _verdict(decision) == _verdict(again)
    assert not agent.decide(MAIL, dry_run=True).allowed


def test_i04_every_name_of_a_moment_is_one_for_reads_and_for_replay(world: World) -> None:
    agent = world.speaker(AGENT)
    for color in ("red", "blue"):
        world.clock.advance()
        agent.remember(f"it is {color}", about=("it", "color"))
    world.clock.advance()
    decision = agent.decide(MAIL)
    at = world.store.head.seq
    world.clock.advance()
    agent.remember("it is green", about=("it", "color"))

    for moment in (decision.id or "", at, str(at), f" {at} ", "HEAD~1", f"HEAD~{world.store.head.seq - at}"):
        past = world.store.replay(to=moment).session(scope="acme/apollo")
        assert ["it is blue"] == contents(agent.beliefs(known_at=moment)) == contents(past.beliefs()), moment
        assert ["it is blue"] == contents(agent.recall("color it is", known_at=moment)), moment
        assert ["it is green"] == [change.new.content for change in agent.diff(moment) if change.new], moment
    assert ["it is green"] == contents(agent.beliefs(known_at="HEAD"))


def test_i04_a_decision_is_replayed_to_by_the_beginning_of_its_id(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("before")
    decision = agent.decide(MAIL).id or ""
    agent.remember("after")
    prefix = next(decision[:length] for length in range(8, 33) if not decision[:length].isdigit())

    past = world.store.replay(to=prefix).session(scope="acme/apollo")

    assert ["before"] == contents(past.list())
    agent.decide(MAIL)
    for unknown in ("f" * 12, decision[:-1] + "fe"):
        with pytest.raises(muniment.InvalidInput):
            world.store.replay(to=unknown)


def test_i04_the_past_cannot_be_written_to(world: World) -> None:
    past = world.store.replay(to=world.store.head.seq).session(scope="acme/apollo")

    assert not hasattr(past, "remember")
    with pytest.raises(muniment.Refused, match="only reads"):
        past.decide(MAIL, dry_run=False)


@pytest.mark.parametrize(
    "to",
    [-1, 10_000, "10000", "yesterday", "HEAD~10000", "HEAD~-1", "0" * 32, True, "@\u0661", "\uff11", "HEAD~\uff10"],
)
def test_i04_a_moment_that_the_log_does_not_have_is_refused(world: World, to: str | int) -> None:
    with pytest.raises(muniment.InvalidInput):
        world.store.replay(to=to)
    with pytest.raises(muniment.InvalidInput):
        world.speaker(AGENT).list(known_at=to)


def test_i04_a_counterfactual_leaves_out_what_it_names_and_nothing_else(world: World) -> None:
    world.speaker(EXTERNAL).remember("invoices go to mallory", about=("invoices", "to"))
    world.speaker(USER).remember("invoices go to ann", about=("invoices", "address"))

    past = world.store.replay(to="HEAD", without=["origin=web:*"]).session(scope="acme/apollo")

    assert ["invoices go to ann"] == shown(past.recall("invoices"))


def test_i04_times_mean_the_same_in_every_spelling(world: World) -> None:
    agent = world.speaker(AGENT)
    world.clock.advance()
    agent.remember("first")
    moment: datetime = world.clock.moment
    world.clock.advance(10)
    agent.remember("second")
    naive, elsewhere = moment.replace(tzinfo=None), moment.astimezone(timezone(timedelta(hours=5, minutes=45)))
    seconds = int(moment.timestamp())

    for spelled in (moment, naive, moment.isoformat(), naive.isoformat(), elsewhere.isoformat(), f"@{seconds}"):
        assert ["first"] == contents(agent.list(known_at=spelled))


def test_i04_a_past_that_nobody_holds_keeps_no_file_open(world: World) -> None:
    world.speaker(AGENT).remember("first")
    world.store.replay(to="HEAD")
    gc.collect()  # or that past would still be counted, and hide a descriptor that stays
    before = _open_files(world.path)

    for _ in range(20):
        world.store.replay(to="HEAD").session(scope=SCOPE).list()
    gc.collect()

    assert before
    assert before == _open_files(world.path)


def _open_files(store: Path) -> list[str]:
    # Those of the store: what other tests of this process left to threads of theirs comes and goes.
    found: list[str] = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(str(descriptor.readlink()))
    return sorted(name for name in found if name.startswith(f"{store}/"))
