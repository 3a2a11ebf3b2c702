"""
The processes of the rebuild campaign beside its own: forks, which have imported everything by then.

One rebuilds, and is killed by SIGKILL at a file operation or from outside; one writes until it is told to stop, and
tells what was acknowledged.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from muniment import Store
from muniment._engine import Engine, Options
from muniment._version import VERSION
from muniment.events import find_store
from muniment.projections import _bundle, _recall, _segments
from muniment.replay import _rebuild
from muniment.replay._rebuild import PROJECTIONS
from tests.erasure.stores import Letters

SCOPE = "acme/apollo"
WAYS = ("all", *PROJECTIONS, "re-embed")
_OPERATIONS = {"os.rename", "os.remove", "os.truncate"}


@contextmanager
def small() -> Generator[None, None, None]:
    """Let a log of a thousand events be a long one meanwhile: kept every 256, with 64 in a chunk of words."""
    settings = [(_rebuild, "KEPT_EVERY", 256), *((m, "SEGMENT_BITS", 6) for m in (_segments, _recall, _bundle))]
    before = [(module, name, getattr(module, name)) for module, name, _ in settings]
    for module, name, value in settings:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def open_with_letters(path: Path, *, read_only: bool = False) -> Store:
    """Open a store whose vectors are counted letters."""
    return Store(Engine(find_store(path), Options(load_embedder=Letters, read_only=read_only), VERSION), created=False)


def kill_at(number: int, store: Path) -> None:
    """Kill this process just before the file operation of that number below the store, from now on."""
    left, below = number, str(store)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if not (writes or event in _OPERATIONS) or below not in str(arguments[0]):
            return
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


Tell = Callable[[str], object]


class Child:
    """A fork that runs a piece of work, and the lines that it tells."""

    def __init__(self, work: Callable[[Tell], None]) -> None:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            _run(work, writing)
        os.close(writing)
        self._lines = os.fdopen(reading, encoding="utf-8")
        self.code: int | None = None

    def line(self) -> str:
        """Return the next line that it tells; empty when it has ended."""
        return self._lines.readline().rstrip("\n")

    def end(self, number: int | None = None) -> list[str]:
        """Wait for it, or send it a signal first, and return the lines that were left."""
        if number is not None:
            os.kill(self.pid, number)
        with self._lines:
            left = self._lines.read().splitlines()
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return left


def _run(work: Callable[[Tell], None], pipe: int) -> None:
    status = 3
    try:
        work(lambda line: os.write(pipe, f"{line}\n".encode()))
        status = 0
    except Exception as error:
        os.write(pipe, f"failed {type(error).__name__} {error}\n".encode())
    finally:
        os._exit(status)


def rebuild(path: Path, how: str, at: int) -> Callable[[Tell], None]:
    """Return the work of rebuilding, killed at its file operation number `at` unless that is 0."""

    def work(tell: Tell) -> None:
        with open_with_letters(path) as store:
            tell("ready")
            if at:
                kill_at(at, path)
            named = how if how in PROJECTIONS else None
            report = store.rebuild(named, re_embed=how == "re-embed")
            tell(f"done {report.ok} {report.start}")

    return work


def write(path: Path, seed: int) -> Callable[[Tell], None]:
    """Return the work of writing and forgetting until SIGTERM comes, telling what was acknowledged."""

    def work(tell: Tell) -> None:
        chance, mine, stopped = random.Random(seed), list[str](), list[int]()
        signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
        with open_with_letters(path) as store:
            session = store.session(scope=SCOPE, actor="agent:writer")
            number = 0
            while not stopped:
                number += 1
                if mine and chance.random() < 0.45:
                    gone = mine.pop(chance.randrange(len(mine)))
                    session.forget(gone, reason="asked")
                    tell(f"forgot {gone}")
                else:
                    text = f"said {seed} {number} in the harbour"
                    kept = session.remember(text, about=("ship", f"berth {number % 7}"), value=text)
                    mine.append(kept.id)
                    tell(f"kept {kept.id} {text}")

    return work
