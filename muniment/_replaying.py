"""Replays a store to a moment: which moment is meant, and what answers there."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence

from muniment.events import is_id_prefix
from muniment.gate import Guard
from muniment.projections import Dense
from muniment.replay import fold, follow_erasures

from ._engine import Engine
from ._finding import find_id
from ._leaving_out import leaves_of
from ._points import KnownAt, is_number, moment
from ._replayed import Past, PastStore


def replayed(engine: Engine, to: KnownAt, without: Sequence[str]) -> PastStore:
    """Return the store as it was; see `Store.replay`."""
    with engine.mutex:
        engine.refresh()
        seq, recorded_until, instant = _moment(engine, to)
        # A key that another process destroyed may still be in this one's memory.
        engine.keys.reload()
        leave_out = leaves_of(without, engine.values.source_key) if without else None
    reader = engine.reader()
    state = fold(reader, until=seq, recorded_until=recorded_until, leave_out=leave_out)
    if engine.rolled_back:
        state.erase_shredded(engine.keys.shredded, seq=state.seq, recorded_at=instant)
    mutex = threading.RLock()
    dense = Dense(
        mutex,
        state.recall,
        engine.files.projections,
        engine.keys.live_key,
        engine.options.load_embedder,
        shelf=engine.snapshots,
    )
    guard = Guard(state, engine.options.policy)

    def follow() -> None:
        engine.keys.reload()
        follow_erasures(reader, state)

    past = Past(
        state=state, dense=dense, values=engine.values, guard=guard, instant=instant,
        store=engine.files.store_id, mutex=mutex, follow=follow,
    )  # fmt: skip
    # A past needs no closing, so whoever asks of many must not run out of descriptors.
    weakref.finalize(past, reader.log.close)
    return PastStore(past)


def _moment(engine: Engine, to: KnownAt) -> tuple[int | None, int | None, int]:
    if isinstance(to, str) and is_id_prefix(text := to.strip()) and not is_number(text):
        # Whoever replays sees every scope, and may type the beginning of an id.
        to = find_id(engine.state, text, ("decision",), None)[1] if len(text) < 32 else text
    found = moment(engine.state.register, to, "to")
    return (None, found, found) if isinstance(found, int) else (found[0], None, found[1])
