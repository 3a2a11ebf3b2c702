"""What products of this kind got wrong about time."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

import muniment
from muniment.errors import BadTime
from tests.asking import contents, shown
from tests.worlds import AGENT, START, World


def test_one_live_value_among_nine_retired_is_all_that_recall_offers(world: World) -> None:
    agent = world.speaker(AGENT)
    for n in range(9):
        old = agent.remember(f"the plan the plan the plan {n}", source=f"plan:{n}")
        world.ann().retire(old.id, reason="over")
    agent.remember("the one plan that holds, among much else that is said here")

    assert ["the one plan that holds, among much else that is said here"] == shown(agent.recall("plan", k=5))
    assert 10 == len(agent.recall("plan", k=50, status=("active", "retired")))


def test_each_version_holds_over_its_own_days(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("version 1", about=("program", "version"), valid_from="2026-01-01")
    agent.remember("version 2", about=("program", "version"), valid_from="2026-01-10")

    for day, expected in (("2025-12-31", []), ("2026-01-05", ["version 1"]), ("2026-01-10", ["version 2"])):
        assert expected == contents(agent.beliefs(valid_at=day))
        assert expected == shown(agent.recall("version", valid_at=day))


def test_what_was_known_then_is_not_touched_by_a_late_correction(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("the launch is on the 5th", about=("launch", "day"), valid_from="2026-01-01")
    known = world.clock.moment
    world.clock.advance(86_400)
    agent.remember("the launch is on the 7th", about=("launch", "day"), valid_from="2026-01-01")

    assert ["the launch is on the 5th"] == contents(
        agent.beliefs(valid_at="2026-01-05", known_at=known + timedelta(seconds=1))
    )
    assert ["the launch is on the 7th"] == contents(agent.beliefs(valid_at="2026-01-05"))


def test_a_correction_of_the_past_leaves_the_present_alone(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("lives in paris", about=("ann", "home"), valid_from="2026-02-01")
    agent.remember("lived in rome", about=("ann", "home"), valid_from="2025-01-01", valid_to="2026-01-01")

    assert ["lives in paris"] == contents(agent.beliefs())
    assert ["lived in rome"] == contents(agent.beliefs(valid_at="2025-06-01"))
    assert [] == contents(agent.beliefs(valid_at="2026-01-15"))


def test_what_is_filled_in_later_was_not_known_before(world: World) -> None:
    """A chat of 2019 that is imported today held in 2019, and is known since today."""
    agent = world.speaker(AGENT)
    agent.remember("known already")
    world.clock.advance(7 * 86_400)
    receipt = world.speaker("import:chat").remember("said in 2019", valid_from="2019-05-01", kind="chat")

    record = agent.get(receipt.id)
    assert (2019, 2026) == (record.valid_from.year, record.recorded_at.year)
    assert ["known already"] == contents(agent.list(known_at=START + timedelta(days=1)))
    assert [] == agent.recall("said in 2019", known_at=START + timedelta(days=1))
    assert ["said in 2019"] == shown(agent.recall("said in 2019", valid_at="2020-01-01"))


@pytest.mark.parametrize(
    "spelled",
    ["2026-05-20T08:29:42", "2026-05-20T08:29:42Z", "2026-05-20T10:29:42+02:00", "2026-05-20 08:29:42", "@1779265782",
     "@1779265782000"],
)  # fmt: skip
def test_one_instant_in_every_spelling_is_one_instant(world: World, spelled: str) -> None:
    receipt = world.speaker(AGENT).remember("an appointment", valid_from=spelled)

    assert "2026-05-20T08:29:42+00:00" == world.speaker(AGENT).get(receipt.id).valid_from.isoformat()


@pytest.mark.parametrize(
    "spelled", ["1779265782", "20260520", "yesterday", "2026-02-30", "08:29", "", "@", "2026-05-20T25:00"]
)
def test_what_could_be_misread_as_a_time_is_refused(world: World, spelled: str) -> None:
    with pytest.raises(muniment.InvalidInput) as error:
        world.speaker(AGENT).remember("an appointment", valid_from=spelled)
    assert "bad_time" == error.value.code


@pytest.mark.parametrize("ended", [START - timedelta(days=1), START], ids=["before", "as it began"])
def test_an_end_before_the_beginning_is_refused_by_both_instants_and_what_would_help(
    world: World, ended: datetime
) -> None:
    agent = world.speaker(AGENT)
    receipt = agent.remember("an appointment", valid_from=START)

    with pytest.raises(muniment.InvalidInput) as error:
        agent.retire(receipt.id, reason="it never was", valid_to=ended)

    assert "bad_time" == error.value.code
    begins, ends = (at.isoformat().replace("+00:00", "Z") for at in (START, ended))
    assert f"`{ends}` is not a usable time: it is not after {begins}, when the memory begins" == str(error.value)
    assert "a later instant; without `valid_to` it ends now, also where it has not begun" == error.value.hint
    assert "active" == agent.get(receipt.id).status


def test_what_has_not_begun_can_be_retired_without_an_end(world: World) -> None:
    agent = world.speaker(AGENT)
    receipt = agent.remember("an appointment", valid_from=START + timedelta(days=9))

    agent.retire(receipt.id, reason="cancelled")

    assert "retired" == agent.get(receipt.id).status


def test_an_interval_that_ends_before_it_begins_is_not_told_how_times_are_written(world: World) -> None:
    with pytest.raises(muniment.InvalidInput) as error:
        world.speaker(AGENT).remember("an appointment", valid_from="2026-01-02", valid_to="2026-01-01")

    assert "an end after the start: it is the first instant that no longer counts" == error.value.hint


@pytest.mark.parametrize("field", ["valid_from", "valid_to"])
def test_an_instant_outside_the_calendar_is_refused_before_it_makes_its_scope_unreadable(
    world: World, field: str
) -> None:
    agent = world.speaker(AGENT)
    agent.remember("the launch is on 12 March")

    with pytest.raises(BadTime):
        agent.remember("for ever", **{field: "9999-12-31T23:59:59-05:00"})  # type: ignore[arg-type]  # either field

    assert ["the launch is on 12 March"] == contents(agent.list())
    assert ["the launch is on 12 March"] == shown(agent.recall("launch"))


def test_a_clock_that_steps_back_leaves_sequence_order_as_the_order_of_truth(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("first", about=("it", "is"))
    world.clock.advance(-5)
    agent.remember("second", about=("it", "is"))

    (belief,) = agent.beliefs()
    assert "second" == belief.content
    assert ["first", "second"] == contents(agent.history(belief.id))
    assert world.store.rebuild().ok
    assert ["second"] == contents(agent.beliefs())


def test_what_is_retired_as_of_a_future_day_lives_until_then(world: World) -> None:
    agent = world.speaker(AGENT)
    receipt = agent.remember("the offer stands")
    world.ann().retire(receipt.id, reason="it ends", valid_to=START + timedelta(days=2))

    assert ["the offer stands"] == shown(agent.recall("offer"))
    world.clock.advance(2 * 86_400 - 1)
    assert ["the offer stands"] == shown(agent.recall("offer"))
    world.clock.advance(1)
    assert [] == agent.recall("offer")
    assert "retired" == agent.get(receipt.id).status


def test_a_retirement_can_be_made_earlier_and_what_would_change_nothing_is_said(world: World) -> None:
    agent = world.speaker(AGENT)
    receipt = agent.remember("the offer stands")
    first = START + timedelta(days=2)
    agent.retire(receipt.id, reason="it ends", valid_to=first)
    head = world.store.head.seq

    for until in (first, first + timedelta(days=1)):
        with pytest.raises(muniment.Refused, match="already retired from 2026-03-03T12:00:00Z on") as error:
            agent.retire(receipt.id, reason="not yet", valid_to=until)
        assert ("already_done", receipt.id) == (error.value.code, error.value.facts["id"])
    assert head == world.store.head.seq
    agent.retire(receipt.id, reason="sooner", valid_to=START + timedelta(days=1))
    assert START + timedelta(days=1) == agent.get(receipt.id).valid_to
    world.clock.advance(10)
    agent.retire(receipt.id, reason="now")
    assert [] == agent.recall("offer")


def test_i12_a_retirement_at_or_after_the_end_that_was_stated_says_that_it_would_change_nothing(world: World) -> None:
    agent = world.speaker(AGENT)
    end = START + timedelta(days=2)
    receipt = agent.remember("the offer stands", valid_to=end)
    head = world.store.head.seq

    for until in (end, end + timedelta(days=1)):
        with pytest.raises(muniment.Refused, match="already said to end at 2026-03-03T12:00:00Z") as error:
            agent.retire(receipt.id, reason="it ends", valid_to=until, command_id=f"end {until}")
        assert ("already_done", receipt.id) == (error.value.code, error.value.facts["id"])
        assert "made earlier" in error.value.hint
    assert head == world.store.head.seq
    first = agent.retire(receipt.id, reason="sooner", valid_to=end - timedelta(days=1), command_id="sooner")
    again = agent.retire(receipt.id, reason="sooner", valid_to=end - timedelta(days=1), command_id="sooner")
    assert (first.id, True) == (again.id, again.repeated)


def test_what_has_ended_by_itself_can_still_be_withdrawn(world: World) -> None:
    agent = world.speaker(AGENT)
    receipt = agent.remember("the offer stands", valid_to=START + timedelta(days=2))
    world.clock.advance(3 * 86_400)

    agent.retire(receipt.id, reason="it never did")

    assert "retired" == agent.get(receipt.id).status


def test_expired_better_matches_do_not_use_up_k(world: World) -> None:
    agent = world.speaker(AGENT)
    for n in range(30):
        agent.remember(f"offer offer offer {n}", valid_from="2025-01-01", valid_to="2025-02-01")
    for n in range(3):
        agent.remember(f"number {n} is an offer that still stands, if one looks for it", valid_from="2025-01-01")

    assert 3 == len(agent.recall("offer", k=3))
    assert all("still stands" in (hit.content or "") for hit in agent.recall("offer", k=3))


def test_what_begins_later_is_not_current_before(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("old price", about=("price", "is"))
    agent.remember("new price", about=("price", "is"), valid_from=START + timedelta(days=1))

    assert ["old price"] == contents(agent.beliefs()) == shown(agent.recall("price"))
    world.clock.advance(86_400)
    assert ["new price"] == contents(agent.beliefs()) == shown(agent.recall("price"))


def test_bounds_of_valid_from_are_half_open(world: World) -> None:
    agent = world.speaker(AGENT)
    for day in (1, 2, 3):
        agent.remember(f"a day's note {day}", valid_from=f"2026-01-0{day}")

    assert ["a day's note 2"] == shown(agent.recall("note", since="2026-01-02", until="2026-01-03"))


def test_a_difference_tells_what_was_added_revised_retired_and_forgotten(world: World) -> None:
    agent = world.speaker(AGENT)
    revised = agent.remember("monday", about=("launch", "day"))
    retired, forgotten = agent.remember("a plan"), agent.remember("a secret plan")
    since = world.store.head.seq
    world.clock.advance()
    agent.remember("friday", about=("launch", "day"))
    agent.retire(retired.id, reason="over")
    agent.forget(forgotten.id, reason="asked")
    added = agent.remember("a new plan")

    changes = {change.id: change for change in agent.diff(since)}

    assert {revised.id: "revised", retired.id: "retired", forgotten.id: "forgotten", added.id: "added"} == {
        identity: change.change for identity, change in changes.items()
    }
    new = changes[revised.id].new
    assert new is not None
    assert "friday" == new.content
    assert "secret" not in str(changes[forgotten.id].to_dict())
