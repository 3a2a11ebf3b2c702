"""What was made with something else is made again, and what does not depend on it answers meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from muniment import Store
from muniment._engine import Engine, Options
from muniment._version import VERSION
from muniment.events import find_store
from muniment.projections import Embedder, _dense
from tests.erasure.stores import AGENT, SCOPE, Letters, create_store

MANY = 30


class Pairs(Letters):
    """Another model: it squares what the first one counts."""

    model_id = "pairs"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        squares = np.square(super().embed(texts))
        unit: NDArray[np.float32] = (squares / np.linalg.norm(squares, axis=1, keepdims=True)).astype(np.float32)
        return unit


class Held(Pairs):
    """The same model, which works when it is let."""

    def __init__(self) -> None:
        self.go, self.working = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(texts) > 1:
            self.working.set()
            assert self.go.wait(timeout=30)
        return super().embed(texts)


def opened(path: Path, embedder: Embedder, *, read_only: bool = False) -> Store:
    options = Options(load_embedder=lambda: embedder, read_only=read_only)
    return Store(Engine(find_store(path), options, VERSION), created=False)


def scores(store: Store) -> list[tuple[str, float | None]]:
    hits = store.session(scope=SCOPE, actor=AGENT).recall("the harbour of note 7", k=MANY)
    return [(str(hit.content), hit.dense_score) for hit in hits]


def worker_of(store: Store) -> threading.Thread:
    worker = store._engine.dense._worker
    assert worker is not None
    return worker


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(_dense, "EMBED_WHILE_ASKED", 4)
    monkeypatch.setattr(_dense, "_AT_ONCE", 8)
    path = tmp_path / "store"
    create_store(path)
    with opened(path, Letters()) as store:
        store.session(scope=SCOPE, actor=AGENT).remember_many([{"content": f"note {n} harbour"} for n in range(MANY)])
        assert MANY == store.embed()
    return path


def test_another_model_embeds_beside_while_words_and_beliefs_answer(path: Path) -> None:
    held = Held()
    with opened(path, held) as store:
        session = store.session(scope=SCOPE, actor=AGENT)
        found = session.recall("the harbour of note 7")
        assert "note 7 harbour" == found[0].content
        assert [None] * len(found) == [hit.dense_score for hit in found], "no vector of the other model"
        assert "words only" in found.notes[0]
        worker = worker_of(store)
        assert held.working.wait(timeout=30)
        session.remember("an append does not wait")
        assert session.beliefs() == []
        held.go.set()
        worker.join()

        wanted = Pairs()
        query = wanted.embed_query("the harbour of note 7")
        for content, score in scores(store):
            assert score == pytest.approx(float(wanted.embed([content])[0] @ query), abs=2e-3)


def test_vectors_of_two_models_are_kept_apart(path: Path) -> None:
    with opened(path, Letters()) as store:
        first = scores(store)
    held = Held()
    with opened(path, held) as store:
        scores(store)
        worker = worker_of(store)
        held.go.set()
        worker.join()
        other = scores(store)
    assert 2 == len(list((path / "projections").glob("vectors-*.bin")))
    assert first != other
    with opened(path, Letters()) as store:
        assert (first, 0) == (scores(store), store.embed())
    with opened(path, Pairs()) as store:
        assert (other, 0) == (scores(store), store.embed())


def test_what_was_made_beside_before_the_close_is_kept(path: Path) -> None:
    held = Held()
    store = opened(path, held)
    scores(store)
    worker = worker_of(store)
    assert held.working.wait(timeout=30)
    held.go.set()
    store.close()
    assert not worker.is_alive()
    with opened(path, Pairs()) as store:
        assert store.embed() < MANY


def test_a_reader_makes_nothing_beside(path: Path) -> None:
    with opened(path, Pairs(), read_only=True) as store:
        assert {None} == {score for _, score in scores(store)}
        assert store._engine.dense._worker is None


def test_i05_a_memory_that_is_forgotten_while_it_is_embedded_beside_gets_no_vector(path: Path) -> None:
    held = Held()
    with opened(path, held) as store:
        session = store.session(scope=SCOPE, actor=AGENT)
        gone = next(record for record in session.list(limit=100) if record.content == "note 0 harbour")
        scores(store)
        worker = worker_of(store)
        assert held.working.wait(timeout=30)
        session.forget(gone.id, reason="asked")
        held.go.set()
        worker.join()
    with opened(path, Pairs()) as store:
        store.embed()
        file = store._engine.dense._file
        assert file is not None
        assert bytes.fromhex(gone.id) not in file.ids()
        assert MANY - 1 == len(file.ids())


@pytest.mark.parametrize(("what", "stands"), [("ANALYZER_ID", True), ("NORMAL_FORM", False)])
def test_only_what_depends_on_what_changed_is_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, what: str, *, stands: bool
) -> None:
    """Another analyser makes other words; the register stands as it was saved, and beliefs answer from it at once."""
    with opened(path, Letters()) as store:
        before, digests = scores(store), store.digests()
    monkeypatch.setattr(f"muniment.projections._snapshots.{what}", 9_999)
    with opened(path, Letters()) as store:
        assert stands == (store._engine._saved_at > 0)
        assert stands == (not store._engine.snapshots.chunks())
        assert (before, digests) == (scores(store), store.digests())
    with opened(path, Letters()) as store:
        assert 0 < store._engine._saved_at
        assert store._engine.snapshots.chunks()
        assert store.rebuild(check=True).ok


def test_more_kept_vectors_than_a_question_waits_for_are_opened_beside(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path, Letters()) as store:
        expected = scores(store)
    monkeypatch.setattr(_dense, "OPEN_WHILE_ASKED", 8)
    monkeypatch.setattr(_dense, "_OPENED_AT_ONCE", 7)
    for read_only in (False, True):
        with opened(path, Letters(), read_only=read_only) as store:
            session, dense = store.session(scope=SCOPE, actor=AGENT), store._engine.dense
            with store._engine.mutex:  # nothing can be opened yet
                found = session.recall("the harbour of note 7")
                assert ("words only: the vectors are being opened",) == found.notes
                assert "note 7 harbour" == found[0].content
            assert dense._opener is not None
            dense._opener.join()

            assert expected == scores(store)
            assert not session.recall("the harbour of note 7").notes
            assert (set[object](), None) == (set(dense._unsaved), dense._worker), "none was made again"
