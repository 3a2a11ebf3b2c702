"""
Muniment beside other memory engines: latency, size, reopening, what a forget leaves, in one run and as ratios.

Each product runs in an environment of its own, offline, behind one protocol (`_protocol.py`). This module has nothing
but the standard library at import: the workers import it in interpreters where nothing of ours is installed.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this evaluation's own arguments."""
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of memories, with commas")
    parser.add_argument("--peers", default="all", help="which, with commas")
    parser.add_argument("--cache", type=Path, default=None, help="where environments and vectors are kept")
    parser.add_argument("--load-cap", type=float, default=90, help="seconds for loading one product at one size")
    parser.add_argument("--part-cap", type=float, default=8, help="seconds that any other part may take")
    parser.add_argument("--turns", type=int, default=2_000, help="real turns, repeated to a size")
    parser.add_argument("--questions", type=int, default=100, help="questions asked of each product")
    parser.add_argument("--guard-every", type=int, default=3, help="every n-th attack and its control; 0 for none")
    parser.add_argument("--smoke", action="store_true", help="mark the result: it shows that all work, not how fast")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Measure every product at every size; write the table and the plot beside the result."""
    # Not above: see the docstring.
    from ._run import measure  # noqa: PLC0415

    return measure(args)
