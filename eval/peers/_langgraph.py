"""LangGraph's own store behind the protocol: `SqliteStore` of langgraph-checkpoint-sqlite, with its vector index."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar

from . import _protocol
from ._protocol import DIM, Hit, Json, Memory, floats


class Adapter(_protocol.Adapter):
    """Its namespace is our scope. Ids are given by us: the namespace and the key as JSON."""

    name = "langgraph"
    # Its index loads sqlite-vec, for which not every Python's own sqlite3 is built; this one always is.
    requirements = (
        "langgraph==1.2.24",
        "langgraph-checkpoint-sqlite==3.1.2",
        "sqlite-vec==0.1.9",
        "pysqlite3-binary==0.5.4",
    )
    versions = ("langgraph", "langgraph-checkpoint-sqlite", "sqlite-vec", "pysqlite3-binary")
    sqlite = "pysqlite3"
    settings: ClassVar = {
        "durability": "WAL, synchronous=FULL, set on the connection that it is given; a commit for each call",
        "recall": "vectors, exact, cosine, by its search with a query",
        "vectors": "given, made in the call that writes",
        "batch": "store.batch of PutOps, one transaction",
        "at rest": "plain",
    }
    lacks: ClassVar = {
        "retire": "it has put and delete",
        "current": "it has no keys of belief",
        "history": "a put overwrites",
        "settle": "nothing follows a bulk load",
        "clean_up": "the store has no maintenance call",
    }

    def __init__(self) -> None:
        super().__init__()
        self._sqlite: Any = import_module("pysqlite3")
        self._module: Any = import_module("langgraph.store.sqlite")
        self._put: Any = import_module("langgraph.store.base").PutOp

    def open(self) -> None:
        """Open the store on a connection in autocommit, as its own constructor makes it."""
        with self.timed():
            self._db = self._sqlite.connect(
                str(self.folder / "store.db"), check_same_thread=False, isolation_level=None
            )
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            # The documentation says `fields`; the code of this version reads `text_fields`.
            index = {"dims": DIM, "embed": self._embed, "fields": ["text"], "text_fields": ["text"]}
            self._store = self._module.SqliteStore(self._db, index=index)
            self._store.setup()

    def close(self) -> None:
        """Close the connection."""
        with self.timed():
            self._db.close()

    def remember(self, memory: Memory) -> str:
        """Put one."""
        space, key = _space(memory.scope), uuid.uuid4().hex
        self.given.hand(memory.text, memory.vector)
        with self.timed():
            self._store.put(space, key, {"text": memory.text})
        self.given.drop()
        return json.dumps([*space, key])

    def remember_many(self, memories: Sequence[Memory]) -> list[str]:
        """Put a batch."""
        places = [(_space(memory.scope), uuid.uuid4().hex) for memory in memories]
        for memory in memories:
            self.given.hand(memory.text, memory.vector)
        puts = [self._put(space, key, {"text": one.text}) for (space, key), one in zip(places, memories, strict=True)]
        with self.timed():
            self._store.batch(puts)
        self.given.drop()
        return [json.dumps([*space, key]) for space, key in places]

    def supersede(self, id: str, memory: Memory) -> str:  # noqa: A002
        """Overwrite in place."""
        *space, key = json.loads(id)
        self.given.hand(memory.text, memory.vector)
        with self.timed():
            self._store.put(tuple(space), key, {"text": memory.text})
        self.given.drop()
        return id

    def forget(self, id: str) -> None:  # noqa: A002
        """Delete."""
        *space, key = json.loads(id)
        with self.timed():
            self._store.delete(tuple(space), key)

    def recall(self, text: str, vector: bytes, k: int, scope: str | None = None) -> list[Hit]:
        """Search with a query."""
        self.given.hand(text, vector)
        with self.timed():
            items = self._store.search(_space(scope), query=text, limit=k)
        self.given.drop()
        return [Hit(json.dumps([*i.namespace, i.key]), str(i.value["text"]), i.created_at.isoformat()) for i in items]

    def get(self, id: str) -> dict[str, Json] | None:  # noqa: A002
        """Return an item by its place."""
        *space, key = json.loads(id)
        with self.timed():
            item = self._store.get(tuple(space), key)
        return None if item is None else {"id": id, "text": str(item.value["text"]), "status": "active"}

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [floats(self.given.of(text)) for text in texts]


def _space(scope: str | None) -> tuple[str, str]:
    return ("memories", "default") if scope is None else ("scope", scope)
