"""
The runner: `python -m eval NAME [--data DIR] [--out DIR]`, and `python -m eval list`.

An evaluation is a module `eval/<name>.py` or a package `eval/<name>/` with a `run` of its own (hyphens in names are
underscores there), with a docstring whose first line says what it measures, `run(args) -> dict`, and, where it takes
options of its own, `add_arguments(parser)`. Its `run` gets sets with `need(args, "locomo/locomo_dev.json")`, and
returns None where it measured nothing. Exit codes: 0 done, or skipped for want of data; 1 the result says
`"ok": false`; 2 could not run.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

from ._harness import ROOT, DataAbsent, format_result, format_table, write_result

FOLDER = Path(__file__).resolve().parent


def main(words: Sequence[str] | None = None, *, folder: Path = FOLDER) -> int:
    """Run one evaluation, or list them, and return the exit code."""
    words = sys.argv[1:] if words is None else words
    known = registry(folder)
    name = words[0] if words else "list"
    if name in {"list", "-h", "--help"}:
        print("python -m eval NAME [--data DIR] [--out DIR]\n")
        print(format_table([{"name": one, "measures": _first_line(path)} for one, path in known.items()]))
        return 0
    if name not in known:
        print(f"no evaluation `{name}`; known are {', '.join(known) or 'none'}", file=sys.stderr)
        return 2
    try:
        module = importlib.import_module(f"{folder.name}.{name.replace('-', '_')}")
        return _run(name, module, _parse(name, module, words[1:]))
    except Exception:
        # Python would exit with 1, which here means that the evaluation ran and found something.
        traceback.print_exc()
        return 2


def registry(folder: Path = FOLDER) -> dict[str, Path]:
    """Return the evaluations by name, without importing them: some load models."""
    modules = [path for path in folder.glob("*.py") if not path.name.startswith("_")]
    packages = [path for path in folder.glob("*/__init__.py") if _has_run(path)]
    named = {(path.parent.name if path.stem == "__init__" else path.stem): path for path in modules + packages}
    return {name.replace("_", "-"): named[name] for name in sorted(named)}


def _has_run(path: Path) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body)


def _parse(name: str, module: ModuleType, words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m eval {name}", description=module.__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder of the sets")
    parser.add_argument("--out", type=Path, default=ROOT / "eval" / "results", help="where the result is written")
    if hasattr(module, "add_arguments"):
        module.add_arguments(parser)
    return parser.parse_args(words)


def _run(name: str, module: ModuleType, args: argparse.Namespace) -> int:
    started = datetime.now(UTC)
    start = time.perf_counter()
    try:
        result = module.run(args)
    except DataAbsent as absent:
        print(f"{name}: skipped, {absent}")
        return 0
    if result is None:
        return 0
    path = write_result(name, result, out=args.out, started=started, seconds=time.perf_counter() - start)
    print(format_result(result))
    print(f"\nwritten to {path}", file=sys.stderr)
    return 1 if result.get("ok") is False else 0


def _first_line(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
