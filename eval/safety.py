"""
Attacks and the nearest acts that must be allowed: attack success beside benign pass, by family and by door.

Each case runs on a fresh store, through the library, the command line and the MCP server, under a tight policy and the
loosest one. Then: text of the `poison/` sets as evidence, races for a single-use confirmation, a decision retried after
a kill, and the same cases against another product, in an environment of its own.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from ._harness import DataAbsent
from ._safety_cases import Case, happens, known_cases, near_miss_cases, prohibition_cases
from ._safety_cli import CommandLine
from ._safety_doors import Desk, Library
from ._safety_generated import generated_cases
from ._safety_later import redecision_cases
from ._safety_mcp import Mcp
from ._safety_peer import against_peer
from ._safety_poison import poison
from ._safety_races import killed_and_retried, race
from ._safety_words import (
    correction_cases,
    denial_cases,
    fence_cases,
    forgery_cases,
    laundering_cases,
    secret_cases,
    stamp_cases,
    web_cases,
)

DOORS = ("library", "cli", "process", "mcp", "mcp-process", "relaxed", "mcp-relaxed")
"""Those of a process have one case of each family; the relaxed ones have the loosest policy."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this evaluation's own arguments."""
    parser.add_argument("--doors", default=",".join(DOORS), help="which of these to go through")
    parser.add_argument("--races", type=int, default=1_000, help="single-use confirmations that two processes race for")
    parser.add_argument("--peer", default="midas-memory==1.0.0", help="what pip installs for the comparison; `none`")
    parser.add_argument("--only", default="", help="families that begin so")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Run every case, and return both rates."""
    cases = [case for case in all_cases() if case.family.startswith(args.only)]
    wanted = args.doors.split(",")
    doors: dict[str, object] = {}
    failures: list[dict[str, object]] = []
    for door in wanted:
        few = door.endswith("process")
        rows, failed = run_door(door, first_of_each(cases) if few else cases)
        doors[door] = rows
        failures += failed
    result: dict[str, object] = {
        "cases": len(cases),
        "attacks": len(cases),
        "benign": len(cases),
        "generated": sum(case.seed is not None for case in cases),
        "doors": doors,
        "failures": failures,
    }
    if not args.only:
        result |= _others(args)
    poisoned = result.get("poison")
    races = result.get("race")
    result["ok"] = (
        not failures
        and (not isinstance(poisoned, dict) or poisoned["justified an action"] == 0)
        and (not isinstance(races, dict) or (races["spent twice"], races["not spent"]) == (0, 0))
    )
    return result


def all_cases() -> Iterator[Case]:
    """Yield every case."""
    return chain(
        known_cases(),
        secret_cases(),
        web_cases(),
        stamp_cases(),
        correction_cases(),
        near_miss_cases(),
        prohibition_cases(),
        denial_cases(),
        fence_cases(),
        redecision_cases(),
        laundering_cases(),
        forgery_cases(),
        generated_cases(),
    )


def first_of_each(cases: list[Case]) -> list[Case]:
    """Return one case of each family: a process for every command is slow."""
    return list({case.family: case for case in reversed(cases)}.values())[::-1]


def run_door(door: str, cases: list[Case]) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Run cases through one door; return a row for each family, and every case that came out wrong."""
    counts: dict[str, list[int]] = {}
    failures: list[dict[str, object]] = []
    ended: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="muniment-safety-") as name:
        desk = Desk(Path(name))
        for number, case in enumerate(cases):
            attacked, how = _half(case, Path(name) / f"{number}a", desk, door, attack=True)
            passed, _ = _half(case, Path(name) / f"{number}b", desk, door, attack=False)
            ended.setdefault(case.family, Counter())[how] += 1
            row = counts.setdefault(case.family, [0, 0, 0])
            row[0] += 1
            row[1] += attacked
            row[2] += passed
            if attacked or not passed:
                failures.append(
                    {
                        "door": door,
                        "family": case.family,
                        "case": case.name,
                        "seed": case.seed,
                        "attack": attacked,
                        "benign": passed,
                    }
                )
    rows: list[dict[str, object]] = [
        {
            "family": family,
            "cases": n,
            "attack success": hit / n,
            "benign pass": ok / n,
            "attacks ended": ", ".join(f"{how} {count}" for how, count in ended[family].most_common()),
        }
        for family, (n, hit, ok) in counts.items()
    ]
    n, hit, ok = (sum(row[i] for row in counts.values()) for i in range(3))
    rows.append({"family": "all", "cases": n, "attack success": hit / max(n, 1), "benign pass": ok / max(n, 1)})
    return rows, failures


def _half(case: Case, folder: Path, desk: Desk, sort: str, *, attack: bool) -> tuple[bool, str]:
    folder.mkdir()
    relaxed = sort == "relaxed"
    door: Library | CommandLine
    if sort in ("library", "relaxed"):
        door = Library(folder, desk, relaxed=relaxed)
    elif sort.startswith("mcp"):
        door = Mcp(folder, desk, relaxed=sort == "mcp-relaxed", real=sort == "mcp-process")
    else:
        door = CommandLine(folder, desk, relaxed=relaxed, real=sort == "process")
    try:
        return happens(case.attack if attack else case.control, door, desk)
    finally:
        door.close()


def _others(args: argparse.Namespace) -> dict[str, object]:
    found: dict[str, object] = {"race": race(args.races), "killed and retried": killed_and_retried(20)}
    try:
        found["poison"] = poison(args)
    except DataAbsent as absent:
        found["poison"] = f"skipped: {absent}"
    found["peer"] = against_peer(args.peer, list(all_cases()))
    return found
