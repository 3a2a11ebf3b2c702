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
