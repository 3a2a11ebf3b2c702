"""A run of the Agents SDK without a network: the SDK's own scripted model says what a test lets it say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents import Agent, RunConfig, Runner, RunResult, RunState, Session, Tool
from agents.items import TResponseOutputItem
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseFunctionToolCall
from pydantic import BaseModel

QUIET = RunConfig(tracing_disabled=True)
Step = str | TResponseOutputItem | Sequence[TResponseOutputItem]


def call(tool: str, arguments: Mapping[str, object] | str, call_id: str = "call_1") -> TResponseOutputItem:
    """Return a tool call, with its arguments as data or as the very text that the model wrote."""
    if isinstance(arguments, str):
        return ResponseFunctionToolCall(name=tool, arguments=arguments, call_id=call_id, type="function_call")
    return function_call(tool, json.dumps(arguments), call_id=call_id)


def scripted(*steps: Step) -> ScriptedModel:
    """Return a model that answers in these steps: a text, a tool call, or several at once."""
    return ScriptedModel([_outputs(step) for step in steps])


def _outputs(step: Step) -> Sequence[TResponseOutputItem]:
    if isinstance(step, str):
        return [assistant_message(step)]
    return [step] if isinstance(step, BaseModel) else step


async def run(
    model: ScriptedModel, words: str, *, tools: Sequence[Tool] = (), session: Session | None = None
) -> RunResult:
    """Run an agent once on what the user says."""
    agent = Agent(name="planner", model=model, tools=list(tools))
    return await Runner.run(agent, words, session=session, run_config=QUIET)


async def resume(model: ScriptedModel, state: RunState[Any], *, tools: Sequence[Tool]) -> RunResult:
    """Go on with a run that waited for an approval."""
    agent = Agent(name="planner", model=model, tools=list(tools))
    return await Runner.run(agent, state, run_config=QUIET)
