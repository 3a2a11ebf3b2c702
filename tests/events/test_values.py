"""What goes in comes out equal and of the same type, or is refused."""

from __future__ import annotations

import math
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.events._errors import BadValue
from muniment.events._values import format_data, parse_data

encodable = st.text(st.characters(codec="utf-8"), max_size=20)
zones = st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=45)), timezone(timedelta(seconds=-1))])
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(1 << 200), 1 << 200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | encodable
    | st.binary(max_size=20)
    | st.dates()
    | st.datetimes(timezones=zones)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(encodable, inner, max_size=4), max_leaves=12
)


def same(one: object, other: object) -> bool:
    # Equality alone calls 1, 1.0 and True the same, and 0.0 and -0.0.
    if type(one) is not type(other):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    if isinstance(one, datetime) and isinstance(other, datetime):
        return one == other and one.utcoffset() == other.utcoffset()
    return one == other


@given(values)
def test_parse_inverts_format_types_included(value: object) -> None:
    packed = format_data(value, what="value")
    assert same(value, parse_data(packed))
    assert packed == format_data(parse_data(packed), what="value")


@given(st.dictionaries(encodable, st.integers(), min_size=2, max_size=6))
def test_the_order_of_keys_makes_no_difference(value: dict[str, int]) -> None:
    assert format_data(value, what="v") == format_data(dict(reversed(value.items())), what="v")


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        (1, 2),
        {1},
        Decimal(1),
        time(1),
        timedelta(1),
        object(),
        "\ud800",
        {"\ud800": 1},
        {1: 2},
        {None: 2},
        {"a": [1, {"b": (1,)}]},
        bytearray(b"x"),
        [math.nan],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_not_come_back_exactly_is_refused(value: object) -> None:
    with pytest.raises(BadValue, match="metadata cannot be stored exactly"):
        format_data(value, what="metadata")


def test_depth_is_bounded_also_for_data_that_holds_itself() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(BadValue, match="nested deeper than 32"):
        format_data(endless, what="v")
    deep: object = 1
    for _ in range(32):
        deep = [deep]
    assert deep == parse_data(format_data(deep, what="v"))


@pytest.mark.parametrize("sign", [1, -1])
def test_an_integer_comes_back_exactly_or_is_refused_by_name(sign: int) -> None:
    """Python neither writes nor reads more than 4,300 digits."""
    largest = sign * ((1 << 14_000) - 1)
    assert {"n": [largest]} == parse_data(format_data({"n": [largest]}, what="metadata"))
    with pytest.raises(BadValue, match="metadata cannot be stored exactly: an integer of more than 14000 bits"):
        format_data({"n": [sign * (1 << 14_000)]}, what="metadata")
