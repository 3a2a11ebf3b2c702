"""Stores to test with. Every store is words only and under a clock of its own, unless a test says otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from muniment import Policy

from .worlds import World

# No deadlines: a disk that others use must not fail a test. In CI the draws are the same each time, so that a red run
# says something about the change; everywhere else they are fresh, and a failure prints how to repeat it.
settings.register_profile(
    "muniment",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("muniment")

MakeWorld = Callable[..., World]


@pytest.fixture(scope="session")
def make_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., World]]:
    """Return a function that makes a world in a directory of its own; for hypothesis, which runs a test many times."""
    base, numbers = tmp_path_factory.mktemp("worlds"), count()
    made: list[World] = []

    def make(policy: Policy | None = None) -> World:
        while len(made) > 20:
            made.pop(0).store.close()
        made.append(World(base / f"w{next(numbers)}", policy=policy))
        return made[-1]

    yield make
    for world in made:
        world.store.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Return a fresh world."""
    made = World(tmp_path / "store")
    yield made
    made.store.close()
