"""Pieces of a word index that are asked as one answer as one index of all rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muniment.projections._joined import JoinedWords
from muniment.projections._words import PackedWords, WordIndex

# Terms that share their first eight bytes, are those eight bytes, or are shorter.
_WORDS = st.sampled_from(
    ("a", "internat", "international", "internationally", "interne", "東京", "z", "\u0001mark", "ab")
)
_ROWS = st.lists(st.lists(_WORDS, max_size=6).map(" ".join), max_size=5)


@given(
    pieces=st.lists(st.tuples(_ROWS, st.integers(0, 7)), min_size=1, max_size=5),
    upto=st.integers(0, 30),
)
def test_pieces_answer_as_one(pieces: list[tuple[list[str], int]], upto: int) -> None:
    whole, parts = WordIndex(), list[PackedWords]()
    for rows, erased in pieces:
        marks = [["\u0001mark"] if "z" in row else [] for row in rows]
        part = WordIndex()
        part.add_many(rows, marks)
        whole.add_many(rows, marks)
        if erased < len(rows):
            whole.erase(whole.rows - len(rows) + erased)
            part.erase(erased)
        parts.append(PackedWords(part.dump()))
    joined = JoinedWords(parts)
    terms = sorted({term for rows, _ in pieces for row in rows for term in row.split()} | {"nowhere", "inter"})

    for _ in range(2):  # the second time from what was kept
        stats = whole.statistics(terms, upto)
        assert stats == joined.statistics(terms, upto)
        for term in (*terms, "\u0001mark"):
            assert whole.holders(term, upto).tolist() == joined.holders(term, upto).tolist()
    every = np.arange(whole.rows)
    assert whole.lengths(every).tolist() == joined.lengths(every).tolist()


@given(
    pieces=st.lists(_ROWS, min_size=1, max_size=5),
    steps=st.lists(st.tuples(st.sampled_from(("append", "pop", "erase", "ask")), st.integers(0, 99)), max_size=12),
)
def test_pieces_that_come_go_and_lose_rows_answer_as_those_that_were_joined_anew(
    pieces: list[list[str]], steps: list[tuple[str, int]]
) -> None:
    terms = ("internat", "international", "internationally", "interne", "東京", "z", "a", "ab", "inter")
    made = [made_of(rows) for rows in pieces]
    joined = JoinedWords([packed(index) for index in made[:1]])
    for step, chosen in steps:
        number = chosen % len(joined.parts) if joined.parts else 0
        if step == "append" and len(joined.parts) < len(made):
            joined.append(packed(made[len(joined.parts)]))
        elif step == "pop" and joined.parts:
            joined.pop()
        elif step == "erase" and joined.parts and made[number].rows:
            row = chosen % made[number].rows
            lost = set(terms_of(made[number]))
            made[number].erase(row)
            joined.erase(number, row)
            for term in lost - {term for index in made[: len(joined.parts)] for term in terms_of(index)}:
                assert term not in joined._kept
                assert not len(joined.holders(term, joined.rows))
            joined.put_back(number, packed(made[number]))
        anew = JoinedWords([packed(index) for index in made[: len(joined.parts)]])
        for upto in (joined.rows, joined.rows // 2):
            assert joined.statistics(terms, upto) == anew.statistics(terms, upto)
            for term in terms:
                assert [each.tolist() for each in joined.postings(term, upto)] == [
                    each.tolist() for each in anew.postings(term, upto)
                ]
        every = np.arange(joined.rows)
        assert joined.lengths(every).tolist() == anew.lengths(every).tolist()


def made_of(rows: list[str]) -> WordIndex:
    index = WordIndex()
    index.add_many(rows)
    return index


def packed(index: WordIndex) -> PackedWords:
    return PackedWords(index.dump())


def terms_of(index: WordIndex) -> list[str]:
    return list(index._ids)
