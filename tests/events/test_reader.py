"""A reader gives each batch once, whole, in order, with its envelopes open."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment.events._codec import chain_hash
from muniment.events._errors import KeyMissing
from muniment.events._log import Log
from muniment.events._reader import Reader
from muniment.events._seal import Sealer

from .faults import HastyDisk
from .stores import Bare, make, memory


@pytest.fixture
def store(tmp_path: Path) -> Bare:
    make(tmp_path, HastyDisk())
    store = Bare(tmp_path, HastyDisk())
    store.remember("red", "green")
    store.remember("blue")
    store.close()
    return store


def reader_of(store: Bare) -> Reader:
    return Reader(Log(store.path / "log", store.log.head.log_id, HastyDisk(), read_only=True), store.sealer)


def test_batches_come_once_whole_and_in_order(store: Bare) -> None:
    reader = reader_of(store)
    batches = list(reader.read_new())
    assert [[1, 2, 3], [4]] == [[event.seq for event in batch.events] for batch in batches]
    assert store.register.events == [event for batch in batches for event in batch.events]
    assert batches[-1].head == reader.head
    assert [] == list(reader.read_new())


def test_i02_each_event_carries_its_chain_hash(store: Bare) -> None:
    reader = reader_of(store)
    link = reader.log.start.chain
    for batch in reader.read_new():
        for event in batch.events:
            link = chain_hash(link, event.raw)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # a head's chain is a digest
            assert link == event.hash
        assert link == batch.head.chain


def test_bodies_are_opened_in_hand_and_by_place(store: Bare) -> None:
    reader = reader_of(store)
    events = [event for batch in reader.read_new() for event in batch.events]
    assert [None, "red", "green", "blue"] == [getattr(reader.open_body(event), "content", None) for event in events]
    assert memory("blue").body == reader.read_body(events[-1].where)


def test_i05_a_log_without_its_keys_cannot_be_read(store: Bare, tmp_path: Path) -> None:
    class Others:
        def slot_key(self, slot: int) -> bytes:
            return bytes(32)

        def is_shredded(self, slot: int) -> bool:
            return False

    log = Log(store.path / "log", store.log.head.log_id, HastyDisk(), read_only=True)

    assert [] == list(Reader(log, Sealer(store.log.head.log_id, Others())).read_new())
    with pytest.raises(KeyMissing, match="another key"):
        raise log.damage or AssertionError("no damage")
