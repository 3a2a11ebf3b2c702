"""A tool node that asks the guard about each call, with the arguments that the tool would get."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest, ToolInvocationError
from langgraph.types import Command
from pydantic import BaseModel, ValidationError

from muniment._answers import Decision
from muniment._session import Session
from muniment.events import InvalidInput
from muniment.gate import Action, Argument

Ran: TypeAlias = "ToolMessage | Command[object]"
Run = Callable[[ToolCallRequest], Ran]
RunAsync = Callable[[ToolCallRequest], Awaitable[Ran]]
Wrap = Callable[[ToolCallRequest, Run], Ran]
WrapAsync = Callable[[ToolCallRequest, RunAsync], Awaitable[Ran]]
ToolErrors: TypeAlias = "bool | str | Callable[..., str] | type[Exception] | tuple[type[Exception], ...]"


class GuardedToolNode(ToolNode):
    """
    LangGraph's tool node, in which no tool runs before the guard has allowed that very call.

    What is decided on is the tool's name and every argument that its schema makes of the call, defaults included;
    what LangGraph injects (state, store, runtime) is the host's, and no argument. A refused call becomes a ToolMessage
    of status `error` with the reasons and the request that a user can sign; its `artifact` is the decision.
    """

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., object]],
        *,
        by: Session | Callable[[ToolCallRequest], Session],
        actions: Mapping[str, str] | None = None,
        evidence: Sequence[str] | Callable[[ToolCallRequest], Sequence[str]] = (),
        name: str = "tools",
        tags: list[str] | None = None,
        handle_tool_errors: ToolErrors | None = None,
        messages_key: str = "messages",
        wrap_tool_call: Wrap | None = None,
        awrap_tool_call: WrapAsync | None = None,
    ) -> None:
        """
        Make a node whose tools act for `by`: a session, or what finds one for a call.

        `actions` gives the action's name where it is not the tool's. The rest is as in ToolNode; wrappers go around
        the guard, so that what they make of a call is what is decided on, and a second try is a second decision.
        """
        self._by, self._actions, self._evidence = by, dict(actions or {}), evidence
        # As in ToolNode: a wrapper that is not async serves both ways.
        only_sync = wrap_tool_call is not None and awrap_tool_call is None
        options: dict[str, object] = {} if handle_tool_errors is None else {"handle_tool_errors": handle_tool_errors}
        super().__init__(
            tools,
            name=name,
            tags=tags,
            messages_key=messages_key,
            wrap_tool_call=self._guarding(wrap_tool_call),
            awrap_tool_call=None if only_sync else self._guarding_async(awrap_tool_call),
            **options,  # type: ignore[arg-type]  # one option, left to ToolNode where it was left out
        )

    def _guarding(self, wrap: Wrap | None) -> Wrap:
        def guarded(request: ToolCallRequest, execute: Run) -> Ran:
            def run(asked: ToolCallRequest) -> Ran:
                fixed = _fixed(asked)
                refused = self._refusal(fixed)
                return execute(fixed) if refused is None else refused

            return run(request) if wrap is None else wrap(request, run)

        return guarded

    def _guarding_async(self, wrap: WrapAsync | None) -> WrapAsync:
        async def guarded(request: ToolCallRequest, execute: RunAsync) -> Ran:
            async def run(asked: ToolCallRequest) -> Ran:
                fixed = _fixed(asked)
                refused = await asyncio.to_thread(self._refusal, fixed)
                return await execute(fixed) if refused is None else refused

            return await (run(request) if wrap is None else wrap(request, run))

        return guarded

    def _refusal(self, request: ToolCallRequest) -> ToolMessage | None:
        tool = request.tool
        if tool is None:
            return None  # ToolNode answers that there is no such tool
        action = self._actions.get(tool.name, tool.name)
        session = self._by if isinstance(self._by, Session) else self._by(request)
        evidence = self._evidence(request) if callable(self._evidence) else self._evidence
        arguments = _arguments(tool, request.tool_call["args"])
        try:
            decision = session.decide(Action(action, arguments), evidence=evidence)
        except InvalidInput as error:
            # What cannot be stated exactly, nobody can have confirmed.
            said = {"error": error.code, "message": str(error), "hint": error.hint}
            return _message(request, said, None)
        if decision.allowed:
            return None
        return _message(request, _denial(action, decision), decision.to_dict())


def _fixed(request: ToolCallRequest) -> ToolCallRequest:
    # A copy that nobody else holds: what runs is what was decided on.
    return request.override(tool_call=copy.deepcopy(request.tool_call))


def _arguments(tool: BaseTool, given: Mapping[str, object]) -> dict[str, Argument]:
    schema = _schema(tool)
    if schema is None:
        return cast("dict[str, Argument]", dict(given))
    try:
        read = schema.model_validate(given)
    except ValidationError as error:
        # As ToolNode reports it, and before anybody is asked to sign it.
        raise ToolInvocationError(tool.name, error, dict(given)) from error
    names = {name for field in schema.model_fields.items() for name in (field[0], field[1].alias)}
    # What the schema has no name for may still reach the tool (`extra="allow"`), so it is decided on as well.
    unread = {name: value for name, value in given.items() if name not in names}
    return cast("dict[str, Argument]", unread | read.model_dump(mode="json"))


def _schema(tool: BaseTool) -> type[BaseModel] | None:
    """Return what the call's arguments are read with; None where a tool (of an MCP server) takes them as they are."""
    seen, whole = cast("object", tool.tool_call_schema), cast("object", tool.get_input_schema())
    if not isinstance(seen, type) or not issubclass(seen, BaseModel):
        return None
    if isinstance(whole, type) and issubclass(whole, BaseModel) and set(whole.model_fields) == set(seen.model_fields):
        return whole  # with its validators, which a part of a schema is made without
    return seen


def _denial(action: str, decision: Decision) -> dict[str, object]:
    return {
        "error": "action_denied",
        "action": action,
        "reasons": decision.reasons,
        "needed": decision.needed,
        "request": decision.request,
        "hint": "the tool did not run; show the request to the user, who can sign it: `muniment confirm REQUEST`",
    }


def _message(request: ToolCallRequest, said: Mapping[str, object], artifact: dict[str, object] | None) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(
        content=json.dumps(said, ensure_ascii=False),
        name=call["name"],
        tool_call_id=call["id"],
        status="error",
        artifact=artifact,
    )
