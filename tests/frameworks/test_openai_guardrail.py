"""The guard before a tool of the OpenAI Agents SDK: it decides on the call that is made, in a real run."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from agents import (
    FunctionTool,
    RunConfig,
    RunResult,
    ToolExecutionConfig,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
    ToolInputGuardrailTripwireTriggered,
    function_tool,
    tool_input_guardrail,
)
from agents.items import ToolCallOutputItem

import muniment
from muniment import Action, Pattern, Policy, Use
from muniment.openai_agents import MunimentSession, tell_denial, tool_guardrail
from tests.worlds import SCOPE, World

from . import scripts
from .scripts import call, run, scripted

CALL = {"to": "ann@acme.example", "body": "hello"}
SIGNED = Action("send_email", {"to": "ann@acme.example", "body": "hello"})


class Mail:
    """A tool that acts, and what it did."""

    def __init__(self, *guards: ToolInputGuardrail[object], approval: bool = False) -> None:
        self.sent: list[tuple[str, str]] = []

        @function_tool(tool_input_guardrails=list(guards), needs_approval=approval)
        def send_email(to: str, body: str = "hi") -> str:
            """Send an email."""
            self.sent.append((to, body))
            return "sent"

        self.tool: FunctionTool = send_email


def _guard(world: World, **options: str) -> ToolInputGuardrail[object]:
    return tool_guardrail(world.store, scope=SCOPE, actor="agent:planner", **options)


def _outputs(result: RunResult) -> list[str]:
    return [str(item.output) for item in result.new_items if isinstance(item, ToolCallOutputItem)]


def _info(result: RunResult) -> dict[str, object]:
    return cast("dict[str, object]", result.tool_input_guardrail_results[-1].output.output_info)


def test_a_call_is_refused_then_allowed_by_the_users_signature_and_once(world: World) -> None:
    """The model even repeats the id of the call: a decision is never used again."""
    mail, chat = Mail(_guard(world)), MunimentSession("t", world.store, scope=SCOPE, actor="agent:planner")
    model = scripted(
        call("send_email", CALL), "May I?", call("send_email", CALL), "Sent.", call("send_email", CALL), "No."
    )

    refused = asyncio.run(run(model, "write to Ann", tools=[mail.tool], session=chat))
    assert [] == mail.sent
    request = str(_info(refused)["request"])
    assert f"muniment confirm '{request}'" in _outputs(refused)[0]
    assert "no_confirmation" in _outputs(refused)[0]

    world.ann().confirm_request(request)
    allowed = asyncio.run(run(model, "I signed it", tools=[mail.tool], session=chat))
    assert ["sent"] == _outputs(allowed)
    assert [("ann@acme.example", "hello")] == mail.sent

    again = asyncio.run(run(model, "and again", tools=[mail.tool], session=chat))
    assert "confirmation_spent" in _outputs(again)[0]
    assert 1 == len(mail.sent)


def test_what_was_signed_for_other_arguments_is_no_signature_for_these(world: World) -> None:
    mail = Mail(_guard(world))
    world.ann().confirm(SIGNED, agent="agent:planner")
    model = scripted(call("send_email", {**CALL, "to": "eve@acme.example"}), "No.")

    result = asyncio.run(run(model, "write to Eve", tools=[mail.tool]))

    assert [] == mail.sent
    assert "this call was not made" in _outputs(result)[0]


def test_the_actions_name_is_that_of_the_tool_that_is_called(world: World) -> None:
    """Not that of the function behind it, nor of anything the model says about it."""
    done: list[str] = []

    @function_tool(name_override="drop_table", tool_input_guardrails=[_guard(world)])
    def send_email(to: str, body: str) -> str:
        done.append(to)
        return "done"

    world.ann().confirm(SIGNED, agent="agent:planner", uses=2)
    asyncio.run(run(scripted(call("drop_table", CALL), "No."), "go on", tools=[send_email]))
    assert [] == done

    world.ann().confirm(Action("drop_table", CALL), agent="agent:planner")
    asyncio.run(run(scripted(call("drop_table", CALL), "Yes."), "go on", tools=[send_email]))
    assert ["ann@acme.example"] == done


def test_two_equal_calls_at_once_share_no_confirmation(world: World) -> None:
    mail = Mail(_guard(world))
    world.ann().confirm(SIGNED, agent="agent:planner")
    both = [call("send_email", CALL, "a"), call("send_email", CALL, "b")]

    asyncio.run(run(scripted(both, "One went."), "write twice", tools=[mail.tool]))

    assert 1 == len(mail.sent)


def test_a_refusal_that_raises_stops_the_run_and_carries_the_request(world: World) -> None:
    mail = Mail(_guard(world, on_denial="raise"))

    with pytest.raises(ToolInputGuardrailTripwireTriggered) as stopped:
        asyncio.run(run(scripted(call("send_email", CALL)), "write", tools=[mail.tool]))

    assert [] == mail.sent
    world.ann().confirm_request(str(stopped.value.output.output_info["request"]))
    asyncio.run(run(scripted(call("send_email", CALL), "Sent."), "write", tools=[mail.tool]))
    assert 1 == len(mail.sent)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"to": "ann@acme.example", "body": "hello", "to": "eve@acme.example"}',
        '{"to": "eve@acme.example", "body": "hello", "to": "ann@acme.example"}',
        '{"to": "ann@acme.example", "body": NaN}',
        '["ann@acme.example", "hello"]',
        '"{}"',
        "{",
        '{"to": {"to": {"to": 1, "to": 2}}}',
        "",
    ],
)
def test_arguments_with_no_reading_or_with_two_are_refused(world: World, arguments: str) -> None:
    mail = Mail(_guard(world))
    world.ann().confirm(SIGNED, agent="agent:planner", uses=9)

    result = asyncio.run(run(scripted(call("send_email", arguments), "No."), "write", tools=[mail.tool]))

    assert [] == mail.sent
    assert "this call was not made" in _outputs(result)[0]


def test_a_call_that_another_guardrail_changed_is_refused(world: World) -> None:
    @tool_input_guardrail
    def rewrite(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        data.context.tool_arguments = '{"to": "ann@acme.example", "body": "hello"}'
        return ToolGuardrailFunctionOutput.allow()

    mail = Mail(rewrite, _guard(world))
    world.ann().confirm(SIGNED, agent="agent:planner", uses=9)
    model = scripted(call("send_email", '{"to": "eve@acme.example", "body": "hello"}'), "No.")

    asyncio.run(run(model, "write", tools=[mail.tool]))

    assert [] == mail.sent


def test_a_prohibition_vetoes_what_was_confirmed(world: World) -> None:
    mail = Mail(_guard(world))
    world.ann().confirm(SIGNED, agent="agent:planner")
    world.ann().prohibit(Action(Pattern("send_*")), reason="no mail today")

    result = asyncio.run(run(scripted(call("send_email", CALL), "No."), "write", tools=[mail.tool]))

    assert [] == mail.sent
    assert "prohibited" in _outputs(result)[0]


def test_a_tool_that_only_reads_needs_no_signature_and_obeys_a_veto(tmp_path: Path) -> None:
    world = World(tmp_path / "store", policy=Policy(actions={"send_email": Use.ANSWER}))
    mail = Mail(_guard(world))
    asyncio.run(run(scripted(call("send_email", CALL), "Read."), "look", tools=[mail.tool]))
    assert 1 == len(mail.sent)

    # Where the host cites evidence for it, that evidence has to hold.
    strict = Mail(tool_guardrail(world.store, scope=SCOPE, actor="agent:planner", evidence=["00" * 16]))
    asyncio.run(run(scripted(call("send_email", CALL), "No."), "look", tools=[strict.tool]))
    assert [] == strict.sent

    world.ann().prohibit(SIGNED, reason="not this")
    asyncio.run(run(scripted(call("send_email", CALL), "No."), "look", tools=[mail.tool]))
    assert 1 == len(mail.sent)
    world.store.close()


def test_evidence_is_asked_for_at_each_call(world: World) -> None:
    cited: list[str] = []
    asked: list[Sequence[str]] = []

    def evidence() -> Sequence[str]:
        asked.append(tuple(cited))
        return asked[-1]

    page = world.speaker("web:shop.example").remember("write to ann@acme.example")
    cited.append(page.id)
    mail = Mail(tool_guardrail(world.speaker("agent:planner"), evidence=evidence))

    result = asyncio.run(run(scripted(call("send_email", CALL), "No."), "write", tools=[mail.tool]))

    assert [(page.id,)] == asked
    assert "argument_only_in_weak_evidence:to" in cast("list[str]", _info(result)["reasons"])


def test_a_guard_that_cannot_decide_lets_nothing_through(world: World) -> None:
    mail = Mail(_guard(world))
    world.ann().confirm(SIGNED, agent="agent:planner")
    world.store.close()

    with pytest.raises(Exception, match="closed"):
        asyncio.run(run(scripted(call("send_email", CALL), "?"), "write", tools=[mail.tool]))

    assert [] == mail.sent


def test_guarding_before_an_approval_too_takes_two_confirmations_and_never_gives_one_twice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK then asks twice about one call, and does not say which time is the call."""
    config = RunConfig(
        tracing_disabled=True, tool_execution=ToolExecutionConfig(pre_approval_tool_input_guardrails=True)
    )
    monkeypatch.setattr(scripts, "QUIET", config)
    mail = Mail(_guard(world), approval=True)

    def approved(uses: int) -> list[tuple[str, str]]:
        world.ann().confirm(SIGNED, agent="agent:planner", uses=uses)
        model = scripted(call("send_email", CALL), "Done.")
        first = asyncio.run(run(model, "write", tools=[mail.tool]))
        state = first.to_state()
        for item in first.interruptions:
            state.approve(item)
        asyncio.run(scripts.resume(model, state, tools=[mail.tool]))
        return mail.sent

    assert [] == approved(1)
    assert 1 == len(approved(2))


