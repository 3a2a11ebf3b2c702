"""
A graph of near vectors: searching it takes less than looking at every row's signs, and building it takes minutes.

It is in memory alone. hnswlib keeps the vector of what is marked as deleted, so a vector is overwritten first.
"""

from __future__ import annotations

import math
from typing import Final

import hnswlib
import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

# Malkov and Yashunin (2016): M 16 and ef 200 are hnswlib's defaults for building.
LINKS: Final = 16
BUILDING_EFFORT: Final = 200
BESIDE: Final = 1.25
"""How many times what is asked for is fetched, since a tenth of it may not be wanted."""
SEARCH_EFFORT: Final = 200
"""The least number of candidates that a walk keeps."""


class NeighbourGraph:
    """
    An HNSW graph over the vectors of some rows.

    Adding releases the interpreter, and takes about 0.2 ms a vector; one thread, so that equal calls make equal graphs.
    """

    def __init__(self, dim: int) -> None:
        self._index = hnswlib.Index(space="ip", dim=dim)
        self._index.init_index(max_elements=1024, M=LINKS, ef_construction=BUILDING_EFFORT, random_seed=1)
        self._holds: Flags = np.zeros(0, dtype=np.bool_)
        self.size = 0
        """How many rows it holds."""

    def add(self, rows: Rows, vectors: Floats) -> None:
        """Put one vector a row in, in place of the one that the row had."""
        if not len(rows):
            return
        end = int(rows.max()) + 1
        if end > len(self._holds):
            grown = np.zeros(max(end, len(self._holds) * 3 // 2), dtype=np.bool_)
            grown[: len(self._holds)] = self._holds
            self._holds = grown
        needed = self._index.get_current_count() + len(rows)
        if needed > self._index.get_max_elements():
            self._index.resize_index(max(needed, self._index.get_max_elements() * 3 // 2))
        self._index.add_items(vectors, rows, num_threads=1)
        self.size += int(np.count_nonzero(~self._holds[rows]))
        self._holds[rows] = True

    def erase(self, row: int, stand_in: Floats) -> None:
        """Overwrite a row's vector with another, and give the row no more until it is added again."""
        if row < len(self._holds) and self._holds[row]:
            # Marking alone would keep the vector, and unmarking would give it back.
            self._index.add_items(stand_in.reshape(1, -1), np.array([row]), num_threads=1)
            self._index.mark_deleted(row)
            self._holds[row] = False
            self.size -= 1

    def holds(self, end: int) -> Flags:
        """Tell for each row below `end` whether it is in the graph."""
        found = self._holds[:end]
        return found if len(found) == end else np.concatenate((found, np.zeros(end - len(found), dtype=np.bool_)))

    def nearest(self, query: Floats, k: int) -> Rows | None:
        """Return somewhat more than k rows near the query, in no order; None where a walk reaches too few."""
        fetched = min(math.ceil(k * BESIDE), self.size)
        self._index.set_ef(max(SEARCH_EFFORT, fetched))
        try:
            labels, _ = self._index.knn_query(query, k=fetched, num_threads=1)
        except RuntimeError:  # deleted ones stood in the way
            return None
        return np.asarray(labels[0], dtype=np.int64)
