"""
The OpenAI Agents SDK over Muniment: a session whose items are evidence, and a guardrail that decides on tool calls.

    chat = MunimentSession("thread-42", store, scope="acme/apollo", actor="agent:planner", user="user:ann")
    guard = tool_guardrail(store, scope="acme/apollo", actor="agent:planner")
    await Runner.run(agent, "when do we launch?", session=chat)     # function_tool(..., tool_input_guardrails=[guard])

What is remembered how, and what a refused call shows, is in docs/openai-agents.md.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import uuid
from collections.abc import Callable
from typing import Final, TypeVar, cast

from muniment.events import ActionDenied, BadArgument, InvalidInput, Refused, check_text
from muniment.gate import Action, Argument, MemoryFields, Use

from ._answers import Decision, Record
from ._chat_items import Item, called, is_item, restored, session_scope, speaker, stored
from ._extras import extra_missing
from ._guarded import Evidence, acting_session
from ._session import Session
from ._store import Store
from ._together import Said, forget_together, newest, retire_together, write_together
from .aio import AsyncStore

try:
    from agents import (
        RunContextWrapper,
        ToolGuardrailFunctionOutput,
        ToolInputGuardrail,
        ToolInputGuardrailData,
        TResponseInputItem,
        default_tool_error_function,
    )
    from agents.memory import SessionSettings
except ImportError as error:
    raise extra_missing("openai-agents", error) from error

R = TypeVar("R")

_MAX_ID: Final = 500
_SHOWN_REQUEST: Final = 2_000
_CLEARED: Final = "cleared"


class MunimentSession:
    """
    One conversation of the Agents SDK, kept in a scope of its own below `scope`; items come back as they were given.

    Each item is a memory: the model's have the origin of `actor`, a tool's output that of `tool:NAME`, and messages of
    the role `user` that of `actor` too, unless the host says with `user=` whose own words they are (unsigned). One
    `add_items` is one batch. Taking the newest item back retires it. `clear="retire"` keeps cleared items in history;
    `"forget"` erases all that the session ever held, and keeps those texts out of it.
    """

    session_id: str
    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        store: Store | AsyncStore,
        *,
        scope: str,
        actor: str,
        user: str | None = None,
        clear: str = "retire",
        session_settings: SessionSettings | None = None,
    ) -> None:
        check_text(session_id, what="session_id", limit=_MAX_ID)
        if clear not in ("retire", "forget"):
            raise BadArgument(argument="clear", detail=f"expected retire or forget, got `{clear}`")
        if not actor.startswith("agent:"):
            raise BadArgument(argument="actor", detail=f"expected agent:NAME, got `{actor}`")
        if user is not None and user != "user" and not user.startswith("user:"):
            raise BadArgument(argument="user", detail=f"expected user or user:NAME, got `{user}`")
        engine = store.sync if isinstance(store, AsyncStore) else store
        own = session_scope(scope, session_id)
        self.session_id, self.session_settings = session_id, session_settings or SessionSettings()
        self._agent = engine.session(scope=own, actor=actor)
        self._user = None if user is None else engine.session(scope=own, actor=user)
        self._forgets = clear == "forget"
        self._calls: dict[str, str] = {}

    @property
    def scope(self) -> str:
        """The scope that the items are in; name it in `reads=` to recall them, or to cite them as evidence."""
        return self._agent.scope

    # --- the protocol -------------------------------------------------------------------------------------------------

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items in their order; with a limit, here or in the settings, the newest so many."""
        records = await self.records(limit)
        return [cast("TResponseInputItem", restored(record)) for record in records]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """
        Record the items in one batch: all of them, in their order, or none.

        Raises:
            InvalidInput: an item is not a JSON object, or is longer than a memory may be (4 MiB).
            Refused: an item holds a credential, or a text that was forgotten here.
        """
        if items:
            given = [cast("Item", item) for item in items]
            await _finished(lambda: self._add(given))

    async def pop_item(self) -> TResponseInputItem | None:
        """Retire the newest item and return it; None when there is none. Its text may be said again by anybody."""
        return await _finished(self._pop)

    async def clear_session(self) -> None:
        """Retire all items in one batch; or forget them, if the session was made so."""
        await _finished(self._clear)

    # --- beyond the protocol ------------------------------------------------------------------------------------------

    async def records(self, limit: int | None = None) -> list[Record]:
        """Return the memories behind `get_items`, with the ids that a decision can cite."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit <= 0:
            return []
        return await asyncio.to_thread(newest, self._agent, is_item, limit)

    # --- in a thread --------------------------------------------------------------------------------------------------

    def _add(self, items: list[Item]) -> None:
        batch = uuid.uuid4().hex
        kept = [self._stored(item) for item in items]
        self._calls |= called(items)
        if any("call_id" in item and str(item["call_id"]) not in self._calls for item in items):
            self._calls |= called(restored(record) for record in newest(self._agent, is_item, None))
        said: list[Said] = []
        for index, (item, (content, metadata)) in enumerate(zip(items, kept, strict=True)):
            fields: MemoryFields = {
                "kind": "chat", "metadata": metadata, "source": f"openai-agents:{self.session_id}#{batch}/{index}",
            }  # fmt: skip
            said.append(Said(self._voice(speaker(item, self._calls)), content, fields))
        write_together("remember", said)

    def _stored(self, item: Item) -> tuple[str, dict[str, object]]:
        preparer = self._agent._engine.preparer
        try:
            return stored(item, lambda text: preparer.without_secrets(text, "an item"))
        except Refused as error:
            self._agent._count_refusal("remember", error)
            raise

    def _voice(self, who: str) -> Session:
        if who == "user":
            return self._user or self._agent
        return self._agent if who == "agent" else self._agent.via(who)

    def _owner(self, record: Record) -> Session:
        """Return the voice that may withdraw a record; a user's only where the host gave this session one."""
        return self._user if self._user is not None and record.rank == "user" else self._agent

    def _pop(self) -> TResponseInputItem | None:
        # Another process may take the same item: whoever comes second takes the one before it.
        while found := newest(self._agent, is_item, 1):
            owned = [(self._owner(record), record.id) for record in found]
            if retire_together(owned, reason="popped", keep_out=False):
                return cast("TResponseInputItem", restored(found[0]))
        return None

    def _clear(self) -> None:
        found = newest(self._agent, is_item, None, live=not self._forgets)
        if self._forgets:
            if found:
                ids = [record.id for record in found]
                forget_together(self._user or self._agent, ids, reason=_CLEARED)
            return
        retire_together([(self._owner(record), record.id) for record in found], reason=_CLEARED, keep_out=False)


