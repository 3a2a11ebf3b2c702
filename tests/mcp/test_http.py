"""Streamable HTTP: the SDK's client with the token, and everybody who is turned away."""

from __future__ import annotations

import asyncio
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from .malformed import send_malformed
from .serving import INFO, INITIALIZE, Pipe, arguments, new_store, row_of, text_of

TOKEN = "a-token-of-some-length"
TAKES = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class Address(NamedTuple):
    url: str
    token_file: Path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    folder = tmp_path_factory.mktemp("http")
    token = folder / "token"
    options = ("--http", "--port", "0", "--token-file", str(token), "--allow-origin", "https://app.example")
    with Pipe(arguments(new_store(folder), *options)) as server:
        assert server.process.stderr is not None
        for line in iter(server.process.stderr.readline, b""):
            if found := re.search(rb"listening on (\S+)", line):
                yield Address(found[1].decode(), token)
                return
        raise AssertionError("it does not listen")


def _headers(address: Address, **more: str) -> dict[str, str]:
    token = address.token_file.read_text(encoding="utf-8").strip()
    return {**TAKES, "authorization": f"Bearer {token}", **more}


def _status(address: Address, headers: dict[str, str], path: str = "/mcp") -> int:
    url = address.url.removesuffix("/mcp") + path
    return httpx2.post(url, json=INITIALIZE, headers=headers).status_code


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_with_the_token_is_served(served: Address, mode: str) -> None:
    async def run() -> None:
        async with httpx2.AsyncClient(headers=_headers(served)) as http:
            transport = streamable_http_client(served.url, http_client=http)
            async with Client(transport, mode=mode, client_info=INFO) as client:
                assert 10 == len((await client.list_tools()).tools)
                row_of(await client.call_tool("memory_remember", {"content": "The launch is on 12 March."}))
                found = await client.call_tool("memory_recall", {"query": "launch"})
                assert "agent:planner" in text_of(found)

    asyncio.run(run())


def test_two_hundred_malformed_calls_are_refused_by_name_and_the_server_lives_on(served: Address) -> None:
    async def run() -> None:
        async with (
            httpx2.AsyncClient(headers=_headers(served)) as http,
            Client(streamable_http_client(served.url, http_client=http), client_info=INFO) as client,
        ):
            await send_malformed(client)

    asyncio.run(run())


def test_the_token_is_made_for_its_owner_alone(served: Address) -> None:
    assert 0o600 == stat.S_IMODE(served.token_file.stat().st_mode)
    assert 200 == _status(served, _headers(served))


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer wrong-token-of-some-length", "Basic dXNlcjpwYXNz", "Bearer \u00e9"],
)
def test_whoever_lacks_the_token_is_refused(served: Address, given: str) -> None:
    headers = {**TAKES, "authorization": given} if given else TAKES
    encoded = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    answer = httpx2.post(served.url, json=INITIALIZE, headers=encoded)

    assert 401 == answer.status_code
    assert "Bearer" == answer.headers["www-authenticate"]


def test_every_path_is_behind_the_token(served: Address) -> None:
    assert 401 == _status(served, TAKES, "/")
    assert 404 == _status(served, _headers(served), "/other")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://localhost:3000", "null", "https://app.example.evil"]
)
def test_a_page_that_was_not_named_is_refused_with_the_token_too(served: Address, origin: str) -> None:
    assert 403 == _status(served, _headers(served, origin=origin))


def test_a_page_that_was_named_is_let_in(served: Address) -> None:
    assert 200 == _status(served, _headers(served, origin="https://app.example"))


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost:1"])
def test_another_sites_name_does_not_lead_here(served: Address, host: str) -> None:
    """DNS rebinding: the browser takes the attacker's name for this address."""
    assert 421 == _status(served, _headers(served, host=host))


def test_it_listens_on_loopback_unless_told_otherwise(served: Address) -> None:
    assert served.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("token", ["", "short", "has a \t tab in it, though long"])
def test_it_does_not_start_without_a_good_token(tmp_path: Path, token: str) -> None:
    with Pipe(arguments(new_store(tmp_path), "--http", "--port", "0"), {"MUNIMENT_MCP_TOKEN": token}) as server:
        _, talk = server.finish()

        assert 2 == server.process.returncode
        assert b"token" in talk
