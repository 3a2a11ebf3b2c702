"""The server as a client starts it: on standard streams, driven by the SDK's own client and by bare lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import pytest
from mcp import types
from mcp.shared.exceptions import MCPError

from muniment._mcp._projects import project_scope
from muniment._mcp._tools import TOOLS

from .malformed import check_alive, send_malformed
from .serving import (
    INITIALIZE,
    INITIALIZED,
    Pipe,
    Row,
    arguments,
    call,
    connected,
    new_store,
    on_linux,
    parameters,
    row_of,
    text_of,
)

MODES = ("legacy", "auto")
ENGINE = ("numpy", "onnxruntime", "duckdb", "hnswlib", "tokenizers", "blake3")

_NOISY: Final = """
import os, subprocess, sys
from muniment._mcp import _desk
from muniment._mcp._command import serve
real = _desk.Desk.call
def call(*arguments):
    sys.stdout.write("noise\\n")
    sys.__stdout__.write("noise\\n")
    sys.__stdout__.flush()
    os.write(1, b"noise\\n")
    subprocess.run(["echo", "noise"], check=True)
    return real(*arguments)
_desk.Desk.call = call
serve(sys.argv[1:])
"""
_WITHOUT_SDK: Final = """
import sys
sys.modules[sys.argv[1]] = None
from muniment._mcp._command import serve
serve(sys.argv[2:])
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return new_store(tmp_path)


@pytest.mark.parametrize("mode", MODES)
def test_a_client_remembers_and_recalls(store: Path, mode: str) -> None:
    async def run() -> None:
        async with connected(parameters(store), mode) as client:
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in TOOLS] == [tool.name for tool in listed]
            assert [tool.schema() for tool in TOOLS] == [tool.input_schema for tool in listed]
            assert all(tool.annotations is not None for tool in listed)
            receipt = row_of(
                await client.call_tool(
                    "memory_remember",
                    {"content": "The launch is on 12 March.", "kind": "fact", "about": "launch,date", "tags": "null"},
                )
            )
            assert "active" == receipt["status"]
            found = row_of(await client.call_tool("memory_recall", {"query": "launch", "kinds": '["fact"]'}))
            (hit,) = cast("list[Row]", found["hits"])
            assert (receipt["id"], "agent:planner") == (hit["id"], hit["origin"])
            assert "12 March" in text_of(await client.call_tool("memory_context", {"query": "launch"}))

    asyncio.run(run())


# --- malformed calls --------------------------------------------------------------------------------------------------


def test_two_hundred_malformed_calls_are_refused_by_name_and_the_server_lives_on(store: Path) -> None:
    async def run() -> None:
        async with connected(parameters(store)) as client:
            await send_malformed(client)

    asyncio.run(run())


def test_an_unknown_tool_is_an_error_of_the_protocol(store: Path) -> None:
    async def run() -> None:
        async with connected(parameters(store)) as client:
            with pytest.raises(MCPError, match="no tool is named `memory_confirm`"):
                await client.call_tool("memory_confirm", {})
            await check_alive(client)

    asyncio.run(run())


def test_lines_that_are_no_messages_do_not_end_the_server(store: Path) -> None:
    with Pipe(arguments(store)) as server:
        server.send(INITIALIZE)
        server.answer_to(1)
        server.send(
            INITIALIZED,
            b"\n",
            b"not json\n",
            b"\xff\xfe\x00\n",
            b"[]\n",
            b'{"jsonrpc":"2.0","id":2}\n',
            b'{"jsonrpc":"1.0","id":3,"method":"tools/list"}\n',
            b'{"jsonrpc":"2.0","id":4,"method":"tools/call"}\n',
            b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"memory_recall","arguments":"query"}}\n',
            b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"memory_recall","arguments":[1]}}\n',
            b"[" * 10_000 + b"\n",
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"memory_recall",'
            b'"arguments":{"query":"\\ud800"}}}\n',
            call(8, "memory_briefing", {}),
        )

        assert "scope" in json.dumps(server.answer_to(8))


# --- what stands on the wire ------------------------------------------------------------------------------------------


def test_a_request_that_cannot_be_read_is_answered(store: Path) -> None:
    """A client that cuts a text in the middle of an emoji sends half of it, and would wait for ever."""
    half = json.dumps(call(2, "memory_remember", {"content": "a smile \ud83d"})).encode()
    with Pipe(arguments(store)) as server:
        server.send(INITIALIZE)
        server.answer_to(1)
        server.send(INITIALIZED, half + b"\n", b'{"jsonrpc":"1.0","id":"three","method":"tools/list"}\n')
        first, second = server.read(), server.read()
        assert (2, "three") == (first["id"], second["id"])
        assert "lone surrogate" in str(first["error"])
        assert "no JSON-RPC request" in str(second["error"])
        server.send(call(4, "memory_recall", {"query": "smile"}))
        assert "result" in server.answer_to(4)


