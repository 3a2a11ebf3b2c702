"""A graph of vectors is built beside where it was asked for, and nobody waits for it or finds in it what is gone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import muniment
from muniment import Store
from muniment._engine import Engine, Options
from muniment._version import VERSION
from muniment.events import find_store
from muniment.projections import _vectors
from muniment.projections._neighbours import NeighbourGraph
from muniment.projections._vectors import VectorIndex
from tests.erasure.stores import AGENT, SCOPE, Letters, create_store

MANY = 60


def opened(path: Path, *, graph: bool = True) -> Store:
    options = Options(load_embedder=Letters, graph=graph)
    return Store(Engine(find_store(path), options, VERSION), created=False)


def found(store: Store) -> list[str | None]:
    return [hit.content for hit in store.session(scope=SCOPE, actor=AGENT).recall("the harbour of note 7", k=12)]


def graph_of(store: Store) -> NeighbourGraph | None:
    builder = store._engine.dense._builder
    if builder is not None:
        builder.join(timeout=30)
    partition = store._engine.state.recall.partition(SCOPE)
    assert partition is not None
    assert partition.vectors is not None
    return partition.vectors._graph


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(_vectors, "GRAPH_FROM", 50)
    monkeypatch.setattr(_vectors, "_BUILT_AT_ONCE", 8)
    path = tmp_path / "store"
    create_store(path)
    with opened(path, graph=False) as store:
        store.session(scope=SCOPE, actor=AGENT).remember_many([{"content": f"note {n} harbour"} for n in range(MANY)])
        store.embed()
    return path


def test_a_graph_is_built_where_it_was_asked_for_and_finds_the_same(path: Path) -> None:
    with opened(path, graph=False) as store:
        expected = found(store)
        assert graph_of(store) is None
    with opened(path) as store:
        assert found(store) == expected
        graph = graph_of(store)
        assert graph is not None
        assert graph.size == MANY
        assert found(store) == expected
        assert not store._engine.dense.building


def test_what_comes_and_goes_after_the_graph_comes_and_goes_in_what_is_found(path: Path) -> None:
    with opened(path) as store:
        found(store)
        graph = graph_of(store)
        assert graph is not None
        session = store.session(scope=SCOPE, actor=AGENT)
        late = session.remember("the harbour of note 7")
        assert found(store)[0] == "the harbour of note 7"
        session.forget(late.id, reason="asked")
        [old] = [record for record in session.list(limit=MANY) if record.content == "note 7 harbour"]
        session.forget(old.id, reason="asked")
        assert not {"the harbour of note 7", "note 7 harbour"} & set(found(store))
        assert graph.size == MANY - 1


def test_nobody_waits_for_the_graph_and_closing_ends_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    building, go = threading.Event(), threading.Event()
    steps = VectorIndex.building

    def held(index: VectorIndex) -> Iterator[Callable[[], None]]:
        for work in steps(index):

            def wait(work: Callable[[], None] = work) -> None:
                building.set()
                assert go.wait(timeout=30)
                work()

            yield wait

    with opened(path, graph=False) as store:
        expected = found(store)
    monkeypatch.setattr(VectorIndex, "building", held)
    store = opened(path)
    assert found(store) == expected
    assert building.wait(timeout=30)
    assert store._engine.dense.building
    session = store.session(scope=SCOPE, actor=AGENT)
    [old] = [record for record in session.list(limit=MANY) if record.content == expected[0]]
    session.forget(old.id, reason="asked")
    assert found(store) == [*expected[1:], *found(store)[11:]]
    go.set()
    store.close()
    assert not store._engine.dense.building


def test_the_option_is_taken_by_open(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "store", create=True, model="none", graph=True) as store:
        assert store._engine.options.graph
