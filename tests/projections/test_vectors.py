"""The nearest vectors, exactly, and nothing of what was erased."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from muniment.events._errors import BadArgument
from muniment.projections import _vectors
from muniment.projections._neighbours import NeighbourGraph
from muniment.projections._vectors import VectorIndex

DIM = 16


def unit(count: int, seed: int = 0) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def made(vectors: NDArray[np.float32], rows: list[int] | None = None) -> VectorIndex:
    index = VectorIndex(DIM)
    index.put(list(range(len(vectors))) if rows is None else rows, vectors)
    return index


@given(st.integers(0, 60), st.integers(0, 70), st.integers(0, 20), st.integers(0, 5), st.data())
def test_search_gives_what_scoring_every_row_gives(
    count: int, upto: int, k: int, seed: int, data: st.DataObject
) -> None:
    # Few distinct vectors, so that ties are common.
    vectors = unit(7, seed)[np.random.default_rng(seed).integers(0, 7, count)]
    index = made(vectors)
    erased = data.draw(st.sets(st.integers(0, max(0, count - 1)), max_size=5))
    for row in erased:
        index.erase(row)
    allowed = data.draw(
        st.none() | st.lists(st.booleans(), max_size=70).map(lambda flags: np.array(flags, dtype=np.bool_))
    )
    query = unit(1, seed + 1)[0]
    wanted = np.array(
        [
            row
            for row in range(min(count, upto))
            if row not in erased and (allowed is None or (row < len(allowed) and allowed[row]))
        ],
        dtype=np.int64,
    )
    cosines = index.scores(query, wanted)
    order = np.lexsort((wanted, -cosines))[:k]
    rows, found = index.search(query, allowed=allowed, upto=upto, k=k)
    assert wanted[order].tolist() == rows.tolist()
    assert cosines[order].tobytes() == found.tobytes()


@given(st.integers(1, 40), st.data())
def test_what_comes_later_moves_no_bit_of_an_earlier_answer(count: int, data: st.DataObject) -> None:
    upto = data.draw(st.integers(1, count))
    vectors, query = unit(count), unit(1, 9)[0]
    then = made(vectors[:upto]).search(query, allowed=None, upto=upto, k=5)
    now = made(vectors).search(query, allowed=None, upto=upto, k=5)
    assert then[0].tolist() == now[0].tolist()
    assert then[1].tobytes() == now[1].tobytes()


def test_rows_may_come_late_in_any_order_or_never() -> None:
    vectors = unit(3)
    index = made(vectors, [5, 2, 9])
    assert index.missing(12).tolist() == [0, 1, 3, 4, 6, 7, 8, 10, 11]
    rows, _ = index.search(vectors[0], allowed=None, upto=100, k=10)
    assert {5, 2, 9} == set(rows.tolist())
    assert rows[0] == 5
    assert np.isnan(index.scores(vectors[0], np.array([2, 3, 99]))).tolist() == [False, True, True]


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.integers(0, 12)), max_size=30))
def test_what_is_missing_is_what_neither_came_nor_was_erased(steps: list[tuple[int, bool, int]]) -> None:
    index, known, one = VectorIndex(DIM), set[int](), unit(1)
    for row, comes, upto in steps:
        if comes:
            index.put([row], one)
        else:
            index.erase(row)
        known.add(row)
        assert [other for other in range(upto) if other not in known] == index.missing(upto).tolist()


@pytest.mark.parametrize("words", [1, 3, 4, 12])
def test_signs_that_differ_are_counted_whatever_type_has_room_for_them(words: int) -> None:
    bits = np.random.default_rng(words).integers(0, 1 << 64, (words, 500), dtype=np.uint64)
    bits[:, 0], bits[:, 1], asked = 0, ~np.uint64(0), np.zeros(words, dtype=np.uint64)
    differing = _vectors._differing(bits, asked)
    assert [int(n).bit_count() for n in bits[0]] == differing.tolist() if words == 1 else 64 * words == differing[1]
    assert sum(int(n).bit_count() for n in bits[:, 7]) == differing[7]
    wanted = np.arange(500) % 2 == 1
    _vectors._leave_out(differing, wanted, 250)
    assert wanted[differing <= _vectors._bound(differing, 250)].all()
    assert 250 == np.count_nonzero(differing <= _vectors._bound(differing, 250))
    assert 250 == np.count_nonzero(differing <= _vectors._bound(differing, 499))


@pytest.mark.parametrize("dim", [384, 1024])
def test_candidates_by_half_of_the_signs_are_wanted_ones_and_hold_the_nearest(
    dim: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_vectors, "SIGNS_FROM", 100)
    monkeypatch.setattr(_vectors, "HALVED_FROM", 1_000)
    vectors = np.random.default_rng(dim).standard_normal((5_000, dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = VectorIndex(dim)
    index.put(np.arange(5_000), vectors)
    for allowed in (np.ones(5_000, dtype=np.bool_), np.arange(5_000) % 2 == 1, np.arange(5_000) >= 4_000):
        for row in np.flatnonzero(allowed)[::200].tolist():
            near, _ = index.search(vectors[row], allowed=allowed, upto=5_000, k=20)
            assert 20 == len(near)
            assert row == near[0]
            assert allowed[near].all()


def test_an_erased_row_is_zero_and_takes_no_late_vector() -> None:
    vectors = unit(4)
    index = made(vectors)
    index.erase(1)
    index.put([1], vectors[1:2])
    index.erase(7)
    assert not index.take(np.array([1, 50])).any()
    np.testing.assert_allclose(vectors[2], index.take(np.array([2]))[0], atol=1e-3)
    assert index.missing(8).tolist() == [4, 5, 6]
    assert 1 not in index.search(vectors[1], allowed=None, upto=8, k=8)[0]


def test_the_better_match_erased_leaves_the_other_one() -> None:
    vectors = unit(2)
    index = made(vectors)
    index.erase(0)
    assert index.search(vectors[0], allowed=None, upto=2, k=1)[0].tolist() == [1]


def test_other_dimensions_are_refused() -> None:
    with pytest.raises(BadArgument, match="expected shape"):
        VectorIndex(DIM + 1).put([0], unit(1))
    with pytest.raises(BadArgument, match="expected shape"):
        VectorIndex(DIM + 1).search(unit(1)[0], allowed=None, upto=1, k=1)


@pytest.fixture
def graphed(monkeypatch: pytest.MonkeyPatch) -> VectorIndex:
    monkeypatch.setattr(_vectors, "GRAPH_FROM", 500)
    index = made(unit(600))
    build(index)
    return index


def build(index: VectorIndex) -> None:
    assert index.wants_graph
    for work in index.building():
        work()


def test_no_graph_is_built_below_its_size() -> None:
    assert not made(unit(10)).wants_graph


def exact(index: VectorIndex, query: NDArray[np.float32], rows: NDArray[np.int64], k: int) -> list[int]:
    best: list[int] = rows[np.lexsort((rows, -index.scores(query, rows)))][:k].tolist()
    return best


def test_the_graph_gives_the_exact_cosines_and_nearly_always_the_exact_rows(graphed: VectorIndex) -> None:
    hits = 0
    for query in unit(50, 3):
        rows, cosines = graphed.search(query, allowed=None, upto=600, k=10)
        assert graphed.scores(query, rows).tobytes() == cosines.tobytes()
        hits += len(set(rows.tolist()) & set(exact(graphed, query, np.arange(600), 10)))
    assert hits >= 490


def test_rows_that_came_after_the_graph_are_found_too(graphed: VectorIndex) -> None:
    late = unit(100, 77)
    graphed.put(np.arange(600, 700), late)
    assert graphed.search(late[3], allowed=None, upto=700, k=1)[0][0] == 603
    build(graphed)
    assert graphed._graph is not None
    assert graphed._graph.size == 700
    assert graphed.search(late[3], allowed=None, upto=700, k=1)[0][0] == 603


def walked(graph: NeighbourGraph, query: NDArray[np.float32], k: int) -> None:
    pytest.fail(f"a walk of {graph} for {k} finds too few near {query}")


def test_few_wanted_rows_and_the_past_are_searched_without_the_graph(
    graphed: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NeighbourGraph, "nearest", walked)
    query = unit(1, 5)[0]
    allowed = np.arange(600) % 5 == 0
    assert graphed.search(query, allowed=allowed, upto=600, k=10)[0].tolist() == exact(
        graphed, query, np.flatnonzero(allowed), 10
    )
    assert graphed.search(query, allowed=None, upto=599, k=10)[0].tolist() == exact(graphed, query, np.arange(599), 10)


def test_what_changes_while_a_graph_is_built_is_so_in_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_vectors, "GRAPH_FROM", 500)
    monkeypatch.setattr(_vectors, "_BUILT_AT_ONCE", 100)
    vectors, others = unit(600), unit(600, 9)
    index = made(vectors)
    for step, work in enumerate(index.building()):
        # Of a part that is in, of the one that is being put in, and of one to come.
        for row in (100 * step - 50, 100 * step + 50, 100 * step + 150):
            if 0 <= row < 600:
                change(index, row, others) if step % 2 else index.erase(row)
        work()
    graph = index._graph
    assert graph is not None
    kept = graph_bytes(graph)
    for row in range(600):
        now = index._floats(np.array([row])).tobytes()
        assert bool(graph.holds(600)[row]) is bool(index._present[row])
        assert not index._present[row] or now in kept
        before = _vectors._on_grid(vectors[[row]]).tobytes()
        assert now == before or before not in kept


def change(index: VectorIndex, row: int, vectors: NDArray[np.float32]) -> None:
    index.put([row], vectors[[row]])


def graph_bytes(graph: NeighbourGraph) -> bytes:
    state = cast("tuple[dict[str, NDArray[np.int8]]]", graph._index.__getstate__())
    return state[0]["data_level0"].tobytes()


def test_erasing_overwrites_the_graph_too(graphed: VectorIndex) -> None:
    vector = unit(600)[123]
    graph = graphed._graph
    assert graph is not None

    def stored() -> bytes:
        return graph_bytes(graph)

    kept = graphed._matrix[123].tobytes()
    assert kept in stored()
    graphed.erase(123)
    assert kept not in stored()
    assert 123 not in graphed.search(vector, allowed=None, upto=600, k=600)[0]
    assert len(graphed.search(vector, allowed=None, upto=600, k=600)[0]) == 599
    graphed.put([123], vector.reshape(1, DIM))
    assert kept not in stored()
