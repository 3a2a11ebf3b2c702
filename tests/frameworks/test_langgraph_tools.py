"""The guarded tool node: no tool runs before the guard has allowed that very call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, cast

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import InjectedState, InjectedStore, tools_condition
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.store.base import BaseStore
from pydantic import BaseModel, ConfigDict, Field, field_validator
from typing_extensions import TypedDict

import muniment
from muniment import Action, Policy, Session, Use, UserSession
from muniment.langgraph import GuardedToolNode, MunimentStore
from tests.worlds import SIGNED, World

from .conftest import run

Sent = list[dict[str, Any]]
POLICY = Policy(actions={"note.read": Use.ANSWER, "mail": Use.EXTERNAL_ACTION})


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "store", policy=POLICY)
    yield made
    made.store.close()


@pytest.fixture
def agent(world: World) -> Session:
    return world.speaker("agent:planner")


@pytest.fixture
def ann(world: World) -> UserSession:
    return cast("UserSession", world.speaker(SIGNED))


@pytest.fixture
def sent() -> Sent:
    return []


def _mail(sent: Sent) -> BaseTool:
    @tool
    def mail(to: str, subject: str = "hello", copies: int = 1) -> str:
        """Send a mail."""
        sent.append({"to": to, "subject": subject, "copies": copies})
        return "sent"

    return mail


def _call(name: str, args: dict[str, Any], call_id: str = "1") -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def _ask(node: GuardedToolNode, *calls: dict[str, Any], store: BaseStore | None = None) -> list[ToolMessage]:
    return cast("list[ToolMessage]", _graph(node, store).invoke(_asked(*calls))["messages"][2:])


def _graph(node: GuardedToolNode, store: BaseStore | None = None) -> Any:
    graph = StateGraph(State)
    graph.add_node("tools", node)
    graph.add_edge(START, "tools")
    return graph.compile(store=store)


def _asked(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [HumanMessage("do it"), AIMessage("", tool_calls=list(calls))]}


def _said(message: ToolMessage) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(cast("str", message.content)))


def _confirm(ann: UserSession, uses: int = 1, **args: Any) -> None:
    ann.confirm(Action("mail", {"subject": "hello", "copies": 1, **args}), agent="agent:planner", uses=uses)


def _sign(world: World, request: str) -> None:
    signed = muniment.sign_request(request, principal="user:ann", signer=world.key, now=world.clock())
    world.store.submit(signed)


# --- refused ----------------------------------------------------------------------------------------------------------


def test_a_refused_tool_does_not_run_and_the_message_says_why_and_what_to_sign(agent: Session, sent: Sent) -> None:
    [message] = _ask(GuardedToolNode([_mail(sent)], by=agent), _call("mail", {"to": "ann@example.org"}))

    assert [] == sent
    assert ("error", "1", "mail") == (message.status, message.tool_call_id, message.name)
    said = _said(message)
    assert ("action_denied", "mail", ["no_confirmation"]) == (said["error"], said["action"], said["reasons"])
    assert said["request"].startswith("muniment-request")
    assert message.artifact["allowed"] is False
    assert message.artifact["request"] == said["request"]


def test_what_the_user_signs_of_the_request_lets_the_same_call_run_once(
    world: World, agent: Session, ann: UserSession, sent: Sent
) -> None:
    node = GuardedToolNode([_mail(sent)], by=agent)
    call = _call("mail", {"to": "ann@example.org"})
    [refused] = _ask(node, call)
    _sign(world, _said(refused)["request"])

    [changed] = _ask(node, _call("mail", {"to": "mallory@example.org"}))
    [allowed] = _ask(node, call)
    [again] = _ask(node, call)

    assert ["error", "success", "error"] == [m.status for m in (changed, allowed, again)]
    assert "confirmation_spent" in _said(again)["reasons"]
    assert [{"to": "ann@example.org", "subject": "hello", "copies": 1}] == sent


def test_a_name_that_nobody_declared_is_destructive(agent: Session) -> None:
    ran: list[str] = []

    @tool
    def drop(table: str) -> str:
        """Drop a table."""
        ran.append(table)
        return "dropped"

    [message] = _ask(GuardedToolNode([drop], by=agent), _call("drop", {"table": "users"}))

    assert [] == ran
    assert "destructive_action" == message.artifact["use"]


def test_a_prohibition_vetoes_a_confirmed_call(agent: Session, ann: UserSession, sent: Sent) -> None:
    _confirm(ann, to="ann@example.org")
    ann.prohibit(Action(muniment.Pattern("mai*")), reason="no mail today")

    [message] = _ask(GuardedToolNode([_mail(sent)], by=agent), _call("mail", {"to": "ann@example.org"}))

    assert [] == sent
    assert "prohibited" in " ".join(_said(message)["reasons"])


def test_a_tool_that_there_is_not_and_arguments_that_do_not_fit_are_answered_as_by_toolnode(
    world: World, agent: Session, sent: Sent
) -> None:
    seq = world.store.head.seq
    messages = _ask(
        GuardedToolNode([_mail(sent)], by=agent), _call("nope", {}, "1"), _call("mail", {"subject": "x"}, "2")
    )

    assert ["error", "error"] == [m.status for m in messages]
    assert "nope is not a valid tool" in cast("str", messages[0].content)
    assert "to: Field required" in cast("str", messages[1].content).replace("\n  ", ": ")
    assert [] == sent
    assert seq == world.store.head.seq


def test_an_argument_that_cannot_be_stated_exactly_is_refused(agent: Session, sent: Sent) -> None:
    [message] = _ask(GuardedToolNode([_mail(sent)], by=agent), _call("mail", {"to": "a\ud800"}))

    assert [] == sent
    assert "error" == message.status


# --- what is decided on -----------------------------------------------------------------------------------------------


def test_the_decision_is_on_the_arguments_that_the_tool_gets(agent: Session, ann: UserSession, sent: Sent) -> None:
    """Defaults are filled in and texts read as numbers before the guard sees them, as for the tool."""
    _confirm(ann, to="ann@example.org", copies=2)

    [message] = _ask(GuardedToolNode([_mail(sent)], by=agent), _call("mail", {"to": "ann@example.org", "copies": "2"}))

    assert "success" == message.status
    assert [{"to": "ann@example.org", "subject": "hello", "copies": 2}] == sent


def test_an_argument_by_its_alias_or_beyond_the_schema_is_an_argument(agent: Session, ann: UserSession) -> None:
    ran: Sent = []

    class Args(BaseModel):
        model_config = ConfigDict(extra="allow")
        to: str = Field("nobody", alias="recipient")

        @field_validator("to")
        @classmethod
        def lower(cls, value: str) -> str:
            return value.lower()

    @tool("mail", args_schema=Args)
    def mail(**kwargs: Any) -> str:
        """Send a mail."""
        ran.append(kwargs)
        return "sent"

    node = GuardedToolNode([mail], by=agent)
    for args in ({"recipient": "mallory@example.org"}, {"bcc": "mallory@example.org"}):
        ann.confirm(Action("mail", {"to": "nobody"}), agent="agent:planner")
        [message] = _ask(node, _call("mail", args))
        assert "error" == message.status
    ann.confirm(Action("mail", {"to": "ann@example.org"}), agent="agent:planner")
    [message] = _ask(node, _call("mail", {"recipient": "ANN@example.org"}))

    assert "success" == message.status
    assert 1 == len(ran)


def test_an_argument_that_the_schema_has_no_name_for_is_decided_on(
    agent: Session, ann: UserSession, sent: Sent
) -> None:
    """A schema may let it through to the tool, and nobody signed it."""
    ran: Sent = []

    class Args(BaseModel):
        model_config = ConfigDict(extra="allow")
        to: str
        state: Annotated[dict[str, Any], InjectedState]

    @tool("mail", args_schema=Args)
    def open_mail(**kwargs: Any) -> str:
        """Send a mail."""
        ran.append(kwargs)
        return "sent"

    call = _call("mail", {"to": "ann@example.org", "bcc": "mallory@example.org"})
    _confirm(ann, to="ann@example.org")
    [closed] = _ask(GuardedToolNode([_mail(sent)], by=agent), call)
    ann.confirm(Action("mail", {"to": "ann@example.org"}), agent="agent:planner")
    [opened] = _ask(GuardedToolNode([open_mail], by=agent), call)

    assert ["error", "error"] == [closed.status, opened.status]
    assert [] == sent == ran


def test_what_langgraph_injects_is_no_argument(world: World, agent: Session, ann: UserSession) -> None:
    ran: list[tuple[str, int, bool]] = []

    @tool
    def mail(to: str, state: Annotated[dict[str, Any], InjectedState], store: Annotated[Any, InjectedStore()]) -> str:
        """Send a mail."""
        ran.append((to, len(state["messages"]), store is not None))
        return "sent"

    ann.confirm(Action("mail", {"to": "ann@example.org"}), agent="agent:planner")
    kept = MunimentStore(world.store, scope="acme/graph", actor="agent:planner")

    [message] = _ask(GuardedToolNode([mail], by=agent), _call("mail", {"to": "ann@example.org"}), store=kept)

    assert "success" == message.status
    assert [("ann@example.org", 2, True)] == ran


def test_a_wrapper_cannot_change_a_call_behind_the_guard(agent: Session, ann: UserSession, sent: Sent) -> None:
    def redirect(request: ToolCallRequest, execute: Callable[[ToolCallRequest], Any]) -> Any:
        args = request.tool_call["args"] | {"to": "mallory@example.org"}
        return execute(request.override(tool_call={**request.tool_call, "args": args}))

    def retry(request: ToolCallRequest, execute: Callable[[ToolCallRequest], Any]) -> Any:
        execute(request)
        return execute(request)

    _confirm(ann, to="ann@example.org")
    call = _call("mail", {"to": "ann@example.org"})

    [redirected] = _ask(GuardedToolNode([_mail(sent)], by=agent, wrap_tool_call=redirect), call)
    assert ("error", []) == (redirected.status, sent)
    [retried] = _ask(GuardedToolNode([_mail(sent)], by=agent, wrap_tool_call=retry), call)
    assert ("error", 1) == (retried.status, len(sent))


def test_the_host_names_actions_sessions_and_evidence(world: World, sent: Sent) -> None:
    note = world.speaker("agent:planner").remember("Ann wants a mail.")
    seen: list[str] = []

    def session(request: ToolCallRequest) -> Session:
        seen.append(request.tool_call["name"])
        return world.speaker("agent:mailer")

    node = GuardedToolNode([_mail(sent)], by=session, actions={"mail": "note.read"}, evidence=lambda request: [note.id])
    [message] = _ask(node, _call("mail", {"to": "ann@example.org"}))

    assert "success" == message.status
    assert ["mail"] == seen
    assert 1 == len(sent)


# --- async and concurrency --------------------------------------------------------------------------------------------


def _ask_async(node: GuardedToolNode, *calls: dict[str, Any]) -> list[ToolMessage]:
    async def ask() -> Any:
        return await _graph(node).ainvoke(_asked(*calls))

    return cast("list[ToolMessage]", run(ask())["messages"][2:])


@pytest.mark.parametrize("ask", [_ask, _ask_async])
def test_a_confirmation_is_spent_once_by_calls_at_the_same_time(
    agent: Session, ann: UserSession, sent: Sent, ask: Callable[..., list[ToolMessage]]
) -> None:
    _confirm(ann, uses=2, to="ann@example.org")
    calls = [_call("mail", {"to": "ann@example.org"}, str(i)) for i in range(8)]

    messages = ask(GuardedToolNode([_mail(sent)], by=agent), *calls)

    assert 2 == len(sent)
    assert ["error"] * 6 + ["success"] * 2 == sorted(m.status for m in messages)
    assert [str(i) for i in range(8)] == [m.tool_call_id for m in messages]


def test_async_tools_and_async_wrappers_are_guarded(agent: Session, ann: UserSession) -> None:
    ran: list[str] = []

    @tool
    async def mail(to: str) -> str:
        """Send a mail."""
        ran.append(to)
        return "sent"

    async def passed(request: ToolCallRequest, execute: Callable[[ToolCallRequest], Any]) -> Any:
        return await execute(request)

    ann.confirm(Action("mail", {"to": "ann@example.org"}), agent="agent:planner")
    node = GuardedToolNode([mail], by=agent, awrap_tool_call=passed)
    messages = _ask_async(
        node, _call("mail", {"to": "ann@example.org"}, "1"), _call("mail", {"to": "bob@example.org"}, "2")
    )

    assert ["success", "error"] == [m.status for m in messages]
    assert ["ann@example.org"] == ran


def test_a_sync_wrapper_serves_both_ways_as_in_toolnode(agent: Session, sent: Sent) -> None:
    seen: list[str] = []

    def wrap(request: ToolCallRequest, execute: Callable[[ToolCallRequest], Any]) -> Any:
        seen.append(request.tool_call["id"] or "")
        return execute(request)

    node = GuardedToolNode([_mail(sent)], by=agent, wrap_tool_call=wrap)
    for ask in (_ask, _ask_async):
        [message] = ask(node, _call("mail", {"to": "ann@example.org"}))
        assert "error" == message.status

    assert ["1", "1"] == seen
    assert [] == sent


# --- a graph ----------------------------------------------------------------------------------------------------------


def test_a_graph_with_the_store_and_the_guard(world: World, agent: Session, ann: UserSession, sent: Sent) -> None:
    """A model's place is taken by a node that always makes the same calls; all else is LangGraph's own."""
    store = MunimentStore(world.store, scope="acme/graph", actor="agent:planner")

    def planner(state: State, *, store: BaseStore) -> dict[str, Any]:
        if isinstance(state["messages"][-1], ToolMessage):
            outcome = state["messages"][-1].status
            store.put(("runs",), "last", {"outcome": outcome})
            return {"messages": [AIMessage(f"done: {outcome}")]}
        known = store.get(("users", "ann"), "address")
        assert known is not None
        return {"messages": [AIMessage("", tool_calls=[_call("mail", {"to": known.value["mail"]})])]}

    graph = StateGraph(State)
    graph.add_node("planner", planner)
    graph.add_node("tools", GuardedToolNode([_mail(sent)], by=agent))
    graph.add_edge(START, "planner")
    graph.add_conditional_edges("planner", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "planner")
    compiled = graph.compile(store=store, checkpointer=InMemorySaver())
    store.put(("users", "ann"), "address", {"mail": "ann@example.org"})

    first = compiled.invoke({"messages": [HumanMessage("write to Ann")]}, {"configurable": {"thread_id": "1"}})
    assert "done: error" == first["messages"][-1].content
    _sign(world, _said(first["messages"][-2])["request"])
    second = compiled.invoke({"messages": [HumanMessage("now?")]}, {"configurable": {"thread_id": "1"}})

    assert "done: success" == second["messages"][-1].content
    assert [{"to": "ann@example.org", "subject": "hello", "copies": 1}] == sent
    last = store.get(("runs",), "last")
    assert last is not None
    assert {"outcome": "success"} == last.value
    assert ["superseded", "active"] == [r.status for r in world.store.session(scope="acme/graph/runs").list()]
