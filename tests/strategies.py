"""What hypothesis draws: texts, scopes, spellings of one value, and histories."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from .worlds import EXTERNAL, LADDER, VERBS, Step

TEXTS = ("the launch is on monday", "colours are red", "colours are blue", "book the hall", "red")
"""Few texts, so that histories repeat, contradict and re-assert themselves."""

scopes = st.sampled_from(("a", "a/b", "ab", "a/bc", "a/b/c", "b"))
"""Scopes of which some are string prefixes of others, and some lie below others; the two are not the same."""

speakers = st.sampled_from((*LADDER, "agent:other", "tool:calculator", f"{EXTERNAL}/page"))

words = st.text(alphabet=st.characters(min_codepoint=0x61, max_codepoint=0x7A), min_size=3, max_size=9)
"""Latin words, which no secret detector and no normal form minds."""


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """Draw one step of a history."""
    return Step(
        verb=draw(st.one_of(st.just("remember"), st.sampled_from(VERBS))),
        who=draw(speakers),
        text=draw(st.sampled_from(TEXTS)),
        target=draw(st.integers(0, 9)),
        key=draw(st.sampled_from((None, 1, 1, 2))),
        hours=draw(st.sampled_from((None, None, -5, -3, 2))),
    )


histories = st.lists(steps(), min_size=2, max_size=24)

_RESPELLINGS: tuple[Callable[[str], str], ...] = (
    str.upper,
    str.title,
    lambda text: text.replace(" ", "\u00a0\u2003"),
    lambda text: "\u200b".join(text),
    lambda text: f"{text}.",
    lambda text: f"{text}!\u3002",
    lambda text: unicodedata.normalize("NFD", text),
    lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
    lambda text: text.replace("\u0061", "\u0430", 1),
    lambda text: f"\u2060{text}\ufeff",
)


def respellings(text: str) -> SearchStrategy[str]:
    """Return spellings of a text that are the same value: case, space, width, marks, look-alikes, trailing stops."""
    spelled = st.lists(st.sampled_from(_RESPELLINGS), max_size=3, unique=True).map(lambda how: _apply(how, text))
    # White space goes around last: a stop after a space ends no sentence, as in `ls .`, and is another value.
    return st.tuples(st.sampled_from(("", " ", "\n ")), spelled, st.sampled_from(("", "\t", " \u3000"))).map("".join)


def _apply(how: list[Callable[[str], str]], text: str) -> str:
    for respell in how:
        text = respell(text)
    return text
