"""
The signer: a page beside the user's key that shows what is asked, signs it, and sends it to the host.

    python examples/host/signer.py ~/.config/muniment/user.key --host http://127.0.0.1:8765

Run it where the agent cannot reach the key: under another account, or on another machine of the user's.
"""

from __future__ import annotations

import argparse
import html
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import muniment
from muniment.gate import format_signed

USER = "user:ann"
ASK = """<!doctype html><meta charset="utf-8"><title>sign</title><h1>Sign this?</h1><pre>{shown}</pre>
<form method="post" action="/"><input type="hidden" name="token" value="{token}">
<input type="hidden" name="request" value="{request}"><button>Sign</button></form>"""
SIGNED = """<!doctype html><meta charset="utf-8"><title>signed</title><h1>Signed</h1>
<form method="post" action="{host}/signed"><input type="hidden" name="line" value="{line}">
<button>Hand it to the host</button></form>"""


def serve(key: muniment.KeyFile, host: str, port: int) -> ThreadingHTTPServer:
    """Return a server of the signing page on this machine only; the caller runs and closes it."""
    token = secrets.token_urlsafe(16)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            request = parse_qs(urlsplit(self.path).query).get("request", [""])[0]
            try:
                shown = muniment.describe_request(request, principal=USER)
            except muniment.MunimentError as error:
                self._answer(400, html.escape(str(error)))
                return
            page = ASK.format(shown=html.escape(shown), token=token, request=html.escape(request))
            self._answer(200, page)

        def do_POST(self) -> None:
            size = min(int(self.headers.get("Content-Length") or 0), 1 << 20)
            form = {name: values[0] for name, values in parse_qs(self.rfile.read(size).decode()).items()}
            # Only this page's own button signs: a page elsewhere cannot know the token.
            if not secrets.compare_digest(form.get("token", "").encode(), token.encode()):
                self._answer(403, "no")
                return
            try:
                signed = muniment.sign_request(form.get("request", ""), principal=USER, signer=key)
            except muniment.MunimentError as error:
                self._answer(400, html.escape(str(error)))
                return
            line = html.escape(format_signed(signed))
            self._answer(200, SIGNED.format(host=html.escape(host), line=line))

        def _answer(self, code: int, text: str) -> None:
            data = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            # Framed by another page, its button could be clicked by somebody who sees something else.
            self.send_header("X-Frame-Options", "DENY")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name that http.server calls
            """Say nothing."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main() -> None:
    """Serve the signing page until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("key", type=Path)
    parser.add_argument("--port", type=int, default=8766)
    parser.add_argument("--host", default="http://127.0.0.1:8765")
    args = parser.parse_args()
    with serve(muniment.KeyFile(args.key), args.host, args.port) as server:
        print(f"http://127.0.0.1:{args.port}")  # noqa: T201  # a program of its own
        server.serve_forever()


if __name__ == "__main__":
    main()
