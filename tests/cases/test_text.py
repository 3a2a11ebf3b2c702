"""What products of this kind got wrong about text."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from datetime import UTC, date, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import muniment
from muniment import Session
from tests.asking import shown
from tests.worlds import AGENT, World

SENTENCES = {
    "chinese": ("他昨天在图书馆借了三本书", "图书馆"),
    "japanese": ("昨日東京タワーに登りました", "東京"),
    "korean": ("어제 도서관에서 책을 빌렸다", "도서관"),
    "cyrillic": ("Вчера я купил билет в театр", "БИЛЕТ"),
    "greek": ("Χθες αγόρασα ένα βιβλίο", "βιβλίο"),
    "arabic": ("اشتريت كتابا جديدا أمس", "جديدا"),
    "hebrew": ("קניתי ספר חדש אתמול", "ספר"),
    "thai": ("เมื่อวานฉันไปตลาด", "ตลาด"),
    "devanagari": ("कल मैंने एक किताब खरीदी", "किताब"),
    "french": ("le caf\u00e9 de la gare est ferm\u00e9", "cafe\u0301"),
}  # fmt: skip


@pytest.mark.parametrize("script", SENTENCES)
def test_a_sentence_of_any_script_is_found_by_an_inner_word(world: World, script: str) -> None:
    agent = world.speaker(AGENT)
    for sentence, _ in SENTENCES.values():
        agent.remember(sentence)
    sentence, word = SENTENCES[script]

    for query in (word, unicodedata.normalize("NFD", word), unicodedata.normalize("NFC", word)):
        assert sentence == agent.recall(query, k=1)[0].content


@pytest.mark.parametrize(
    "text",
    ["don't", "pre-edit", "a/b", "C++", '"quoted"', "'single'", "*", "20.04", "NEAR", "(", ")", "a AND b", "NOT x",
     "x OR", "col:umn", "^start", "{}", "\\", "%", "_", "--", ";DROP TABLE", "[a-z]", "x*y", "?"],
)  # fmt: skip
def test_a_query_is_plain_text_and_has_no_syntax(world: World, text: str) -> None:
    agent = world.speaker(AGENT)
    sentence = f"notes on {text} and the rest"
    agent.remember(sentence)
    agent.remember("something different altogether")

    assert sentence in shown(agent.recall(f"notes {text}"))
    agent.recall(text)  # found or not, it raises nothing


def test_a_unique_word_at_the_end_of_a_megabyte_is_found(world: World) -> None:
    agent = world.speaker(AGENT)
    receipt = agent.remember("filler words of no weight " * 40_000 + "floccinaucinihil")
    agent.remember("another memory")

    assert receipt.id == agent.recall("floccinaucinihil")[0].id


def test_a_query_of_any_length_is_answered(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("the launch is on monday")

    hits = agent.recall("monday " + "and so on and on " * 12_000)

    assert ["the launch is on monday"] == shown(hits)


BLANK = ["", " ", "\t\r\n", "\u200b", "\u2060\ufeff", "\u00a0\u3000", "\u00ad", "\u200d\u200c", "\u2028"]
ROUTES: dict[str, Callable[[Session, str], object]] = {
    "remember": lambda s, text: s.remember(text),
    "batch": lambda s, text: s.remember_many([{"content": text}]),
    "supersede": lambda s, text: s.supersede(s.remember("x").id, text),
    "value": lambda s, text: s.remember("x", about=("a", "b"), value=text),
    "subject": lambda s, text: s.remember("x", about=(text, "b")),
    "tag": lambda s, text: s.remember("x", tags=[text]),
    "source": lambda s, text: s.remember("x", source=text),
    "condition": lambda s, text: s.remember("x", applies_when=text),
    "reason": lambda s, text: s.retire(s.remember("x").id, reason=text),
    "query": lambda s, text: s.recall(text),
}


@pytest.mark.parametrize("blank", BLANK, ids=ascii)
@pytest.mark.parametrize("route", ROUTES)
def test_what_has_no_visible_character_is_the_same_error_on_every_route(world: World, route: str, blank: str) -> None:
    with pytest.raises(muniment.InvalidInput) as error:
        ROUTES[route](world.speaker(AGENT), blank)

    assert "blank_content" == error.value.code


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
moments = st.datetimes().map(lambda moment: moment.replace(fold=0))  # a fold says nothing without a time zone
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.binary(max_size=20),
    texts, st.dates(), moments, moments.map(lambda moment: moment.replace(tzinfo=UTC)),
)  # fmt: skip
data = st.dictionaries(
    texts,
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3),
    ),
    max_size=4,
)


def _typed(found: object) -> object:
    """Return data in a form in which 1, 1.0 and True differ, and the order of keys does not matter."""
    if isinstance(found, dict):
        return sorted((key, _typed(item)) for key, item in found.items())
    if isinstance(found, list):
        return [_typed(item) for item in found]
    return f"{type(found).__name__} {found!r}"


@given(metadata=data)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_metadata_comes_back_exactly(world: World, metadata: dict[str, object]) -> None:
    receipt = world.speaker(AGENT).remember("with metadata", metadata=metadata, source=f"at {world.store.head.seq}")

    found = world.speaker(AGENT).get(receipt.id).metadata

    assert metadata == found
    assert _typed(metadata) == _typed(found)


@pytest.mark.parametrize(
    "metadata",
    [
        {"a": {1, 2}},
        {"a": (1, 2)},
        {1: "a"},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": int},
        {"a": "\ud800"},
        ["a"],
    ],
    ids=ascii,
)
def test_metadata_that_would_not_come_back_is_refused_before_a_byte_is_written(world: World, metadata: object) -> None:
    head = world.store.head.seq

    with pytest.raises(muniment.InvalidInput):
        world.speaker(AGENT).remember("x", metadata=metadata)  # type: ignore[arg-type]  # what is to be refused
    assert head == world.store.head.seq


def test_tags_and_values_come_back_exactly(world: World) -> None:
    tags = ["with, comma", 'with "quotes"', "with 'single'", "a|b", "\u65e5\u672c", "a\nb", " padded "]
    values: list[str | int | float | date] = [
        "text",
        7,
        10**30,
        -2.5,
        True,
        date(2026, 3, 12),
        datetime(2026, 3, 12, 8, tzinfo=UTC),
    ]
    agent = world.speaker(AGENT)
    for number, value in enumerate(values):
        receipt = agent.remember(f"value {number}", about=("value", str(number)), value=value, tags=tags)
        record = agent.get(receipt.id)
        assert (value, type(value)) == (record.value, type(record.value))
        assert tuple(tags) == record.tags
    world.reopen()
    assert len(values) == len(world.speaker(AGENT).recall("value", tags=['with "quotes"', "with, comma"]))


@given(content=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_content_comes_back_exactly_as_it_was_given(world: World, content: str) -> None:
    # A visible mark around it, since content without any is refused.
    content = f"<{content}>"
    receipt = world.speaker(AGENT).remember(content, source=f"at {world.store.head.seq}")

    assert content == world.speaker(AGENT).get(receipt.id).content


@pytest.mark.parametrize("query", [" ".join(f"w{n}" for n in range(200)), "x" * 9_000], ids=["words", "characters"])
def test_a_query_of_which_a_part_was_not_looked_up_says_so(world: World, query: str) -> None:
    agent = world.speaker(AGENT)
    agent.remember("a zebrafish swims")

    assert [] == agent.recall(f"{query} zebrafish")
    assert any("query is long" in note for note in agent.recall(f"{query} zebrafish").notes)
    assert any("query is long" in note for note in agent.context(f"{query} zebrafish").notes)
    assert not any("query is long" in note for note in agent.recall("where is the zebrafish?").notes)
