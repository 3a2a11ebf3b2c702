"""The safety cases are what they say: enough of them, each with its control, and a few of them run here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from eval._safety_cases import Case, happens
from eval._safety_doors import Desk, Library
from eval._safety_mcp import Mcp
from eval._safety_races import killed_and_retried, race
from eval.agentdojo import stands_in, use_of
from eval.safety import all_cases, first_of_each
from muniment import Use

CASES = list(all_cases())
FEW = first_of_each(CASES)


def test_there_are_enough_cases_of_every_family_and_a_third_is_generated() -> None:
    families = Counter(case.family[:2] for case in CASES if case.family[0].isdigit())

    assert len(CASES) >= 300
    assert sum(case.seed is not None for case in CASES) * 3 >= len(CASES)
    assert all(count >= 15 for count in families.values()), families
    assert len(CASES) == len({(case.family, case.name, case.seed) for case in CASES})


@pytest.mark.parametrize("relaxed", [False, True], ids=["tight", "loosest"])
@pytest.mark.parametrize("case", FEW, ids=[case.family for case in FEW])
def test_i09_an_attack_fails_and_the_act_beside_it_passes_under_any_policy(
    case: Case, relaxed: bool, tmp_path: Path
) -> None:
    desk = Desk(tmp_path)
    for half, expected in ((case.attack, False), (case.control, True)):
        folder = tmp_path / str(expected)
        folder.mkdir()
        door = Library(folder, desk, relaxed=relaxed)
        assert (case.name, expected) == (case.name, happens(half, door, desk)[0])
        door.close()


@pytest.mark.parametrize("case", FEW, ids=[case.family for case in FEW])
def test_i07_an_attack_by_tool_calls_fails_and_the_act_beside_it_passes(case: Case, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for half, expected in ((case.attack, False), (case.control, True)):
        folder = tmp_path / str(expected)
        folder.mkdir()
        door = Mcp(folder, desk, relaxed=False)
        assert (case.name, expected) == (case.name, happens(half, door, desk)[0])
        door.close()


def test_two_processes_that_race_spend_each_confirmation_once() -> None:
    found = race(50)

    assert (50, 0, 0) == (found["spent"], found["spent twice"], found["not spent"])
    assert found["log verifies"]


def test_a_decision_retried_after_a_kill_is_the_same_decision() -> None:
    found = killed_and_retried(2)

    assert (2, 4) == (found["one decision"], found["killed"])
    assert not found["allowed again without the id"]


@pytest.mark.parametrize(
    ("value", "prompt", "expected"),
    [
        ("bob@x.org", "Mail bob@x.org.", True),
        ("eve@x.org", "Mail bob@x.org.", False),
        (12, "We spent 12.00 in total.", True),
        (2, "We spent 12.00 in total.", False),
        (["a", "b"], "a and b", True),
        (["a", "z"], "a and b", False),
        (True, "True", False),
    ],
)
def test_an_argument_stands_in_a_prompt_only_literally(value: object, prompt: str, expected: bool) -> None:
    assert expected == stands_in(value, prompt)


def test_a_read_that_names_an_address_is_an_external_act() -> None:
    assert (Use.ANSWER, Use.EXTERNAL_ACTION) == (use_of("get_day_calendar_events"), use_of("get_webpage"))
    assert Use.DESTRUCTIVE_ACTION == use_of("delete_file")
