"""How quickly a log is read: the chain, the seals, verification as it is called, and the fold."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import muniment
from muniment.events import Disk, KeyTree, Log, Reader, Sealer, find_store
from muniment.projections import Register, Tombstones, without_collection

_ROUNDS: Final = 5


def chain_rate(path: Path) -> float:
    """Return how many events a second are read and checked against the chain, on one core."""
    return best_rate(lambda: _read(path, _chain))


def envelope_rate(path: Path) -> float:
    """Return how many events a second are read, checked, and their envelopes unsealed and decoded, on one core."""
    return best_rate(lambda: _read(path, _envelopes))


def seal_rate(path: Path) -> float:
    """Return the same with both seals of each event opened, on one core."""
    return best_rate(lambda: _read(path, _bodies))


def fold_rate(path: Path) -> float:
    """Return how many events a second are folded into beliefs and tombstones, reading included, on one core."""
    return best_rate(lambda: _read(path, _fold))


def verify_rate(path: Path, rounds: int = _ROUNDS) -> float:
    """Return how many events a second `Store.verify` takes, which uses every core on a long log; by the wall clock."""
    with muniment.open(path, model="none", read_only=True) as store:

        def verify() -> tuple[int, float]:
            started = time.perf_counter()
            report = store.verify()
            if not report.ok:
                raise AssertionError(report.findings)
            return report.events, time.perf_counter() - started

        return best_rate(verify, rounds)


def best_rate(call: Callable[[], tuple[int, float]], rounds: int = _ROUNDS) -> float:
    """Return the best rate of a few rounds; a call returns how many events it took, and how many seconds."""
    rates: list[float] = []
    with without_collection():
        for _ in range(rounds):
            count, seconds = call()
            rates.append(count / seconds)
    return max(rates)


def _read(path: Path, work: Callable[[Reader], int]) -> tuple[int, float]:
    files = find_store(path)
    log = Log(files.log, files.store_id, Disk(), read_only=True)
    reader = Reader(log, Sealer(files.store_id, KeyTree(files.root_key, files.keys, Disk())))
    started = time.process_time()
    count = work(reader)
    seconds = time.process_time() - started
    log.close()
    return count, seconds


def _chain(reader: Reader) -> int:
    for _ in reader.log.read_new():
        pass
    return reader.head.seq


def _envelopes(reader: Reader) -> int:
    for _ in reader.read_new():
        pass
    return reader.head.seq


def _bodies(reader: Reader) -> int:
    for batch in reader.read_new():
        for event in batch.events:
            reader.open_body(event)
    return reader.head.seq


def _fold(reader: Reader) -> int:
    register, tombstones = Register(reader.open_body), Tombstones()
    for batch in reader.read_new():
        register.apply(batch)
        tombstones.apply(batch)
    return register.seq
