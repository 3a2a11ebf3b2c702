"""What an append and a forget cost in a store of a thousand memories, and in one of many."""

from __future__ import annotations

import statistics
import time
from functools import partial
from pathlib import Path
from typing import Final

import muniment
from muniment import Session, Store

from ._log_reading import verify_rate
from ._log_writing import WORDS, timed

_AT_ONCE: Final = 1_000
_SMALL: Final = 1_000


def cost_by_size(base: Path, n: int, *, appends: int, forgets: int) -> dict[str, float]:
    """
    Return the medians in a small store and in one of `n` memories, each opened anew, and their ratios.

    The appends take turns, and so do forgets with appends of the same store: a neighbour on the machine slows both.
    """
    started = time.perf_counter()
    _fill(base / "small", _SMALL)
    _fill(base / "large", n)
    filled = time.perf_counter() - started
    with (
        muniment.open(base / "small", model="none") as small,
        muniment.open(base / "large", model="none") as large,
    ):
        few: list[float] = []
        many: list[float] = []
        few_session, many_session = _session(small), _session(large)
        for number in range(appends):
            few.append(timed(partial(few_session.remember, f"one more, number {number}")))
            many.append(timed(partial(many_session.remember, f"one more, number {number}")))
        first, rest, beside = _forgets(large, many_session, forgets)
    verified = verify_rate(base / "large", rounds=2)
    append, forget = statistics.median(beside), statistics.median(rest)
    return {
        "memories": n,
        "filled and saved, s": round(filled, 1),
        "append at a thousand, ms": statistics.median(few) * 1e3,
        "append, ms": statistics.median(many) * 1e3,
        "ratio of appends": statistics.median(many) / statistics.median(few),
        "ratio of appends, at most": 1.2,
        "first forget, ms": first * 1e3,
        "forget, ms": forget * 1e3,
        "append beside it, ms": append * 1e3,
        "ratio of forget": forget / append,
        "ratio of forget, at most": 15,
        "verify, as it is called, events a second": verified,
    }


def _fill(path: Path, n: int) -> None:
    with muniment.open(path, create=True, model="none") as store:
        session = _session(store)
        for start in range(0, n, _AT_ONCE):
            count = min(_AT_ONCE, n - start)
            session.remember_many([{"content": f"memory {start + k}: {WORDS}"} for k in range(count)])


def _forgets(store: Store, session: Session, count: int) -> tuple[float, list[float], list[float]]:
    # Spread over the log: neighbours would share key pages and chunks of words.
    rows = store._engine.state.register.rows["bench"]
    ids = [rows[(2 * k + 1) * len(rows) // (2 * count + 2)].id.hex() for k in range(count + 1)]
    forgets: list[float] = []
    appends: list[float] = []
    for number, identity in enumerate(ids):
        forgets.append(timed(partial(session.forget, identity, reason="measured")))
        appends += [timed(partial(session.remember, f"beside {number} {k}")) for k in range(5)]
    return forgets[0], forgets[1:], appends


def _session(store: Store) -> Session:
    return store.session(scope="bench", actor="agent:bench")
