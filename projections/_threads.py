"""Which row is the turn before, and which the turn after, in the same conversation of the same scope."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
NOBODY = -1


class Threads:
    """
    The rows of one scope, in the order they were added, each linked to its neighbours.

    A row is linked to earlier ones only when it comes, so the links among the first n rows are the same whatever came
    later. What is live is not known here: whoever follows a link asks.
    """

    def __init__(self) -> None:
        self._before: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._after: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._labels: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._last: dict[str, int] = {}
        self._threads: dict[int, str] = {}
        self.rows = 0

    def extend(self, count: int, threads: Iterable[tuple[int, str]]) -> None:
        """Append some rows; those of them that are part of a conversation are named with it, in order."""
        upto = self.rows + count
        self._reserve(upto)
        self._before[self.rows : upto] = self._after[self.rows : upto] = NOBODY
        self._labels[self.rows : upto] = np.arange(self.rows, upto)
        for row, name in threads:
            before = self._last.get(name, NOBODY)
            self._before[row] = before
            if before != NOBODY:
                self._after[before], self._labels[row] = row, self._labels[before]
                # Only the last row of a conversation needs its name, so that an erasure can find the one before.
                self._threads.pop(before, None)
            self._threads[row] = name
            self._last[name] = row
        self.rows = upto

    def erase(self, row: int) -> None:
        """Take the row out: its neighbours are each other's now, as if it had never been part of a conversation."""
        before, after = int(self._before[row]), int(self._after[row])
        if before != NOBODY:
            self._after[before] = after
        if after != NOBODY:
            self._before[after] = before
        name = self._threads.pop(row, None)
        if name is not None:
            if before == NOBODY:
                del self._last[name]
            else:
                self._last[name], self._threads[before] = before, name
        self._before[row] = self._after[row] = NOBODY

    def before(self, rows: Rows) -> Rows:
        """Return the turn before each row; NOBODY where there is none, or no row."""
        return self._follow(self._before, rows)

    def after(self, rows: Rows) -> Rows:
        """Return the turn after each row; NOBODY where there is none, or no row."""
        return self._follow(self._after, rows)

    def labels(self, rows: Rows) -> Rows:
        """Return numbers that are equal for two rows, neither erased, exactly when they are in one conversation."""
        return self._labels[rows].astype(np.int64)

    def _follow(self, links: NDArray[np.int32], rows: Rows) -> Rows:
        if not self.rows:
            return np.full(len(rows), NOBODY, dtype=np.int64)
        return np.where(rows >= 0, links[rows], NOBODY).astype(np.int64)

    def _reserve(self, needed: int) -> None:
        if needed <= len(self._before):
            return
        room = max(256, needed, len(self._before) * 3 // 2)
        for name in ("_before", "_after", "_labels"):
            grown = np.full(room, NOBODY, dtype=np.int32)
            grown[: self.rows] = getattr(self, name)[: self.rows]
            setattr(self, name, grown)
