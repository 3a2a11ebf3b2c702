"""Columns: numbers of the rows of one scope, which grow at their end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", np.uint8, np.int32, np.int64)
Record = TypeVar("Record")


class Column(Generic[Record]):
    """One number of each row: `base` has those that were saved, the others are read when somebody asks."""

    def __init__(self, base: NDArray[np.int64], number_of: Callable[[Record], int]) -> None:
        self._numbers, self._number_of = base, number_of
        self._saved = self._rows = len(base)

    def over(self, fresh: Sequence[Record]) -> NDArray[np.int64]:
        """Return the numbers of all rows, `fresh` being those that came since; not to be written to."""
        rows = self._saved + len(fresh)
        if self._rows < rows:
            self._numbers = with_room(self._numbers, rows)
            for row in range(self._rows, rows):
                self._numbers[row] = self._number_of(fresh[row - self._saved])
            self._rows = rows
        return self._numbers[:rows]


def with_room(numbers: NDArray[Number], needed: int) -> NDArray[Number]:
    """Return the numbers where they are as many as needed, and otherwise more that begin with them and end in zeros."""
    if needed <= len(numbers):
        return numbers
    grown: NDArray[Number] = np.zeros(max(256, needed, len(numbers) * 3 // 2), dtype=numbers.dtype)
    grown[: len(numbers)] = numbers
    return grown
