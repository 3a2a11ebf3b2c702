"""Actions: literal unless a constraint is asked for, and one spelling per action."""

from __future__ import annotations

import enum
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.events._errors import BadArgument, BadValue
from muniment.gate._actions import (
    Action,
    Free,
    Json,
    OneOf,
    PathPrefix,
    Pattern,
    Range,
    check_confirmable,
    describe_action,
    format_action,
    free_arguments,
    parse_action,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
)
literals = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
names = st.from_regex(r"\A[a-z]{1,8}(\.[a-zé]{1,8})?\Z")
constraints = st.one_of(
    st.lists(scalars, min_size=1, max_size=4).map(lambda values: OneOf(tuple(values))),
    st.sampled_from(["/", "/srv/data", "reports/2026"]).map(PathPrefix),
    st.integers(-5, 5).map(lambda low: Range(low, low + 2.5)),
    st.integers(-5, 5).map(lambda low: Range(min=low)),
    st.just(Free()),
    st.just(Pattern("db.*")),
)
actions = st.builds(
    Action, names | st.just(Pattern("db.drop*")), st.dictionaries(names, literals | constraints, max_size=4)
)


@given(actions)
def test_parse_inverts_format(action: Action) -> None:
    data = format_action(action)
    assert action == parse_action(data)
    assert data == format_action(parse_action(data))
    assert hash(action) == hash(parse_action(data))


def test_the_canonical_bytes_are_those_in_the_docstring() -> None:
    action = Action("fs.copy", {"to": "ann@example.org", "path": PathPrefix("/srv/data")})
    expected = b'{"args":{"path":["under","/srv/data"],"to":["=","ann@example.org"]},"name":["=","fs.copy"]}'
    assert expected == format_action(action)


@pytest.mark.parametrize(
    "data",
    [
        b'{"name":["=","a"],"args":{}}',  # keys out of order
        b'{"args":{}, "name":["=","a"]}',
        b'{"args":{},"name":["=","a"],"uses":9}',
        b'{"args":{"n":["=",1],"n":["=",2]},"name":["=","a"]}',  # the last of two keys would win
        b'{"args":{"n":["=",1.50]},"name":["=","a"]}',
        b'{"args":{"n":["maybe"]},"name":["=","a"]}',
        b'{"args":{"n":["=",1e999]},"name":["=","a"]}',
        b'{"args":{"n":["=",9223372036854775808]},"name":["=","a"]}',
        b'{"args":{},"name":"a"}',
        b'{"args":{},"name":["=","\\u0061"]}',
        b'{"args":{},"name":["=","a"]}\n',
        b"\xff",
        b"[" * 100_000,
        b"",
    ],
)
def test_any_other_spelling_is_refused(data: bytes) -> None:
    with pytest.raises(BadValue):
        parse_action(data)


def test_a_literal_cannot_be_read_back_as_a_constraint() -> None:
    lookalikes: list[Json] = [["free"], ["=", 1], {"free": True}, ["like", "*"]]
    for literal in lookalikes:
        again = parse_action(format_action(Action("a", {"x": literal})))
        assert again.is_literal
        assert not free_arguments(again)


def test_values_of_different_types_make_different_actions() -> None:
    assert len({Action("a", {"n": value}) for value in (1, 1.0, True, "1", [1], None)}) == 6
    assert Action("a", {"n": [1]}) != Action("a", {"n": [True]})


def test_what_was_passed_in_can_change_without_changing_the_action() -> None:
    to = ["ann"]
    args: dict[str, list[str]] = {"to": to}
    action = Action("email.send", args)
    to.append("mallory")
    args["cc"] = ["mallory"]
    assert Action("email.send", {"to": ["ann"]}) == action


def test_an_action_has_no_arguments_unless_given_and_survives_pickling() -> None:
    assert dict(Action("x").args) == {}
    action = Action("a", {"deep": {"list": [1, {"k": None}]}})
    assert action == pickle.loads(pickle.dumps(action))


