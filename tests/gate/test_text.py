"""What cannot be seen is shown to people, and does not count when spellings are compared."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muniment.gate._text import folded, visible


@given(st.text())
def test_what_is_shown_is_printable_and_no_two_texts_look_alike(text: str) -> None:
    assert visible(text).isprintable()
    assert '"' not in visible(text)[1:-1].replace("\\\\", "").replace('\\"', "")


@given(st.text(), st.text())
def test_different_texts_are_shown_differently(one: str, other: str) -> None:
    assert (visible(one) == visible(other)) == (one == other)


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert folded(folded(text)) == folded(text)


def test_unseen_characters_are_named() -> None:
    assert visible('a\u200b\u202e\u00a0\u3164\ufe0f\n\\"b') == r'"a\u{200b}\u{202e}\u{a0}\u{3164}\u{fe0f}\u{a}\\\"b"'
    assert visible("é漢 字") == '"é漢 字"'


def test_spellings_that_look_the_same_fold_together() -> None:
    for text in (
        "DB drop",
        " db\u00a0drop ",
        "ｄｂ\ndrop",
        "d\u00adb\u200b drop\u2060",
        "db \x00drop",
        "db dro\ufe0fp",
    ):
        assert folded(text) == "db drop"
    assert folded("STRASSE") == folded("straße")
