"""
The speed figures alone, each beside the committed one: the log, writers, recall, the guard, opening, and the peers.

Times on a machine that others use say little; each evaluation's own output has the conditions.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from ._harness import ROOT
from ._reproducing import SPEED, run_steps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this evaluation's own arguments."""
    parser.add_argument("--factor", type=float, default=2.0, help="by how much a time may differ")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Run, and return what differs beyond the factor."""
    with tempfile.TemporaryDirectory(prefix="muniment-eval-") as folder:
        rows = run_steps(
            SPEED, data=args.data, fresh=Path(folder), results=ROOT / "eval" / "results", factor=args.factor
        )
    return {"ok": all(row["outcome"] != "failed" for row in rows), "factor": args.factor, "rows": rows}
