"""How quickly events are written: one durable append, batches at the log layer and through the door, and SQLite."""

from __future__ import annotations

import os
import sqlite3
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import muniment
from muniment.events import (
    Disk,
    Draft,
    KeyTree,
    Log,
    MemoryBody,
    Remembered,
    Sealer,
    chain_hash,
    create_store,
    find_store,
    genesis,
    new_id,
    wall_clock,
)

WORDS: Final = (
    "The release went out on Tuesday after the second review, and Ann asked that the next one be moved to the twelfth, "
    "so that there is a week for the tests."
)
"""Gives events of about 300 bytes of envelope and body, about 400 sealed and framed."""


def one_append(base: Path, count: int) -> dict[str, float]:
    """Time one durable event through the door, in turn with a raw write and fdatasync of as many bytes."""
    with muniment.open(base / "single", create=True, model="none") as store:
        session = store.session(scope="bench", actor="agent:bench")
        session.remember(f"first {WORDS}")
        size = store.head.offset // max(1, store.head.seq)
        fd = os.open(base / "raw", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        data = os.urandom(size)
        ours: list[float] = []
        raw: list[float] = []
        for n in range(count):
            ours.append(timed(partial(session.remember, f"{n} {WORDS}")))
            raw.append(timed(partial(_write_sync, fd, data)))
        layer, beside = _one_at_the_layer(base, count, fd, data)
        os.close(fd)
    return {
        "raw write + fdatasync, ms": statistics.median(raw) * 1e3,
        "at the log layer, ms": statistics.median(layer) * 1e3,
        "through remember, every check, ms": statistics.median(ours) * 1e3,
        "ratio at the log layer": statistics.median(layer) / statistics.median(beside),
        "ratio through remember": statistics.median(ours) / statistics.median(raw),
        "most": 1.5,
    }


def _one_at_the_layer(base: Path, count: int, fd: int, data: bytes) -> tuple[list[float], list[float]]:
    # One event sealed, chained and synced, without lock, admission and projections.
    layer = Layer(base / "single-layer")
    drafts = [draft(0)]
    layer.keys.reserve(count + 1)
    ours: list[float] = []
    raw: list[float] = []
    for _ in range(count):
        ours.append(timed(partial(layer.append, drafts)))
        raw.append(timed(partial(_write_sync, fd, data)))
    layer.log.close()
    return ours, raw


class Layer:
    """A log with its keys, without the door: events are sealed, chained and synced, and nothing asks what they say."""

    def __init__(self, path: Path) -> None:
        files = create_store(path, Disk(), wall_clock())
        self.keys = KeyTree(files.root_key, files.keys, Disk())
        self.log = Log(files.log, files.store_id, Disk())
        self.sealer = Sealer(files.store_id, self.keys)

    def append(self, drafts: list[Draft]) -> None:
        """Write one batch, durably."""
        seq = self.log.head.seq
        self.keys.reserve(1 + seq + len(drafts))
        now = max(wall_clock(), self.log.head.recorded_at + 1)
        nonces = os.urandom(12 * len(drafts))
        slots = range(1 + seq, 1 + seq + len(drafts))
        self.log.append(self.sealer.seal_batch(drafts, seq + 1, now, [0] * len(drafts), slots, nonces), now)


def batches_at_the_layer(base: Path, batches: int) -> dict[str, float]:
    """Write batches of a hundred sealed and chained events at the log layer, keys made ahead of use included."""
    layer = Layer(base / "layer")
    drafts = [draft(n) for n in range(100)]
    seconds = [timed(partial(layer.append, drafts)) for _ in range(batches)]
    size = layer.log.head.offset / layer.log.head.seq
    layer.log.close()
    return {
        "events a second": 100 / statistics.median(seconds),
        "events a second, mean": 100 * batches / sum(seconds),
        "bytes an event": size,
        "least": 90_000,
    }


def one_a_frame(base: Path, count: int) -> None:
    """Write a log of one event a frame, for reading; synced once, at the end."""

    class Unsynced(Disk):
        def sync(self, fd: int) -> None:
            """Leave it to the operating system."""

    files = create_store(base / "frames", Disk(), wall_clock())
    keys = KeyTree(files.root_key, files.keys, Disk())
    keys.reserve(count + 1)
    log, sealer, one = Log(files.log, files.store_id, Unsynced()), Sealer(files.store_id, keys), draft(0)
    for n in range(count):
        now = log.head.recorded_at + 1
        event = sealer.seal(one, seq=n + 1, recorded_at=now, scope_slot=0, slot=1 + n, nonce=os.urandom(12))
        log.append([event], now)
    log.close()


def sqlite_batches(base: Path, batches: int) -> dict[str, float]:
    """Write the same rows into SQLite (WAL, synchronous=FULL), plain, and sealed and chained as ours are."""
    files = find_store(base / "layer")
    sealer = Sealer(files.store_id, KeyTree(files.root_key, files.keys, Disk()))
    drafts = [draft(n) for n in range(100)]
    data = os.urandom(300)
    link = genesis(files.store_id)

    def seal(first: int) -> list[bytes]:
        nonlocal link
        events = sealer.seal_batch(drafts, first, 0, [0] * 100, range(1, 101), os.urandom(12 * 100))
        for event in events:
            link = chain_hash(link, event)
        return events

    return {
        "plain": _into_sqlite(base / "plain.db", batches, lambda _first: [data] * 100),
        "sealed": _into_sqlite(base / "sealed.db", batches, seal),
    }


def _into_sqlite(path: Path, batches: int, rows_from: Callable[[int], list[bytes]]) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode=wal")
    connection.execute("pragma synchronous=full")
    connection.execute("create table event (seq integer primary key, data blob)")
    seconds: list[float] = []
    for batch in range(batches):
        started = time.perf_counter()
        rows = list(enumerate(rows_from(100 * batch), 100 * batch))
        connection.execute("begin")
        connection.executemany("insert into event values (?, ?)", rows)
        connection.execute("commit")
        seconds.append(time.perf_counter() - started)
    connection.close()
    return 100 / statistics.median(seconds)


def batches_through_the_door(base: Path, batches: int) -> dict[str, float]:
    """Write batches of a hundred memories through every check of the door, without embedding."""
    with muniment.open(base / "many", create=True, model="none") as store:
        session = store.session(scope="bench", actor="agent:bench")
        items = [[{"content": f"memory {batch} {n}: {WORDS}"} for n in range(100)] for batch in range(batches)]
        seconds = [timed(partial(session.remember_many, part)) for part in items]
    return {"events a second": 100 / statistics.median(seconds), "least": 30_000}


def draft(n: int) -> Draft:
    """Return an event that is ready to be sealed."""
    envelope = Remembered(
        scope="bench",
        actor="agent:bench",
        origin="agent:bench",
        rank=1,
        kind="note",
        provenance="observation",
        valid_from=wall_clock(),
        valid_to=None,
        text_key=os.urandom(16),
        form=1,
    )
    return Draft(id=new_id(wall_clock()), envelope=envelope, body=MemoryBody(content=f"{n} {WORDS}"))


def timed(call: Callable[[], object]) -> float:
    """Return how many seconds a call took."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _write_sync(fd: int, data: bytes) -> None:
    os.write(fd, data)
    os.fdatasync(fd)
