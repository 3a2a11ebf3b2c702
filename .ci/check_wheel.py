"""
Compare a built wheel with the source tree: `python .ci/check_wheel.py dist/*.whl`.

The wheel must hold `muniment/...` and its own metadata, every file of the five packages and none besides: a module that
is missing from `packages` in pyproject.toml works in an editable install and is missing for everyone else.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIRECTORIES = {"muniment": "muniment"} | {
    name: f"muniment/{name}" for name in ("events", "projections", "replay", "gate")
}


def expected_names() -> set[str]:
    """Return the archive names that the source tree calls for."""
    names: set[str] = set()
    for directory, target in DIRECTORIES.items():
        # rglob stays out of links, so that muniment/events and its like are counted once, where they really are.
        for path in (ROOT / directory).rglob("*"):
            inner = path.relative_to(ROOT / directory)
            if path.is_file() and "__pycache__" not in inner.parts:
                names.add(f"{target}/{inner.as_posix()}")
    return names


def packed_names(wheel: Path) -> set[str]:
    """Return the archive names in the wheel, without its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    return {name for name in names if not name.split("/")[0].endswith(".dist-info")}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(f"expected one wheel, got {len(arguments)}: {' '.join(arguments)}", file=sys.stderr)
        return 2
    expected, packed = expected_names(), packed_names(Path(arguments[0]))
    for name in sorted(expected - packed):
        print(f"missing from the wheel: {name}")
    for name in sorted(packed - expected):
        print(f"only in the wheel: {name}")
    print(f"{len(packed)} files in {Path(arguments[0]).name}, {len(expected ^ packed)} findings")
    return int(expected != packed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
