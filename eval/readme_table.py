"""
Puts the comparison of `eval peers` into the README, generated from the committed result; measures nothing.

The block stands between two comments. A test compares it with what the committed result gives.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final, cast

from ._harness import ROOT, Result
from .peers._table import readme_table

BEGIN: Final = "<!-- peers:begin -->"
END: Final = "<!-- peers:end -->"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this evaluation's own arguments."""
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")


def run(args: argparse.Namespace) -> None:
    """Write the block."""
    text = args.readme.read_text(encoding="utf-8")
    args.readme.write_text(with_block(text, block(args.out)), encoding="utf-8")


def block(results: Path) -> str:
    """Return what belongs between the comments, for the result in a folder."""
    path = results / "peers.json"
    return readme_table(cast("Result", json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None)


def with_block(text: str, inner: str) -> str:
    """Return a text with something else between the comments; `ValueError` where they are not there."""
    before, rest = text.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    return f"{before}{BEGIN}\n\n{inner}\n{END}{after}"
