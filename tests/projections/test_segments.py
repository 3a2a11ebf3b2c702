"""Words, marks and conversations in segments: what they answer does not depend on where the segments end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import muniment
from muniment import Store
from muniment.projections._marks import ASKS, marks_of
from muniment.projections._segments import Fragment, ScopeWords, indexed_text
from muniment.projections._threads import Threads
from muniment.projections._tokens import analyze_query
from muniment.projections._words import PackedWords, WordIndex

SCOPE = "acme/main"
SAID = ("the quince is ripe", "shall we pick it?", "yes, the ripe quince on Monday", "note: no jam", "quince quince")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in ("_segments", "_recall", "_bundle"):
        monkeypatch.setattr(f"muniment.projections.{module}.SEGMENT_BITS", 3)
    return tmp_path / "store"


def opened(path: Path) -> Store:
    return muniment.open(path, create=not path.exists(), model="none")


def fill(store: Store, n: int, start: int = 0) -> list[str]:
    items = [{"content": f"{SAID[i % 5]} {i}", "source": f"talk:{i % 3}/{i}"} for i in range(start, start + n)]
    return [one.id for one in store.session(scope=SCOPE, actor="user").remember_many(items)]


def words_of(store: Store) -> ScopeWords:
    recall = store._engine.state.recall
    recall.absorb()
    partition = recall.partition(SCOPE)
    assert partition is not None
    return partition.words


def whole(store: Store) -> tuple[WordIndex, Threads]:
    """Return one index and one set of links over all rows, made from the log alone."""
    state, index, threads = store._engine.state, WordIndex(), Threads()
    bodies = [None if m.erasure else state.recall._bodies.read_again(m.place) for m in state.register.rows[SCOPE]]
    index.add_many(
        ["" if body is None else indexed_text(body) for body in bodies],
        [[] if body is None else marks_of(body) for body in bodies],
    )
    for row, body in enumerate(bodies):
        if body is None:
            index.erase(row)
    told = [
        (row, b.source.rpartition("/")[0]) for row, b in enumerate(bodies) if b is not None and b.source is not None
    ]
    threads.extend(len(bodies), told)
    return index, threads


def check(store: Store) -> None:
    words, (index, threads) = words_of(store), whole(store)
    rows = np.arange(index.rows, dtype=np.int64)
    assert index.lengths(rows).tolist() == words.lengths(rows).tolist()
    assert index.lengths(rows[::-3]).tolist() == words.lengths(rows[::-3]).tolist()
    for upto in (0, 1, 8, 13, index.rows):
        for term in (*analyze_query("quince ripe jam nothing").terms, ASKS):
            assert index.holders(term, upto).tolist() == words.holders(term, upto).tolist()
    assert threads.before(rows).tolist() == words.threads.before(rows).tolist()
    assert threads.after(rows).tolist() == words.threads.after(rows).tolist()


def test_segments_answer_as_one_index_does_whether_live_loaded_or_corrected(path: Path) -> None:
    with opened(path) as store:
        ids = fill(store, 30)
        check(store)
        assert any(isinstance(segment.words, PackedWords) for segment in words_of(store)._segments.values())
        fill(store, 7, 30)
        check(store)
        store.session(scope=SCOPE, actor="user").forget(ids[12], reason="asked")
        check(store)
    with opened(path) as store:
        store.session(scope=SCOPE, actor="user").forget(ids[3], reason="asked before anything was loaded")
        check(store)
        store.session(scope=SCOPE, actor="user").forget(ids[29], reason="asked")
        fill(store, 5, 37)
        check(store)
        digests = store.digests()
        assert store.rebuild().ok
        check(store)
        assert digests == store.digests()


def test_a_forgotten_row_leaves_no_conversation_behind(path: Path) -> None:
    with opened(path) as store:
        session = store.session(scope=SCOPE, actor="user")
        fill(store, 9)
        only = session.remember("a word aside", source="secretplace/1")
        words = words_of(store)
        assert "secretplace" in words.threads._last
        session.forget(only.id, reason="asked")
        assert "secretplace" not in words_of(store).threads._last
        assert all(facets.thread != "secretplace" for _, facets in words._facets_from(0))


def test_long_texts_are_taken_in_pieces_and_answer_as_if_taken_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a segment's texts, and all their tokens, would be in memory at once."""
    monkeypatch.setattr("muniment.projections._segments._TAKEN_AT_ONCE", 40)
    taken: list[int] = []
    add = WordIndex.add_many

    def count(index: WordIndex, texts: Sequence[str], marks: Sequence[Sequence[str]] = ()) -> None:
        taken.append(sum(map(len, texts)))
        add(index, texts, marks)

    with opened(path) as store:
        fill(store, 30)
        with monkeypatch.context() as counting:
            counting.setattr(WordIndex, "add_many", count)
            words_of(store)
        check(store)
    assert max(taken) < 40 + max(map(len, SAID)) + len(" 30")
    assert len(taken) > 10


def test_closing_lets_each_chunk_of_words_go_once_it_is_saved(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise closing after a large import would gather the words of all of it."""
    loaded: list[int] = []
    fragment = ScopeWords.fragment

    def count(words: ScopeWords, chunk: int) -> Fragment | None:
        found = fragment(words, chunk)
        loaded.append(len(words._segments))
        return found

    monkeypatch.setattr(ScopeWords, "fragment", count)
    with opened(path) as store:
        fill(store, 40)
    assert len(loaded) > 4
    assert {1} == set(loaded)
    with opened(path) as store:
        check(store)
