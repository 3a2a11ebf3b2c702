"""The checkout as the tests about it see it: its packages, its files and their syntax trees."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUBPACKAGES = ("events", "projections", "replay", "gate")
PACKAGES = ("muniment", *SUBPACKAGES)

_MADE_BY_TOOLS = {"build", "dist", "__pycache__", "node_modules"}


def files(*suffixes: str, under: str = ".") -> Iterator[Path]:
    """
    Yield the files below a directory whose names end so, sorted, without hidden directories (but `.ci`), links and what
    tools make.

    It walks instead of asking git, which an unpacked archive and a small machine do not have.
    """
    for parent, directories, names in os.walk(ROOT / under):
        directories[:] = sorted(
            name
            for name in directories
            if name not in _MADE_BY_TOOLS
            and (not name.startswith(".") or name == ".ci")
            and not name.endswith(".egg-info")
            and not (Path(parent) / name).is_symlink()
        )
        for name in sorted(names):
            if name.endswith(suffixes):
                yield Path(parent) / name


def package_modules() -> list[Path]:
    """Return the Python files of the five packages, each once."""
    return [path for package in PACKAGES for path in files(".py", under=package)]


@cache
def syntax(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def shown(path: Path) -> str:
    """Return the path as a reader of the repository would write it."""
    return path.relative_to(ROOT).as_posix()
