"""What clients send in place of what was asked for: taken where it can mean one thing, refused by name otherwise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment._mcp._arguments import InvalidParams, read_arguments
from muniment._mcp._tools import BY_NAME, TOOLS, Tool

RECALL = BY_NAME["memory_recall"]
REMEMBER = BY_NAME["memory_remember"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("nothing", [None, "", "null", " ", []])
def test_what_a_form_sends_for_an_empty_field_is_left_out(nothing: object) -> None:
    assert {"query": "q"} == read_arguments(RECALL, {"query": "q", "kinds": nothing, "since": nothing, "k": nothing})


@pytest.mark.parametrize("nothing", [None, "null", []])
def test_a_required_argument_is_not_left_out(nothing: object) -> None:
    with pytest.raises(InvalidParams, match=r"argument `query`: required"):
        read_arguments(RECALL, {"query": nothing})


@pytest.mark.parametrize("given", [["a", "b"], "a,b", " a , b ,", '["a", "b"]'])
def test_a_list_is_taken_in_every_spelling(given: object) -> None:
    assert {"query": "q", "tags": ["a", "b"]} == read_arguments(RECALL, {"query": "q", "tags": given})


def test_a_text_that_begins_with_a_bracket_is_no_list() -> None:
    assert ["[draft] a"] == read_arguments(RECALL, {"query": "q", "tags": "[draft] a"})["tags"]


def test_a_pair_is_taken_as_one_text() -> None:
    found = read_arguments(REMEMBER, {"content": "c", "about": "launch, date"})

    assert ("launch", "date") == found["about"]


def test_none_is_a_value_and_not_nothing() -> None:
    found = read_arguments(REMEMBER, {"content": "c", "about": ["ann", "allergies"], "value": "none"})

    assert "none" == found["value"]


@pytest.mark.parametrize(
    ("argument", "value", "words"),
    [
        ("k", 0, "expected 1 to 100"),
        ("k", 101, "expected 1 to 100"),
        ("k", "many", "expected a number"),
        ("k", True, "expected a number"),
        ("k", 1.5, "expected a whole number"),
        ("k", 10**400, "expected 1 to 100"),
        ("k", "1e999", "expected 1 to 100"),
        ("k", float("nan"), "expected 1 to 100"),
        ("kinds", "rumour", "expected one of note"),
        ("kinds", [1], "expected a list of texts"),
        ("kinds", {"a": 1}, "expected a list of texts"),
        ("tags", "," * 3 + "a," * 1001, "at most 1000 items"),
        ("where", "a=b", "expected an object"),
        ("where", "[" * 100_000, "expected an object"),
        ("since", 5, "expected text"),
        ("status", "erased", "expected one of pending"),
        ("scope", "other", "unknown; memory_recall takes query"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_name(argument: str, value: object, words: str) -> None:
    with pytest.raises(InvalidParams, match=words) as refused:
        read_arguments(RECALL, {"query": "q", argument: value})

    assert argument == refused.value.argument


@pytest.mark.parametrize("seen", ["user", "user:ann", "agent:other", "import:x", "https://example.org"])
def test_seen_in_names_only_what_is_below_an_agent(seen: str) -> None:
    with pytest.raises(InvalidParams, match="expected web: or document: or tool:"):
        read_arguments(REMEMBER, {"content": "c", "seen_in": seen})


def test_the_users_confirmation_cannot_be_claimed() -> None:
    with pytest.raises(InvalidParams, match="provenance"):
        read_arguments(REMEMBER, {"content": "c", "provenance": "user_confirmation"})


@given(
    tool=st.sampled_from(TOOLS),
    given=st.dictionaries(
        st.sampled_from([param.name for tool in TOOLS for param in tool.params]) | st.text(max_size=5), JSON, max_size=5
    ),
)
def test_nothing_else_is_ever_raised(tool: Tool, given: dict[str, object]) -> None:
    try:
        found = read_arguments(tool, given)
    except InvalidParams as error:
        # Encodable, whatever was sent: a lone surrogate in an answer would end the server.
        str(error).encode()
        return

    assert {param.name for param in tool.params if param.required} <= set(found)
