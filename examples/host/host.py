"""
A chat page whose agent acts only on what its user signed: request, sign, submit, without the key on this side.

    python examples/host/host.py memory/ --signer http://127.0.0.1:8766

The agent here is three lines of Python, and no model. When the guard denies a call, the page shows what was asked for
and a link to the signer, which runs beside the user's key (`signer.py`) and sends the browser back with a signed line.
"""

from __future__ import annotations

import argparse
import html
import re
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote

import muniment
from muniment import Policy, Use

SCOPE, USER = "home", "user:ann"
PAGE = """<!doctype html><meta charset="utf-8"><title>chat</title>
<style>body{{font:16px/1.5 sans-serif;max-width:42rem;margin:2rem auto}}pre{{background:#eee;padding:1rem}}</style>
<h1>Chat</h1>{said}
<form method="post" action="/say"><input type="hidden" name="token" value="{token}">
<input name="text" size="50" autofocus placeholder="mail bob@example.org: hello"><button>Say</button></form>"""


class Host:
    """The host application: it owns the store, makes the handles, and wraps the tool."""

    def __init__(self, store: muniment.Store, signer: str) -> None:
        self.store, self.signer = store, signer
        self.token = secrets.token_urlsafe(16)
        self.lines: list[str] = []
        self.outbox: list[tuple[str, str]] = []
        self.waiting: tuple[str, str] | None = None
        self._user = store.session(scope=SCOPE, actor=USER)
        agent = store.session(scope=SCOPE, actor="agent:assistant")
        # What is guarded is the tool itself: no way around it leads to the outbox.
        self.send_mail = muniment.guarded(agent, "email.send")(self._send_mail)

    def _send_mail(self, to: str, body: str) -> None:
        self.outbox.append((to, body))

    def say(self, text: str) -> None:
        """Take the user's words, and let the agent answer them."""
        self._user.remember(text, kind="chat", source=f"chat/{len(self.lines)}")
        self.lines.append(f"<p><b>You:</b> {html.escape(text)}</p>")
        wish = re.fullmatch(r"mail (\S+): (.+)", text.strip(), re.DOTALL)
        if wish is None:
            self.lines.append("<p><b>Agent:</b> I can mail: <code>mail bob@example.org: hello</code></p>")
            return
        self.waiting = (wish[1], wish[2])
        self.act()

    def act(self) -> None:
        """Let the agent try what it has in hand."""
        if self.waiting is None:
            return
        to, body = self.waiting
        try:
            self.send_mail(to=to, body=body)
        except muniment.Refused as denial:
            self.lines.append(self._asking(str(denial.facts.get("request") or ""), str(denial)))
            return
        self.waiting = None
        self.lines.append(f"<p><b>Agent:</b> sent to {html.escape(to)}.</p>")

    def _asking(self, request: str, why: str) -> str:
        if not request:
            return f"<p><b>Agent:</b> I may not: {html.escape(why)}</p>"
        shown = html.escape(muniment.describe_request(request, principal=USER))
        link = f"{self.signer}/?request={quote(request, safe='')}"
        return f'<p><b>Agent:</b> I need your signature.</p><pre>{shown}</pre><a href="{html.escape(link)}">Sign</a>'

    def submit(self, line: str) -> None:
        """Take in what the signer sent, and let the agent try again."""
        try:
            self.store.submit(line)
        except muniment.MunimentError as error:
            self.lines.append(f"<p><b>Host:</b> not accepted: {html.escape(str(error))}</p>")
            return
        self.act()

    def page(self) -> str:
        """Return the chat page."""
        return PAGE.format(said="".join(self.lines), token=self.token)


def serve(host: Host, port: int) -> ThreadingHTTPServer:
    """Return a server of the page on this machine only; the caller runs and closes it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, host.page())

        def do_POST(self) -> None:
            size = min(int(self.headers.get("Content-Length") or 0), 1 << 20)
            form = {key: values[0] for key, values in parse_qs(self.rfile.read(size).decode()).items()}
            if self.path == "/say" and secrets.compare_digest(form.get("token", "").encode(), host.token.encode()):
                host.say(form.get("text", ""))
            elif self.path == "/signed":
                # No token: whoever sends it, the signature is what counts.
                host.submit(form.get("line", ""))
            else:
                # Another site's page must not be able to speak as the user.
                self._answer(403, "no")
                return
            self.send_response(303)
            self.send_header("Location", "/")
            self.end_headers()

        def _answer(self, code: int, text: str) -> None:
            data = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name that http.server calls
            """Say nothing."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main() -> None:
    """Serve the chat until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--signer", default="http://127.0.0.1:8766")
    args = parser.parse_args()
    policy = Policy(actions={"email.send": Use.EXTERNAL_ACTION})
    with muniment.open(args.store, policy=policy) as store, serve(Host(store, args.signer), args.port) as server:
        print(f"http://127.0.0.1:{args.port}")  # noqa: T201  # a program of its own
        server.serve_forever()


if __name__ == "__main__":
    main()
