"""Rows whose signs are known and whose vectors are still sealed: found as if all were here, opened when looked at."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from muniment.projections import _vectors
from muniment.projections._vector_file import rounded
from muniment.projections._vectors import VectorIndex

DIM = 64
FEW = 40
Rows = NDArray[np.int64]
Floats = NDArray[np.float32]


class Kept:
    """Vectors by key slot, of which some do not open; counts what was opened."""

    def __init__(self, vectors: Floats, lost: set[int] | None = None) -> None:
        self.vectors, self.lost, self.opened = vectors, lost or set[int](), list[int]()

    def take(self, slots: Rows) -> Iterator[tuple[Rows, Floats]]:
        """Yield what opens, in two parts."""
        for part in np.array_split(np.arange(len(slots)), 2):
            found = np.array([at for at in part.tolist() if int(slots[at]) - 1_000 not in self.lost], np.int64)
            self.opened += (slots[found] - 1_000).tolist()
            yield found, self.vectors[slots[found] - 1_000]


def drawn(count: int, seed: int) -> Floats:
    vectors = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)
    return rounded(np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32))


def lent(vectors: Floats, rows: Rows, kept: Kept) -> VectorIndex:
    """Return an index that knows the signs of some rows, and holds the vectors of the others."""
    index, others = VectorIndex(DIM), np.setdiff1d(np.arange(len(vectors)), rows)
    index.make_room(len(vectors))
    index.put(others, vectors[others])
    index.put_sealed(rows, rows + 1_000, _vectors._signs(vectors[rows]), kept.take)
    return index


def whole(vectors: Floats, without: set[int]) -> VectorIndex:
    index = VectorIndex(DIM)
    index.make_room(len(vectors))
    rows = np.array([row for row in range(len(vectors)) if row not in without], np.int64)
    index.put(rows, vectors[rows])
    return index


@given(st.integers(1, 120), st.integers(0, 3), st.integers(1, 30), st.data())
def test_answers_are_those_of_vectors_that_are_all_here(count: int, seed: int, k: int, data: st.DataObject) -> None:
    sets = st.sets(st.integers(0, count - 1))
    sealed, lost, erased, put = (data.draw(sets, label=name) for name in ("sealed", "lost", "erased", "put"))
    allowed = data.draw(st.none() | st.lists(st.booleans(), min_size=count, max_size=count), label="allowed")
    flags = None if allowed is None else np.array(allowed, dtype=np.bool_)
    vectors, query = drawn(count, seed), drawn(1, seed + 7)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_vectors, "SIGNS_FROM", FEW)
        patch.setattr(_vectors, "SIGNED_CANDIDATES", FEW)
        index = lent(vectors, np.array(sorted(sealed), np.int64), Kept(vectors, lost))
        plain = whole(vectors, set())
        for row in sorted(put):
            index.put([row], vectors[row : row + 1])
        for each in (index, plain):
            for row in sorted(erased):
                each.erase(row)
        gone = (sealed & lost) - put - erased
        rows, cosines = index.search(query, allowed=flags, upto=count, k=k)
        assert set(rows.tolist()).isdisjoint(gone | erased)
        if not gone:
            wanted, scored = plain.search(query, allowed=flags, upto=count, k=k)
            assert rows.tolist() == wanted.tolist()
            assert cosines.tobytes() == scored.tobytes()
        every = np.arange(count)
        found, exact = index.scores(query, every), plain.scores(query, every)
        assert np.isnan(found[sorted(gone)]).all()
        others = np.setdiff1d(every, sorted(gone))
        assert found[others].tobytes() == exact[others].tobytes()
        assert set(index.missing(count).tolist()) == gone
        assert 0 == index.still_sealed
        # A row that turned out to have no vector is as one that never had any.
        wanted, scored = whole(vectors, gone | erased).search(query, allowed=flags, upto=count, k=k)
        rows, cosines = index.search(query, allowed=flags, upto=count, k=k)
        assert rows.tolist() == wanted.tolist()
        assert cosines.tobytes() == scored.tobytes()


def test_only_what_comes_near_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_vectors, "SIGNS_FROM", FEW)
    vectors = drawn(2_000, 1)
    kept = Kept(vectors)
    index = lent(vectors, np.arange(2_000), kept)

    rows, _ = index.search(vectors[77], allowed=None, upto=2_000, k=5)

    assert 77 == rows[0]
    assert 5 == len(rows)
    assert len(kept.opened) == len(set(kept.opened)) == 2_000 - index.still_sealed < 500


def test_nothing_is_opened_twice_and_all_of_it_in_steps() -> None:
    vectors = drawn(400, 2)
    kept = Kept(vectors)
    index = lent(vectors, np.arange(400), kept)
    for steps, _ in enumerate(index.unsealing(), 1):
        assert len(kept.opened) == min(400, steps * _vectors._UNSEALED_AT_ONCE)

    assert list(range(400)) == sorted(kept.opened)
    assert 0 == index.still_sealed
    assert index.take(np.arange(400)).tobytes() == whole(vectors, set()).take(np.arange(400)).tobytes()
    assert 400 == len(kept.opened)


def test_what_was_erased_while_sealed_is_not_opened_and_takes_no_signs_again() -> None:
    vectors = drawn(50, 3)
    kept = Kept(vectors)
    index = lent(vectors, np.arange(50), kept)
    index.erase(7)
    index.put_sealed(np.array([7]), np.array([1_007]), _vectors._signs(vectors[7:8]), kept.take)

    rows, _ = index.search(vectors[7], allowed=None, upto=50, k=50)

    assert 7 not in rows.tolist()
    assert 7 not in kept.opened
    assert 0 == index.still_sealed
    assert not index.take(np.array([7])).any()


def test_a_graph_is_built_of_vectors_that_were_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_vectors, "GRAPH_FROM", 100)
    vectors = drawn(300, 4)
    index = lent(vectors, np.arange(300), Kept(vectors, {11}))
    for work in index.building():
        work()

    rows, _ = index.search(vectors[42], allowed=None, upto=300, k=3)

    assert 42 == rows[0]
    assert 299 == (0 if index._graph is None else index._graph.size)
