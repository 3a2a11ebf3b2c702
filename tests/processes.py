"""Runs a piece of Python in a process of its own, with the checkout importable."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from .checkout import ROOT


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment with the checkout on the path."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **(extra or {})}


def start(program: str, *args: str | Path) -> subprocess.Popen[str]:
    """Start a program; its standard input and output are pipes of text."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(),
    )


def run(program: str, *args: str | Path, extra: Mapping[str, str] | None = None) -> str:
    """Run a program to its end, and return what it printed; raises when it failed."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, args)],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
        cwd=ROOT,
        env=environment(extra),
        timeout=60,
    )
    return done.stdout
