"""A confirmation covers exactly what was signed; a prohibition vetoes whatever could be what it forbids."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.events._errors import BadArgument
from muniment.gate._actions import Action, Argument, Free, Json, OneOf, PathPrefix, Pattern, Range
from muniment.gate._matching import matches_confirmation, matches_prohibition, matches_wildcards, needle, texts_of
from tests.checkout import ROOT

from .test_actions import literals, names

DELETE_STAGING = Action("bucket.delete", {"bucket": "staging"})


def covered(signed: Argument, taken: Json) -> bool:
    return matches_confirmation(Action("a", {"x": signed}), Action("a", {"x": taken}))[0]


def vetoed(prohibited: Argument, taken: Json) -> bool:
    return matches_prohibition(Action("a", {"x": prohibited}), Action("a", {"x": taken}))


# --- confirmations ----------------------------------------------------------------------------------------------------


@given(names, st.dictionaries(names, literals, max_size=4))
def test_a_literal_confirmation_covers_the_very_call(name: str, args: dict[str, Json]) -> None:
    assert matches_confirmation(Action(name, args), Action(name, args)) == (True, [])


@given(literals, literals)
def test_a_literal_covers_only_itself(one: Json, other: Json) -> None:
    assert covered(one, other) == (Action("a", {"x": one}) == Action("a", {"x": other}))


@pytest.mark.parametrize(
    ("taken", "reason"),
    [
        (Action("bucket.delete", {"bucket": "production"}), 'argument "bucket" is not what was confirmed'),
        (Action("bucket.delete", {"bucket": ["staging", "production"]}), 'argument "bucket" is not what was confirmed'),
        (Action("bucket.delete", {"bucket": "staging", "force": True}), 'argument "force" was not confirmed'),
        (Action("bucket.delete"), 'argument "bucket" is missing'),
        (Action("bucket.delete", {"Bucket": "staging"}), 'argument "Bucket" was not confirmed'),
        (Action("cluster.delete", {"bucket": "staging"}), "is not the confirmed"),
        (Action("Bucket.delete", {"bucket": "staging"}), "is not the confirmed"),
        (Action("bucket.delete", {"bucket": Free()}), "the call itself holds a pattern or a constraint"),
        (Action(Pattern("bucket.*"), {"bucket": "staging"}), "the call itself holds a pattern or a constraint"),
    ],
)
def test_approval_for_staging_covers_nothing_else(taken: Action, reason: str) -> None:
    ok, reasons = matches_confirmation(DELETE_STAGING, taken)
    assert not ok
    assert any(reason in found for found in reasons)


def test_reasons_name_every_argument_at_fault_and_no_value() -> None:
    ok, reasons = matches_confirmation(
        Action("a", {"x": 1, "y": "secret", "w": 1}), Action("a", {"y": "hidden", "z": 3, "w": 1})
    )
    assert not ok
    assert reasons == [
        'argument "x" is missing',
        'argument "z" was not confirmed',
        'argument "y" is not what was confirmed',
    ]


@pytest.mark.parametrize(
    ("signed", "taken"),
    [(1, True), (1, 1.0), (1, "1"), ("a", "A"), (0, False), (None, ""), (None, "null"), ([1], [True])],
)
def test_types_and_spelling_are_exact(signed: Json, taken: Json) -> None:
    assert not covered(signed, taken)


def test_a_star_in_a_confirmation_is_a_star() -> None:
    assert covered("*", "*")
    assert not covered("*", "anything")
    with pytest.raises(BadArgument):
        covered(Pattern("*"), "anything")


def test_constraints_cover_what_they_say() -> None:
    assert covered(OneOf(("a", 1)), 1)
    assert not covered(OneOf(("a", 1)), True)
    assert covered(Range(1, 5), 5)
    assert covered(Range(min=1), 2.5)
    assert covered(Free(), {"any": ["thing"]})
    for value in (0.99, 6, True, "3", None, [3]):
        assert not covered(Range(1, 5), value)


def test_a_path_prefix_covers_by_segments() -> None:
    for path in ("/srv/data", "/srv/data/", "/srv/data/x", "/srv/data/x/y.txt", "/srv/data/..x"):
        assert covered(PathPrefix("/srv/data"), path)
    assert covered(PathPrefix("/srv/data/"), "/srv/data")
    assert covered(PathPrefix("/"), "/etc")


@pytest.mark.parametrize(
    "path",
    [
        "/srv/database",
        "/srv",
        "/srv/data/../../etc/passwd",
        "/srv/data/./x",
        "/srv//data/x",
        "//srv/data/x",
        "/srv/data\\..\\..\\etc",
        "/srv/data/x\0/../../..",
        "/srv/data/x\n/etc/passwd",
        "/SRV/data/x",
        "srv/data/x",
        "",
        ["/srv/data/x"],
    ],
)
def test_no_path_gets_out_of_its_prefix(path: Json) -> None:
    assert not covered(PathPrefix("/srv/data"), path)


# --- prohibitions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["db.drop", "db.drop_table", "DB.Drop", "ｄｂ．ｄｒｏｐ", "db.dropTable", " db.drop "])
def test_spelling_does_not_dodge_a_pattern(name: str) -> None:
    assert matches_prohibition(Action(Pattern("db.drop*")), Action(name, {"any": 1}))
    assert matches_prohibition(Action(Pattern("DB.DROP*")), Action(name))


def test_a_name_without_a_pattern_is_that_name() -> None:
    assert matches_prohibition(Action("db.drop"), Action("DB.drop", {"table": "t"}))
    assert not matches_prohibition(Action("db.drop"), Action("db.drop_table"))
    assert not matches_prohibition(Action("db.*"), Action("db.drop"))


def test_arguments_that_a_prohibition_does_not_name_may_be_anything() -> None:
    prohibited = Action("bucket.delete", {"bucket": "prod"})
    assert matches_prohibition(prohibited, Action("bucket.delete", {"bucket": "prod", "force": True}))
    assert not matches_prohibition(prohibited, Action("bucket.delete", {"bucket": "staging"}))
    assert not matches_prohibition(prohibited, Action("bucket.delete"))


@pytest.mark.parametrize(
    "taken",
    [
        "prod",
        "PROD",
        " prod\u200b ",
        "ｐｒｏｄ",
        ["staging", "prod"],
        [["staging"], ["prod"]],
        {"names": ["prod"]},
        {"prod": True},
        "staging,prod",
        "staging; prod",
    ],
)
def test_a_prohibited_value_is_found_in_every_wrapping(taken: Json) -> None:
    assert vetoed("prod", taken)
    assert vetoed(["prod"], taken)
    assert vetoed(OneOf(("live", "prod")), taken)
    assert vetoed(Pattern("pro?"), taken)


@pytest.mark.parametrize("taken", ["staging", "product", "non-prod", "", None, 1, ["staging"], {}, []])
def test_other_values_are_left_alone(taken: Json) -> None:
    assert not vetoed("prod", taken)


def test_what_the_docs_say_of_spellings_holds() -> None:
    """Each cell of the table in docs/gate.md holds JSON values in backticks."""
    text = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8").partition("| not vetoed |")[2]
    rows = [line.split("|")[1:4] for line in text.partition("\n\n")[0].splitlines()[2:]]
    assert 7 == len(rows)
    for row in rows:
        [prohibited], same, other = ([json.loads(cell) for cell in re.findall("`([^`]+)`", cells)] for cells in row)
        assert [True] * len(same) == [vetoed(prohibited, value) for value in same], row
        assert [False] * len(other) == [vetoed(prohibited, value) for value in other], row
        for name in (value for value in (*same, *other) if isinstance(prohibited, str) and value.isprintable()):
            assert (name in same) is matches_prohibition(Action(prohibited), Action(name)), row


def test_an_address_is_found_among_recipients() -> None:
    for to in ("Bob <bob@example.org>", "ann@example.org, Bob <BOB@example.org>"):
        assert vetoed("bob@example.org", to)
    assert not vetoed("bob@example.org", "jimbob@example.org")


def test_an_argument_spelled_otherwise_is_still_that_argument() -> None:
    assert matches_prohibition(DELETE_STAGING, Action("bucket.delete", {"BUCKET": "staging"}))
    assert matches_prohibition(DELETE_STAGING, Action("bucket.delete", {"bucket": "x", "Bucket": "staging"}))


def test_numbers_are_vetoed_however_written() -> None:
    for value in (5, 5.0, "5", " 5.0 ", [5]):
        assert vetoed(5, value)
        assert vetoed(Range(min=4), value)
    assert vetoed(True, "true")
    for other in (True, 3, "x", None, "nan"):
        assert not vetoed(5, other)
        assert not vetoed(Range(min=4), other)


def test_free_in_a_prohibition_needs_no_argument() -> None:
    assert matches_prohibition(Action("a", {"x": Free()}), Action("a"))


def test_prohibited_lists_and_objects_are_vetoed_with_additions() -> None:
    assert vetoed(["a", "b"], ["c", "B", "a"])
    assert not vetoed(["a", "b"], ["a"])
    assert vetoed({"env": "prod"}, {"env": ["Prod"], "region": "eu"})
    assert not vetoed({"env": "prod"}, {"env": "dev"})
    assert not vetoed([], ["a"])
    assert not vetoed({}, {"a": 1})


@pytest.mark.parametrize(
    "path",
    [
        "/srv/data",
        "/srv/data/",
        "/srv/data/x",
        "/SRV/Data/x",
        "/srv//data/./x",
        "/srv/other/../data/x",
        "\\srv\\data",
        "file:///srv/data/x",
        "file:///srv/%64ata/x",
        "/srv",
        "/",
        "/srv/*",
        "/srv/da*",
        "/*/data",
        "/opt/x*/../../srv/data",
        "/srv/{data,other}",
        "$HOME/x",
        "data/x",
        "../data",
        "~/data",
        "/srv/data\0.txt",
        ["/tmp/x", "/srv/data/x"],
    ],
)
def test_a_protected_folder_is_protected_from_every_side(path: Json) -> None:
    """By itself, from inside, from above, and by any path that cannot be shown to lie elsewhere."""
    assert vetoed(PathPrefix("/srv/data"), path)


@pytest.mark.parametrize(
    "path", ["/srv/database", "/srv/other", "/tmp/*", "/srv/data/../other", "s3://srv/data", 7, None]
)
def test_what_lies_elsewhere_is_not_vetoed(path: Json) -> None:
    assert not vetoed(PathPrefix("/srv/data"), path)


def test_a_prohibited_literal_path_is_that_folder_or_one_above() -> None:
    for path in ("/srv/data/", "/srv//data", "/srv/x/../data", "/srv", "/", "/srv/da*"):
        assert vetoed("/srv/data", path)
    for path in ("/srv/data/x", "/srv/database", "data", "notes"):
        assert not vetoed("/srv/data", path)


def test_an_approved_backup_of_a_folder_that_must_never_be_deleted_is_allowed() -> None:
    never = Action("fs.delete", {"path": PathPrefix("/srv/data")})
    assert not matches_prohibition(never, Action("fs.backup", {"path": "/srv/data"}))
    assert matches_prohibition(never, Action("fs.delete", {"path": "/srv"}))


@given(names, st.dictionaries(names, literals, max_size=4))
def test_an_action_prohibited_literally_is_vetoed_itself(name: str, args: dict[str, Json]) -> None:
    assert matches_prohibition(Action(name, args), Action(name, args))


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=8))
def test_wildcards_agree_with_a_slow_matcher(pattern: str, text: str) -> None:
    def slow(p: str, t: str) -> bool:
        if not p:
            return not t
        if p[0] == "*":
            return slow(p[1:], t) or (bool(t) and slow(p, t[1:]))
        return bool(t) and p[0] in ("?", t[0]) and slow(p[1:], t[1:])

    assert slow(pattern, text) == matches_wildcards(pattern, text)


def test_a_hostile_pattern_costs_no_more_than_its_length() -> None:
    assert not matches_wildcards("*a" * 80, "a" * 79 + "b" * 1000)


# --- what the index leans on ------------------------------------------------------------------------------------------

_words = st.sampled_from(["a@x.org", "B <b@x.org>", "b@x.org, c@x.org", "5", "/srv", "Prod", "prod", "x"])
_values = st.recursive(
    _words | st.integers(0, 6) | st.booleans() | literals,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=2),
    max_leaves=5,
)


@given(
    st.dictionaries(st.sampled_from(["x", "y"]), _words | literals), st.dictionaries(st.sampled_from("xXy"), _values)
)
def test_what_is_vetoed_holds_the_prohibitions_needle(wanted: dict[str, Json], given_args: dict[str, Json]) -> None:
    prohibited, taken = Action("a", wanted), Action("a", given_args)

    if matches_prohibition(prohibited, taken):
        assert needle(prohibited) is None or needle(prohibited) in texts_of(taken)


@given(_words, _values)
def test_a_value_that_holds_a_prohibited_word_holds_the_needle(word: str, value: Json) -> None:
    prohibited, taken = Action("a", {"x": word}), Action("a", {"x": [value, {"k": word}, word.upper()]})

    assert matches_prohibition(prohibited, taken)
    assert needle(prohibited) is None or needle(prohibited) in texts_of(taken)
