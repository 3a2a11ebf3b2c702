"""Several processes writing to one store at once: every event is there, in one chain, and nobody waits much longer."""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from pathlib import Path

import muniment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this evaluation's own arguments."""
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--appends", type=int, default=500)


def run(args: argparse.Namespace) -> dict[str, object]:
    """Start the writers together, and check what they leave."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="muniment-writers-") as name:
        path = Path(name) / "store"
        muniment.open(path, create=True, model="none").close()
        start = context.Barrier(args.processes)
        results = context.Queue()
        writers = [
            context.Process(target=_write, args=(path, number, args.appends, start, results))
            for number in range(args.processes)
        ]
        for writer in writers:
            writer.start()
        seconds = sorted(results.get(timeout=600) for _ in writers)
        for writer in writers:
            writer.join()
        with muniment.open(path, model="none") as store:
            stats, verified = store.stats(), store.verify()
            rebuilt = store.rebuild()
        written = args.processes * args.appends
        return {
            "ok": stats["memories"] == written and verified.ok and rebuilt.ok and seconds[-1] <= 2 * seconds[0],
            "memories": stats["memories"],
            "expected": written,
            "chain verifies": verified.ok,
            "live equals rebuilt": rebuilt.ok,
            "fastest writer, s": round(seconds[0], 3),
            "slowest writer, s": round(seconds[-1], 3),
            "slowest / fastest": round(seconds[-1] / seconds[0], 3),
            "target": 2,
            "events a second, all": round(written / seconds[-1]),
        }


def _write(path: Path, number: int, appends: int, start: object, results: object) -> None:
    with muniment.open(path, model="none") as store:
        session = store.session(scope="bench", actor=f"agent:{number}")
        start.wait()  # type: ignore[attr-defined]  # multiprocessing's proxies have no public types
        started = time.perf_counter()
        for n in range(appends):
            session.remember(f"writer {number} says {n}")
        results.put(time.perf_counter() - started)  # type: ignore[attr-defined]  # as above
