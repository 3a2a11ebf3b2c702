"""An index of tags and metadata finds what reading every row's facets finds, and keeps nothing of an erased row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from muniment.events import format_data, parse_data
from muniment.projections import Facets
from muniment.projections._facet_index import FacetIndex, is_same

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
VALUES: tuple[object, ...] = (
    1,
    1.0,
    True,
    False,
    0,
    None,
    "1",
    b"1",
    "word",
    1 << 70,
    [1],
    [True],
    [[1], {"a": 1}],
    {"a": 1},
    {"a": True},
    NOON,
    NOON.astimezone(timezone(timedelta(hours=5))),
    NOON.replace(tzinfo=None),
    date(2026, 3, 1),
)
ASKED: tuple[object, ...] = (*VALUES, Decimal(1), float("nan"), (1,), "nothing has this")
TAGS, KEYS = ("red", "blue", "a,b"), ("n", "m", "nobody")


def _facets_of(tags: list[str], data: dict[str, object]) -> Facets:
    return Facets(tuple(tags), format_data(data, what="metadata") if data else None)


_facets = st.builds(
    _facets_of,
    st.lists(st.sampled_from(TAGS), max_size=3),
    st.dictionaries(st.sampled_from(KEYS[:2]), st.sampled_from(VALUES), max_size=2),
)
_steps = st.lists(
    st.tuples(st.just("add"), st.lists(_facets, max_size=6))
    | st.tuples(st.just("erase"), st.integers(0, 40))
    | st.tuples(st.just("tags"), st.lists(st.sampled_from(TAGS), max_size=2))
    | st.tuples(st.just("where"), st.dictionaries(st.sampled_from(KEYS), st.sampled_from(ASKED), max_size=2)),
    max_size=30,
)


class _Rows:
    """Facets of some rows, beside an index of them."""

    def __init__(self) -> None:
        self.facets: list[Facets] = []
        self.index = FacetIndex()

    def feed(self, start: int) -> Iterator[tuple[int, Facets]]:
        return ((row, self.facets[row]) for row in range(start, len(self.facets)) if self.facets[row] != Facets())

    def erase(self, number: int) -> None:
        if self.facets:
            row = number % len(self.facets)
            self.facets[row] = Facets()
            self.index.erase(row)

    def data(self, row: int) -> dict[str, object]:
        packed = self.facets[row].metadata
        found = {} if packed is None else parse_data(packed)
        assert isinstance(found, dict)
        return {**found}

    def check_tags(self, tags: list[str]) -> None:
        expected = [set(tags).issubset(facets.tags) for facets in self.facets]
        assert expected == self.index.with_tags(tags, len(self.facets), self.feed).tolist()

    def check_where(self, where: dict[str, object]) -> None:
        rows = [self.data(row) for row in range(len(self.facets))]
        expected = [all(key in data and is_same(data[key], value) for key, value in where.items()) for data in rows]
        assert expected == self.index.with_values(where, len(rows), self.feed).tolist()
        known = {key for key in where if any(key in data for data in rows)}
        assert known == self.index.known_keys(where, len(rows), self.feed)


@given(steps=_steps)
def test_an_index_finds_what_reading_every_row_finds(steps: list[tuple[str, object]]) -> None:
    rows = _Rows()
    for verb, given_ in steps:
        match verb, given_:
            case "add", list(facets):
                rows.facets += facets
            case "erase", int(number):
                rows.erase(number)
            case "tags", list(tags):
                rows.check_tags(tags)
            case _, dict(where):
                rows.check_where(where)
            case _:
                raise AssertionError(verb)


def test_i05_an_erased_row_leaves_no_tag_and_no_value_in_the_index() -> None:
    rows = _Rows()
    rows.facets = [
        Facets(("shared", "secrettag"), format_data({"n": "secretvalue"}, what="metadata")),
        Facets(("shared",), format_data({"n": "other"}, what="metadata")),
        Facets((), format_data({"n": ["secretlist"]}, what="metadata")),
    ]
    rows.check_tags(["secrettag"])
    rows.check_where({"n": "secretvalue"})
    held = _held(rows.index)

    for row in (0, 2):
        rows.erase(row)

    assert all(word in held for word in ("secrettag", "secretvalue", "secretlist", "shared", "other"))
    assert "secret" not in _held(rows.index)
    assert all(word in _held(rows.index) for word in ("shared", "other"))


def _held(index: FacetIndex) -> str:
    tags = index._tags
    assert tags is not None
    values = [(column._values, column._by_value, column._counts) for column in index._keys.values()]
    return repr((tags._tags, tags._by_tag, tags._counts, values))


def test_the_keys_asked_for_longest_ago_are_dropped() -> None:
    rows = _Rows()
    rows.facets = [Facets((), format_data({f"k{n}": n for n in range(40)}, what="metadata"))]
    for n in range(40):
        rows.check_where({f"k{n}": n})

    assert [f"k{n}" for n in range(8, 40)] == list(rows.index._keys)
    rows.check_where({f"k{n}": n for n in range(40)})
