"""Streamable HTTP: who may reach the server at all, before the SDK sees a byte of the request."""

from __future__ import annotations

import hmac
import json
import logging
import socket
import sys
from collections.abc import Iterable
from typing import Final

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from ._desk import Desk
from ._server import build_server
from ._settings import HttpSettings

PATH: Final = "/mcp"
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class Doorkeeper:
    """
    Lets in requests for this host, from no web page that was not named, with the token.

    Host and origin are checked first: a page in the user's browser must not learn by 401 that a server is here.
    """

    def __init__(self, app: ASGIApp, settings: HttpSettings, port: int) -> None:
        self._app = app
        self._token = settings.token.encode()
        names = (*_LOOPBACK, _bracketed(settings.host))
        self._hosts = {*settings.hosts, *(f"{name}:{port}" for name in names)}
        self._origins = set(settings.origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it here."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # There is nothing here to be had over a web socket; unanswered, it is closed.
            return
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        refusal = self._refusal(headers)
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await _refuse(send, *refusal)

    def _refusal(self, headers: list[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        # DNS rebinding: the browser believes that another site's name leads here, and says that name.
        if _values(headers, b"host") - self._hosts or not _values(headers, b"host"):
            return 421, "this server has another name; see --allow-host"
        if _values(headers, b"origin") - self._origins:
            return 403, "no web page may use this server; see --allow-origin"
        given = [value for name, value in headers if name == b"authorization"]
        if len(given) != 1 or not self._is_token(given[0]):
            return 401, "a bearer token is needed"
        return None

    def _is_token(self, header: bytes) -> bool:
        sort, _, token = header.partition(b" ")
        return sort.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)


def serve_http(desk: Desk, settings: HttpSettings) -> None:
    """Serve over HTTP until the process is told to end. Says on standard error where it listens."""
    listening = socket.create_server(
        (settings.host, settings.port), family=socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    )
    port = int(listening.getsockname()[1])
    # Host and origin are the doorkeeper's to check, for every path; the SDK's own check of them is therefore off.
    app = build_server(desk).streamable_http_app(
        streamable_http_path=PATH,
        host=settings.host,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    config = uvicorn.Config(Doorkeeper(app, settings, port), log_config=None, access_log=False, lifespan="on")
    sys.stderr.write(f"muniment: listening on http://{_bracketed(settings.host)}:{port}{PATH}\n")
    sys.stderr.flush()
    uvicorn.Server(config).run(sockets=[listening])


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _values(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> set[str]:
    return {value.decode("latin-1").lower() for name, value in headers if name == wanted}


async def _refuse(send: Send, status: int, detail: str) -> None:
    body = json.dumps({"error": detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
