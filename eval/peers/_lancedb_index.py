"""lancedb with an index: its documentation asks for none at these sizes, but leaving it out would flatter others."""

from __future__ import annotations

from typing import ClassVar

from . import _lancedb


class Adapter(_lancedb.Adapter):
    """As `lancedb`, with an IVF_HNSW_SQ index built after the load."""

    name = "lancedb-index"
    settings: ClassVar = {
        **_lancedb.Adapter.settings,
        "recall": "vectors, cosine, IVF_HNSW_SQ with its defaults, built after the load; later rows are scanned",
    }

    def settle(self) -> str:
        """Compact, then index."""
        with self.timed():
            table = self._table(None)
            table.optimize()
            table.create_index(metric="cosine", vector_column_name="vector", index_type="IVF_HNSW_SQ")
            table.optimize()
        return "table.optimize(), IVF_HNSW_SQ"
