"""`import muniment`: all its names, and nothing of the engine before one of them is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import muniment
from muniment import _public
from tests.processes import run


def test_every_public_name_is_there() -> None:
    assert _public.__all__ == muniment.__all__
    assert set(muniment.__all__) <= set(dir(muniment))
    assert not [name for name in muniment.__all__ if getattr(muniment, name) is not getattr(_public, name)]


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    assert not hasattr(muniment, "Engine")


_ASK = "sys.stdout.write(f'{name in sys.modules} ')"


def test_importing_it_does_not_load_the_engine() -> None:
    said = run(f"import sys, muniment; name = 'numpy'; {_ASK}; muniment.Store; {_ASK}")

    assert "False True" == said.strip()


@pytest.mark.parametrize("module", ["aio", "errors"])
def test_the_public_modules_come_with_the_package(module: str) -> None:
    """`import muniment` and nothing else, in a process of its own, as a reader of docs/errors.md would write it."""
    run = subprocess.run([sys.executable, "-c", f"import muniment; muniment.{module}"], check=False)
    assert 0 == run.returncode