def tool_guardrail(
    by: Session | Store,
    *,
    scope: str | None = None,
    actor: str | None = None,
    use: str | None = None,
    evidence: Evidence = (),
    on_denial: str = "reject",
    name: str = "muniment",
) -> ToolInputGuardrail[object]:
    """
    Return an input guardrail for function tools: the guard decides on each call, by the tool's name and its arguments.

    `by` is the acting agent's session, or a store together with `scope` and `actor`. A call that is allowed spends its
    confirmation. One that is not never reaches the tool: the model is told why (`on_denial="reject"`), or the run stops
    (`"raise"`); either way `output.output_info["request"]` is what the user can sign.

    The SDK may ask a guardrail before a person's approval too, and does not say so: there, guard the function itself.
    """
    session = acting_session(by, scope, actor)
    if on_denial not in ("reject", "raise"):
        raise BadArgument(argument="on_denial", detail=f"expected reject or raise, got `{on_denial}`")

    def decide(data: ToolInputGuardrailData) -> dict[str, object]:
        cited = evidence() if callable(evidence) else evidence
        return _verdict(session.decide(_action(data), use=use, evidence=cited), cites=bool(cited))

    async def guard(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        try:
            verdict: dict[str, object] = await _finished(lambda: decide(data))
        except InvalidInput as error:
            # What cannot be stated exactly, nobody can have confirmed.
            verdict = {"allowed": False, "reasons": [error.code], "needed": [str(error)], "request": None}
        if verdict["allowed"]:
            return ToolGuardrailFunctionOutput.allow(verdict)
        if on_denial == "raise":
            return ToolGuardrailFunctionOutput.raise_exception(verdict)
        return ToolGuardrailFunctionOutput.reject_content(_words(verdict), verdict)

    return ToolInputGuardrail(guardrail_function=guard, name=name)


def tell_denial(context: RunContextWrapper[object], error: Exception) -> str:
    """
    Return what the model is told where `muniment.guarded` refused the tool's function: why, and what can be signed.

    It is a `failure_error_function` for `function_tool`; of other errors it says what the SDK says.
    """
    if not isinstance(error, ActionDenied):
        return default_tool_error_function(context, error)
    facts = error.facts
    return _words({"reasons": [facts["reasons"]], "needed": facts["needed"], "request": facts["request"]})


def _action(data: ToolInputGuardrailData) -> Action:
    """
    Return the call that the SDK is about to make.

    Raises:
        InvalidInput: its arguments are no JSON object, or have two readings.
    """
    context = data.context
    text = context.tool_arguments
    # The tool gets what stands in the call. Another guardrail could have changed what stands beside it.
    if context.tool_call is not None and (context.tool_call.arguments, context.tool_call.name) != (
        text,
        context.tool_name,
    ):
        raise BadArgument(argument="arguments", detail="the call was changed on its way")
    try:
        found = json.loads(text, object_pairs_hook=_single, parse_constant=_no_number) if text else {}
    except (ValueError, RecursionError) as error:
        raise BadArgument(argument="arguments", detail="they are not one JSON object") from error
    if not isinstance(found, dict):
        raise BadArgument(argument="arguments", detail="they are not one JSON object")
    return Action(context.qualified_tool_name, cast("dict[str, Argument]", found))


def _single(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadArgument(argument="arguments", detail="a name stands in them twice")
    return found


def _no_number(text: str) -> object:
    raise BadArgument(argument="arguments", detail=f"`{text}` is no JSON number")


def _verdict(decision: Decision, *, cites: bool) -> dict[str, object]:
    # A call that only reads needs no signature; where the host cites nothing for it, only a veto concerns it.
    reads = decision.use in (Use.PLANNING, Use.ANSWER) and not cites and decision.reasons == ("no_support",)
    return {
        "allowed": decision.allowed or reads,
        "decision": decision.id,
        "use": str(decision.use),
        "reasons": list(decision.reasons),
        "needed": list(decision.needed),
        "request": decision.request,
    }


def _words(verdict: dict[str, object]) -> str:
    reasons, needed = cast("list[str]", verdict["reasons"]), cast("list[str]", verdict["needed"])
    parts = [f"muniment: this call was not made: {', '.join(reasons)}"]
    if needed:
        parts.append(f"needed: {'; '.join(needed)}")
    request = verdict["request"]
    if isinstance(request, str) and len(request) <= _SHOWN_REQUEST:
        parts.append(f"the user can sign this: muniment confirm {shlex.quote(request)}")
    return ". ".join(parts)


async def _finished(work: Callable[[], R]) -> R:
    """Return what the work returns, from a thread. Who is cancelled goes on when it is finished: no write is halved."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()
        raise


__all__ = ["MunimentSession", "tell_denial", "tool_guardrail"]
