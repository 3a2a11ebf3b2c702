"""Runs the acceptance tests over the reference, Muniment and the peers, and makes the table of it."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from ._atlas_muniment import MunimentAdapter
from ._harness import ROOT, Result
from .atlas.agent_memory_atlas import STEPS, Report, assess
from .atlas.agent_memory_atlas.reference import PLANTED, Sound, leaky

PEERS: Final = {
    "midas-memory": ("midas-memory==1.0.0", "eval._atlas_peers.midas:MidasAdapter"),
    "inspeximus": ("inspeximus==3.23.1", "eval._atlas_peers.inspeximus:InspeximusAdapter"),
}
_SHOWN: Final = {
    "pass": "pass",
    "fail": "**fail**",
    "unavailable": "–",
    "control_failed": "(control)",
    "error": "error",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this evaluation's own arguments."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muniment-eval" / "atlas"
    parser.add_argument("--peers", default=",".join(PEERS), help="which other memories, or `none`")
    parser.add_argument("--cache", type=Path, default=cache, help="where their environments are kept")


def run(args: argparse.Namespace) -> Result:
    """Run every step over every memory, write `atlas.md`, and return what came of it."""
    sound, muniment = assess(Sound).to_dict(), assess(MunimentAdapter).to_dict()
    faulty = assess(leaky(*PLANTED))
    inexact = inexact_leaks()
    reports: dict[str, Result] = {"muniment": muniment}
    absent: dict[str, str] = {}
    for name in [] if args.peers == "none" else args.peers.split(","):
        requirement, adapter = PEERS[name]
        try:
            reports[name] = _peer_report(requirement, adapter, args.cache)
        except PeerAbsent as error:
            absent[name] = str(error)
    reports |= {"reference, sound": sound, "reference, leaky": faulty.to_dict()}
    ok = bool(sound["ok"]) and bool(muniment["ok"]) and not inexact and sorted(faulty.of("fail")) == sorted(PLANTED)
    result: Result = {
        "ok": ok,
        "steps": len(STEPS),
        "leaks switched on alone": len(STEPS),
        "leaks that failed another step, or not their own": inexact,
        "planted in the leaky reference": list(PLANTED),
        "not run": absent,
        "memories": [_summary(name, report) for name, report in reports.items()],
        "table": _rows(reports),
        "not passed": [row for name, report in reports.items() for row in _not_passed(name, report)],
        "calls": [
            {"memory": name, "method": method, "call": call}
            for name, report in reports.items()
            for method, call in cast("dict[str, str]", report["calls"]).items()
        ],
    }
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "atlas.md").write_text(table_text(result), encoding="utf-8")
    return result


class PeerAbsent(Exception):
    """A peer could not be installed, or could not be run; the text is the end of what was said."""


def inexact_leaks() -> list[str]:
    """Return the leaks that, switched on alone, did not fail exactly the step of their name."""
    return [step.id for step in STEPS if failing(assess(leaky(step.id), shared=True)) != {step.id: "fail"}]


def failing(report: Report) -> dict[str, str]:
    """Return what did not pass, and how."""
    return {one.step: one.outcome for one in report.outcomes if one.outcome != "pass"}


def table_text(result: Result) -> str:
    """Return the table in Markdown: a row a step, a column a memory, and below why each that failed did."""
    asks = {step.id: step.asks for step in STEPS}
    memories = _part(result, "memories")
    names = [str(one["memory"]) for one in memories]
    lines = [
        "# Acceptance tests for agent memory",
        "",
        "Made by `python -m eval atlas`; what is asked, and how: `eval/atlas/README.md`. `–`: the product has no such "
        "feature. (control): the positive control did not hold, so the step shows nothing. Neither is a pass.",
        "",
        _line(["step", "asks", *(f"{one['memory']} {one['version']}" for one in memories)]),
        _line(["---"] * (len(names) + 2)),
        _line(["passed", "", *(f"{one['pass']} of {len(STEPS)}" for one in memories)]),
        _line(["obligations", "what must be done", *(str(one["obligations"]) for one in memories)]),
        _line(["invariants", "what must not be seen", *(str(one["invariants"]) for one in memories)]),
    ]
    for row in _part(result, "table"):
        step = str(row["step"])
        lines.append(_line([f"`{step}`", asks[step], *(_SHOWN[str(row[name])] for name in names)]))
    for one in memories:
        failed = [row for row in _part(result, "not passed") if row["memory"] == one["memory"]]
        called = [row for row in _part(result, "calls") if row["memory"] == one["memory"]]
        lines += ["", f"## {one['memory']} {one['version']}", ""]
        lines += [f"- `{row['step']}`: {row['outcome']}, {row['detail']}" for row in failed]
        lines.append(f"- Observed, not judged: a paraphrase of a rejected value: {one['paraphrase']}")
        if called:
            lines += ["", "Called:", "", *(f"- {row['method']}: {row['call']}" for row in called)]
    return "\n".join(lines) + "\n"


def _part(result: Result, name: str) -> list[Result]:
    return cast("list[Result]", result[name])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _rows(reports: Mapping[str, Result]) -> list[Result]:
    outcomes = {
        name: {one["step"]: one["outcome"] for one in cast("list[dict[str, str]]", report["steps"])}
        for name, report in reports.items()
    }
    return [{"step": step.id, **{name: outcomes[name][step.id] for name in reports}} for step in STEPS]


def _summary(name: str, report: Result) -> Result:
    return {
        "memory": name,
        "version": report["version"],
        **cast("dict[str, int]", report["counts"]),
        "obligations": report["obligations"],
        "invariants": report["invariants"],
        **cast("dict[str, str]", report["observations"]),
    }


def _not_passed(name: str, report: Result) -> list[Result]:
    return [
        {"memory": name, "step": one["step"], "outcome": one["outcome"], "detail": one["detail"]}
        for one in cast("list[dict[str, str]]", report["steps"])
        if one["outcome"] != "pass"
    ]


def _peer_report(requirement: str, adapter: str, cache: Path) -> Result:
    command = [str(_environment(requirement, cache)), "-m", "eval.atlas.agent_memory_atlas", "run", adapter, "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    if done.returncode not in (0, 1):
        raise PeerAbsent(done.stderr.strip()[-400:])
    return cast("Result", json.loads(done.stdout))


def _environment(requirement: str, cache: Path) -> Path:
    key = hashlib.sha256(f"{sys.version}\n{requirement}".encode()).hexdigest()[:12]
    folder = cache / f"{requirement.partition('=')[0]}-{key}"
    done = folder / "installed.txt"
    python = folder / "bin" / "python"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
        installed = subprocess.run(install, capture_output=True, text=True, check=False)
        if installed.returncode:
            raise PeerAbsent(installed.stderr.strip()[-400:])
        # Last: an install that was cut short is made again.
        done.write_text(requirement + "\n", encoding="utf-8")
    return python
