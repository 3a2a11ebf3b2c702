"""What holds the fixed layout together: five packages, of which four are reached through links."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import TypedDict, cast

from .checkout import PACKAGES, ROOT, SUBPACKAGES, files, package_modules, shown, syntax


class _Setuptools(TypedDict):
    packages: list[str]
    package_dir: dict[str, str]
    package_data: dict[str, list[str]]


def _setuptools() -> _Setuptools:
    with (ROOT / "pyproject.toml").open("rb") as file:
        table = tomllib.load(file)["tool"]["setuptools"]
    return cast("_Setuptools", {key.replace("-", "_"): value for key, value in table.items()})


def _package_name(directory: Path) -> str:
    name = shown(directory).replace("/", ".")
    return name if name.split(".")[0] == "muniment" else f"muniment.{name}"


def test_every_package_directory_is_in_the_wheel() -> None:
    """A nested package left out of the list works in an editable install, and is missing for everyone else."""
    found = {_package_name(path.parent) for path in package_modules() if path.name == "__init__.py"}

    assert found == set(_setuptools()["packages"])


def test_every_directory_with_modules_is_a_package() -> None:
    bare = {shown(path.parent) for path in package_modules() if not (path.parent / "__init__.py").exists()}

    assert not bare


def test_every_subpackage_is_mapped_to_its_top_level_directory() -> None:
    assert {f"muniment.{name}": name for name in SUBPACKAGES} == _setuptools()["package_dir"]


def test_package_data_is_just_the_files_that_are_not_modules() -> None:
    config = _setuptools()
    declared = {
        shown(path)
        for package, patterns in config["package_data"].items()
        for pattern in patterns
        for path in _directory_of(package, config).glob(pattern)
    }
    present = {shown(path) for package in PACKAGES for path in files("", under=package) if path.suffix != ".py"}

    assert present == declared
    for package, patterns in config["package_data"].items():
        for pattern in patterns:
            assert any(_directory_of(package, config).glob(pattern)), f"{package}: nothing matches `{pattern}`"


def _directory_of(package: str, config: _Setuptools) -> Path:
    for prefix, directory in config["package_dir"].items():
        if package == prefix or package.startswith(f"{prefix}."):
            return ROOT / directory / package.removeprefix(prefix).lstrip(".").replace(".", "/")
    return ROOT / package.replace(".", "/")


def test_links_lead_to_the_top_level_directories() -> None:
    """Where git does not keep links (`core.symlinks=false`) they are text files: type checkers and `python -m` fail."""
    for name in SUBPACKAGES:
        link = ROOT / "muniment" / name

        assert link.is_symlink(), f"{shown(link)} is not a link: check out with `git -c core.symlinks=true`"
        assert Path("..") / name == link.readlink()
        assert (ROOT / name).resolve() == link.resolve()
        assert link.is_dir()


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name.split(".")[0] for alias in names]
        case ast.ImportFrom(level=0, module=str(module)):
            return [module.split(".")[0]]
        case _:
            return []


def test_no_file_imports_a_package_by_its_short_name() -> None:
    """From the root `import events` works too, and loads a second copy, whose classes are not the first one's."""
    wrong = [
        f"{shown(path)}:{getattr(node, 'lineno', 0)} imports {name}"
        for path in files(".py")
        for node in ast.walk(syntax(path))
        for name in _imported(node)
        if name in SUBPACKAGES
    ]

    assert not wrong


def test_what_is_installed_does_not_import_what_is_not() -> None:
    wrong = [
        f"{shown(path)} imports {name}"
        for path in package_modules()
        for node in ast.walk(syntax(path))
        for name in _imported(node)
        if name in {"eval", "hypothesis", "pytest", "tests"}
    ]

    assert not wrong


def test_no_package_file_imports_relative_to_a_parent() -> None:
    """A checker that opens `events/x.py` by its real path has no parent there, and takes one class for two."""
    wrong = [
        f"{shown(path)}:{node.lineno}"
        for path in files(".py")
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.ImportFrom) and node.level > 1
    ]

    assert not wrong


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    absolute = re.compile(r"(?<![\w.~$}/-])/(?:home|root|work)/")
    wrong = [
        f"{shown(path)}:{number}: {line.strip()}"
        for path in files(".py", ".md", ".toml", ".in", "Makefile", "run")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if absolute.search(line)
    ]

    assert not wrong


def test_every_runtime_dependency_has_a_decision_record() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        requirements = tomllib.load(file)["project"]["dependencies"]
    records = "\n".join(path.read_text(encoding="utf-8") for path in files(".md", under="docs/adr"))
    names = [match.group() for line in requirements if (match := re.match(r"[\w.-]+", line))]

    assert not [name for name in names if f"`{name}`" not in records]
