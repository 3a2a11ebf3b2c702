"""chromadb behind the protocol: its persistent client, a collection for each scope."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar

from . import _protocol
from ._protocol import Hit, Json, Memory, floats


class Adapter(_protocol.Adapter):
    """Ids are given by us: `collection/id`, since an id alone does not say which collection has it."""

    name = "chromadb"
    requirements = ("chromadb==1.5.9",)
    versions = ("chromadb",)
    settings: ClassVar = {
        "durability": "PersistentClient as shipped: a queue in SQLite, then an HNSW file written every 1,000 vectors; "
        "no durability setting is documented",
        "recall": "vectors, HNSW, cosine, defaults (ef_search 100)",
        "vectors": "given with the write",
        "batch": "collection.add of the whole batch",
        "processes": "its documentation says that it is not process-safe, and offers a server for that",
        "at rest": "plain",
    }
    lacks: ClassVar = {
        "retire": "it has update and delete",
        "current": "it has no keys",
        "history": "an update overwrites",
        "settle": "nothing follows a bulk load",
        "clean_up": "the client has no maintenance call; `chroma vacuum` is a command for a stopped database",
    }

    def __init__(self) -> None:
        super().__init__()
        self._module: Any = import_module("chromadb")
        self._settings: Any = import_module("chromadb.config").Settings(anonymized_telemetry=False)
        self._collections: dict[str, Any] = {}

    def open(self) -> None:
        """Open the client and the default collection."""
        with self.timed():
            self._client = self._module.PersistentClient(str(self.folder), settings=self._settings)
            self._collection(None)

    def close(self) -> None:
        """Close the client."""
        with self.timed():
            self._client.close()
        self._collections.clear()

    def remember(self, memory: Memory) -> str:
        """Add one."""
        return self.remember_many([memory])[0]

    def remember_many(self, memories: Sequence[Memory]) -> list[str]:
        """Add a batch, all in the first one's scope."""
        collection = self._collection(memories[0].scope)
        ids = [uuid.uuid4().hex for _ in memories]
        texts = [memory.text for memory in memories]
        vectors = [floats(self.given.vector(memory.text, memory.vector)) for memory in memories]
        with self.timed():
            collection.add(ids=ids, documents=texts, embeddings=vectors)
        return [f"{collection.name}/{one}" for one in ids]

    def supersede(self, id: str, memory: Memory) -> str:  # noqa: A002
        """Overwrite in place."""
        collection, key = self._place(id)
        vector = floats(self.given.vector(memory.text, memory.vector))
        with self.timed():
            collection.update(ids=[key], documents=[memory.text], embeddings=[vector])
        return id

    def forget(self, id: str) -> None:  # noqa: A002
        """Delete."""
        collection, key = self._place(id)
        with self.timed():
            collection.delete(ids=[key])

    def recall(self, text: str, vector: bytes, k: int, scope: str | None = None) -> list[Hit]:
        """Query by vector."""
        collection, numbers = self._collection(scope), floats(self.given.vector(text, vector))
        with self.timed():
            found = collection.query(query_embeddings=[numbers], n_results=k, include=["documents"])
        pairs = zip(found["ids"][0], found["documents"][0], strict=True)
        return [Hit(f"{collection.name}/{one}", str(document)) for one, document in pairs]

    def get(self, id: str) -> dict[str, Json] | None:  # noqa: A002
        """Return a document by id."""
        collection, key = self._place(id)
        with self.timed():
            found = collection.get(ids=[key], include=["documents"])
        return {"id": id, "text": found["documents"][0], "status": "active"} if found["ids"] else None

    def _collection(self, scope: str | None) -> Any:
        name = "memories" if scope is None else f"scope-{scope.encode().hex()}"
        if name not in self._collections:
            self._collections[name] = self._client.get_or_create_collection(
                name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
            )
        return self._collections[name]

    def _place(self, id: str) -> tuple[Any, str]:  # noqa: A002
        name, _, key = id.partition("/")
        return self._client.get_collection(name, embedding_function=None), key
