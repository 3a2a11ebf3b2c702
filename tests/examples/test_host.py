"""The example host: a denied call is shown, signed on the other side, handed back, and made once."""

from __future__ import annotations

import html
import importlib.util
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

import muniment

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "host"


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    if spec is None or spec.loader is None:
        raise AssertionError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _running(server: ThreadingHTTPServer) -> Generator[str, None, None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _get(url: str) -> str:
    with urlopen(url) as answer:
        return str(answer.read().decode())


def _post(url: str, **fields: str) -> str:
    with urlopen(url, data=urlencode(fields).encode()) as answer:
        return str(answer.read().decode())


def _field(page: str, name: str) -> str:
    found = re.search(f'name="{name}" value="([^"]*)"', page)
    return "" if found is None else html.unescape(found[1])


def test_a_request_is_shown_signed_and_submitted_and_the_call_is_made_once(tmp_path: Path) -> None:
    host_module, signer_module = _module("host"), _module("signer")
    key = muniment.KeyFile.create(tmp_path / "key")
    policy = muniment.Policy(actions={"email.send": muniment.Use.EXTERNAL_ACTION})
    with muniment.open(tmp_path / "store", create=True, model="none", policy=policy) as store:
        store.enroll("user:ann", key.public_key, scopes=("home",))
        with _running(signer_module.serve(key, "http://host", 0)) as signer:
            host = host_module.Host(store, signer)
            with _running(host_module.serve(host, 0)) as chat:
                token = _field(_get(chat), "token")
                page = _post(f"{chat}/say", token=token, text="mail bob@example.org: <b>hello</b>")
                assert [] == host.outbox
                link = re.search(r'href="([^"]+)"', page)
                assert link is not None
                asked = _get(html.unescape(link[1]))
                assert "bob@example.org" in asked
                assert "<b>hello" not in asked + page
                signed = _post(signer, token=_field(asked, "token"), request=_field(asked, "request"))
                _post(f"{chat}/signed", line=_field(signed, "line"))
                _post(f"{chat}/signed", line=_field(signed, "line"))
                assert [("bob@example.org", "<b>hello</b>")] == host.outbox

                _post(f"{chat}/say", token=token, text="mail bob@example.org: <b>hello</b>")
                assert 1 == len(host.outbox)
                with pytest.raises(HTTPError):
                    _post(f"{chat}/say", token="guessed", text="mail eve@example.org: hi")
                with pytest.raises(HTTPError):
                    _post(signer, token="guessed", request=_field(asked, "request"))
