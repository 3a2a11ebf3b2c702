"""Choosing rows gives what scoring each of them gives, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from muniment.projections import _scoring
from muniment.projections._joined import JoinedWords
from muniment.projections._scoring import Piece, Scores, distinct, score
from muniment.projections._words import K1, PackedWords, WordIndex, WordStats, weight

# From a word that nearly every row holds to one that hardly any does.
WORDS = ("tea", "tea tea", "milk", "sugar", "lemon", "ginger", "saffron", "launch march april may june july")
TERMS = ("saffron", "tea", "ginger", "nowhere", "lemon", "milk", "sugar", "march")
rows_of_texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join), max_size=60)


def pieces_of(parts: list[list[str]], last: list[str]) -> list[Piece]:
    packed: list[PackedWords] = []
    for texts in parts:
        index = WordIndex()
        index.add_many(texts)
        packed.append(PackedWords(index.dump()))
    newest = WordIndex()
    newest.add_many(last)
    return [(JoinedWords(packed), 0), (newest, sum(map(len, parts)))]


def statistics(pieces: list[Piece], terms: tuple[str, ...], upto: int) -> WordStats:
    total = WordStats(0, 0, (0,) * len(terms))
    for piece, first in pieces:
        if first < upto:
            total = total.plus(piece.statistics(terms, upto - first))
    return total


def both(pieces: list[Piece], terms: tuple[str, ...], upto: int) -> tuple[Scores, Scores]:
    stats = statistics(pieces, terms, upto)
    with pytest.MonkeyPatch.context() as patched:
        whole = score(pieces, terms, stats, upto)
        patched.setattr(_scoring, "SCORED_WHOLE", -1)
        patched.setattr(_scoring, "_LONG", 0)
        return whole, score(pieces, terms, stats, upto)


@given(
    parts=st.lists(rows_of_texts, min_size=1, max_size=3),
    last=rows_of_texts,
    terms=st.lists(st.sampled_from(TERMS), unique=True).map(tuple),
    depth=st.integers(1, 12),
    data=st.data(),
)
def test_chosen_rows_are_the_best_of_all(
    parts: list[list[str]], last: list[str], terms: tuple[str, ...], depth: int, data: st.DataObject
) -> None:
    pieces = pieces_of(parts, last)
    rows = sum(map(len, parts)) + len(last)
    upto = data.draw(st.integers(0, rows))
    offered = np.array(data.draw(st.lists(st.booleans(), min_size=upto, max_size=upto)), dtype=np.bool_)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_scoring, "_LONG", 0)
        whole, chosen = both(pieces, terms, upto)
        expected, found = (_sorted(scores.best(offered, depth)) for scores in (whole, chosen))
    assert expected == found

    every = np.arange(-1, upto)
    lists = [every, every[::2]]
    for each in lists:
        assert whole.seen(lists).scores(each).tobytes() == chosen.seen(lists).scores(each).tobytes()
        assert whole.seen(lists).held(each).tolist() == chosen.seen(lists).held(each).tolist()


@pytest.mark.parametrize("seed", range(6))
def test_a_row_of_common_terms_alone_is_left_out_only_where_it_cannot_be_among_the_best(seed: int) -> None:
    chance = np.random.default_rng(seed)
    terms = tuple(f"w{n}" for n in range(8))
    shares = 0.5 ** np.arange(1, 9)
    # Some say one of the common terms many times in few words, so that the bound of no term is far from the truth.
    texts = [
        " ".join(
            f"{term} " * (1 + int(chance.integers(0, 4)) // 3 * 5)
            for term, share in zip(terms, shares, strict=True)
            if chance.random() < share
        )
        + " x" * int(chance.integers(0, 12))
        for _ in range(1500)
    ]
    pieces = pieces_of([texts[:700], texts[700:1200]], texts[1200:])
    offered = chance.random(len(texts)) < 0.9
    for asked in (terms, terms[:4], terms[2:], terms[1::3], terms[:2]):
        for depth in (1, 3, 10, 40, 300):
            whole, chosen = both(pieces, asked, len(texts))
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(_scoring, "_LONG", 0)
                found = chosen.best(offered, depth)
            assert _sorted(whole.best(offered, depth)) == _sorted(found)


@pytest.mark.parametrize("rare", range(1, 60))
def test_where_common_words_together_are_worth_about_one_rare_one(rare: int) -> None:
    texts = ["tea milk", *["saffron"] * rare, *["tea x"] * 90, *["milk x"] * 110, *["x"] * 160, "tea milk"]
    pieces = pieces_of([texts], [])
    for depth in (1, 2, rare, rare + 1):
        whole, chosen = both(pieces, ("tea", "saffron", "milk"), len(texts))
        everybody = np.ones(len(texts), np.bool_)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(_scoring, "_LONG", 0)
            found = chosen.best(everybody, depth)
        assert _sorted(whole.best(everybody, depth)) == _sorted(found)
        by_score = sorted(zip(*(each.tolist() for each in whole.best(everybody, len(texts))), strict=True), key=_rank)
        assert _sorted(found) == sorted(by_score[:depth])


def _rank(found: tuple[int, float]) -> tuple[float, int]:
    return -found[1], found[0]


def _sorted(best: tuple[NDArray[np.int64], NDArray[np.float32]]) -> list[tuple[int, float]]:
    return sorted(zip(*(each.tolist() for each in best), strict=True))


@given(texts=rows_of_texts.filter(bool), mean=st.floats(0.5, 8))
def test_no_share_is_above_the_most(texts: list[str], mean: float) -> None:
    (joined, _), _ = pieces_of([texts], [])
    for term in TERMS:
        asked = WordStats(len(texts), round(mean * len(texts)), (1,))
        whole = score([(joined, 0)], (term,), asked, len(texts))
        _, scores = whole.best(np.ones(len(texts), np.bool_), len(texts))
        factor = weight(asked.rows, 1) * (K1 + 1)
        for near in (1.0, 1.01, 1.5):
            at = (asked.length / asked.rows if asked.length else 1.0) / near
            joined.most(term, at)  # a mean from before that is kept
            share = joined.most(term, at * near)
            assert float(scores.max(initial=0)) <= share * factor * (1 + 1e-5)


def test_distinct_rows_ascend_without_anybody_negative() -> None:
    lists = [np.array([5, -1, 2]), np.array([2, 7]), np.zeros(0, dtype=np.int64)]
    assert distinct(lists).tolist() == [2, 5, 7]
    assert distinct([lists[2]]).tolist() == []


def test_of_equals_the_lower_row_comes_first_whichever_word_it_holds() -> None:
    pieces = pieces_of([["x", "milk", "tea", "milk", "tea"]], [])
    for scores in both(pieces, ("tea", "milk"), 5):
        assert scores.best(np.ones(5, np.bool_), 2)[0].tolist() == [1, 2]
