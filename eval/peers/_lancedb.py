"""lancedb behind the protocol: a table for each scope, versions for the past."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any, ClassVar

from . import _protocol
from ._protocol import DIM, Hit, Json, Memory, Unavailable, floats


class Adapter(_protocol.Adapter):
    """Ids are given by us: `table/id`, since an id alone does not say which table has it."""

    name = "lancedb"
    requirements = ("lancedb==0.40.0", "numpy==2.4.6")
    versions = ("lancedb", "pyarrow")
    settings: ClassVar = {
        "durability": "as shipped: a write is a new fragment and a new version of the table; no durability setting is "
        "documented",
        "recall": "vectors, cosine, exact: its documentation calls an index unnecessary at 100,000 rows and fewer",
        "vectors": "given with the write",
        "batch": "table.add of the whole batch",
        "processes": "read_consistency_interval=0: every read looks for other processes' writes",
        "at rest": "plain, in columns",
    }
    lacks: ClassVar = {
        "retire": "it has update and delete",
        "current": "it has no keys",
        "history": "its versions are the table's, not a row's",
    }

    def __init__(self) -> None:
        super().__init__()
        self._module: Any = import_module("lancedb")
        self._arrow: Any = import_module("pyarrow")
        self._tables: dict[str, Any] = {}

    def open(self) -> None:
        """Connect and open the default table."""
        with self.timed():
            self._database = self._module.connect(str(self.folder), read_consistency_interval=timedelta(0))
            self._table(None)

    def close(self) -> None:
        """Let go: there is nothing to close."""
        self._tables.clear()
        del self._database

    def remember(self, memory: Memory) -> str:
        """Add one."""
        return self.remember_many([memory])[0]

    def remember_many(self, memories: Sequence[Memory]) -> list[str]:
        """Add a batch, all in the first one's scope."""
        table = self._table(memories[0].scope)
        rows = [
            {
                "id": uuid.uuid4().hex,
                "text": memory.text,
                "vector": floats(self.given.vector(memory.text, memory.vector)),
            }
            for memory in memories
        ]
        with self.timed():
            table.add(rows)
        return [f"{table.name}/{row['id']}" for row in rows]

    def settle(self) -> str:
        """Compact the fragments of the load."""
        with self.timed():
            self._table(None).optimize()
        return "table.optimize(), no index"

    def supersede(self, id: str, memory: Memory) -> str:  # noqa: A002
        """Overwrite in place."""
        table, key = self._place(id)
        values = {"text": memory.text, "vector": floats(self.given.vector(memory.text, memory.vector))}
        with self.timed():
            table.update(where=f"id = '{key}'", values=values)
        return id

    def forget(self, id: str) -> None:  # noqa: A002
        """Delete."""
        table, key = self._place(id)
        with self.timed():
            table.delete(f"id = '{key}'")

    def clean_up(self) -> str:
        """Drop every older version and what was deleted with it."""
        with self.timed():
            self._table(None).optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
        return "table.optimize(cleanup_older_than=0, delete_unverified=True)"

    def recall(self, text: str, vector: bytes, k: int, scope: str | None = None) -> list[Hit]:
        """Search by vector."""
        table, numbers = self._table(scope), floats(self.given.vector(text, vector))
        with self.timed():
            rows = table.search(numbers).distance_type("cosine").select(["id", "text"]).limit(k).to_list()
        return [Hit(f"{table.name}/{row['id']}", str(row["text"])) for row in rows]

    def as_of(self, instant: float, text: str, vector: bytes, k: int, scope: str | None = None) -> list[Hit]:
        """Search the newest version of the table that is no younger."""
        table, numbers = self._table(scope), floats(self.given.vector(text, vector))
        with self.timed():
            # They come as wall-clock times of the machine's zone, without one.
            older = [one["version"] for one in table.list_versions() if one["timestamp"].timestamp() <= instant]
            if not older:
                return []
            table.checkout(max(older))
            try:
                rows = table.search(numbers).distance_type("cosine").select(["id", "text"]).limit(k).to_list()
            finally:
                table.checkout_latest()
        return [Hit(f"{table.name}/{row['id']}", str(row["text"])) for row in rows]

    def get(self, id: str) -> dict[str, Json] | None:  # noqa: A002
        """Return a row by id."""
        table, key = self._place(id)
        with self.timed():
            rows = table.search().where(f"id = '{key}'").select(["id", "text"]).limit(1).to_list()
        return {"id": id, "text": rows[0]["text"], "status": "active"} if rows else None

    def _table(self, scope: str | None) -> Any:
        name = "memories" if scope is None else f"scope-{scope.encode().hex()}"
        if name not in self._tables:
            arrow = self._arrow
            schema = arrow.schema(
                [("id", arrow.string()), ("text", arrow.string()), ("vector", arrow.list_(arrow.float32(), DIM))]
            )
            self._tables[name] = self._database.create_table(name, schema=schema, exist_ok=True)
        return self._tables[name]

    def _place(self, id: str) -> tuple[Any, str]:  # noqa: A002
        name, _, key = id.partition("/")
        if not key.isalnum():
            raise Unavailable("not an id of ours")
        return self._database.open_table(name), key
