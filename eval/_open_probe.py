"""
One opening of a store in a process of its own: `python -m eval._open_probe STORE QUESTION [STALE]`, answered in JSON.

With STALE the program is one that has other settings, or another register, than the one that saved the projections.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import muniment
from muniment import Action, Store
from muniment.events import to_datetime
from muniment.projections import PROJECTION_VERSIONS, _snapshots

from ._harness import Result, time_each
from ._synthetic import SCOPES

KEYS: Final = 4_000
"""Belief keys that are asked for: the made-up life states each of them again and again."""
_POINTS: Final = 1_000


def main(path: str, question: str, stale: str = "nothing") -> None:
    """Answer one question, print how long it took from the call that opens, and die without closing anything."""
    for name, value in _STALE[stale].items():
        setattr(_snapshots, name, value)
    before = _resident()
    started, cpu = time.perf_counter(), time.process_time()
    store = muniment.open(path, model="none")
    opened = time.perf_counter() - started
    answer = _QUESTIONS[question](store)
    result: Result = {
        "open_ms": round(opened * 1000, 1),
        "ms": round((time.perf_counter() - started) * 1000, 1),
        "cpu_ms": round((time.process_time() - cpu) * 1000, 1),
        "resident_before": before,
        "resident": _resident(),
    }
    print(json.dumps(result | answer), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def _append(store: Store) -> Result:
    _session(store).remember("a thing that nobody has said before", about=("subject 1", "attribute 1"))
    return {}


def _belief(store: Store) -> Result:
    found = _session(store).beliefs(("subject 3", "attribute 1"))
    return {"found": len(found)}


def _words(store: Store) -> Result:
    return {"found": len(_session(store).recall("baba dobu tiru"))}


def _small_belief(store: Store) -> Result:
    session = store.session(scope=SCOPES[-1], actor="agent:probe")
    return {"found": len(session.beliefs(("subject 3", "attribute 1")))}


def _guard(store: Store) -> Result:
    return {"allowed": _session(store).decide(Action("email.send", {"to": "x@example.org"}), dry_run=True).allowed}


def _small_words(store: Store) -> Result:
    session = store.session(scope=SCOPES[-1], actor="agent:probe")
    return {"found": len(session.recall("baba dobu tiru"))}


def _forget(store: Store) -> Result:
    register = store._engine.state.register  # a memory of the middle, without listing half a million
    rows = register.rows[SCOPES[0]]
    middle = next(m for m in (rows[n] for n in range(len(rows) // 2, len(rows))) if m.erasure is None)
    started = time.perf_counter()
    store.session(scope=SCOPES[0], actor="user").forget(middle.id.hex(), reason="it is no longer wanted")
    return {"forget_ms": round((time.perf_counter() - started) * 1000, 1)}


def _points(store: Store) -> Result:
    drawn, session = random.Random(2), _session(store)
    register = store._engine.state.register  # where the log begins and ends, in both times
    last = store.head.seq
    first_time, last_time = register.recorded_at_seq(2), register.recorded_at_seq(last)

    def ask() -> Callable[[], object]:
        number = drawn.randrange(KEYS)
        about = (f"subject {number // 4}", f"attribute {number % 4}")
        valid_at = to_datetime(drawn.randrange(first_time, last_time))
        known_at = drawn.randrange(1, last)
        return lambda: session.beliefs(about, valid_at=valid_at, known_at=known_at)

    timing = time_each([ask() for _ in range(_POINTS)])
    return {"belief_us": {"n": timing.n, "p50": timing.p50, "p99": timing.p99, "slowest": timing.slowest}}


def _session(store: Store) -> muniment.Session:
    return store.session(scope=SCOPES[0], actor="agent:probe")


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


_QUESTIONS: Final[dict[str, Callable[[Store], Result]]] = {
    "append": _append,
    "belief": _belief,
    "words": _words,
    "guard": _guard,
    "small_belief": _small_belief,
    "small_words": _small_words,
    "forget": _forget,
    "points": _points,
}

_STALE: Final[dict[str, dict[str, object]]] = {
    "nothing": {},
    "settings": {"NORMAL_FORM": -1},
    "register": {"PROJECTION_VERSIONS": (-1, *PROJECTION_VERSIONS[1:])},
}
"""What another program has in the place of what this one has."""

if __name__ == "__main__":
    main(*sys.argv[1:])
