"""A table answers the same whether its records were saved, came since, or changed since."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.projections import PlainSections
from muniment.projections._tables import Scopes, Shape, Table, _packed, _unpacked


class Thing(msgspec.Struct, array_like=True):
    seq: int
    scope: str
    keys: tuple[int, ...]
    state: int = 0


class _Tables:
    """A table that is saved now and then, beside a list that is not."""

    def __init__(self) -> None:
        self.scopes = Scopes()
        self.table: Table[Thing] = Table(_shape(self.scopes), self.scopes)
        self.plain: list[Thing] = []

    def add(self, scope: str, keys: tuple[int, ...]) -> None:
        seq = self.plain[-1].seq + 1 if self.plain else 1
        self.scopes.number(scope)
        for things in (self.table.fresh, self.plain):
            things.append(Thing(seq, scope, keys))

    def save(self) -> None:
        sections, count = PlainSections(self.table.sections()), len(self.table)
        names = self.scopes.saved()
        self.scopes = Scopes()
        self.scopes.load(names)
        self.table = Table(_shape(self.scopes), self.scopes)
        self.table.load(sections, count)

    def change(self, which: int) -> None:
        if not self.plain:
            return
        wanted = self.plain[which % len(self.plain)]
        wanted.state += 1
        for thing in self.table.fresh:
            if thing.seq == wanted.seq:
                thing.state += 1
        for number in self.table.live_numbers().tolist():
            found = self.table.at(number)
            if found.seq == wanted.seq:
                found.state += 1
                self.table.change(number, found)

    def close(self, scope: str) -> None:
        self.table.close_scope(self.scopes.close(scope), scope, lambda thing: thing.scope)
        self.plain = [thing for thing in self.plain if thing.scope != scope]


def _shape(scopes: Scopes) -> Shape[Thing]:
    return Shape(
        name="things",
        decode=msgspec.msgpack.Decoder(Thing).decode,
        numbers={"seq": lambda t: t.seq, "scope": lambda t: scopes.number(t.scope)},
        keys={"any": lambda t: set(t.keys)},
    )


scope = st.sampled_from(["a", "b", "c"])
steps = st.lists(
    st.tuples(st.just("add"), scope, st.lists(st.integers(0, 4), max_size=3).map(tuple))
    | st.tuples(st.just("change"), st.integers(0, 50))
    | st.tuples(st.just("close"), scope)
    | st.tuples(st.just("save")),
    max_size=40,
)


@given(steps=steps)
@settings(max_examples=300, deadline=None)
def test_a_table_is_the_list_of_its_records_wherever_they_lie(steps: list[tuple[object, ...]]) -> None:
    made = _Tables()
    for verb, *rest in steps:
        getattr(made, str(verb))(*rest)

    assert made.plain == list(made.table)
    assert len(made.plain) == len(made.table)
    assert b"".join(map(msgspec.msgpack.encode, made.plain)) == b"".join(made.table.pieces())
    for key in range(5):
        fresh = [thing for thing in made.table.fresh if key in thing.keys]
        assert [thing for thing in made.plain if key in thing.keys] == made.table.find("any", key) + fresh


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300), max_size=50))
def test_columns_come_back_whatever_numbers_they_hold(numbers: list[int]) -> None:
    column = np.array(numbers, np.int64)
    packed = np.frombuffer(b"".join(_packed(column)), np.uint8)

    assert numbers == _unpacked(packed).tolist()


@pytest.mark.parametrize(("span", "width"), [(0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4), (2**32, 8)])
def test_a_column_takes_no_more_bytes_than_its_numbers_are_apart(span: int, width: int) -> None:
    column = np.array([2**60, 2**60 + span, 2**60], np.int64)

    assert 32 + 3 * width == sum(map(len, _packed(column)))


def test_a_column_that_ascends_takes_no_more_bytes_than_its_steps_are_apart() -> None:
    column = 2**60 + np.cumsum(np.arange(2_000) % 250)

    assert 32 + 2_000 == sum(map(len, _packed(column)))
