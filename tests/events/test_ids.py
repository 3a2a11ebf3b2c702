"""Ids sort by age, are never alike, and have one spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.events._errors import BadArgument
from muniment.events._ids import format_id, is_id_prefix, new_id, parse_id

moments = st.integers(0, (1 << 56) - 1)


@given(st.binary(min_size=16, max_size=16))
def test_parse_inverts_format(identity: bytes) -> None:
    assert identity == parse_id(format_id(identity))


@given(moments, moments)
def test_an_older_id_sorts_first(one: int, other: int) -> None:
    if one != other:
        assert (one < other) == (format_id(new_id(one)) < format_id(new_id(other)))


def test_ids_of_one_moment_differ() -> None:
    assert 1000 == len({new_id(5) for _ in range(1000)})


@pytest.mark.parametrize(
    "text", ["", "0" * 31, "0" * 33, "A" * 32, "g" * 32, "0" * 31 + "\n", " " + "0" * 31, "٠" * 32]
)
def test_another_spelling_is_refused(text: str) -> None:
    with pytest.raises(BadArgument, match="expected 32 hexadecimal digits"):
        parse_id(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("0", True), ("0af", True), ("", False), ("0g", False), ("0" * 33, False)]
)
def test_a_prefix_is_what_could_begin_an_id(text: str, expected: bool) -> None:
    assert expected is is_id_prefix(text)
