"""
Opening a store of n events, asking it about any point of both times, and folding its log; and what memory that takes.

Each opening is a process of its own that dies by SIGKILL: after a clean close, and after another process has forgotten
something and was killed; then by a program with other settings, and by one with another register, than the one that
saved the projections, which folds the log anew. Of the small scope is one event in twelve. Times count from the call
that opens to the first answer, without Python's own start. The fold is measured beside the reading, verifying,
unsealing and decoding of the same log, in turns. Words only.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Final, cast

from ._harness import Result
from ._openings import fold, make, openings, probe

TARGETS: Final = {
    "after_close.append_ms": 250.0,
    "after_close.belief_ms": 1_000.0,
    "after_close.words_ms": 1_000.0,
    "after_kill.append_ms": 1_000.0,
    "after_kill.belief_ms": 1_000.0,
    "after_kill.words_ms": 1_000.0,
    "stale_settings.belief_ms": 1_000.0,
    "stale_settings.words_ms": 2_000.0,
    "belief_p50_us": 5_000.0,
    "fold_ratio": 2.5,
}
"""The most that each figure may be at a million events; and at least 80 000 events a second are folded."""
FOLDED_A_SECOND: Final = 80_000
_ASKED_STALE: Final = ("belief", "words", "small_belief", "small_words", "guard")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the size of the store, and how often each opening is measured."""
    parser.add_argument("--n", type=int, default=100_000, help="events in the store")
    parser.add_argument("--rounds", type=int, default=5, help="openings of each kind")
    parser.add_argument("--store", type=Path, help="a store that was made before by this evaluation; it is changed")


def run(args: argparse.Namespace) -> Result:
    """Make the store, open it in all ways, and fold its log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store" if args.store is None else args.store
        made: Result = {} if path.exists() else make(path, args.n)
        after_close = openings(path, args.rounds)
        forgot = probe(path, "forget")
        after_kill = openings(path, args.rounds)
        stale = {what: openings(path, args.rounds, _ASKED_STALE, stale=what) for what in ("settings", "register")}
        points = cast("Result", probe(path, "points")["belief_us"])
        folding = fold(path, 3)
        sizes = {
            part: sum(f.stat().st_size for f in (path / part).iterdir()) for part in ("log", "keys", "projections")
        }
    figures: dict[str, float] = {
        f"{when}.{name}": cast("float", found[name])
        for when, found in (("after_close", after_close), ("after_kill", after_kill))
        for name in ("append_ms", "belief_ms", "words_ms")
    }
    figures |= {f"stale_settings.{name}": cast("float", stale["settings"][name]) for name in ("belief_ms", "words_ms")}
    figures |= {"belief_p50_us": cast("float", points["p50"]), "fold_ratio": cast("float", folding["ratio"])}
    met = {name: figures[name] <= most for name, most in TARGETS.items()}
    met["folded_a_second"] = cast("float", folding["folded_a_second"]) >= FOLDED_A_SECOND
    return {
        "events": args.n,
        "made": made,
        "after_close": after_close,
        "forget_ms": forgot["forget_ms"],
        "after_kill": after_kill,
        "stale": stale,
        "belief_at_random_points_us": points,
        "fold": folding,
        "bytes": sizes,
        "targets_at_a_million": TARGETS,
        "met": met,
        "ok": args.n < 1_000_000 or all(met.values()),
    }
