"""A recall that is limited finds what is left of an unlimited one, whatever came, went or was saved in between."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from muniment import Hit, Session
from muniment.errors import BadArgument
from tests.worlds import SCOPE, START, USER, World

KINDS = ("note", "fact", "chat")
TAGS = ("red", "blue", "green")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in ("_segments", "_recall", "_bundle"):
        monkeypatch.setattr(f"muniment.projections.{module}.SEGMENT_BITS", 3)
    return tmp_path / "store"


def _day(number: int) -> datetime:
    return START - timedelta(days=number)


def _fill(session: Session, start: int, end: int) -> list[str]:
    items: list[dict[str, object]] = [
        {
            "content": f"quince {n}",
            "kind": KINDS[n % 3],
            "tags": TAGS[: n % 4],
            "metadata": {"n": n % 5, "even": n % 2 == 0, "parts": [n % 3]} if n % 7 else {},
            "valid_from": _day(n % 11),
        }
        for n in range(start, end)
    ]
    return [receipt.id for receipt in session.remember_many(items)]


def _check(session: Session) -> None:
    every = session.recall("quince", k=1000)
    assert every
    asked: list[tuple[dict[str, object], list[Hit]]] = [
        ({"kinds": ["fact", "chat"]}, [hit for hit in every if hit.kind in ("fact", "chat")]),
        ({"kinds": []}, []),
        ({"tags": ["red", "blue"]}, [hit for hit in every if {"red", "blue"}.issubset(hit.tags)]),
        ({"where": {"n": 2}}, [hit for hit in every if hit.metadata.get("n") == 2]),
        ({"where": {"even": True}}, [hit for hit in every if hit.metadata.get("even") is True]),
        ({"where": {"even": 1}}, []),
        ({"where": {"n": 4, "parts": [1]}}, [h for h in every if {"n": 4, "parts": [1]}.items() <= h.metadata.items()]),
        ({"since": _day(7)}, [hit for hit in every if hit.valid_from >= _day(7)]),
        ({"until": _day(3)}, [hit for hit in every if hit.valid_from < _day(3)]),
        (
            {"kinds": ["note"], "since": _day(9), "until": _day(2), "tags": ["red"]},
            [h for h in every if h.kind == "note" and _day(9) <= h.valid_from < _day(2) and "red" in h.tags],
        ),
    ]  # fmt: skip
    for filters, expected in asked:
        found = session.recall("quince", k=1000, **filters)  # type: ignore[arg-type]  # drawn by name
        assert sorted(hit.id for hit in expected) == sorted(hit.id for hit in found), filters


def test_filters_find_what_is_left_of_everything(path: Path) -> None:
    world = World(path)
    ids = _fill(world.speaker(USER), 0, 30) + _fill(world.speaker(USER, "acme/other"), 30, 45)
    reads = ("acme/other",)
    _check(world.speaker(USER, reads=reads))
    _fill(world.speaker(USER), 45, 52)
    world.speaker(USER).supersede(ids[3], "quince instead", reason="it changed")
    _check(world.speaker(USER, reads=reads))
    for n in (5, 29, 17):
        world.speaker(USER).forget(ids[n], reason="asked")
        _check(world.speaker(USER, reads=reads))
    world.reopen()
    _check(world.speaker(USER, reads=reads))
    ids += _fill(world.speaker(USER), 52, 60)
    world.speaker(USER).forget(ids[-1], reason="asked")
    _check(world.speaker(USER, reads=reads))
    assert world.store.rebuild().ok
    _check(world.speaker(USER, reads=reads))
    gone = world.ann("acme/other").forget_scope(reason="asked")
    _check(world.speaker(USER, reads=reads))
    assert gone.id is not None
    world.ann("acme/other").lift(gone.id, reason="begun anew")
    _fill(world.speaker(USER, "acme/other"), 60, 70)
    _check(world.speaker(USER, reads=reads))
    world.reopen()
    _check(world.speaker(USER, reads=reads))
    world.store.close()


def test_a_filter_by_instants_sees_all_of_a_record_that_changed(path: Path) -> None:
    """A record that was saved and changed since is limited by what it said, like any other."""
    world = World(path)
    user = world.speaker(USER)
    ids = _fill(user, 0, 22)
    world.reopen()
    user = world.speaker(USER)
    user.retire(ids[4], reason="over")

    found = user.recall("quince", k=1000, status=("active", "retired"), since=_day(4), until=_day(3))

    assert {ids[4], ids[15]} == {hit.id for hit in found}
    assert {ids[15]} == {hit.id for hit in user.recall("quince", k=1000, since=_day(4), until=_day(3))}
    world.store.close()


def test_i05_a_forgotten_memory_leaves_no_tag_and_no_metadata_to_filters(path: Path) -> None:
    world = World(path)
    user = world.speaker(USER)
    _fill(user, 0, 20)
    secret = user.remember("a quince aside", tags=["secrettag"], metadata={"n": "secretvalue", "only": 1})
    assert [secret.id] == [hit.id for hit in user.recall("quince", tags=["secrettag"])]
    assert [secret.id] == [hit.id for hit in user.recall("quince", where={"n": "secretvalue", "only": 1})]
    assert {"secrettag", "secretvalue"} == {word for word in _kept_for_filters(world) if "secret" in word}

    user.forget(secret.id, reason="asked")

    assert [] == [word for word in _kept_for_filters(world) if "secret" in word]
    assert [] == user.recall("quince", tags=["secrettag"])
    assert [] == user.recall("quince", where={"n": "secretvalue"})
    with pytest.raises(BadArgument, match="only"):
        user.recall("quince", where={"only": 1})
    world.store.close()


def _kept_for_filters(world: World) -> list[str]:
    partition = world.store._engine.state.recall.partition(SCOPE)
    assert partition is not None
    index = partition.words._facets
    assert index._tags is not None
    values = [str(value) for column in index._keys.values() for value in column._values.values()]
    return values + list(index._tags._by_tag) + list(index._tags._tags.values())
