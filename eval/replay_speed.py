"""
How quickly a log is replayed: the fold beside reading alone, a rebuild with vectors kept, a point of both times.

The fold and the rebuild are timed by the processor's clock, on one core. A rebuild folds everything, takes in the words
of every memory again, and reads the vectors that were kept; beside it stands hnswlib's `add_items` of the same vectors
into a bare index, plus the fold. What users get above a few thousand memories is no graph but an exact search over
candidates chosen by the signs of the components: nothing has to be built for it. Opening is from the call to the
answer, in a process that dies by SIGKILL, after a clean close and after a forget and a kill.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Final, cast

from ._harness import Result
from ._openings import make, openings, probe

_PROBE: Final = "eval._rebuild_probe"
_MOST: Final = {
    "fold_ratio": 2.5,
    "rebuild_ratio": 1.3,
    "belief_p50_us": 5_000.0,
    "after_close.belief_ms": 1_000.0,
    "after_close.words_ms": 1_000.0,
    "after_close.recall_ms": 1_000.0,
    "after_kill.belief_ms": 1_000.0,
    "after_kill.words_ms": 1_000.0,
    "after_kill.recall_ms": 1_000.0,
}
"""At a million events; the first recall, which waits for vectors, at a hundred thousand."""
_FOLDED_A_SECOND: Final = 80_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the sizes, and a store that is there already."""
    parser.add_argument("--n", type=int, default=100_000, help="events in the store; the targets name 1000000")
    parser.add_argument("--rounds", type=int, default=3, help="openings of each kind, and folds")
    parser.add_argument("--store", type=Path, help="a store that was made before by this evaluation; it is changed")
    parser.add_argument("--no-rebuild", action="store_true", help="leave out what takes long: vectors, rebuild, graph")
    parser.add_argument("--quick", action="store_true", help="five thousand events, to see that it runs")


def run(args: argparse.Namespace) -> Result:
    """Make the store, fold it, ask it, open it, and rebuild it."""
    n, rounds = (5_000, 1) if args.quick else (args.n, args.rounds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store" if args.store is None else args.store
        made: Result = {} if path.exists() else make(path, n)
        folding = probe(path, "fold", module=_PROBE)
        rebuilding = None if args.no_rebuild else _rebuilt(path, n, cast("int", folding["folded_a_second"]))
        after_close = _openings(path, rounds, vectors=rebuilding is not None)
        points = cast("Result", probe(path, "points")["belief_us"])
        forget = probe(path, "forget")
        after_kill = _openings(path, rounds, vectors=rebuilding is not None)
    figures = {
        "fold_ratio": folding["ratio"],
        "belief_p50_us": points["p50"],
        **{f"after_close.{name}": value for name, value in after_close.items()},
        **{f"after_kill.{name}": value for name, value in after_kill.items()},
    }
    if rebuilding is not None:
        figures["rebuild_ratio"] = rebuilding["ratio"]
    met = {name: cast("float", figures[name]) <= most for name, most in _MOST.items() if name in figures}
    met["folded_a_second"] = cast("int", folding["folded_a_second"]) >= _FOLDED_A_SECOND
    return {
        "events": n,
        "made": made,
        "fold": folding,
        "fold_peak_per_million": _per_million(folding["peak_resident"], folding["peak_before"], n),
        "rebuild": rebuilding or "left out",
        "after_close": after_close,
        "belief_at_random_points_us": points,
        "first_forget_ms": forget["forget_ms"],
        "after_kill": after_kill,
        "at_most": _MOST,
        "met": met,
    }


def _rebuilt(path: Path, n: int, folded_a_second: int) -> Result:
    probe(path, "vectors", module=_PROBE)
    rebuild = probe(path, "rebuild", module=_PROBE)
    graph = probe(path, "graph", module=_PROBE)
    if not rebuild["ok"] or rebuild["missing"]:
        raise AssertionError(rebuild)
    bare = cast("float", graph["cpu_seconds"]) + n / folded_a_second
    return {
        "cpu_seconds": rebuild["cpu_seconds"],
        "events_a_second": round(n / cast("float", rebuild["cpu_seconds"])),
        "vectors": graph["vectors"],
        "hnswlib_cpu_seconds": graph["cpu_seconds"],
        "hnswlib_and_fold_cpu_seconds": bare,
        "ratio": cast("float", rebuild["cpu_seconds"]) / bare,
        "peak_per_million": _per_million(rebuild["peak"], rebuild["peak_before"], n),
        "search_of_vectors": "exact over candidates by signs; no graph is built by default",
    }


def _per_million(peak: object, before: object, n: int) -> int:
    return round((cast("int", peak) - cast("int", before)) * 1_000_000 / n)


def _openings(path: Path, rounds: int, *, vectors: bool) -> dict[str, float]:
    found = openings(path, rounds, ("belief", "words"))
    answers = {f"{name}_ms": cast("float", found[f"{name}_ms"]) for name in ("belief", "words")}
    if vectors:
        recalls = [probe(path, "recall", module=_PROBE) for _ in range(rounds)]
        answers["recall_ms"] = min(cast("float", one["first_ms"]) for one in recalls)
        answers["next_recall_ms"] = min(cast("float", one["next_ms"]) for one in recalls)
    return answers
