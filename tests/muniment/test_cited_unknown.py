"""What was cited and is no memory's id is part of a decision's record: shown as it was given, and erased with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment import Action, Decision, DecisionExplanation
from tests.worlds import AGENT, World

from .shell import Shell, opened_shell

EMAIL = Action("email.send", {"to": "ann@example.org"})
TYPED = ("note-7", "abc", "../../etc")
TOKEN = "ghp_" + "7aB9" * 9  # put together here, so that no file holds one


def _explained(world: World, decision: Decision) -> DecisionExplanation:
    found = world.store.explain(str(decision.id))
    assert isinstance(found, DecisionExplanation)
    return found


def _dropped(decision: Decision | None) -> list[tuple[str, str]]:
    assert decision is not None
    return [(item.id, item.verdict) for item in decision.excluded]


def test_it_is_shown_as_typed_wherever_the_decision_is_after_a_reopen(world: World) -> None:
    decision = world.speaker(AGENT).decide(EMAIL, evidence=[*TYPED, "e" * 32, TYPED[0]])
    world.reopen()

    found, audit = _explained(world, decision), world.store.audit(str(decision.id))

    said = [(one, "not_found") for one in ("e" * 32, *TYPED)]
    assert said == _dropped(decision) == _dropped(found.recorded) == _dropped(found.again) == _dropped(found.now)
    assert "same" == found.outcome
    assert said == [(item.id, item.verdict) for item in audit.evidence]
    assert "evidence note-7: no memory's id" in audit.missing


def test_a_retry_after_a_reopen_names_it_once(world: World) -> None:
    first = world.speaker(AGENT).decide(EMAIL, evidence=TYPED, command_id="cites nothing")
    world.reopen()
    again = world.speaker(AGENT).decide(EMAIL, evidence=TYPED, command_id="cites nothing")

    assert (first.id, first.excluded, True) == (again.id, again.excluded, again.repeated)


def test_i05_a_forgotten_value_that_was_cited_goes_from_the_decision(world: World) -> None:
    value = "Ann lives in Oberwiesenthal"
    agent = world.speaker(AGENT)
    receipt = agent.remember(value)
    decision = agent.decide(EMAIL, evidence=[f"memory: {value.upper()}"])
    assert [(f"memory: {value.upper()}", "not_found")] == _dropped(_explained(world, decision).recorded)

    agent.forget(receipt.id, reason="asked")

    assert [] == _dropped(_explained(world, decision).recorded)
    assert None is _explained(world, decision).action


def test_a_secret_that_was_cited_is_masked_in_the_log_and_the_decision_can_be_decided_again(world: World) -> None:
    decision = world.speaker(AGENT).decide(EMAIL, evidence=[f"token {TOKEN}"])
    world.reopen()

    found = _explained(world, decision)

    assert [("token [secret: github-token]", "not_found")] == _dropped(found.recorded)
    assert "same" == found.outcome


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return opened_shell(tmp_path)


def test_the_command_line_and_its_page_show_it_printable(shell: Shell, tmp_path: Path) -> None:
    hostile = "<b>\x1b[2J"
    decided = shell.row("decide", "email.send", "--actor", AGENT, "--evidence", hostile, code=1)
    page = tmp_path / "page.html"

    told = shell.run("explain", str(decided["id"]), "--report", str(page)).stdout

    assert "cited <b>\\u{1b}[2J: not_found" in told
    assert "<td>&lt;b&gt;\\u{1b}[2J</td>" in page.read_text()
