"""Two rankings become one."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muniment.projections._fusion import Arm, fuse

arms = st.dictionaries(st.integers(0, 30), st.floats(-1, 20, width=32), max_size=12)


def arm(scores: dict[int, float]) -> Arm:
    return np.array(list(scores), dtype=np.int64), np.array(list(scores.values()), dtype=np.float32)


def test_the_score_is_the_sum_of_z_scores_over_the_union() -> None:
    fused = fuse(arm({1: 4.0, 2: 2.0}), arm({2: 0.5, 3: 0.1}))
    # Words over rows 1, 2, 3: 4, 2, 2 (row 3 has the arm's least); meaning: 0.1, 0.5, 0.1.
    high, low = math.sqrt(2), -math.sqrt(0.5)
    assert [each.row for each in fused] == [1, 2, 3]
    np.testing.assert_allclose([high + low, low + high, low + low], [each.score for each in fused], rtol=1e-5)
    assert fused[0][2:] == (4.0, None, 1, None)
    assert (fused[1].word_rank, fused[1].dense_rank) == (2, 1)
    assert (fused[2].word_rank, fused[2].dense_rank) == (None, 2)


@given(arms, arms)
def test_the_order_of_the_candidates_does_not_matter(words: dict[int, float], dense: dict[int, float]) -> None:
    backwards = dict(reversed(words.items())), dict(reversed(dense.items()))
    assert fuse(arm(words), arm(dense)) == fuse(arm(backwards[0]), arm(backwards[1]))


@given(arms, arms)
def test_every_candidate_appears_once_best_first_and_ties_in_row_order(
    words: dict[int, float], dense: dict[int, float]
) -> None:
    fused = fuse(arm(words), arm(dense))
    assert sorted(words.keys() | dense.keys()) == sorted(each.row for each in fused)
    assert fused == sorted(fused, key=lambda each: (-each.score, each.row))


@given(arms)
def test_an_empty_arm_leaves_the_other_ones_order(scores: dict[int, float]) -> None:
    expected = [rank for _, rank in sorted((each.word_rank, i) for i, each in enumerate(fuse(arm(scores), arm({}))))]
    assert list(range(len(scores))) == expected or len({round(s, 4) for s in scores.values()}) < len(scores)
    assert [each.row for each in fuse(arm(scores), arm({}))] == [each.row for each in fuse(arm({}), arm(scores))]


def test_two_empty_arms_give_nothing() -> None:
    assert fuse(arm({}), arm({})) == []
