"""
The MCP server as a door of the safety cases: its tools in this process, or (`real`) a server on standard streams.

The agent's verbs are tool calls. What only a person or the host can do (sign, import, decide on the call that is made)
goes beside them through the library, on the same store: no tool reaches it. What `memory_check_action` advises is
compared each time with what the guard then decides.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

from muniment import Action
from muniment._mcp._desk import Desk as Tools
from muniment._mcp._settings import ServerSettings
from muniment._mcp._tools import SEEN_IN

from ._safety_doors import AGENT, OTHER, SCOPE, Decided, Desk, Fields, Library, Refused, policy_text

Row = dict[str, object]
_PREFIX = "agent:"


class Calls(Protocol):
    """Tool calls to a server of one scope, as one client."""

    def call(self, tool: str, arguments: Fields) -> tuple[str, bool]:
        """Return the text that the tool answered, and whether it failed."""
        ...

    def close(self) -> None:
        """End the server."""
        ...


class Mcp(Library):
    """`muniment mcp`."""

    def __init__(self, folder: Path, desk: Desk, *, relaxed: bool, real: bool = False) -> None:
        super().__init__(folder, desk, relaxed=relaxed)
        self.name = "mcp process" if real else "mcp"
        self._policy = folder / "policy.toml"
        self._policy.write_text(policy_text(relaxed=relaxed), encoding="utf-8")
        self._folder, self._real, self._relaxed = folder, real, relaxed
        self._servers: dict[tuple[str, str], Calls] = {}

    def close(self) -> None:
        """End the servers, and close the store."""
        for server in self._servers.values():
            server.close()
        super().close()

    def remember(
        self,
        text: str,
        *,
        scope: str = SCOPE,
        origin: str | None = None,
        as_user: bool = False,
        extra: Fields | None = None,
        **fields: object,
    ) -> str:
        """Remember a text and return its id."""
        if as_user or not _can_be_said(origin):
            return super().remember(text, scope=scope, origin=origin, as_user=as_user, extra=extra, **fields)
        told = {"content": text, **_seen(origin), **fields, **(extra or {})}
        return str(self._row("memory_remember", told, scope=scope)["id"])

    def supersede(self, id: str, text: str, *, origin: str | None = None, as_user: bool = False) -> str:  # noqa: A002
        """Put a text in the place of a memory."""
        if as_user or not _can_be_said(origin):
            return super().supersede(id, text, origin=origin, as_user=as_user)
        told = {"id": id, "content": text, "reason": "correction", **_seen(origin)}
        return str(self._row("memory_supersede", told)["id"])

    def retire(self, id: str, *, origin: str | None = None, as_user: bool = False) -> None:  # noqa: A002
        """Retire a memory; a tool call is the agent's own, whatever it read."""
        if as_user:
            super().retire(id, origin=origin, as_user=True)
        else:
            self._row("memory_retire", {"id": id, "reason": "over"})

    def forget(self, id: str, *, origin: str | None = None, as_user: bool = False) -> None:  # noqa: A002
        """Forget a memory; as above."""
        if as_user:
            super().forget(id, origin=origin, as_user=True)
        elif self._row("memory_forget", {"ids": [id], "reason": "asked"})["status"] == "requested":
            raise Refused("needs_grant")

    def current(self, subject: str, attribute: str) -> list[str]:
        """Return what is current under a key."""
        found = cast("list[Row]", self._row("memory_beliefs", {"about": [subject, attribute]})["beliefs"])
        return [str(belief["content"]) for belief in found]

    def context(self, query: str) -> str:
        """Return the block for a prompt, without the server's own notes, which follow it a line each."""
        lines = self._text("memory_context", {"query": query}).split("\n")
        while lines[-1].startswith("note: "):
            lines.pop()
        return "\n".join(lines)

    def decide(
        self,
        action: Action,
        *,
        use: str | None = None,
        evidence: Sequence[str] = (),
        agent: str = AGENT,
        scope: str = SCOPE,
        command_id: str | None = None,
    ) -> Decided:
        """Ask for advice, then let the host's guard decide on the call; both say the same, but for a retry."""
        advice: Row | None = None
        if agent.startswith(_PREFIX) and _can_be_sent(action):
            told: Row = {"name": action.name, "args": dict(action.args), "evidence": list(evidence), "use": use}
            try:
                advice = self._row("memory_check_action", told, scope=scope, agent=agent)
            except Refused:
                advice = {"allowed": False}
        decided = super().decide(action, use=use, evidence=evidence, agent=agent, scope=scope, command_id=command_id)
        if advice is not None and command_id is None and bool(advice["allowed"]) != decided.allowed:
            raise AssertionError(f"advice {advice} and decision {decided} differ")
        return decided

    def _row(self, tool: str, arguments: Fields, *, scope: str = SCOPE, agent: str = AGENT) -> Row:
        return cast("Row", json.loads(self._text(tool, arguments, scope=scope, agent=agent)))

    def _text(self, tool: str, arguments: Fields, *, scope: str = SCOPE, agent: str = AGENT) -> str:
        text, failed = self._server(scope, agent).call(tool, arguments)
        if failed:
            raise Refused(str(cast("Row", json.loads(text))["error"]))
        return text

    def _server(self, scope: str, agent: str) -> Calls:
        client = agent.removeprefix(_PREFIX)
        if (scope, agent) not in self._servers:
            below = (SCOPE, OTHER) if self._relaxed else ()
            settings = ServerSettings(
                store=self._folder / "store", scope=scope, reads_below=below, policy=str(self._policy), model="none"
            )
            self._servers[scope, agent] = _Piped(settings, client) if self._real else _Direct(settings, client)
        return self._servers[scope, agent]