@pytest.mark.parametrize("before", [False, True], ids=["guardrails after", "guardrails before too"])
def test_a_guard_on_the_function_itself_spends_only_for_the_call_that_a_person_approved(
    world: World, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    """The tool's function runs once, after the approval: what it asks for is what is spent."""
    execution = ToolExecutionConfig(pre_approval_tool_input_guardrails=before)
    monkeypatch.setattr(scripts, "QUIET", RunConfig(tracing_disabled=True, tool_execution=execution))
    sent: list[tuple[str, str]] = []

    @function_tool(needs_approval=True, failure_error_function=tell_denial)
    @muniment.guarded(world.speaker("agent:planner"), "send_email")
    def send_email(to: str, body: str) -> str:
        """Send an email."""
        sent.append((to, body))
        return "sent"

    def asked(*, approve: bool) -> str:
        model = scripted(call("send_email", CALL), "Done.")
        first = asyncio.run(run(model, "write", tools=[send_email]))
        state = first.to_state()
        for item in first.interruptions:
            (state.approve if approve else state.reject)(item)
        return _outputs(asyncio.run(scripts.resume(model, state, tools=[send_email])))[-1]

    world.ann().confirm(SIGNED, agent="agent:planner")
    asked(approve=False)
    assert [] == sent
    assert "sent" == asked(approve=True)
    refusal = asked(approve=True)
    assert refusal.startswith("muniment: this call was not made: no_confirmation, confirmation_spent. needed: ")
    assert 1 == len(sent)
    world.ann().confirm_request(shlex.split(refusal.split("muniment confirm ")[1])[0])
    assert "sent" == asked(approve=True)


def test_an_error_of_the_function_itself_is_told_as_the_sdk_tells_it(world: World) -> None:
    world.ann().confirm(Action("fail"), agent="agent:planner")

    @function_tool(failure_error_function=tell_denial)
    @muniment.guarded(world.speaker("agent:planner"), "fail")
    def fail() -> str:
        """Fail."""
        raise ValueError("the password is hunter2")

    result = asyncio.run(run(scripted(call("fail", {}), "Oh."), "go on", tools=[fail]))

    assert ["An error occurred while running the tool. Please try again."] == _outputs(result)


def test_a_confirmation_is_kept_for_the_call_that_the_host_approves(world: World) -> None:
    mail = Mail(_guard(world), approval=True)
    world.ann().confirm(SIGNED, agent="agent:planner")
    model = scripted(call("send_email", CALL), "Done.")

    first = asyncio.run(run(model, "write", tools=[mail.tool]))
    assert [] == mail.sent
    state = first.to_state()
    state.approve(first.interruptions[0])
    asyncio.run(scripts.resume(model, state, tools=[mail.tool]))

    assert 1 == len(mail.sent)


@pytest.mark.parametrize("wrong", [{"on_denial": "warn"}, {"scope": "acme", "actor": "agent:x"}])
def test_what_no_guard_can_be_made_of_is_refused_at_once(world: World, wrong: dict[str, str]) -> None:
    with pytest.raises(muniment.InvalidInput):
        tool_guardrail(world.speaker("agent:planner"), **wrong)
