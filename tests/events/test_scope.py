"""Scopes are compared segment by segment, and two that look alike are alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.events._errors import ScopeMalformed
from muniment.events._scope import STORE_SCOPE, ancestors, covers, parse_scope

segments = st.text("abcäß日-_.: @", min_size=1, max_size=5).filter(
    lambda text: text.strip() == text and text not in (".", "..")
)
scopes = st.lists(segments, min_size=1, max_size=6).map("/".join)


@given(scopes)
def test_a_scope_is_stored_as_it_was_given(scope: str) -> None:
    assert scope == parse_scope(scope)


@pytest.mark.parametrize(
    ("given_scope", "detail"),
    [
        ("", "a scope is required"),
        (None, "a scope is required"),
        (7, "a scope is required"),
        ("/a", "empty segment"),
        ("a/", "empty segment"),
        ("a//b", "empty segment"),
        ("a/../b", "is not a name"),
        (".", "is not a name"),
        ("a/" + "b" * 65, "a segment is longer than 64"),
        ("/".join("a" * 17), "more than 16 segments"),
        ("a" * 256, "longer than 255"),
        (" a", "white space"),
        ("a/b\t", "white space"),
        ("a*", "character `\\*` is not allowed"),
        ("a?b", "not allowed"),
        ("a\\b", "not allowed"),
        ("[a]", "not allowed"),
        ("a\x00b", "unprintable"),
        ("a\u200bb", "unprintable"),
        ("a\u202eb", "unprintable"),
        ("\ud800", "unprintable"),
        ("e\u0301", "normal form C"),
        ("\u212b", "normal form C"),
    ],
)
def test_i08_what_could_be_taken_for_another_scope_is_refused(given_scope: object, detail: str) -> None:
    with pytest.raises(ScopeMalformed, match=detail):
        parse_scope(given_scope)


@given(scopes, scopes)
def test_i08_a_scope_covers_itself_and_what_lies_below_it_segment_by_segment(outer: str, inner: str) -> None:
    expected = inner.split("/")[: len(outer.split("/"))] == outer.split("/")
    assert expected is covers(outer, inner)
    assert covers(outer, outer + "/" + inner)
    assert not covers(outer, outer + "x")
    assert covers(STORE_SCOPE, inner)


@given(scopes)
def test_ancestors_are_what_covers_a_scope_the_nearest_first(scope: str) -> None:
    found = ancestors(scope)
    assert scope == found[0]
    assert scope.split("/", maxsplit=1)[0] == found[-1]
    assert all(covers(one, scope) for one in found)
    assert sorted(found, key=len, reverse=True) == found
