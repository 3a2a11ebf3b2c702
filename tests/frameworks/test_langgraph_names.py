"""Namespaces as scopes and keys as belief keys: no two meet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muniment._langgraph._names import about_key, format_namespace, parse_namespace
from muniment.events import InvalidInput, ValueKeys, covers

LABEL = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
    st.text(alphabet="/%2Fa.*\\ \u0308\u200bÅÅK", min_size=1, max_size=6),
)
NAMESPACE = st.lists(LABEL, min_size=1, max_size=3).map(tuple)
KEYS = ValueKeys(bytes(32))


def _scope(namespace: tuple[str, ...]) -> str | None:
    try:
        return format_namespace("acme/graph", namespace)
    except InvalidInput:
        return None


@given(NAMESPACE)
def test_parse_inverts_format(namespace: tuple[str, ...]) -> None:
    scope = _scope(namespace)
    if scope is not None:
        assert namespace == parse_namespace("acme/graph", scope)


@given(NAMESPACE, NAMESPACE)
def test_i08_one_namespace_lies_below_another_exactly_when_its_scope_does(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    first, second = _scope(one), _scope(other)
    if first is not None and second is not None:
        assert (one == other[: len(one)]) == covers(first, second)


@given(LABEL, LABEL)
def test_two_keys_are_two_beliefs(one: str, other: str) -> None:
    assert (one == other) == (KEYS.belief_key(*about_key(one)) == KEYS.belief_key(*about_key(other)))
