"""What products of this kind got wrong about change and contradiction."""

from __future__ import annotations

from datetime import timedelta

import pytest

import muniment
from tests.asking import contents, shown
from tests.worlds import AGENT, USER, World


@pytest.mark.parametrize("keyed", [True, False])
def test_a_changed_mind_is_current_and_the_old_one_is_only_history(world: World, keyed: bool) -> None:
    user = world.speaker(USER)
    first = user.remember("likes coffee", about=("ann", "drink") if keyed else None)
    second = (
        user.remember("tea now, no more coffee", about=("ann", "drink"))
        if keyed
        else user.supersede(first.id, "tea now, no more coffee")
    )

    assert ["tea now, no more coffee"] == shown(user.recall("coffee"))
    assert ["superseded", "active"] == [record.status for record in user.history(second.id)]
    assert second.id == user.get(first.id).superseded_by
    assert "likes coffee" not in user.context("coffee").text
    asked_for = user.recall("coffee", status=("active", "superseded"))
    assert {"tea now, no more coffee": "active", "likes coffee": "superseded"} == {
        hit.content: hit.status for hit in asked_for
    }


def test_the_same_text_from_the_same_place_is_one_memory(world: World) -> None:
    agent = world.speaker(AGENT)
    first = agent.remember("see you", source="chat:1#4")

    again = agent.remember("see you", source="chat:1#4")

    assert (first.id, True) == (again.id, again.repeated)
    assert 1 == len(agent.list())


def test_the_same_words_later_in_a_chat_are_a_record_of_their_own(world: World) -> None:
    agent = world.speaker(AGENT)

    receipts = [agent.remember("see you", kind="chat", source=f"chat:1#{n}") for n in (4, 9, 30)]

    assert 3 == len({receipt.id for receipt in receipts}) == len(agent.list())


def test_red_blue_red_is_red_and_three_events(world: World) -> None:
    agent = world.speaker(AGENT)
    for colour in ("red", "blue", "red"):
        agent.remember(colour, about=("car", "colour"))

    (belief,) = agent.beliefs(about=("car", "colour"))

    assert "red" == belief.content
    assert ["red", "blue", "red"] == contents(agent.history(belief.id))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("take 10 mg of aspirin at eight in the morning with a glass of water", "10 mg", ),
        ("the server listens on port 8080 behind the proxy of the second rack", "8080"),
        ("the meeting with the board of the foundation is on 2026-03-12 at ten", "2026-03-12"),
        ("the annual licence for the design program costs 19.99 euros per seat", "19.99"),
        ("the production cluster runs version 1.10.3 of the scheduler since may", "1.10.3"),
    ],
)  # fmt: skip
def test_an_edit_of_one_figure_is_never_dropped_as_a_near_duplicate(world: World, old: str, new: str) -> None:
    agent = world.speaker(AGENT)
    figure = new.replace("1", "7", 1) if "1" in new else new.replace("8", "9", 1)
    edited = old.replace(new, figure)

    first, second = agent.remember(old), agent.remember(edited)

    assert edited != old
    assert first.id != second.id
    assert [old, edited] == contents(agent.list())


def test_taking_in_the_same_items_twice_adds_nothing(world: World) -> None:
    importer = world.speaker("import:file")
    items: list[dict[str, object]] = [{"content": f"line {n % 3}", "source": f"file#{n}"} for n in range(9)]
    importer.remember_many(items)
    head = world.store.head.seq

    again = importer.remember_many(items)

    assert head == world.store.head.seq
    assert all(receipt.repeated for receipt in again)


def test_subjects_are_the_same_in_another_spelling_and_people_stay_distinct(world: World) -> None:
    """Case, spaces and a trailing stop do not make another subject; any further word does."""
    agent = world.speaker(AGENT)
    agent.remember("berlin", about=("ACME", "seat"))
    agent.remember("paris", about=("acme ", "Seat"))
    agent.remember("is 40", about=("Elias W", "age"))
    agent.remember("is 12", about=("Elias W Jr", "age"))

    assert {"paris", "is 40", "is 12"} == {belief.content for belief in agent.beliefs()}


def test_equal_ranks_that_contradict_each_other_are_listed_as_a_conflict(world: World) -> None:
    world.speaker(AGENT).remember("monday", about=("launch", "day"))
    world.speaker("agent:other").remember("friday", about=("launch", "day"))

    (belief,) = world.speaker(AGENT).beliefs()

    assert "friday" == belief.content
    assert ["monday"] == contents(belief.conflicts)


def test_several_values_live_side_by_side_where_that_was_said(world: World) -> None:
    agent = world.speaker(AGENT)
    for name in ("ann", "bob", "cem"):
        agent.remember(name, about=("team", "member"), many=True)

    assert ["ann", "bob", "cem"] == contents(agent.beliefs(about=("team", "member")))


