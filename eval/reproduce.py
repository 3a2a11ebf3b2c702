"""
Every committed number made again and compared, in under forty minutes on two cores; the long campaigns apart.

A figure that is counted or decided must come out the same; a time must be within a factor, and is compared only on the
processor of the committed run. `ok` is false where a counted figure differs or an evaluation could not run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import cast

from ._harness import ROOT
from ._reproducing import CAMPAIGNS, STEPS, run_steps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this evaluation's own arguments."""
    parser.add_argument("--only", default="", help="committed results that begin so, with commas")
    parser.add_argument("--factor", type=float, default=2.0, help="by how much a time may differ")
    parser.add_argument("--campaigns", action="store_true", help="the long ones instead, at their committed size")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Run, compare, and return what differs."""
    steps = CAMPAIGNS if args.campaigns else STEPS
    wanted = tuple(args.only.split(",")) if args.only else ("",)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="muniment-eval-") as folder:
        rows = run_steps(
            [step for step in steps if step.committed.startswith(wanted)],
            data=args.data,
            fresh=Path(folder),
            results=ROOT / "eval" / "results",
            factor=args.factor,
        )
    for row in rows:
        for one in cast("list[str]", row.get("differs", [])):
            print(f"{row['result']}: {one}", file=sys.stderr)
    bad = [row["result"] for row in rows if row["outcome"] in ("differs", "failed")]
    minutes = (time.monotonic() - started) / 60
    return {"ok": not bad, "differ": bad, "factor": args.factor, "minutes": round(minutes, 1), "rows": rows}
