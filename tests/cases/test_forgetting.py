"""What products of this kind got wrong about forgetting."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import muniment
from tests.asking import EVERY_STATUS, contents, shown
from tests.worlds import AGENT, SCOPE, SIGNED, START, USER, World


def test_a_forgotten_item_is_gone_from_every_route_and_every_count_in_the_same_call(world: World) -> None:
    """Not listed, found, believed, briefed, linked or counted as live; the count of erased ones rises instead."""
    agent = world.speaker(AGENT)
    kept = agent.remember("leek soup on mondays", kind="constraint", about=("soup", "monday"))
    gone = agent.remember("beetroot soup on fridays", kind="constraint", about=("soup", "friday"))
    agent.link(kept.id, "relates", gone.id)
    before = world.store.stats()

    agent.forget(gone.id, reason="asked")

    after = world.store.stats()
    assert (before["memories"], before["erased"]) == (2, 0)
    assert (after["memories"], after["erased"]) == (1, 1)
    assert ["leek soup on mondays"] == contents(agent.list()) == contents(agent.beliefs())
    assert ["leek soup on mondays"] == contents(agent.briefing().constraints)
    assert ["leek soup on mondays"] == shown(agent.recall("soup", status=EVERY_STATUS))
    assert "beetroot" not in agent.context("beetroot soup").text
    assert [] == agent.recall("beetroot")


def test_each_arm_of_recall_alone_finds_nothing_of_it(tmp_path: Path) -> None:
    """By meaning, with a query that shares no word; and by words, with one that shares nothing else."""
    with muniment.open(tmp_path / "store", create=True) as store:
        session = store.session(scope=SCOPE, actor=AGENT)
        gone = session.remember("my dog is called Biscuit")
        session.remember("the rent is due on Friday")
        assert gone.id == session.recall("which animal companion does she have?")[0].id
        assert gone.id == session.recall("Biscuit")[0].id

        session.forget(gone.id, reason="asked")

        for query in ("which animal companion does she have?", "Biscuit"):
            assert gone.id not in [hit.id for hit in session.recall(query, status=EVERY_STATUS)]


def test_the_better_match_forgotten_leaves_the_other_one_and_not_an_empty_list(world: World) -> None:
    agent = world.speaker(AGENT)
    better = agent.remember("beetroot beetroot")
    agent.remember("beetroot and a long list of other things to buy")
    assert better.id == agent.recall("beetroot", k=1)[0].id

    agent.forget(better.id, reason="asked")

    assert ["beetroot and a long list of other things to buy"] == shown(agent.recall("beetroot", k=1))


@pytest.mark.parametrize("identity", ["0" * 32, "nonsense", "", "g" * 32, "\u0660" * 32])
def test_forgetting_what_does_not_exist_is_an_error_and_never_a_success(world: World, identity: str) -> None:
    world.speaker(AGENT).remember("something")
    head = world.store.head.seq

    with pytest.raises(muniment.InvalidInput):
        world.speaker(AGENT).forget(identity, reason="asked")
    with pytest.raises(muniment.InvalidInput):
        world.speaker(AGENT).forget(reason="asked")
    assert head == world.store.head.seq


def test_forgetting_twice_says_that_it_was_done_before(world: World) -> None:
    agent = world.speaker(AGENT)
    receipt = agent.remember("something")
    agent.forget(receipt.id, reason="asked")

    with pytest.raises(muniment.Refused, match="already erased"):
        agent.forget(receipt.id, reason="asked")


def test_a_document_taken_in_again_is_refused_where_it_taught_the_forgotten(world: World) -> None:
    """The rest of it comes in; what was refused is counted and listed, without the value."""
    document: list[dict[str, object]] = [
        {"content": text, "source": f"doc:1#{n}"}
        for n, text in enumerate(("one fact", "a private fact", "a third fact"))
    ]
    importer = world.speaker("import:doc")
    first = importer.remember_many(document)
    world.ann().forget(first[1].id, reason="private")

    again = importer.remember_many(document, on_refusal="skip")

    assert [True, True] == [receipt.repeated for receipt in again]
    assert [(1, "tombstoned")] == [(refusal.index, refusal.error) for refusal in again.refused]
    assert "private fact" not in str(again.refused)
    assert ["one fact", "a third fact"] == contents(world.speaker(AGENT).list())


def test_forgetting_the_newer_version_does_not_revive_the_older(world: World) -> None:
    agent = world.speaker(AGENT)
    old = agent.remember("the code is 1", about=("code", "is"))
    new = agent.remember("the code is 2", about=("code", "is"))

    agent.forget(new.id, reason="asked")

    assert [] == agent.beliefs()
    assert [] == agent.recall("code")
    assert "superseded" == agent.get(old.id).status
    world.store.rebuild()
    assert [] == agent.beliefs()


def test_forgetting_the_newer_of_two_unkeyed_versions_does_not_revive_the_older(world: World) -> None:
    agent = world.speaker(AGENT)
    old = agent.remember("the meeting is at ten")
    new = agent.supersede(old.id, "the meeting is at eleven")

    agent.forget(new.id, reason="asked")

    assert [] == agent.recall("meeting")
    assert "superseded" == agent.get(old.id).status


def test_who_removed_what_when_and_why_is_answerable_for_ever(world: World) -> None:
    agent = world.speaker(AGENT)
    receipts = agent.remember_many([{"content": f"private item {n}"} for n in range(24)])
    world.clock.advance(3600)
    world.ann().forget(*[receipt.id for receipt in receipts], reason="the right to be forgotten")
    world.reopen()
    world.store.rebuild()

    stubs = [world.store.operator().get(receipt.id) for receipt in receipts]

    assert {("user:ann", "the right to be forgotten")} == {(stub.erased_by, stub.erased_why) for stub in stubs}
    assert all(stub.erased_at is not None and stub.erased_at >= START + timedelta(hours=1) for stub in stubs)
    assert {("user:ann", "the right to be forgotten")} == {
        (t.by, t.reason) for t in world.store.operator().tombstones()
    }
    assert all(stub.content is None for stub in stubs)


def test_the_same_sentence_met_three_times_leaves_one(world: World) -> None:
    agent = world.speaker(AGENT)

    receipts = [agent.remember(text) for text in ("she likes tea", "She likes  tea.", "SHE LIKES TEA")]

    assert 1 == len({receipt.id for receipt in receipts})
    assert ["she likes tea"] == contents(agent.list())


def test_what_a_forget_refuses_from_then_on_does_not_stay_beside_it(world: World) -> None:
    """The same words without the key, and what was said on its own and reads like something derived."""
    agent = world.speaker(AGENT)
    car = ("car", "colour")
    asked = agent.remember("the car is red", about=car, value="red")
    agent.remember("red paint on the car", about=car, value="red", source="a/2")
    agent.remember("red paint on the car", source="a/3")
    agent.remember("a summary", derived_from=(asked.id,))
    agent.remember("A summary.", source="a/5")
    agent.remember("a shirt is red")

    listed = agent.forget(asked.id, reason="asked", dry_run=True)
    receipt = agent.forget(asked.id, reason="asked")

    assert (4, 1) == (len(receipt.asked), len(receipt.derived)) == (len(listed.asked), len(listed.derived))
    assert ["a shirt is red"] == contents(agent.list()) == shown(agent.recall("red summary", status=EVERY_STATUS))


def test_what_reads_like_something_derived_and_is_above_the_one_who_forgets_stays_and_is_named(world: World) -> None:
    agent, user = world.speaker(AGENT), world.speaker(USER)
    asked = agent.remember("the page says so")
    agent.remember("a summary", derived_from=(asked.id,))
    theirs = user.remember("a summary")

    receipt = agent.forget(asked.id, reason="asked")

    assert (1, 1, (theirs.id,)) == (len(receipt.asked), len(receipt.derived), receipt.kept)
    assert ["a summary"] == contents(agent.list())


def test_only_the_keys_of_what_was_named_are_blocked(world: World) -> None:
    agent, (car, shirt) = world.speaker(AGENT), (("car", "colour"), ("shirt", "colour"))
    asked = agent.remember("red", about=car)
    agent.remember("it is red", about=car, value="red", source="a/2")
    agent.remember("it is red", about=shirt, value="scarlet")

    agent.forget(asked.id, reason="asked", block="key")

    assert [] == agent.list()
    agent.remember("blue", about=shirt)
    with pytest.raises(muniment.Refused):
        agent.remember("blue", about=car)


def test_forgetting_one_scope_leaves_the_others_whole(world: World) -> None:
    for scope in ("acme/apollo", "acme/apollo2", "acme/apollo/crew", "acme"):
        world.speaker(AGENT, scope).remember(f"of {scope}")

    world.ann().forget_scope(reason="the project ended")

    assert [] == world.speaker(AGENT).list()
    for scope in ("acme/apollo2", "acme/apollo/crew", "acme"):
        assert [f"of {scope}"] == contents(world.speaker(AGENT, scope).list())


def test_a_standing_forget_outlives_its_forgetting_agent(world: World) -> None:
    """Another agent of the same rank is bound too; the user, who stands above, is not."""
    receipt = world.speaker(AGENT).remember("the wrong address")
    world.speaker(AGENT).forget(receipt.id, reason="wrong")

    with pytest.raises(muniment.Refused, match="forgotten on"):
        world.speaker("agent:other").remember("the wrong address")
    assert world.speaker(USER).remember("the wrong address").id
    assert world.speaker(SIGNED).remember("the wrong address").id