def test_superseding_inherits_kind_and_key_unless_told_otherwise(world: World) -> None:
    agent = world.speaker(AGENT)
    first = agent.remember("monday", kind="fact", about=("launch", "day"))

    second = agent.supersede(first.id, "friday")
    third = agent.supersede(second.id, "at noon", kind="note", about=("launch", "hour"))

    assert ("fact", ("launch", "day")) == (agent.get(second.id).kind, agent.get(second.id).about)
    assert ("note", ("launch", "hour")) == (agent.get(third.id).kind, agent.get(third.id).about)
    assert ["at noon"] == contents(agent.beliefs())


def test_a_command_id_belongs_to_its_actor_and_scope(world: World) -> None:
    receipts = [
        world.speaker(who, scope).remember(f"{who} in {scope}", command_id="c1")
        for who in (AGENT, "agent:other")
        for scope in ("acme/apollo", "acme/zeus")
    ]

    assert 4 == len({receipt.id for receipt in receipts})
    with pytest.raises(muniment.Conflict):
        world.speaker(AGENT).remember("something else", command_id="c1")


@pytest.mark.parametrize("about", [None, ("lunch", "friday")])
@pytest.mark.parametrize("together", [False, True])
def test_18_what_held_on_a_condition_only_does_not_swallow_what_holds_without_or_on_another(
    world: World, *, together: bool, about: tuple[str, str] | None
) -> None:
    """What holds without a condition says it of every condition."""
    agent = world.speaker(AGENT)
    conditions = ("it rains", "It rains.", "it snows", None, "it hails", None)
    items = [{"content": "fish", "about": about, "applies_when": condition} for condition in conditions]

    batches = [items] if together else [[item] for item in items]
    receipts = [receipt for batch in batches for receipt in agent.remember_many(batch)]

    assert [False, True, False, False, True, True] == [receipt.repeated for receipt in receipts]
    assert receipts[3].id == receipts[4].id == receipts[5].id
    assert "active" == agent.get(receipts[3].id).status
    assert about is None or agent.beliefs(about=about)[0].applies_when is None


def test_18_the_same_value_said_of_another_interval_is_news(world: World) -> None:
    """A price in January, and the same price now: passed over as a repeat, it would not hold now."""
    agent, start = world.speaker(AGENT), world.clock.moment
    agent.remember("10", about=("plan", "price"), valid_from=start - timedelta(days=30), valid_to=start)
    world.clock.advance()

    again = agent.remember("10", about=("plan", "price"))

    assert not again.repeated
    assert [again.id] == [belief.id for belief in agent.beliefs(("plan", "price"))]
    assert agent.remember("10", about=("plan", "price")).repeated


def test_18_red_blue_red_in_one_batch_gives_red_and_three_events(world: World) -> None:
    agent = world.speaker(AGENT)

    batch = agent.remember_many([{"content": colour, "about": ("car", "colour")} for colour in ("red", "blue", "red")])

    assert [False] * 3 == [receipt.repeated for receipt in batch]
    assert ["red"] == [belief.content for belief in agent.beliefs(("car", "colour"))]


def test_18_a_batch_that_goes_back_to_what_was_said_before_it_says_so(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("red", about=("car", "colour"))

    agent.remember_many([{"content": colour, "about": ("car", "colour")} for colour in ("blue", "red")])

    assert ["red"] == [belief.content for belief in agent.beliefs(("car", "colour"))]


def test_17_a_dispute_that_its_author_replaced_is_no_dispute_any_more(world: World) -> None:
    agent = world.speaker(AGENT)
    world.speaker(USER).remember("red", about=("car", "colour"))
    blue = agent.remember("blue", about=("car", "colour"))
    green = agent.supersede(blue.id, "green")

    (belief,) = agent.beliefs(("car", "colour"))
    assert ("red", [green.id]) == (belief.content, [dispute.id for dispute in belief.disputes])


def test_17_a_dispute_that_the_value_came_round_to_stands_beside_nothing(world: World) -> None:
    agent, user = world.speaker(AGENT), world.speaker(USER)
    user.remember("red", about=("car", "colour"))
    blue = agent.remember("blue", about=("car", "colour"))
    user.remember("blue", about=("car", "colour"))

    assert () == agent.beliefs(("car", "colour"))[0].disputes
    assert "active" == agent.get(blue.id).status


def test_17_who_fills_a_hole_is_disputed_by_lower_ranks_only_and_displaces_nobody(world: World) -> None:
    agent, other = world.speaker(AGENT), world.speaker("agent:other")
    other.remember("black", about=("car", "colour"))
    red = world.speaker(USER).remember("red", about=("car", "colour"))
    blue = agent.remember("blue", about=("car", "colour"))
    world.speaker(USER).retire(red.id, reason="sold")
    world.clock.advance()
    agent.remember("green", about=("car", "colour"))

    (belief,) = agent.beliefs(("car", "colour"))
    assert ("green", (), ()) == (belief.content, belief.disputes, belief.conflicts)
    assert "superseded" == agent.get(blue.id).status