class _Direct:
    """The tools behind their argument checks, without a transport."""

    def __init__(self, settings: ServerSettings, client: str) -> None:
        self._tools, self._client = Tools(settings), client

    def call(self, tool: str, arguments: Fields) -> tuple[str, bool]:
        """See `Calls`."""
        # What a client sends is JSON, whatever it was made of.
        answer = self._tools.call(tool, cast("Row", json.loads(json.dumps(arguments))), self._client)
        return answer.text, answer.failed

    def close(self) -> None:
        """See `Calls`."""
        self._tools.close()


class _Piped:
    """A server in a process of its own, spoken to line by line."""

    def __init__(self, settings: ServerSettings, client: str) -> None:
        words = ["--store", str(settings.store), "--scope", settings.scope, "--model", "none"]
        words += ["--policy", str(settings.policy)]
        words += [word for scope in settings.reads_below for word in ("--reads-below", scope)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "muniment", "mcp", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ,
        )
        self._requests = 0
        who = {"name": client, "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, arguments: Fields) -> tuple[str, bool]:
        """See `Calls`."""
        answer = self._ask("tools/call", {"name": tool, "arguments": dict(arguments)})
        if "error" in answer:
            return json.dumps({"error": "invalid_params"}), True
        result = cast("Row", answer["result"])
        (content,) = cast("list[Row]", result["content"])
        return str(content["text"]), bool(result.get("isError"))

    def close(self) -> None:
        """See `Calls`."""
        self._process.communicate(timeout=60)

    def _ask(self, method: str, params: Mapping[str, object]) -> Row:
        self._requests += 1
        self._send({"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params})
        if self._process.stdout is None:
            raise AssertionError("no pipe")
        for line in self._process.stdout:
            answer = cast("Row", json.loads(line))
            if answer.get("id") == self._requests:
                return answer
        raise AssertionError("the server ended")

    def _send(self, message: Row) -> None:
        if self._process.stdin is None:
            raise AssertionError("no pipe")
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


def _can_be_said(origin: str | None) -> bool:
    # An import, say, reaches the store by another door.
    return origin is None or origin.startswith(SEEN_IN)


def _seen(origin: str | None) -> Row:
    return {} if origin is None else {"seen_in": origin}


def _can_be_sent(action: Action) -> bool:
    try:
        json.dumps(dict(action.args), allow_nan=False)
    except (TypeError, ValueError):
        return False
    return isinstance(action.name, str)
