"""Random histories of every kind of event: the store against a plain model, at every position, after every step."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import cast

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.model.machine import Histories

HISTORIES = 20
"""Histories of one seed; the seed of a failure is printed, and repeats it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this evaluation."""
    parser.add_argument("--steps", type=int, default=20_000, help="how many steps to take at least")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after that long all the same")
    parser.add_argument("--length", type=int, default=40, help="steps of one history at most")
    parser.add_argument("--seed", type=int, default=1, help="of the first histories; later ones count up")
    parser.add_argument("--folder", type=Path, default=None, help="where the stores are made")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Take the steps; a disagreement ends the campaign, and is reported with its seed."""
    started, counts, number = time.monotonic(), Counter[str](), args.seed
    with tempfile.TemporaryDirectory(dir=args.folder) as base:
        while counts.total() < args.steps and time.monotonic() - started < args.minutes * 60:
            try:
                counts.update(_histories(number, args.length, Path(base)))
            except AssertionError as disagreement:
                return {"ok": False, "seed": number, "steps": counts.total(), "disagreement": str(disagreement)}
            number += 1
    return {
        "ok": True,
        "steps": counts.total(),
        "histories": (number - args.seed) * HISTORIES,
        "seeds": [args.seed, number - 1],
        "by_verb": dict(sorted(counts.items())),
    }


def _histories(number: int, length: int, base: Path) -> Counter[str]:
    class Seeded(Histories):
        pass

    Seeded.base, Seeded.counts = base, Counter()
    chosen = settings(
        max_examples=HISTORIES, stateful_step_count=length, deadline=None, database=None, report_multiple_bugs=False,
        phases=(Phase.generate,), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
    run_state_machine_as_test(cast("type[RuleBasedStateMachine]", seed(number)(Seeded)), settings=chosen)
    return Seeded.counts
