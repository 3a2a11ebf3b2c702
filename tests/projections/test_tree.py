"""The tree projection: the root over all events, however they came in."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.events import (
    NO_SLOT,
    Batch,
    Digest,
    Event,
    EventHeader,
    Head,
    Location,
    SequenceGap,
    read_records,
    tree_root,
)
from muniment.projections import Tree

GROUPS = st.lists(st.integers(1, 9), min_size=1, max_size=12)


def _record(seq: int) -> Digest:
    return Digest(seq.to_bytes(32))


def _head(seq: int) -> Head:
    return Head(bytes(16), seq, _record(seq), 1, 128 + seq, seq, 0)


def _batch(first: int, count: int) -> Batch:
    events = [
        Event(
            EventHeader(1, 2, 0, seq, seq, bytes(16), 0, NO_SLOT, bytes(12), bytes(16), bytes(16), 0, 0),
            None, Location(1, 0, 0), _record(seq), b"",
        )
        for seq in range(first, first + count)
    ]  # fmt: skip
    return Batch(events, _head(first + count - 1))


def _batches(groups: Sequence[int]) -> list[Batch]:
    return [_batch(1 + sum(groups[:number]), count) for number, count in enumerate(groups)]


def _root(size: int) -> bytes:
    return tree_root(size, read_records([_record(seq) for seq in range(1, size + 1)]))


@given(groups=GROUPS)
def test_the_root_is_that_of_the_log_after_every_batch(groups: list[int]) -> None:
    asked, unasked = Tree(), Tree()
    for batch in _batches(groups):
        asked.apply(batch)
        unasked.apply(batch)

        assert _root(batch.head.seq) == asked.root()
    assert asked.digest() == unasked.digest()


@given(groups=GROUPS, saved=st.integers(0, 11))
def test_a_saved_tree_goes_on_from_the_head_that_the_log_confirms(groups: list[int], saved: int) -> None:
    batches = _batches(groups)
    until = saved % len(batches)
    before, after = Tree(), Tree()
    for batch in batches[: until + 1]:
        before.apply(batch)
    assert after.load(before.save(), batches[until].head)
    for batch in batches:
        after.apply(batch)

    assert _root(sum(groups)) == after.root()


@given(groups=GROUPS)
def test_a_saved_tree_does_not_fit_a_log_that_ends_otherwise(groups: list[int]) -> None:
    tree, other = Tree(), Tree()
    for batch in _batches(groups):
        tree.apply(batch)
    size = sum(groups)
    forged = Head(bytes(16), size, bytes(31) + b"\xff", 1, 128, size, 0)

    assert other.load(tree.save(), forged)
    assert _root(size) != other.root()
    assert not other.load(tree.save(), _head(size + 1))
    assert not other.load(tree.save() + b"\0", _head(size))


@given(groups=GROUPS, size=st.integers(1, 108))
def test_a_watched_root_is_kept_as_it_goes_by(groups: list[int], size: int) -> None:
    tree = Tree()
    tree.watch(size)
    for batch in _batches(groups):
        tree.apply(batch)

    assert (_root(size) if size <= sum(groups) else None) == tree.root_at(size)


def test_what_was_applied_is_passed_over_and_a_gap_is_refused() -> None:
    tree = Tree()
    tree.apply(_batch(1, 3))
    tree.apply(_batch(1, 3))

    assert 3 == tree.seq
    with pytest.raises(SequenceGap, match="expected event 4, got 6"):
        tree.apply(_batch(6, 1))
