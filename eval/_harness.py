"""What every evaluation shares: timing, the facts of the machine, and how a result is written and shown."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import statistics
import subprocess
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import TypeAlias, cast

import msgspec

Result: TypeAlias = dict[str, object]
Clock: TypeAlias = Callable[[], int]

ROOT = Path(__file__).resolve().parent.parent


class DataAbsent(Exception):
    """A set that the evaluation needs is not in the data folder; the runner skips it and says so."""


class Timing(msgspec.Struct, frozen=True):
    """Durations in microseconds; percentiles are durations that were measured, never interpolated."""

    n: int
    p50: float
    p99: float
    fastest: float
    slowest: float


class Paired(msgspec.Struct, frozen=True):
    """Two calls measured in one run. `ratio` is the median over rounds of a / b, with its 10th and 90th percentile."""

    a: Timing
    b: Timing
    ratio: float
    ratio_p10: float
    ratio_p90: float


def need(args: argparse.Namespace, name: str) -> Path:
    """Return the path of a set in the data folder, or raise `DataAbsent`."""
    path = Path(args.data) / name
    if not path.exists():
        raise DataAbsent(f"`{name}` is not in `{args.data}`; name the folder with --data")
    return path


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of the values do not exceed."""
    if not values:
        raise ValueError("no values")
    ranked = sorted(values)
    return ranked[max(0, math.ceil(len(ranked) * percent / 100) - 1)]


def time_calls(call: Callable[[], object], *, n: int, warm_up: int = 3, clock: Clock = time.perf_counter_ns) -> Timing:
    """Time `n` calls one by one, after `warm_up` that are not counted."""
    for _ in range(warm_up):
        call()
    return summarise([_time_once(call, clock) for _ in range(n)])


def time_each(calls: Sequence[Callable[[], object]], *, clock: Clock = time.perf_counter_ns) -> Timing:
    """Time each of several calls once, as for a list of different queries."""
    return summarise([_time_once(call, clock) for call in calls])


def time_paired(
    a: Callable[[], object],
    b: Callable[[], object],
    *,
    rounds: int,
    warm_up: int = 3,
    clock: Clock = time.perf_counter_ns,
) -> Paired:
    """
    Time two calls in alternation, so that a neighbour on the machine slows both.

    Which goes first changes each round: the second would otherwise always find the caches warm.
    """
    for _ in range(warm_up):
        a()
        b()
    times_a: list[int] = []
    times_b: list[int] = []
    for number in range(rounds):
        if number % 2:
            times_b.append(_time_once(b, clock))
            times_a.append(_time_once(a, clock))
        else:
            times_a.append(_time_once(a, clock))
            times_b.append(_time_once(b, clock))
    ratios = [one / max(other, 1) for one, other in zip(times_a, times_b, strict=True)]
    return Paired(
        a=summarise(times_a),
        b=summarise(times_b),
        ratio=statistics.median(ratios),
        ratio_p10=percentile(ratios, 10),
        ratio_p90=percentile(ratios, 90),
    )


def summarise(nanoseconds: Sequence[int]) -> Timing:
    """Return the summary of durations given in nanoseconds."""
    micros = [one / 1_000 for one in nanoseconds]
    return Timing(
        n=len(micros), p50=percentile(micros, 50), p99=percentile(micros, 99), fastest=min(micros), slowest=max(micros)
    )


def machine_facts() -> Result:
    """Return what a reader needs to compare figures; nothing that names the machine or its user."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _cpu_model(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": _package_versions(),
    }


def commit_facts(root: Path = ROOT) -> Result:
    """Return the commit that is checked out, and whether anything but results differs from it; None without git."""
    commit = _git(root, "rev-parse", "HEAD")
    status = _git(root, "status", "--porcelain", "--", ".", ":!eval/results")
    return {"commit": commit, "changed": None if status is None else bool(status)}


def write_result(name: str, result: Mapping[str, object], *, out: Path, started: datetime, seconds: float) -> Path:
    """Write `<out>/<name>.json` with the machine, the commit, the date and the duration; return its path."""
    document = {
        "name": name,
        "date": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        **commit_facts(),
        "machine": machine_facts() | {"loop_ms": loop_ms()},
        "result": msgspec.to_builtins(result),
    }
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.json"
    path.write_text(text + "\n", encoding="utf-8")
    return path


def format_result(result: Mapping[str, object]) -> str:
    """Return the result as text: a list of rows as a table, everything else as `key  value`, nested keys with dots."""
    lines: list[str] = []
    tables: list[str] = []
    for key, value in _flatten(cast("Result", msgspec.to_builtins(result)), ""):
        rows = _as_rows(value)
        if rows:
            tables.append(f"\n{key}\n{format_table(rows)}")
        else:
            lines.append(f"{key}  {_cell(value)}")
    return "\n".join([*lines, *tables])


def format_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows as columns in the order in which their keys first come up."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([_cell(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in cells)


def _time_once(call: Callable[[], object], clock: Clock) -> int:
    start = clock()
    call()
    return clock() - start


def _flatten(value: Mapping[str, object], prefix: str) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            found.extend(_flatten(cast("Result", inner), f"{prefix}{key}."))
        else:
            found.append((f"{prefix}{key}", inner))
    return found


def _as_rows(value: object) -> list[Result] | None:
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in cast("list[object]", value)):
        return cast("list[Result]", value)
    return None


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1_000 else f"{value:.0f}"
    return str(value)


def loop_ms() -> float:
    """
    Return how long a fixed loop takes on one core just now, at best.

    Machines of one name differ by a factor of two, and so does one machine from day to day.
    """
    best = min(_loop() for _ in range(9))
    return round(best * 1e3, 2)


def _loop() -> float:
    started = time.perf_counter()
    kept: dict[int, bytes] = {}
    for number in range(20_000):
        kept[number & 1023] = kept.get(number * 7 & 1023, b"")[:24] + number.to_bytes(8, "big")
    return time.perf_counter() - started


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8", errors="replace") if info.exists() else ""
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1] if match else platform.machine()


def _package_versions() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0] for requirement in project["dependencies"]]
    return {name: _version(name) for name in sorted(names)}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
