"""
The guard's latency: `decide` at 100,000 memories and 1,000 prohibitions, with and without the durable append.

The decision cites three memories and is allowed by a confirmation, so every rule is asked. Prohibitions are of three
sorts, each measured alone: other names, patterns, and a block list on the very name that is decided about. A recorded
decision is timed in turn with a `remember`, which is one durable append too.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import muniment
from muniment import Action, Free, Pattern, Policy, Use

from ._harness import Timing, time_calls, time_each, time_paired

AGENT = "agent:planner"
SEND = Action("email.send", {"to": "ann@example.org", "body": "The report is ready."})
POLICY = Policy(actions={"email.send": Use.EXTERNAL_ACTION})
FORBIDDEN: dict[str, Callable[[int], Action]] = {
    "other names": lambda n: Action(f"tool.number{n}", {"path": f"/srv/{n}"}),
    "patterns": lambda n: Action(Pattern(f"tool.number{n}*")),
    "one name, other arguments": lambda n: Action("email.send", {"to": f"blocked{n}@example.net"}),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this evaluation's own arguments."""
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--prohibitions", type=int, default=1_000)
    parser.add_argument("--calls", type=int, default=500)


def run(args: argparse.Namespace) -> dict[str, object]:
    """Measure, and say whether the target is met for prohibitions of other names."""
    with tempfile.TemporaryDirectory(prefix="muniment-guard-speed-") as name:
        rows = [_measure(Path(name), sort, args) for sort in FORBIDDEN]
        raw = _raw_sync(Path(name), args.calls)
    return {
        "memories": args.memories,
        "prohibitions": args.prohibitions,
        "calls": args.calls,
        "target: dry run median, us": 200,
        "rows": rows,
        "raw write and fdatasync of 1,000 bytes, us": round(raw.p50, 1),
        "ok": all(float(row["dry run, us"]) < 200 for row in rows),
    }


def _measure(base: Path, sort: str, args: argparse.Namespace) -> dict[str, float | str]:
    key = muniment.KeyFile.create(base / f"{sort}.key")
    with muniment.open(base / sort, create=True, model="none", policy=POLICY) as store:
        store.enroll("user:ann", key.public_key, scopes=("acme",))
        agent = store.session(scope="acme", actor=AGENT)
        user = store.user_session(scope="acme", principal="user:ann", signer=key)
        for start in range(0, args.memories, 2_000):
            agent.remember_many([{"content": f"Memory {n} of the bench."} for n in range(start, start + 2_000)])
        cited = [agent.remember(f"Cited memory {n}.").id for n in range(3)]
        for n in range(args.prohibitions):
            user.prohibit(FORBIDDEN[sort](n), reason="never")
        user.confirm(Action("email.send", {"to": "ann@example.org", "body": Free()}), agent=AGENT, uses=None)
        decide = partial(agent.decide, SEND, evidence=cited)
        if not decide(dry_run=True).allowed:
            raise AssertionError("the measured decision is not the allowed one")
        first = time_each([partial(decide, dry_run=True)])
        dry = time_calls(partial(decide, dry_run=True), n=args.calls)
        denied = time_calls(partial(agent.decide, Action("pay.invoice", {"to": "x"}), dry_run=True), n=args.calls)
        notes = (f"Note {n}." for n in count())
        paired = time_paired(decide, lambda: agent.remember(next(notes)), rounds=min(args.calls, 200))
    return {
        "prohibitions": sort,
        "dry run, us": round(dry.p50, 1),
        "dry run p99, us": round(dry.p99, 1),
        "dry run of an unknown name, us": round(denied.p50, 1),
        "first dry run, us": round(first.p50, 1),
        "recorded, us": round(paired.a.p50, 1),
        "one remember, us": round(paired.b.p50, 1),
        "recorded / remember": round(paired.ratio, 2),
    }


def _raw_sync(base: Path, calls: int) -> Timing:
    fd = os.open(base / "raw", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    data = os.urandom(1_000)

    def write() -> None:
        os.write(fd, data)
        os.fdatasync(fd)

    timing = time_calls(write, n=min(calls, 200))
    os.close(fd)
    return timing
