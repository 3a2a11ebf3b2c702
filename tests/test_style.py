"""The rules of the code's shape that no linter knows."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from muniment.events import _errors

from .checkout import PACKAGES, ROOT, files, package_modules, shown, syntax

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 450
GROUPS = ("InvalidInput", "Refused", "Conflict", "Corrupt", "Unavailable")


def test_functions_fit_a_screen() -> None:
    """From `def` to the last line, the docstring included."""
    long = [
        f"{shown(path)}:{node.lineno} {node.name} has {lines} lines"
        for path in package_modules()
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]

    assert not long


def test_files_hold_one_idea() -> None:
    long = [
        f"{shown(path)} has {lines} lines"
        for path in package_modules()
        if path.name != "_errors.py"  # one idea, however many errors there are
        and (lines := len(path.read_text(encoding="utf-8").splitlines())) > FILE_LINES_MAX
    ]

    assert not long


@pytest.mark.parametrize("package", PACKAGES)
def test_public_functions_and_classes_have_docstrings(package: str) -> None:
    module = importlib.import_module(package if package == "muniment" else f"muniment.{package}")
    bare: list[str] = []
    for name in getattr(module, "__all__", ()):
        thing = getattr(module, name)
        ours = inspect.isfunction(thing) or inspect.isclass(thing)
        if ours and thing.__module__.startswith("muniment") and not _has_docstring(thing):
            bare.append(name)

    assert not bare


def _has_docstring(thing: Callable[..., object]) -> bool:
    # Read from the source: a dataclass or a struct has a made-up __doc__, and a subclass inherits one.
    source = textwrap.dedent(inspect.getsource(thing))
    node = ast.parse(source).body[0]
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and bool(ast.get_docstring(node))


def test_packages_that_export_names_list_them() -> None:
    """Without `__all__` a type checker takes every imported name for private, or every one for public."""
    silent = [
        package
        for package in PACKAGES
        if any(isinstance(node, ast.ImportFrom) and node.level for node in syntax(ROOT / package / "__init__.py").body)
        and not hasattr(importlib.import_module(package if package == "muniment" else f"muniment.{package}"), "__all__")
    ]

    assert not silent


def _may_print(path: Path) -> bool:
    inside = path.relative_to(ROOT).parts
    return inside[0] == "muniment" and inside[1].startswith(("_cli", "_demo"))


def test_only_the_command_line_and_the_demo_print() -> None:
    """On the MCP server's standard output a stray line breaks the protocol."""
    prints = [
        f"{shown(path)}:{node.lineno}"
        for path in [*package_modules(), *files(".py", under="tests")]
        if not _may_print(path)
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]

    assert not prints


# --- Errors -----------------------------------------------------------------------------------------------------------


def _error_classes() -> list[type[_errors.MunimentError]]:
    return [
        thing
        for thing in vars(_errors).values()
        if isinstance(thing, type) and issubclass(thing, _errors.MunimentError)
    ]


def _group(kind: type[_errors.MunimentError]) -> str:
    return next((base.__name__ for base in kind.__mro__ if base.__name__ in GROUPS), "MunimentError")


def test_every_error_class_has_a_code_of_its_own() -> None:
    assert not [kind.__name__ for kind in _error_classes() if "code" not in vars(kind)]
    counts = Counter(kind.code for kind in _error_classes())
    assert not [code for code, count in counts.items() if count > 1]


def test_every_error_class_says_who_must_act() -> None:
    assert not [
        kind for kind in _error_classes() if _group(kind) == "MunimentError" and kind is not _errors.MunimentError
    ]


def test_error_messages_begin_in_lower_case_and_end_without_a_stop() -> None:
    assert not [kind.template for kind in _error_classes() if kind.template[0].isupper() or kind.template.endswith(".")]


def test_docs_list_exactly_the_error_classes_under_who_must_act() -> None:
    listed: set[tuple[str, str, str]] = set()
    group = "MunimentError"
    for line in (ROOT / "docs" / "errors.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## `(\w+)`", line):
            group = heading[1]
        elif row := re.match(r"\| `(\w+)` \| `(\w+)` \| [^|]+\S \| [^|]+\S \|$", line):
            listed.add((group, row[1], row[2]))

    assert {(_group(kind), kind.code, kind.__name__) for kind in _error_classes()} == listed