def test_enums_count_as_their_values() -> None:
    class Colour(enum.StrEnum):
        RED = "red"

    assert Action("a", {"c": "red"}) == Action("a", {"c": Colour.RED})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**63, -(2**63) - 1, "\ud800", b"x", {1: 2}, object()])
def test_what_json_would_not_give_back_is_refused(value: object) -> None:
    for given_value in (value, [value], {"deep": [value]}):
        with pytest.raises(BadValue):
            Action("a", {"x": given_value})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]  # on purpose


def test_a_constraint_inside_a_list_is_refused() -> None:
    with pytest.raises(BadValue, match="only be a whole argument"):
        Action("a", {"x": [Free()]})  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]  # on purpose


def test_deep_nesting_is_refused_and_does_not_exhaust_the_stack() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(BadValue, match="deep"):
        Action("a", {"x": deep})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]  # built in a loop


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\u200bb", "a\u202eb", "x" * 201, "a\x00"])
def test_names_are_printable_and_short(name: str) -> None:
    with pytest.raises(BadArgument):
        Action(name)
    with pytest.raises(BadArgument):
        Action("a", {name: 1})
    with pytest.raises(BadArgument):
        Pattern(name)


def test_there_are_at_most_a_hundred_arguments() -> None:
    assert len(Action("a", {f"n{i}": i for i in range(100)}).args) == 100
    with pytest.raises(BadArgument):
        Action("a", {f"n{i}": i for i in range(101)})


@pytest.mark.parametrize("prefix", ["", "/srv/../etc", "./x", "..", "~/x", "/srv//x", "C:\\x", "/a\0b", "/a\nb"])
def test_a_path_prefix_is_canonical(prefix: str) -> None:
    with pytest.raises(BadArgument):
        PathPrefix(prefix)


def test_a_range_has_a_bound_and_is_not_empty() -> None:
    for low, high in ((None, None), (2, 1), (float("nan"), None), (True, None)):
        with pytest.raises(BadArgument):
            Range(low, high)


def test_one_of_takes_scalars_and_at_least_one() -> None:
    for values in ((), "abc", ([1],)):
        with pytest.raises(BadArgument):
            OneOf(values)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # on purpose


def test_a_confirmation_cannot_hold_a_pattern() -> None:
    check_confirmable(Action("a", {"x": Free()}))
    for action in (Action(Pattern("a*")), Action("a", {"x": Pattern("*")})):
        with pytest.raises(BadArgument, match="patterns are for prohibitions"):
            check_confirmable(action)


def test_arguments_left_open_are_named() -> None:
    signed = Action("a", {"z": Free(), "p": PathPrefix("/"), "q": PathPrefix("/srv"), "n": Range(min=1), "t": "Free"})
    assert free_arguments(signed) == ["p", "z"]


def test_a_description_is_whole_and_shows_what_is_hidden() -> None:
    action = Action(
        "email.send",
        {
            "to": 'ann\u200b"@example.org\n\u202e',
            "n": Range(1, 5),
            "least": Range(min=2),
            "who": OneOf(("a", 1, None)),
            "path": PathPrefix("/srv"),
            "any": Free(),
            "data": {"b": [1.0, True], "a": None},
        },
    )
    assert describe_action(action) == (
        'email.send(any=ANY VALUE, data={"a": null, "b": [1.0, true]}, least=any number from 2, '
        'n=any number from 1 to 5, path=any path at or under "/srv", '
        'to="ann\\u{200b}\\"@example.org\\u{a}\\u{202e}", who=one of "a" | 1 | null)'
    )
    assert (
        describe_action(Action(Pattern("db.drop*"), {"x": Pattern("p*")}))
        == 'any action like "db.drop*"(x=any text like "p*")'
    )


def test_a_name_cannot_imitate_arguments_in_a_description() -> None:
    assert describe_action(Action("a(x=ANY VALUE), b", {"y, z": 1})) == '"a(x=ANY VALUE), b"("y, z"=1)'
