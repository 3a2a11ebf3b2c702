"""One ranking from two: scores by words and scores by meaning."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Arm = tuple[NDArray[np.int64], NDArray[np.float32]]

# Equal weights: words carry LoCoMo and hurt on BEAM, so no fixed preference is right everywhere.
WORD_WEIGHT = 1.0
DENSE_WEIGHT = 1.0
# Below this spread an arm does not tell its candidates apart, and dividing by it would turn rounding into opinion.
LEAST_SPREAD = 1e-6


class Fused(NamedTuple):
    """A row's place in the fused ranking; None where the arm did not offer the row. Ranks count from 1."""

    row: int
    score: float
    word_score: float | None
    dense_score: float | None
    word_rank: int | None
    dense_rank: int | None


def fuse(
    words: Arm, dense: Arm, *, word_weight: float = WORD_WEIGHT, dense_weight: float = DENSE_WEIGHT
) -> list[Fused]:
    """
    Return the union of both arms' candidates, best first, by the weighted sum of z-scores.

    Each arm has every row at most once, in any order. A row that an arm did not offer has that arm's least score; an
    empty arm says nothing. Equal scores come in row order.
    """
    rows = np.union1d(words[0], dense[0])
    total = word_weight * z_scores(rows, words) + dense_weight * z_scores(rows, dense)
    word_parts, dense_parts = _by_row(words), _by_row(dense)
    fused: list[Fused] = []
    for i in np.lexsort((rows, -total)).tolist():
        row = int(rows[i])
        word_score, word_rank = word_parts.get(row, (None, None))
        dense_score, dense_rank = dense_parts.get(row, (None, None))
        fused.append(Fused(row, float(total[i]), word_score, dense_score, word_rank, dense_rank))
    return fused


def z_scores(rows: NDArray[np.int64], arm: Arm) -> NDArray[np.float64]:
    """
    Return how many standard deviations each row's score is above the mean of all `rows`, which ascend.

    All zero when the arm is empty or does not tell the rows apart.
    """
    if not len(rows) or not len(arm[0]):
        return np.zeros(len(rows))
    full = np.full(len(rows), float(arm[1].min()))
    full[np.searchsorted(rows, arm[0])] = arm[1]
    spread = float(full.std())
    if spread < LEAST_SPREAD:
        return np.zeros(len(rows))
    return np.asarray((full - full.mean()) / spread, dtype=np.float64)


def _by_row(arm: Arm) -> dict[int, tuple[float, int]]:
    order = np.lexsort((arm[0], -arm[1]))
    return {
        row: (score, rank)
        for rank, (row, score) in enumerate(zip(arm[0][order].tolist(), arm[1][order].tolist(), strict=True), 1)
    }
