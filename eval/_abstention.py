"""How well a number tells questions that can be answered from those that cannot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muniment import WEAK

from ._harness import Result


def auc(higher: Sequence[float], lower: Sequence[float]) -> float | None:
    """Return the chance that one of the first is above one of the second; ties count half. None for an empty one."""
    if not higher or not lower:
        return None
    a, b = np.asarray(higher)[:, None], np.asarray(lower)[None, :]
    return round(float(((a > b) + 0.5 * (a == b)).mean()), 4)


def error_rates(can: Sequence[float], cannot: Sequence[float]) -> Result:
    """Return what saying "nothing relevant" below the bound gets wrong, both ways."""
    return {
        "answerable_called_weak": round(sum(s < WEAK for s in can) / max(1, len(can)), 4),
        "unanswerable_not_called_weak": round(sum(s >= WEAK for s in cannot) / max(1, len(cannot)), 4),
    }
