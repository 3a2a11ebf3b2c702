"""A policy states what names mean, and can only tighten."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.events._errors import BadArgument
from muniment.gate._policy import Policy, Use

TEXT = """
[actions]
"calendar.read" = "answer"
"email.*" = "external_action"
"email.draft.*" = "planning"
"email.draft.send" = "destructive_action"

[limits]
max_uses = 5
max_expires_seconds = 3600
require_evidence = true
deny = ["db.drop*", "shell.run"]
"""
POLICY = Policy.from_toml(TEXT)


def test_uses_are_ordered_by_what_they_take_and_not_by_alphabet() -> None:
    assert [use.value for use in sorted(Use)] == ["planning", "answer", "external_action", "destructive_action"]
    assert Use.PLANNING < Use.ANSWER <= Use.ANSWER
    assert Use.DESTRUCTIVE_ACTION > "external_action"
    assert Use.ANSWER >= "answer"
    assert max(Use.PLANNING, Use.ANSWER) == "answer"


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("calendar.read", "answer"),
        ("calendar.write", "destructive_action"),
        ("email.send", "external_action"),
        ("email.draft.new", "planning"),
        ("email.draft.send", "destructive_action"),
        ("", "destructive_action"),
    ],
)
def test_the_longest_name_that_fits_wins_and_unknown_names_are_destructive(name: str, use: str) -> None:
    assert POLICY.use_of(name) == use


@given(st.sampled_from(["calendar.read", "email.send", "email.draft.new", "nobody.knows"]), st.sampled_from(list(Use)))
def test_the_caller_may_only_raise_the_use(name: str, asked: Use) -> None:
    assert POLICY.use_of(name, asked) == max(POLICY.use_of(name), asked)


def test_spelling_neither_dodges_an_entry_nor_makes_an_unknown_name_known() -> None:
    assert POLICY.use_of("email.draft.SEND") == "destructive_action"
    assert POLICY.use_of("email.draft.send ") == "destructive_action"
    assert POLICY.use_of("CALENDAR.READ") == "destructive_action"


def test_denied_names_are_denied_in_every_spelling() -> None:
    for name in ("db.drop", "DB.Drop_table", "ｄｂ.drop", "shell.run", "Shell.Run "):
        assert POLICY.denies(name)
    for name in ("db.read", "shell.runner", "xdb.drop"):
        assert not POLICY.denies(name)


def test_an_empty_policy_makes_everything_destructive() -> None:
    assert Policy().use_of("calendar.read") == "destructive_action"
    assert Policy.from_toml("").fingerprint == Policy().fingerprint


@pytest.mark.parametrize(
    "text",
    [
        "[actions",
        "[action]\na = 'answer'",
        "actions = 3",
        "[actions]\na = 'harmless'",
        "[actions]\na = 3",
        "[actions.email]\nsend = 'answer'",
        "[actions]\n'*' = 'answer'",
        "[actions]\n'a*b' = 'answer'",
        "[actions]\n'**' = 'answer'",
        "[actions]\n' ' = 'answer'",
        "[actions]\n'a.b' = 'answer'\n'A.B' = 'planning'",
        '[actions]\n"a\\u200b" = "answer"',
        "[limits]\nmin_rank = 'agent'",
        "[limits]\nallow = ['x']",
        "[limits]\nmax_uses = 0",
        "[limits]\nmax_uses = true",
        "[limits]\nmax_uses = 1.5",
        "[limits]\nmax_expires_seconds = -1",
        "[limits]\nrequire_evidence = 'yes'",
        "[limits]\ndeny = 'db.drop'",
        "[limits]\ndeny = [1]",
        "[limits]\ndeny = ['a*b']",
    ],
)
def test_what_is_not_understood_is_refused_and_never_ignored(text: str) -> None:
    with pytest.raises(BadArgument):
        Policy.from_toml(text)


def test_the_fingerprint_depends_on_every_setting_and_not_on_order() -> None:
    settings = [
        Policy(),
        Policy(actions={"a": Use.ANSWER}),
        Policy(actions={"a": Use.PLANNING}),
        Policy(max_uses=1),
        Policy(max_expires_seconds=1),
        Policy(require_evidence=True),
        Policy(deny=("a",)),
    ]
    assert len({policy.fingerprint for policy in settings}) == len(settings)
    one = Policy(actions={"a": Use.ANSWER, "b": Use.PLANNING}, deny=("x", "y"))
    other = Policy(actions={"b": Use.PLANNING, "a": Use.ANSWER}, deny=("y", "x", "y"))
    assert one.fingerprint == other.fingerprint
    assert len(one.fingerprint) == 64


def test_a_policy_cannot_be_changed_through_what_it_was_made_of() -> None:
    actions = {"a": Use.EXTERNAL_ACTION}
    policy = Policy(actions=actions)
    actions["a"] = Use.PLANNING
    assert policy.use_of("a") is Use.EXTERNAL_ACTION


def test_a_policy_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(TEXT)
    assert Policy.from_file(path).fingerprint == POLICY.fingerprint
    with pytest.raises(BadArgument, match="cannot be read"):
        Policy.from_file(tmp_path / "none")
    path.write_bytes(b"\xff")
    with pytest.raises(BadArgument, match="cannot be read"):
        Policy.from_file(path)
