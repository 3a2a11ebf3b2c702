"""Words find what they occur in, as of any row, and nothing that was erased."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.events._errors import BadArgument, ProjectionStale
from muniment.projections._scoring import Floats, Rows, score
from muniment.projections._tokens import analyze, analyze_query
from muniment.projections._words import WordIndex, WordStats

WORDS = ("tea", "coffee", "launch", "march", "the", "don't", "20.04", "咖啡店", "커피를", "والكتاب", "กาแฟ", "दिल्ली")
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=25)
queries = st.lists(st.sampled_from((*WORDS, "unknown")), max_size=4).map(" ".join)


def made(rows: list[str], erased: set[int] | None = None) -> WordIndex:
    index = WordIndex()
    index.add_many(rows)
    for row in sorted(erased or ()):
        index.erase(row)
    return index


def scored(index: WordIndex, terms: Sequence[str], stats: WordStats, upto: int) -> tuple[Rows, Floats]:
    rows, scores = score([(index, 0)], terms, stats, upto).best(np.ones(upto, np.bool_), upto)
    order = np.argsort(rows)
    return rows[order], scores[order]


def asked(index: WordIndex, query: str, upto: int | None = None) -> tuple[list[int], bytes]:
    terms = analyze_query(query).terms
    upto = index.rows if upto is None else upto
    rows, scores = scored(index, terms, index.statistics(terms, upto), upto)
    return rows.tolist(), scores.tobytes()


def best(index: WordIndex, query: str) -> int:
    terms = analyze_query(query).terms
    rows, scores = scored(index, terms, index.statistics(terms, index.rows), index.rows)
    return int(rows[np.lexsort((rows, -scores))[0]])


@given(texts, queries, st.data())
def test_asking_up_to_a_row_equals_asking_an_index_that_stopped_there(
    rows: list[str], query: str, data: st.DataObject
) -> None:
    upto = data.draw(st.integers(0, len(rows)))
    erased = data.draw(st.sets(st.integers(0, len(rows) - 1))) if rows else set[int]()
    long = made(rows, erased)
    short = made(rows[:upto], {row for row in erased if row < upto})
    assert asked(short, query) == asked(long, query, upto)
    terms = analyze_query(query).terms
    assert short.statistics(terms, upto) == long.statistics(terms, upto)


@given(texts, st.data())
def test_equal_rows_and_erasures_give_equal_digests_however_they_came(rows: list[str], data: st.DataObject) -> None:
    erased = data.draw(st.sets(st.integers(0, len(rows) - 1))) if rows else set[int]()
    index = WordIndex()
    for row, text in enumerate(rows):
        index.add_many([text])
        if row in erased and data.draw(st.booleans()):
            index.erase(row)
        if data.draw(st.booleans()):
            index = WordIndex.load(index.dump())
    for row in erased:
        index.erase(row)
    assert made(rows, erased).digest() == index.digest()
    assert made(rows, erased).dump() == index.dump()


def test_a_text_added_alone_is_added_as_among_others() -> None:
    """Few tokens are taken in one by one, many in arrays; marks are no tokens."""
    rows = [*("tea and tea", ""), " ".join(f"word{n % 90}" for n in range(100)), *(f"tea {n}" for n in range(40))]
    marks = [["\x01user", "\x01by:tea"] if row % 3 else [] for row in range(len(rows))]
    whole, alone = WordIndex(), WordIndex()
    whole.add_many(rows, marks)
    for text, marked in zip(rows, marks, strict=True):
        alone.add_many([text], [marked])
    assert whole.dump() == alone.dump()
    for index in (whole, alone):
        index.erase(5)
        index.erase(2)
        index.add_many(["zither and tea"])
    assert whole.dump() == alone.dump()


@given(texts.filter(bool), queries, st.data())
def test_an_erased_row_leaves_what_a_row_without_text_leaves(rows: list[str], query: str, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(rows) - 1))
    never = [text if i != row else "" for i, text in enumerate(rows)]
    assert made(never, {row}).dump() == made(rows, {row}).dump()
    assert asked(made(never, {row}), query) == asked(made(rows, {row}), query)


@given(texts, queries)
def test_statistics_of_partitions_add_up_to_those_of_the_whole(rows: list[str], query: str) -> None:
    terms = analyze_query(query).terms
    whole, left, right = made(rows), made(rows[::2]), made(rows[1::2])
    stats = left.statistics(terms, left.rows).plus(right.statistics(terms, right.rows))
    assert whole.statistics(terms, whole.rows) == stats
    expected = dict(zip(*scored(whole, terms, stats, whole.rows), strict=True))
    for index, first in ((left, 0), (right, 1)):
        for row, found in zip(*scored(index, terms, stats, index.rows), strict=True):
            assert expected.pop(row * 2 + first) == found
    assert expected == {}


@given(texts, queries)
def test_a_row_is_found_exactly_when_it_holds_a_term(rows: list[str], query: str) -> None:
    terms = set(analyze_query(query).terms)
    alone = [row for row, text in enumerate(rows) if terms & set(analyze(text))]
    assert alone == asked(made(rows), query)[0]


def test_erasing_leaves_no_cell_and_no_term_behind() -> None:
    index = made(["tea xylophone", "tea and more tea", "coffee"])
    index.add_many([f"tea {i}" for i in range(50)])
    index.erase(1)
    index.erase(0)
    assert b"xylophone" not in index.dump()
    assert "xylophon" not in index._ids
    assert not np.isin(index._postings._rows, (0, 1)).any()
    assert asked(index, "xylophone") == ([], b"")
    index.add_many(["zither"])
    assert best(index, "zither") == 53


def test_erasing_twice_changes_nothing_and_an_unknown_row_is_an_error() -> None:
    index = made(["tea", "coffee"], {0})
    before = index.dump()
    index.erase(0)
    assert before == index.dump()
    with pytest.raises(BadArgument, match="expected 0 to 1, got 2"):
        index.erase(2)


def test_a_dump_of_another_analyser_is_refused() -> None:
    with pytest.raises(ProjectionStale, match="not a dump"):
        WordIndex.load(b"\x00")
    other = made(["tea"]).dump().replace(b"words-4", b"words-0")
    with pytest.raises(ProjectionStale, match="made by words-0"):
        WordIndex.load(other)


def test_equal_texts_score_equal() -> None:
    index = made(["tea at noon", "coffee", "tea at noon"])
    terms = analyze_query("tea noon").terms
    rows, scores = scored(index, terms, index.statistics(terms, 3), 3)
    assert rows.tolist() == [0, 2]
    assert scores[0] == scores[1]


def test_a_unique_word_at_the_end_of_a_megabyte_is_found() -> None:
    filler = "the quick brown fox jumps over it " * 30_000
    index = made(["tea", filler + "xylophone", "coffee"])
    assert best(index, "xylophone") == 1


@pytest.mark.parametrize(
    ("alphabet", "spaced", "word"),
    [
        ("的一是不了人我在有他这中大来上国和地到说", False, "咖啡"),
        ("のにはをたがでてとしれさあいるもすコヒ", False, "コーヒー"),
        ("가나다라마바사아자차카타파하고기노리", True, "커피"),
        ("абвгдежзиклмнопрстуфхцч", True, "кофе"),
        ("αβγδεζηθικλμνξοπρστυφχψω", True, "καφές"),
        ("ابتثجحخدذرزسشصضطظعغفقكلمنهوي", True, "كتاب"),
        ("אבגדהוזחטיכלמנסעפצקרשת", True, "ספר"),
        ("กขคงจชซญดตถทนบปผพฟมยรลวสหอา", False, "กาแฟ"),
        ("कखगघचछजटडतथदधनपफबभमयरलव", True, "दिल्ली"),
    ],
)
def test_an_inner_word_of_each_script_ranks_first_among_ten_thousand(alphabet: str, spaced: bool, word: str) -> None:
    rng = random.Random(45)
    # The word's own characters are common in the other rows, which hold everything but the word itself.
    letters = alphabet + word
    gap = " " if spaced else ""

    def sentence() -> list[str]:
        while True:
            words = ["".join(rng.choices(letters, k=rng.randint(2, 5))) for _ in range(5)]
            if word not in gap.join(words):
                return words

    rows = [gap.join(sentence()) for _ in range(10_000)]
    target = sentence()
    target.insert(3, {"커피": "커피를", "كتاب": "والكتاب", "ספר": "והספר"}.get(word, word))
    rows[1_234] = gap.join(target)
    assert best(made(rows), word) == 1_234