DEEP: Final = b"[" * 100_000 + b"]" * 100_000
UNREADABLE: Final[dict[str, tuple[bytes, int | str | None, int]]] = {
    "no JSON": (b"not json", None, types.PARSE_ERROR),
    "half a message": (b'{"jsonrpc":"2.0","id":3,"method":"tools/list"', None, types.PARSE_ERROR),
    "too many digits": (b'{"jsonrpc":"2.0","id":' + b"1" * 5000 + b',"method":"ping"}', None, types.PARSE_ERROR),
    "too deep": (b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":' + DEEP + b"}", None, types.PARSE_ERROR),
    "no UTF-8 at all": (b"\xff\xfe\x00", None, types.PARSE_ERROR),
    "no UTF-8 in an id": (b'{"jsonrpc":"2.0","id":"\xe9","method":"ping"}', None, types.PARSE_ERROR),
    "no UTF-8 in a text": (
        b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"memory_remember",'
        b'"arguments":{"content":"a caf\xe9"}}}', 3, types.PARSE_ERROR,
    ),
    "a surrogate in UTF-8": (b'{"jsonrpc":"2.0","id":3,"method":"\xed\xa0\x80"}', 3, types.PARSE_ERROR),
    "a batch": (b"[]", None, types.INVALID_REQUEST),
    "a number": (b"7", None, types.INVALID_REQUEST),
    "no method": (b'{"jsonrpc":"2.0","id":3}', 3, types.INVALID_REQUEST),
    "a method that is a number": (b'{"jsonrpc":"2.0","id":3,"method":3}', 3, types.INVALID_REQUEST),
    "an id that is a fraction": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, types.INVALID_REQUEST),
    "an id that is a truth value": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, types.INVALID_REQUEST),
    "no id": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, types.INVALID_REQUEST),
}  # fmt: skip
UNANSWERED: Final = (b"", b" ", b'{"jsonrpc":"1.0","method":"x"}', b'{"id":3,"result":5}', b'{"id":null,"error":5}')


def test_a_line_that_is_no_message_is_answered_and_nothing_of_it_is_remembered(store: Path) -> None:
    """What is not UTF-8 must not be remembered with other letters in its place, and whoever asks must not wait."""
    with Pipe(arguments(store)) as server:
        server.send(INITIALIZE)
        server.answer_to(1)
        server.send(INITIALIZED)
        for what, (line, identity, code) in UNREADABLE.items():
            server.send(line + b"\n", {"jsonrpc": "2.0", "id": 99, "method": "ping"})
            answer = server.read()
            assert (identity, code) == (answer["id"], cast("Row", answer.get("error", {})).get("code")), what
            assert 99 == server.read()["id"]
        server.send(*(line + b"\n" for line in UNANSWERED), call(4, "memory_recall", {"query": "caf\ufffd café"}))
        answer = server.read()
        assert 4 == answer["id"], "notifications and answers are not answered"
        assert "hits" in json.dumps(answer)
        assert "caf" not in json.dumps(answer)


def test_only_the_protocol_is_on_standard_output(store: Path) -> None:
    """What is printed by Python, by its own stream, by C code and by a child process is said on standard error."""
    with Pipe(["-c", _NOISY, *arguments(store)[4:]]) as server:
        server.send(INITIALIZE)
        server.answer_to(1)
        server.send(INITIALIZED, call(2, "memory_briefing", {}))
        server.answer_to(2)
        rest, talk = server.finish()

        assert b"" == rest
        assert 4 == talk.count(b"noise")


@pytest.mark.skipif(not on_linux(), reason="which libraries a process has loaded is asked of /proc")
def test_the_handshake_and_the_list_of_tools_wait_for_nothing_of_the_engine(store: Path) -> None:
    """
    Each of these takes long to load, and none is there when the client has its answer: the engine waits for the
    client's `initialized`. A wall clock would say less, and fail on a busy machine.
    """
    with Pipe(arguments(store)[:-2]) as server:
        server.send(INITIALIZE)
        server.answer_to(1)

        assert [] == [library for library in ENGINE if library in server.mapped()]
        server.send(INITIALIZED, call(2, "memory_recall", {"query": "launch"}))
        server.answer_to(2)
        assert "numpy" in server.mapped()


@pytest.mark.parametrize("missing", ["mcp", "mcp.server.context"])
def test_a_missing_extra_is_named_and_so_is_one_that_is_too_old(store: Path, missing: str) -> None:
    """In `mcp` 1 there is no `mcp.server.context`."""
    with Pipe(["-c", _WITHOUT_SDK, missing, *arguments(store)[4:]]) as server:
        rest, talk = server.finish()

        assert (2, b"") == (server.process.returncode, rest)
        assert b"[extra_missing]" in talk
        assert b"pip install 'muniment[mcp]'" in talk


# --- starting ---------------------------------------------------------------------------------------------------------


def _started(change: Callable[[list[str]], list[str]], store: Path) -> tuple[int, bytes]:
    with Pipe(change(arguments(store))) as server:
        _, talk = server.finish()
        return server.process.returncode, talk


def test_a_store_that_is_not_there_is_said_at_the_start(tmp_path: Path) -> None:
    code, talk = _started(lambda given: given, tmp_path / "nowhere")

    assert 2 == code
    assert b"[store_missing]" in talk
    assert not (tmp_path / "nowhere").exists()


def test_there_is_no_default_scope(store: Path) -> None:
    code, talk = _started(lambda given: [word for word in given if word not in ("--scope", "acme")], store)

    assert 2 == code
    assert b"--scope auto" in talk


def test_a_scope_that_is_no_scope_is_said_at_the_start(store: Path) -> None:
    code, talk = _started(lambda given: ["../x" if word == "acme" else word for word in given], store)

    assert 2 == code
    assert b"[scope_malformed]" in talk


def test_options_are_taken_before_the_verb_too(store: Path) -> None:
    with Pipe(["-P", "-m", "muniment", "--store", str(store), "--scope", "acme", "--model", "none", "mcp"]) as server:
        server.send(INITIALIZE)

        assert "muniment" in json.dumps(server.answer_to(1))


def test_the_automatic_scope_is_that_of_the_project(store: Path, tmp_path: Path) -> None:
    project = tmp_path / "apollo"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()

    async def run() -> None:
        async with connected(parameters(store, cwd=project / "src", scope="auto")) as client:
            assert project_scope(project) == row_of(await client.call_tool("memory_briefing", {}))["scope"]

    asyncio.run(run())
