"""A body that was read for its vector is not read again for its words, and outlives no forget."""

from __future__ import annotations

from pathlib import Path

import muniment
from muniment.events import Location, MemoryBody
from muniment.projections._bodies import Bodies

PLACES = [Location(0, n, 1) for n in range(100)]


def test_a_body_is_kept_until_it_is_read_again() -> None:
    read: list[Location] = []

    def read_body(place: Location) -> MemoryBody:
        read.append(place)
        return MemoryBody(content=f"at {place.offset}")

    bodies = Bodies(read_body)
    assert bodies.read(PLACES[1]) is bodies.read_again(PLACES[1])
    assert [PLACES[1]] == read
    assert MemoryBody(content="at 1") == bodies.read_again(PLACES[1])
    assert [PLACES[1], PLACES[1]] == read


def test_few_are_kept_and_none_after_a_forget() -> None:
    bodies = Bodies(lambda place: MemoryBody(content=f"at {place.offset}"))
    for place in PLACES:
        bodies.read(place)
    assert 0 < len(bodies._kept) <= 8
    assert bodies.read(PLACES[-1]) == MemoryBody(content="at 99")
    bodies.forget()
    assert {} == bodies._kept


def test_what_has_no_body_any_more_is_not_kept() -> None:
    bodies = Bodies(lambda _place: None)
    assert bodies.read(PLACES[0]) is None
    assert {} == bodies._kept


def test_a_forget_by_whichever_handle_leaves_none(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "store", create=True, model="none") as store:
        session = store.session(scope="acme/main", actor="user")
        ids = [session.remember(f"quince number {n}").id for n in range(3)]
        partition = store._engine.state.recall.partition("acme/main")
        assert partition is not None
        for memory in partition.rows:
            partition.bodies.read(memory.place)
        assert 3 == len(partition.bodies._kept)
        session.forget(ids[0], reason="asked")
        assert {} == partition.bodies._kept
        partition.bodies.read(partition.rows[1].place)
        with muniment.open(tmp_path / "store", model="none") as other:
            other.session(scope="acme/main", actor="user").forget(ids[2], reason="asked")
        session.recall("quince")
        assert {} == partition.bodies._kept
