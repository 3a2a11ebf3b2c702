"""The command: `agent-memory-atlas run module:Class [--json] [--only PREFIX ...]`, and `agent-memory-atlas list`."""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Sequence

from ._run import OUTCOMES, Report, assess, load
from ._steps import STEPS


def main(words: Sequence[str] | None = None) -> int:
    """Run the command. Exit codes: 0 every step passed, 1 some step did not, 2 could not run."""
    parser = argparse.ArgumentParser(prog="agent-memory-atlas", description="Acceptance tests for agent memory.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="run the steps over an adapter")
    run.add_argument("adapter", help="module:Class; the working directory is searched too")
    run.add_argument("--json", action="store_true", help="one JSON object on standard output")
    run.add_argument("--only", action="append", default=[], metavar="PREFIX", help="steps whose ids begin so")
    run.add_argument("--shared", action="store_true", help="one memory for all steps instead of one each")
    verbs.add_parser("list", help="list the steps")
    args = parser.parse_args(words)
    if args.verb == "list":
        for step in STEPS:
            print(f"{step.id:48} {step.sort:11} {step.asks}")
        return 0
    try:
        report = assess(load(args.adapter), only=args.only, shared=args.shared)
    except Exception:
        # Python would exit with 1, which here means that some step did not pass.
        traceback.print_exc()
        return 2
    print(json.dumps(report.to_dict(), indent=1, ensure_ascii=False) if args.json else _shown(report))
    return 0 if report.ok else 1


def _shown(report: Report) -> str:
    asks = {step.id: step.asks for step in STEPS}
    lines = [f"{one.outcome:14} {one.step:48} {one.detail or asks[one.step]}" for one in report.outcomes]
    counts = ", ".join(f"{len(report.of(outcome))} {outcome}" for outcome in OUTCOMES)
    seen = ", ".join(f"{what}: {how}" for what, how in report.observations.items())
    return "\n".join((*lines, f"{report.name} {report.version}: {counts}", f"observed: {seen}"))


if __name__ == "__main__":
    sys.exit(main())
