"""The README promises what the tests hold."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from .checkout import ROOT, files, syntax

PROMISES = tuple(f"I{number}" for number in range(1, 13))


def _promise_rows() -> dict[str, list[str]]:
    """Return, for each promise in the README's table, the names of tests that its row gives."""
    rows: dict[str, list[str]] = {}
    for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines():
        if row := re.match(r"\| \*\*(I\d+) [^|]+\| ([^|]+) \|$", line):
            rows[row[1]] = re.findall(r"`(test_\w+\*?)`", row[2])
    return rows


def _test_names() -> set[str]:
    return {
        node.name
        for path in files(".py", under="tests")
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_readme_lists_each_promise_once_and_in_order() -> None:
    assert PROMISES == tuple(_promise_rows())


@pytest.mark.parametrize("promise", PROMISES)
def test_each_promise_is_held_by_a_test_of_its_number(promise: str) -> None:
    prefix = f"test_i{int(promise[1:]):02}_"

    assert [name for name in _test_names() if name.startswith(prefix)], f"no test is named `{prefix}*`"


@pytest.mark.parametrize("promise", PROMISES)
def test_each_test_that_a_promise_names_exists(promise: str) -> None:
    """A name may end in `*`: then some test begins so."""
    existing = _test_names()
    named = _promise_rows()[promise]

    assert named
    for name in named:
        if name.endswith("*"):
            assert any(test.startswith(name[:-1]) for test in existing), f"no test is named `{name}`"
        else:
            assert name in existing


def test_links_between_documents_lead_somewhere() -> None:
    dead: list[str] = []
    for path in files(".md"):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8")):
            if not (path.parent / Path(target)).exists():
                dead.append(f"{path.name}: {target}")

    assert not dead
