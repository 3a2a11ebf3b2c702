"""
Puts the claims and the comparison of `eval peers` into the README, made from the committed results; measures nothing.

Each block stands between two comments. A test compares it with what the committed results give.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final, cast

from ._claims import claims_table
from ._harness import ROOT, Result
from .peers._table import readme_table

BLOCKS: Final = ("measured", "peers")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this evaluation's own arguments."""
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")


def run(args: argparse.Namespace) -> None:
    """Write the blocks."""
    text = args.readme.read_text(encoding="utf-8")
    for name in BLOCKS:
        text = with_block(text, name, block(name, args.out))
    args.readme.write_text(text, encoding="utf-8")


def block(name: str, results: Path) -> str:
    """Return what belongs between the comments of a name, for the results in a folder."""
    if name == "measured":
        return claims_table(results)
    path = results / "peers.json"
    return readme_table(cast("Result", json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None)


def with_block(text: str, name: str, inner: str) -> str:
    """Return a text with something else between the comments of a name; `ValueError` where they are not there."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, rest = text.split(begin, 1)
    _, after = rest.split(end, 1)
    return f"{before}{begin}\n\n{inner}\n{end}{after}"
