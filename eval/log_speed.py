"""
The log's speed, as ratios in one run on one disk: appends, verification, replay, opening and forgetting.

Each figure stands beside the bare resource or the peer that it is compared with: a raw write and fdatasync, SQLite, the
`eventsourcing` package. Peers are installed into an environment of their own and run as a child process.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import muniment
from muniment.events import (
    Disk,
    Draft,
    KeyTree,
    Log,
    MemoryBody,
    Reader,
    Remembered,
    Sealer,
    create_store,
    find_store,
    new_id,
    wall_clock,
)

CONTENT_BYTES = 150
"""Gives events of about 300 bytes of envelope and body, about 400 sealed and framed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this evaluation's own arguments."""
    parser.add_argument("--single", type=int, default=2_000, help="appends of one event")
    parser.add_argument("--batches", type=int, default=300, help="appends of a hundred events")
    parser.add_argument("--dir", type=Path, default=None, help="where to write; the disk that is measured")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Measure, and return the figures and the ratios."""
    with tempfile.TemporaryDirectory(dir=args.dir, prefix="muniment-log-speed-") as name:
        base = Path(name)
        single = _single(base, args.single)
        layer = _layer(base, args.batches)
        return {
            "one durable append, ms": single,
            "log layer, 100 events a batch": layer,
            "sqlite, same batches": _sqlite(base, args.batches),
            "remember_many, 100 a batch": _remember_many(base, args.batches),
            "reading": _reading(base),
            "forget": _forget(base),
        }


def _single(base: Path, count: int) -> dict[str, float]:
    """One durable event through the door, in turn with a raw write and fdatasync of as many bytes."""
    with muniment.open(base / "single", create=True, model="none") as store:
        session = store.session(scope="bench", actor="agent:bench")
        session.remember("first " + "x" * CONTENT_BYTES)
        size = store.head.offset // max(1, store.head.seq)
        fd = os.open(base / "raw", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        data = os.urandom(size)
        ours: list[float] = []
        raw: list[float] = []
        for n in range(count):
            ours.append(_timed(partial(session.remember, f"{n} " + "x" * CONTENT_BYTES)))
            raw.append(_timed(partial(_write_sync, fd, data)))
        os.close(fd)
    layer = _single_layer(base, count)
    return {
        "raw write + fdatasync": statistics.median(raw) * 1e3,
        "at the log layer": layer * 1e3,
        "through remember, every check": statistics.median(ours) * 1e3,
        "ratio, log layer": layer / statistics.median(raw),
        "ratio, remember": statistics.median(ours) / statistics.median(raw),
        "target": 1.5,
    }


def _single_layer(base: Path, count: int) -> float:
    """The median of one event sealed, chained and synced, without admission and projections."""
    files = create_store(base / "single-layer", Disk(), wall_clock())
    keys = KeyTree(files.root_key, files.keys, Disk())
    log, sealer = Log(files.log, files.store_id, Disk()), Sealer(files.store_id, keys)
    draft = [_draft(0)]
    keys.reserve(count + 1)
    seconds = [_timed(partial(_append, log, keys, sealer, draft, 1 + n)) for n in range(count)]
    log.close()
    return statistics.median(seconds)


def _layer(base: Path, batches: int) -> dict[str, float]:
    """Batches of a hundred sealed and chained events at the log layer, keys made ahead of use included."""
    files = create_store(base / "layer", Disk(), wall_clock())
    keys = KeyTree(files.root_key, files.keys, Disk())
    log, sealer = Log(files.log, files.store_id, Disk()), Sealer(files.store_id, keys)
    drafts = [_draft(n) for n in range(100)]
    seconds: list[float] = []
    for batch in range(batches):
        seconds.append(_timed(partial(_append, log, keys, sealer, drafts, 1 + 100 * batch)))
    size = log.head.offset / log.head.seq
    log.close()
    return {
        "events a second": 100 / statistics.median(seconds),
        "events a second, mean": 100 * batches / sum(seconds),
        "bytes an event": size,
        "target": 90_000,
    }


def _append(log: Log, keys: KeyTree, sealer: Sealer, drafts: list[Draft], slot: int) -> None:
    keys.reserve(slot + len(drafts))
    now, seq = wall_clock(), log.head.seq
    nonces = os.urandom(12 * len(drafts))
    log.append(
        [
            sealer.seal(
                draft,
                seq=seq + 1 + n,
                recorded_at=now,
                scope_slot=0,
                slot=slot + n,
                nonce=nonces[12 * n : 12 * n + 12],
            )
            for n, draft in enumerate(drafts)
        ],
        now,
    )


def _sqlite(base: Path, batches: int) -> dict[str, float]:
    """The same rows into SQLite (WAL, synchronous=FULL), plain, and sealed and chained as ours are."""
    plain = _sqlite_run(base / "plain.db", batches, _as_it_is)
    keys = KeyTree(find_store(base / "layer").root_key, base / "layer" / "keys", Disk())
    sealer = Sealer(find_store(base / "layer").store_id, keys)
    drafts = [_draft(n) for n in range(100)]

    def seal(n: int, _data: bytes) -> bytes:
        return sealer.seal(drafts[n % 100], seq=n, recorded_at=0, scope_slot=0, slot=1 + n % 100, nonce=os.urandom(12))

    return {"plain": plain, "sealed": _sqlite_run(base / "sealed.db", batches, seal)}


def _as_it_is(_n: int, data: bytes) -> bytes:
    return data


def _sqlite_run(path: Path, batches: int, row: Callable[[int, bytes], bytes]) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode=wal")
    connection.execute("pragma synchronous=full")
    connection.execute("create table event (seq integer primary key, data blob)")
    data = os.urandom(300)
    seconds: list[float] = []
    for batch in range(batches):
        started = time.perf_counter()
        rows = [(100 * batch + n, row(100 * batch + n, data)) for n in range(100)]
        connection.execute("begin")
        connection.executemany("insert into event values (?, ?)", rows)
        connection.execute("commit")
        seconds.append(time.perf_counter() - started)
    connection.close()
    return 100 / statistics.median(seconds)


def _remember_many(base: Path, batches: int) -> dict[str, float]:
    """Batches of a hundred memories through every check of the door, without embedding."""
    with muniment.open(base / "many", create=True, model="none") as store:
        session = store.session(scope="bench", actor="agent:bench")
        items = [
            [{"content": f"memory {batch} {n} " + "y" * CONTENT_BYTES} for n in range(100)] for batch in range(batches)
        ]
        seconds = [_timed(partial(session.remember_many, part)) for part in items]
    return {"events a second": 100 / statistics.median(seconds), "target": 30_000}


def _reading(base: Path) -> dict[str, float]:
    """Verification of the chain alone, and with every seal opened."""
    files = find_store(base / "layer")
    keys = KeyTree(files.root_key, files.keys, Disk())

    def chain() -> int:
        log = Log(files.log, files.store_id, Disk(), read_only=True)
        for _ in log.read_new():
            pass
        return log.head.seq

    def seals() -> int:
        reader = Reader(Log(files.log, files.store_id, Disk(), read_only=True), Sealer(files.store_id, keys))
        for batch in reader.read_new():
            for event in batch.events:
                reader.open_body(event)
        return reader.head.seq

    return {"chain, events a second": _rate(chain), "seals, events a second": _rate(seals)}


def _forget(base: Path) -> dict[str, float]:
    """One forget against one durable append of the same store."""
    shutil.copytree(base / "many", base / "forget")
    with muniment.open(base / "forget", model="none") as store:
        session = store.session(scope="bench", actor="agent:bench")
        ids = [session.remember(f"to forget {n}").id for n in range(50)]
        forgets = [_timed(partial(session.forget, i, reason="measured")) for i in ids]
        appends = [_timed(partial(session.remember, f"after {n}")) for n in range(200)]
    return {
        "forget, ms": statistics.median(forgets) * 1e3,
        "append, ms": statistics.median(appends) * 1e3,
        "ratio": statistics.median(forgets) / statistics.median(appends),
        "target": 15,
    }


def _draft(n: int) -> Draft:
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
    return Draft(id=new_id(wall_clock()), envelope=envelope, body=MemoryBody(content=f"{n} " + "x" * CONTENT_BYTES))


def _write_sync(fd: int, data: bytes) -> None:
    os.write(fd, data)
    os.fdatasync(fd)


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _rate(call: Callable[[], int]) -> float:
    best = 0.0
    for _ in range(3):
        started = time.perf_counter()
        count = call()
        best = max(best, count / (time.perf_counter() - started))
    return best
