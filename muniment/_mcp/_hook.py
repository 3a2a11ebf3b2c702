"""
The guard in front of Claude Code's tools: one answer to one `PreToolUse` event.

    in   {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {...}, "tool_use_id": "toolu_01", ...}
    out  {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", ...}}

The tool's name is the action's name, and its input the arguments, so the user's signature and the host's policy speak
of the very call that is made. Protocol: https://code.claude.com/docs/en/hooks
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Final, NamedTuple, cast

from muniment._answers import Decision
from muniment._session import Session
from muniment.events import BadArgument
from muniment.gate import Action, Use
from muniment.gate._actions import Argument

EVENT: Final = "PreToolUse"
ACTOR: Final = "agent:claude-code"
_MAX_REQUEST: Final = 2_000


class ToolCall(NamedTuple):
    """The call that Claude Code is about to make."""

    name: str
    arguments: Mapping[str, object]
    id: str | None


def parse_event(text: str) -> ToolCall:
    """
    Return the call that an event describes.

    Raises:
        BadArgument: it is not a `PreToolUse` event in the shape above.
    """
    try:
        event = cast("object", json.loads(text))
    except (ValueError, RecursionError) as error:
        raise BadArgument(argument="stdin", detail="expected one JSON object") from error
    if not isinstance(event, dict):
        raise BadArgument(argument="stdin", detail="expected one JSON object")
    fields = cast("dict[str, object]", event)
    if fields.get("hook_event_name") != EVENT:
        raise BadArgument(argument="hook_event_name", detail=f"expected {EVENT}; this hook decides nothing else")
    name, arguments, call_id = fields.get("tool_name"), fields.get("tool_input"), fields.get("tool_use_id")
    if not isinstance(name, str) or not name:
        raise BadArgument(argument="tool_name", detail="expected a text")
    if not isinstance(arguments, dict):
        raise BadArgument(argument="tool_input", detail="expected an object")
    if call_id is not None and not isinstance(call_id, str):
        raise BadArgument(argument="tool_use_id", detail="expected a text")
    return ToolCall(name, cast("dict[str, object]", arguments), call_id)


def decide_call(session: Session, call: ToolCall) -> Decision:
    """
    Return the guard's decision on the call, and spend the confirmation that allows it.

    The same call asked about twice gets one decision: two hooks of one event do not spend two confirmations.
    """
    action = Action(call.name, cast("dict[str, Argument]", call.arguments))
    return session.decide(action, command_id=call.id)


def format_answer(decision: Decision) -> str:
    """Return what Claude Code reads on standard output; empty when this hook has no opinion."""
    if decision.use in (Use.PLANNING, Use.ANSWER):
        # A call that only reads needs no signature, and cites no evidence here: only a veto concerns it. Without one
        # Claude Code asks the user as it would have; allowing is not this hook's business.
        if decision.allowed or decision.reasons == ("no_support",):
            return ""
        return _answer("deny", f"{', '.join(decision.reasons)}")
    if decision.allowed:
        return _answer("allow", f"the user signed for this call (decision {decision.id})")
    return _answer("deny", _why(decision))


def _why(decision: Decision) -> str:
    parts = [f"denied as {decision.use}: {', '.join(decision.reasons)}"]
    if decision.needed:
        parts.append(f"needed: {'; '.join(decision.needed)}")
    if decision.request is not None and len(decision.request) <= _MAX_REQUEST:
        parts.append(f"the user can sign this: muniment confirm {shlex.quote(decision.request)}")
    return ". ".join(parts)


def _answer(verdict: str, reason: str) -> str:
    return json.dumps(
        {
            "hookSpecificOutput": {
                "hookEventName": EVENT,
                "permissionDecision": verdict,
                "permissionDecisionReason": f"muniment: {reason}",
            }
        }
    )
