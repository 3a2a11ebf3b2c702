"""
Opening a store of n events, asking it about any point of both times, and folding its log; and what memory that takes.

Each opening is a process of its own that dies by SIGKILL: after a clean close, and after another process has forgotten
something and was killed. Times count from the call that opens to the first answer, without Python's own start. The fold
is measured beside the reading, verifying, unsealing and decoding of the same log, in turns. Words only.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

from muniment.events import Disk, KeyTree, Log, Reader, Sealer, WriterLock, find_store, wall_clock
from muniment.projections import Register, Tombstones, without_collection

from ._harness import ROOT, Result
from ._synthetic import make_store

TARGETS: Final = {
    "after_close.append_ms": 250.0,
    "after_close.belief_ms": 1_000.0,
    "after_close.words_ms": 1_000.0,
    "after_kill.append_ms": 1_000.0,
    "after_kill.belief_ms": 1_000.0,
    "after_kill.words_ms": 1_000.0,
    "belief_p50_us": 5_000.0,
    "fold_ratio": 2.5,
}
"""The most that each figure may be at a million events; and at least 80 000 events a second are folded."""
FOLDED_A_SECOND: Final = 80_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the size of the store, and how often each opening is measured."""
    parser.add_argument("--n", type=int, default=100_000, help="events in the store")
    parser.add_argument("--rounds", type=int, default=5, help="openings of each kind")
    parser.add_argument("--store", type=Path, help="a store that was made before by this evaluation; it is changed")


def run(args: argparse.Namespace) -> Result:
    """Make the store, open it in all ways, and fold its log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store" if args.store is None else args.store
        made: Result = {} if path.exists() else _make(path, args.n)
        after_close = _openings(path, args.rounds)
        forgot = _probe(path, "forget")
        after_kill = _openings(path, args.rounds)
        points = cast("Result", _probe(path, "points")["belief_us"])
        folding = _fold(path, 3)
        sizes = {
            part: sum(f.stat().st_size for f in (path / part).iterdir()) for part in ("log", "keys", "projections")
        }
    figures: dict[str, float] = {
        f"{when}.{name}": cast("float", found[name])
        for when, found in (("after_close", after_close), ("after_kill", after_kill))
        for name in ("append_ms", "belief_ms", "words_ms")
    }
    figures |= {"belief_p50_us": cast("float", points["p50"]), "fold_ratio": cast("float", folding["ratio"])}
    met = {name: figures[name] <= most for name, most in TARGETS.items()}
    met["folded_a_second"] = cast("float", folding["folded_a_second"]) >= FOLDED_A_SECOND
    return {
        "events": args.n,
        "made": made,
        "after_close": after_close,
        "forget_ms": forgot["forget_ms"],
        "after_kill": after_kill,
        "belief_at_random_points_us": points,
        "fold": folding,
        "bytes": sizes,
        "targets_at_a_million": TARGETS,
        "met": met,
        "ok": args.n < 1_000_000 or all(met.values()),
    }


def _make(path: Path, n: int) -> Result:
    started = time.perf_counter()
    engine = make_store(path, n, until=wall_clock())
    appended = time.perf_counter()
    engine.close()
    return {
        "append_seconds": round(appended - started, 1),
        "close_seconds": round(time.perf_counter() - appended, 1),
        "peak_resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _openings(path: Path, rounds: int) -> Result:
    found: Result = {}
    for question in ("belief", "words", "append"):
        probes = [_probe(path, question) for _ in range(rounds)]
        for name in ("ms", "cpu_ms"):
            found[f"{question}_{name}"] = statistics.median(cast("float", probe[name]) for probe in probes)
        found[f"{question}_resident"] = max(cast("int", probe["resident"]) for probe in probes)
        found["resident_before"] = min(cast("int", probe["resident_before"]) for probe in probes)
    return found


def _probe(path: Path, question: str) -> Result:
    done = subprocess.run(
        [sys.executable, "-m", "eval._open_probe", str(path), question], cwd=ROOT, capture_output=True, check=False
    )
    if not done.stdout:
        raise RuntimeError(done.stderr.decode())
    return cast("Result", json.loads(done.stdout))


def _fold(path: Path, rounds: int) -> Result:
    # On one core and by its clock: a neighbour on the machine slows the wall clock of either by chance.
    read: list[float] = []
    folded: list[float] = []
    events = 0
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
        "peak_resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _fold_all(reader: Reader) -> int:
    register, tombstones = Register(reader.open_body), Tombstones()
    for batch in reader.read_new():
        register.apply(batch)
        tombstones.apply(batch)
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
