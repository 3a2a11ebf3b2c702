"""Saved signs spare an opening most of the vectors, and are never more than a copy: answers do not depend on them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from muniment import Store
from muniment.projections import Snapshots, _signs, _vectors
from tests.erasure.stores import AGENT, SCOPE, create_store, open_store

COUNT = 600
WORDS = ("harbour", "granite", "velvet", "turnip", "quartz", "lantern", "saffron", "pewter")


@pytest.fixture(autouse=True)
def a_few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a scope of a hundred be a large one."""
    for module in (_vectors, _signs):
        monkeypatch.setattr(module, "SIGNS_FROM", 50)
    monkeypatch.setattr(_vectors, "SIGNED_CANDIDATES", 10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    where = tmp_path / "store"
    create_store(where)
    with open_store(where) as store:
        fill(store, SCOPE, COUNT)
        store.embed()
    return where


def fill(store: Store, scope: str, count: int) -> list[str]:
    items = [
        {"content": f"{WORDS[n % 8]} {WORDS[n // 8 % 8]} {'abcdefghijkl'[n % 12] * (n % 7)} {n}"} for n in range(count)
    ]
    return [receipt.id for receipt in store.session(scope=scope, actor=AGENT).remember_many(items)]


def answers(store: Store, scope: str = SCOPE) -> list[list[tuple[str, float, float | None]]]:
    session = store.session(scope=scope, actor=AGENT)
    return [[(hit.id, hit.score, hit.dense_score) for hit in session.recall(word, k=3)] for word in WORDS]


def opened(store: Store, scope: str = SCOPE) -> int:
    """Return how many vectors the scope has opened so far."""
    partition = store._engine.state.recall.partition(scope)
    assert partition is not None
    assert partition.vectors is not None
    return len(partition.rows) - len(partition.erased) - partition.vectors.still_sealed


def saved(path: Path) -> list[Path]:
    return sorted((path / "projections").glob("signs-*.snap"))


def without_waiting(store: Store) -> None:
    """Let no thread open what no question has asked for."""
    store._engine.dense._embeds_beside = False


def test_an_opening_gives_the_same_answers_and_opens_what_they_come_near(path: Path) -> None:
    with open_store(path) as store:
        without_waiting(store)
        store.session(scope=SCOPE, actor=AGENT).recall("granite velvet", k=1)
        few, found = opened(store), answers(store)
    assert 1 == len(saved(path))
    saved(path)[0].unlink()
    with open_store(path) as store:
        assert found == answers(store)
        assert opened(store) == COUNT
    assert few < COUNT / 2


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [Path.unlink, cut, empty])
def test_lost_or_damaged_signs_are_passed_over_and_saved_again(path: Path, damage: Callable[[Path], object]) -> None:
    with open_store(path) as store:
        before = answers(store)
    damage(saved(path)[0])
    with open_store(path) as store:
        assert before == answers(store)
        store.session(scope=SCOPE, actor=AGENT).remember("a write, so that closing saves")
    with open_store(path) as store:
        without_waiting(store)
        store.session(scope=SCOPE, actor=AGENT).recall("granite velvet", k=1)
        assert opened(store) < COUNT


def test_what_came_since_is_found_and_joins_them(path: Path) -> None:
    with open_store(path) as store:
        late = store.session(scope=SCOPE, actor=AGENT).remember("zzz zzz zzz").id
    with open_store(path) as store:
        without_waiting(store)
        assert late == store.session(scope=SCOPE, actor=AGENT).recall("zzzz", k=1)[0].id
        few = opened(store)
    assert few < COUNT


def test_a_question_alone_saves_nothing(path: Path) -> None:
    saved(path)[0].unlink()
    with open_store(path) as store:
        answers(store)
    assert [] == saved(path)


def test_scopes_that_nobody_asked_keep_their_signs(path: Path) -> None:
    other = "acme/other"
    with open_store(path) as store:
        fill(store, other, COUNT)
        store.embed()
    with open_store(path) as store:
        answers(store, other)
        store.session(scope=other, actor=AGENT).remember("one more")
        store.embed()
    with open_store(path) as store:
        without_waiting(store)
        for scope in (SCOPE, other):
            store.session(scope=scope, actor=AGENT).recall("granite velvet", k=1)
            assert opened(store, scope) < COUNT


def test_vectors_made_anew_are_not_found_by_the_signs_of_the_old_ones(path: Path) -> None:
    with open_store(path) as store:
        answers(store)
        before = store._engine.dense._file
        assert before is not None
        old = before.identity
        store.rebuild(re_embed=True)
        found = answers(store)
    with open_store(path) as store:
        assert found == answers(store)
        after = store._engine.dense._file
        assert after is not None
        assert old != after.identity


def test_a_replayed_store_is_found_by_signs_too(path: Path) -> None:
    with open_store(path) as store:
        head = store.head.seq
        expected = answers(store)
        store.session(scope=SCOPE, actor=AGENT).remember("harbour harbour harbour")
        past = store.replay(to=head)
        session = past.session(scope=SCOPE, actor=AGENT)
        found = [[(hit.id, hit.score, hit.dense_score) for hit in session.recall(word, k=3)] for word in WORDS]
    assert expected == found


def test_the_rest_is_opened_beside(path: Path) -> None:
    with open_store(path) as store:
        answers(store)
        worker = store._engine.dense._unsealer
        if worker is not None:
            worker.join(timeout=60)
        assert opened(store) == COUNT


def test_what_was_just_written_is_not_looked_for_among_them(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(path) as store:
        store.session(scope="acme/other", actor=AGENT).remember("of another scope, so that kept vectors stay at hand")
        session = store.session(scope=SCOPE, actor=AGENT)
        session.recall("granite velvet", k=1)
        with monkeypatch.context() as patch:
            patch.setattr(Snapshots, "signs", None)
            late = session.remember("zzz zzz zzz").id
            assert late == session.recall("zzzz", k=1)[0].id


def test_a_closed_store_holds_no_file_of_its_vectors_open(path: Path) -> None:
    def held() -> list[str]:
        links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
        return [name for link in links if os.path.exists(link) and (name := os.readlink(link)).startswith(str(path))]

    store = open_store(path)
    without_waiting(store)
    store.session(scope=SCOPE, actor=AGENT).recall("granite velvet", k=1)
    assert [] != [name for name in held() if "vectors-" in name]
    store.close()
    assert [] == held()
