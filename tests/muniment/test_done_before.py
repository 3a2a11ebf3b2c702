"""What was done before says so, in the words of whoever asks for it, and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from muniment import Action
from muniment.errors import AlreadyDone, CommandConflict, NeedsGrant, RankTooLow, ScopeClosed
from tests.worlds import AGENT, SCOPE, World

EMAIL = Action("email.send", {"to": "ann@example.org"})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "m")
    yield world
    world.store.close()


def test_a_batch_from_a_generator_is_repeated_under_its_command_id_like_a_list(world: World) -> None:
    agent = world.speaker(AGENT)
    first = agent.remember_many(({"content": text} for text in "ab"), command_id="one")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # untyped callers

    again = agent.remember_many([{"content": text} for text in "ab"], command_id="one")

    assert [receipt.id for receipt in first] == [receipt.id for receipt in again]


def test_a_command_id_is_used_once_within_a_batch(world: World) -> None:
    agent = world.speaker("agent:planner")
    before = world.store.head
    with pytest.raises(CommandConflict):
        agent.remember_many([{"content": "a", "command_id": "one"}, {"content": "b", "command_id": "one"}])
    assert before == world.store.head
    first, second = agent.remember_many([{"content": "a", "command_id": "one"}, {"content": "a", "command_id": "one"}])
    assert (first.id, False, True) == (second.id, first.repeated, second.repeated)


def test_a_request_answered_twice_is_confirmed_already(world: World) -> None:
    agent, ann = world.speaker("agent:planner"), world.ann()
    request = agent.decide(EMAIL).request
    assert request is not None
    first = ann.confirm_request(request)
    world.clock.advance()
    with pytest.raises(AlreadyDone, match=f"`{first.id}` is already confirmed"):
        ann.confirm_request(request, uses=5)
    assert [True, False] == [agent.decide(EMAIL).allowed for _ in range(2)]


@pytest.mark.parametrize("signed", [True, False])
def test_a_confirmation_is_revoked_once(world: World, signed: bool) -> None:
    given = world.ann().confirm(EMAIL, agent="agent:planner")
    speaker = world.ann() if signed else world.store.user_session(scope=SCOPE, principal="user:ann")
    speaker.revoke(given.id, reason="not any more")
    with pytest.raises(AlreadyDone, match="already revoked"):
        speaker.revoke(given.id, reason="not any more")


def test_what_is_set_apart_is_set_apart_once_and_put_back_once(world: World) -> None:
    op, agent = world.store.operator(), world.speaker("agent:planner")
    one, other = agent.remember("one").id, agent.remember("other").id
    with pytest.raises(AlreadyDone, match="already released"):
        op.release([one], reason="fine")
    op.quarantine([one], reason="bad")
    with pytest.raises(AlreadyDone, match="already quarantined"):
        op.quarantine([one], reason="bad")
    op.quarantine([one, other], reason="both")
    op.release([one, other], reason="fine")
    with pytest.raises(AlreadyDone, match="already released"):
        op.release([one, other], reason="fine")
    agent.forget(one, reason="asked")
    with pytest.raises(AlreadyDone, match="already erased"):
        op.quarantine([one], reason="bad")


def test_a_scope_is_forgotten_once_and_takes_no_decision(world: World) -> None:
    agent, op = world.speaker("agent:planner"), world.store.operator()
    agent.remember("a note")
    receipt = op.forget_scope(SCOPE)
    with pytest.raises(AlreadyDone, match=f"`{receipt.id}` is already forgotten"):
        op.forget_scope(SCOPE)
    with pytest.raises(ScopeClosed, match=f"the forget is `{receipt.id}`"):
        agent.decide(EMAIL)
    assert receipt.id is not None
    world.ann().lift(receipt.id, reason="a new start")
    assert not agent.decide(EMAIL).allowed


def test_the_operator_is_told_that_a_veto_is_in_the_way(world: World) -> None:
    world.ann().prohibit(EMAIL, reason="never")
    with pytest.raises(RankTooLow, match="rank `operator` may not forget") as caught:
        world.store.operator().forget_scope(SCOPE)
    assert "holds a prohibition" in caught.value.hint


def test_times_of_tombstones_and_requests_are_aware_datetimes(world: World) -> None:
    agent, op = world.speaker("agent:planner"), world.store.operator()
    mine, hers = agent.remember("mine"), world.ann().remember("hers")
    agent.forget(mine.id, reason="asked")
    assert [UTC] == [stone.since.tzinfo for stone in op.tombstones()]
    with pytest.raises(NeedsGrant, match="was filed"):
        agent.forget(hers.id, reason="asked")
    assert [world.clock.moment.date()] == [request["asked_at"].date() for request in op.requests()]  # type: ignore[attr-defined]


def test_what_was_asked_for_and_not_answered_is_not_asked_for_again(world: World) -> None:
    agent, op = world.speaker("agent:planner"), world.store.operator()
    hers = world.ann().remember("hers")
    asked: set[str] = set()
    for _ in range(3):
        with pytest.raises(NeedsGrant) as caught:
            agent.forget(hers.id, reason="it is old")
        asked.add(str(caught.value.facts["request"]))
    assert asked == {str(request["id"]) for request in op.requests()}
    (request,) = asked
    world.ann().review(request, approve=False, reason="keep it")
    assert [] == op.requests()
    with pytest.raises(NeedsGrant, match="was filed"):
        agent.forget(hers.id, reason="it is still old")
    assert 1 == len(op.requests())
    op.forget(hers.id, reason="granted by the operator")
    assert [] == op.requests()


def test_what_is_apart_can_be_put_back_whatever_else_became_of_it(world: World) -> None:
    op, agent = world.store.operator(), world.speaker("agent:planner")
    kept = agent.remember("one").id
    op.quarantine([kept], reason="bad")
    world.speaker("user").retire(kept, reason="over")
    op.release([kept], reason="fine")
    assert "retired" == agent.get(kept).status
