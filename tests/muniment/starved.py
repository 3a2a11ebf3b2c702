"""Does something again and again in a process that may open only so many files more, and counts how it ends."""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import muniment
from muniment import MunimentError, Store
from muniment._engine import Engine, Options
from muniment._version import VERSION
from muniment.events import find_store
from tests.erasure.stores import Letters
from tests.worlds import SCOPE

_LIMIT: Final = 96
_MOST_SPARE: Final = 40


def main(folder: str, act: str) -> None:
    """Print how often the act ended how, and whether the store is whole after all."""
    starved = _Starved(Path(folder))
    work = {
        "a whole life": starved.live,
        "a new store": starved.make,
        "an open store": starved.go_on,
        "a rebuild": starved.rebuild,
    }[act]
    for n in range(_MOST_SPARE):  # more than one segment and page of keys; and whatever is imported late comes now
        work(n)
    ends: Counter[str] = Counter()
    for spare in range(_MOST_SPARE):
        starved.reopen()
        with _few_files(spare):
            ends[_end_of(work, _MOST_SPARE + spare)] += 1
    starved.reopen()
    starved.go_on(2 * _MOST_SPARE)
    sys.stdout.write(json.dumps([ends, starved.store.verify().ok]))


class _Starved:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.store = muniment.open(folder / "m", create=True, model="none", segment_bytes=4096)

    def reopen(self) -> None:
        self.store.close()
        self.store = self._opened()

    def _opened(self) -> Store:
        files = find_store(self._folder / "m")
        options = Options(load_embedder=Letters, anchor=self._folder / "anchor", segment_bytes=4096)
        return Store(Engine(files, options, VERSION), created=False)

    def live(self, n: int) -> None:
        with self._opened() as store:
            _use(store, n)

    def make(self, n: int) -> None:
        with muniment.open(self._folder / f"new-{n}", create=True, model="none") as store:
            _use(store, n)

    def go_on(self, n: int) -> None:
        _use(self.store, n)

    def rebuild(self, n: int) -> None:
        _use(self.store, n)
        self.store.rebuild()


def _use(store: Store, n: int) -> None:
    session = store.session(scope=SCOPE, actor="agent:planner")
    made = session.remember(f"Note {n} of the launch.", about=("note", str(n)))
    session.recall("launch")
    session.beliefs(about=("note", str(n)))
    store.stats()
    store.verify()
    store.replay(to="HEAD").session(scope=SCOPE).recall("launch")
    session.forget(made.id, reason="of no use")


def _end_of(work: Callable[[int], None], n: int) -> str:
    try:
        work(n)
    except MunimentError as error:
        return error.code
    except Exception as error:
        return f"{error!r} in {traceback.extract_tb(error.__traceback__)[-1]}"
    return "done"


@contextmanager
def _few_files(spare: int) -> Generator[None, None, None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The limit is on the numbers of descriptors: all below it are taken, but so many.
    resource.setrlimit(resource.RLIMIT_NOFILE, (_LIMIT, hard))
    taken: list[int] = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for fd in taken[:spare]:
        os.close(fd)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken[spare:]:
            os.close(fd)
