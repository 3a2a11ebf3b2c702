"""Servers for tests: the real command in a process of its own, and the SDK's client or a bare pipe in front of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, cast

from mcp import Client, StdioServerParameters, stdio_client, types

import muniment
from tests.checkout import ROOT
from tests.processes import environment as plain_environment

Row = dict[str, object]
SCOPE: Final = "acme"
NAME: Final = "planner"
INFO: Final = types.Implementation(name=NAME, version="1")
INITIALIZE: Final[Row] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": NAME, "version": "1"},
    },
}
INITIALIZED: Final[Row] = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a server, which takes the SDK from where these tests take it."""
    path = os.pathsep.join(part for part in (os.environ.get("PYTHONPATH"), str(ROOT)) if part)
    return plain_environment({"PYTHONPATH": path, **(extra or {})})


def new_store(folder: Path) -> Path:
    """Return the path of a new store without a model."""
    path = folder / "store"
    muniment.open(path, create=True, model="none").close()
    return path


def arguments(store: Path, *more: str, scope: str = SCOPE) -> list[str]:
    """Return the arguments of `python`, which start a server on a store."""
    return ["-P", "-m", "muniment", "mcp", "--store", str(store), "--scope", scope, "--model", "none", *more]


def parameters(store: Path, *more: str, cwd: Path = ROOT, scope: str = SCOPE) -> StdioServerParameters:
    """Return what the SDK's client starts a server with."""
    return StdioServerParameters(
        command=sys.executable, args=arguments(store, *more, scope=scope), env=environment(), cwd=cwd
    )


@asynccontextmanager
async def connected(parameters: StdioServerParameters, mode: str = "legacy") -> AsyncGenerator[Client, None]:
    """Give a client of a server that runs on standard streams."""
    async with Client(stdio_client(parameters), mode=mode, client_info=INFO) as client:
        yield client


def text_of(result: types.CallToolResult) -> str:
    """Return the text that a tool answered."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def row_of(result: types.CallToolResult, *, failed: bool = False) -> Row:
    """Return the object that a tool answered."""
    assert failed == bool(result.is_error), text_of(result)
    return cast("Row", json.loads(text_of(result)))


class Pipe:
    """A server in a process of its own, spoken to line by line."""

    def __init__(self, command: list[str], extra: Mapping[str, str] | None = None, cwd: Path = ROOT) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(extra),
            cwd=cwd,
        )

    def __enter__(self) -> Pipe:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def send(self, *messages: Row | bytes) -> None:
        """Send messages, or lines as they are."""
        assert self.process.stdin is not None
        for message in messages:
            self.process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> Row:
        """Return the next message."""
        assert self.process.stdout is not None
        return cast("Row", json.loads(self.process.stdout.readline()))

    def answer_to(self, request: int) -> Row:
        """Return the answer to a request; answers to others are dropped."""
        while True:
            message = self.read()
            if message.get("id") == request:
                return message

    def finish(self) -> tuple[bytes, bytes]:
        """Close the server's input, and return the rest of what it wrote."""
        return self.process.communicate(timeout=60)

    def mapped(self) -> str:
        """Return which files the process has mapped: no native library is loaded without standing here."""
        return Path(f"/proc/{self.process.pid}/maps").read_text(encoding="utf-8")


def call(request: int, tool: str, arguments: object) -> Row:
    """Return a request that calls a tool."""
    return {
        "jsonrpc": "2.0", "id": request, "method": "tools/call", "params": {"name": tool, "arguments": arguments},
    }  # fmt: skip


def on_linux() -> bool:
    """Tell whether `Pipe.mapped` works here."""
    return os.path.exists("/proc/self/maps")
