"""Stores of LangGraph: its own, which is the reference, and ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from typing import Any, TypeVar

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from muniment.langgraph import MunimentStore
from tests.worlds import World

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns."""
    return asyncio.run(work)


@pytest.fixture
def ours(world: World) -> MunimentStore:
    return MunimentStore(world.store, scope="acme/graph", actor="agent:planner")


@pytest.fixture(scope="module")
def make_ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], MunimentStore]]:
    """Return a function that makes a store below a root of its own; making a whole world takes longer."""
    world, numbers = World(tmp_path_factory.mktemp("graph") / "store"), count()
    yield lambda: MunimentStore(world.store, scope=f"acme/graph{next(numbers)}", actor="agent:planner")
    world.store.close()


@pytest.fixture(params=["reference", "muniment"])
def store(request: pytest.FixtureRequest, make_ours: Callable[[], MunimentStore]) -> BaseStore:
    """The reference first: an assertion that it does not pass is no part of the contract."""
    return InMemoryStore() if request.param == "reference" else make_ours()
