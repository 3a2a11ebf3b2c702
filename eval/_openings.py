"""Stores that are made, opened by processes that die, and folded: what the evaluations of opening and replay share."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from muniment.events import Disk, KeyTree, Log, Reader, Sealer, WriterLock, find_store, wall_clock
from muniment.projections import Register, Tombstones, without_collection

from ._harness import ROOT, Result
from ._synthetic import make_store


def make(path: Path, n: int) -> Result:
    """Make a store of `n` events, and say how long that took."""
    started = time.perf_counter()
    engine = make_store(path, n, until=wall_clock())
    appended = time.perf_counter()
    engine.close()
    return {
        "append_seconds": round(appended - started, 1),
        "close_seconds": round(time.perf_counter() - appended, 1),
        "peak_resident": _peak(),
    }


def openings(
    path: Path, rounds: int, questions: tuple[str, ...] = ("belief", "words", "append"), *, stale: str = "nothing"
) -> Result:
    """Open the store in processes of their own, and return the medians from the call that opens to each answer."""
    found: Result = {}
    for question in questions:
        probes = [probe(path, question, stale) for _ in range(rounds)]
        for name in ("ms", "cpu_ms"):
            found[f"{question}_{name}"] = statistics.median(cast("float", one[name]) for one in probes)
        found[f"{question}_resident"] = max(cast("int", one["resident"]) for one in probes)
        found["resident_before"] = min(cast("int", one["resident_before"]) for one in probes)
    return found


def probe(path: Path, *question: str, module: str = "eval._open_probe") -> Result:
    """Return what a process of its own found out; it dies by SIGKILL, and closes nothing."""
    done = subprocess.run(
        [sys.executable, "-m", module, str(path), *question], cwd=ROOT, capture_output=True, check=False
    )
    if not done.stdout:
        raise RuntimeError(done.stderr.decode())
    return cast("Result", json.loads(done.stdout))


def fold(path: Path, rounds: int) -> Result:
    """
    Fold the log into beliefs and tombstones, in turns with reading it alone: verified, unsealed and decoded.

    The fold ends with the answer to a question, since what is found by keys is indexed when somebody asks.
    """
    # On one core and by its clock: a neighbour on the machine slows the wall clock of either by chance.
    read: list[float] = []
    folded: list[float] = []
    events, before = 0, _peak()
    for _ in range(rounds):
        seconds, events = _timed(path, lambda reader: sum(len(batch.events) for batch in reader.read_new()))
        read.append(seconds)
        seconds, _ = _timed(path, _fold_all)
        folded.append(seconds)
    best_read, best_fold = min(read), min(folded)
    return {
        "read_a_second": round(events / best_read),
        "folded_a_second": round(events / best_fold),
        "ratio": round(statistics.median(b / a for a, b in zip(read, folded, strict=True)), 2),
        "peak_resident": _peak(),
        "peak_before": before,
    }


def _fold_all(reader: Reader) -> int:
    register, tombstones = Register(reader.open_body), Tombstones()
    for batch in reader.read_new():
        register.apply(batch)
        tombstones.apply(batch)
    register.keys.get(("", bytes(16)))
    return register.seq


def _timed(path: Path, work: Callable[[Reader], int]) -> tuple[float, int]:
    files, disk = find_store(path), Disk()
    keys = KeyTree(files.root_key, files.keys, disk)
    log = Log(files.log, files.store_id, disk, lock=WriterLock(files.lock, files.log), read_only=True)
    try:
        with without_collection():
            started = time.process_time()
            count = work(Reader(log, Sealer(files.store_id, keys)))
            return time.process_time() - started, count
    finally:
        log.close()


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
