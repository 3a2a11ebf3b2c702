"""The parent's end of a worker: a process of one product, asked verb by verb."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, cast

from ._install import Environment
from ._protocol import format_request

ROOT = Path(__file__).resolve().parents[2]
_ENTRY = "import sys; sys.path.append({root!r}); from eval.peers._worker import run; run({name!r})"
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    # Nothing listens there: what ignores the audit hook of the worker fails too.
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9",
    "https_proxy": "http://127.0.0.1:9",
    # One thread of linear algebra for every product: two cores are shared with the parent and a second worker.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


class WorkerGone(Exception):
    """The worker ended; the text is the end of what it said."""


class Reply(NamedTuple):
    """An answer: a value, or the reason why there is none. `ns` is the time of the product's own call."""

    value: object
    ns: int
    unavailable: str | None = None
    refused: str | None = None
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Tell whether there was an answer, which may be null."""
        return self.unavailable is None and self.refused is None and self.error is None

    @property
    def why(self) -> str:
        """Return why there was none."""
        return self.unavailable or self.refused or self.error or ""


class Peer:
    """A running worker. A context manager; leaving it ends the process."""

    def __init__(self, name: str, environment: Environment) -> None:
        self.name = name
        self._talk: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `end`
        self._process = subprocess.Popen(
            [str(environment.python), "-c", _ENTRY.format(root=str(ROOT), name=name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._talk,
            text=True,
            encoding="utf-8",
            env={**_without_paths(os.environ), **_OFFLINE},
        )
        self.start_ns = self.call("hello").ns
        """How long the product's imports took."""

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def call(self, verb: str, **arguments: object) -> Reply:
        """Ask for a verb and wait for the answer."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("the worker has no pipes")
        try:
            self._process.stdin.write(format_request(verb, arguments))
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise WorkerGone(f"{self.name}, asked to {verb}: {self.talk()[-500:]}")
        fields = cast("dict[str, object]", json.loads(line))
        return Reply(
            fields.get("value"),
            cast("int", fields.get("ns", 0)),
            *(cast("str | None", fields.get(name)) for name in ("unavailable", "refused", "error")),
        )

    def must(self, verb: str, **arguments: object) -> Reply:
        """Ask for a verb that every product has; no answer is an error."""
        reply = self.call(verb, **arguments)
        if not reply.ok:
            raise AssertionError(f"{self.name} could not {verb}: {reply.why}")
        return reply

    def end(self) -> None:
        """End the process, as its input ends; kill it where that does not do."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._talk.close()

    def talk(self) -> str:
        """Return what the worker wrote to standard error so far."""
        self._talk.seek(0)
        return self._talk.read().decode("utf-8", "replace")


def _without_paths(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
