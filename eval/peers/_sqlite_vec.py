"""sqlite-vec behind the protocol: a plain table for texts and a vec0 table for vectors, in one transaction a write."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar

from . import _protocol
from ._protocol import DIM, Hit, Json, Memory


class Adapter(_protocol.Adapter):
    """Its partition key is our scope."""

    name = "sqlite-vec"
    # Not every Python is built so that its own sqlite3 can load extensions; this one always is.
    requirements = ("sqlite-vec==0.1.9", "pysqlite3-binary==0.5.4")
    versions = ("sqlite-vec", "pysqlite3-binary")
    sqlite = "pysqlite3"
    settings: ClassVar = {
        "durability": "WAL, synchronous=FULL, a commit for each write",
        "recall": "vectors, vec0, exact, cosine",
        "vectors": "given with the write",
        "batch": "executemany in one transaction",
        "at rest": "plain",
    }
    lacks: ClassVar = {
        "retire": "it is tables: update and delete",
        "current": "it has no keys",
        "history": "an update overwrites",
        "settle": "nothing follows a bulk load",
    }

    def __init__(self) -> None:
        super().__init__()
        self._sqlite: Any = import_module("pysqlite3")
        self._vec: Any = import_module("sqlite_vec")

    def open(self) -> None:
        """Open the database with the extension, and make the tables."""
        with self.timed():
            self._db = self._sqlite.connect(str(self.folder / "memory.db"))
            self._db.enable_load_extension(True)
            self._vec.load(self._db)
            self._db.enable_load_extension(False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute("CREATE TABLE IF NOT EXISTS memories (id INTEGER PRIMARY KEY, text TEXT, at REAL)")
            self._db.execute(
                "CREATE VIRTUAL TABLE IF NOT EXISTS vectors USING vec0"
                f"(id INTEGER PRIMARY KEY, scope TEXT PARTITION KEY, vector FLOAT[{DIM}] DISTANCE_METRIC=cosine)"
            )

    def close(self) -> None:
        """Close it."""
        with self.timed():
            self._db.close()

    def remember(self, memory: Memory) -> str:
        """Insert one."""
        return self.remember_many([memory])[0]

    def remember_many(self, memories: Sequence[Memory]) -> list[str]:
        """Insert a batch in one transaction."""
        texts = [memory.text for memory in memories]
        vectors = [(one.scope or "", self.given.vector(one.text, one.vector)) for one in memories]
        with self.timed(), self._db:
            # The write lock first: two processes must not take the same numbers.
            self._db.execute("BEGIN IMMEDIATE")
            first = self._db.execute("SELECT coalesce(max(id), 0) + 1 FROM memories").fetchone()[0]
            at = time.time()
            self._db.executemany(
                "INSERT INTO memories VALUES (?, ?, ?)", [(first + n, text, at) for n, text in enumerate(texts)]
            )
            self._db.executemany(
                "INSERT INTO vectors (id, scope, vector) VALUES (?, ?, ?)",
                [(first + n, *row) for n, row in enumerate(vectors)],
            )
        return [str(first + n) for n in range(len(memories))]

    def supersede(self, id: str, memory: Memory) -> str:  # noqa: A002
        """Overwrite in place."""
        vector = self.given.vector(memory.text, memory.vector)
        with self.timed(), self._db:
            self._db.execute("UPDATE memories SET text = ?, at = ? WHERE id = ?", (memory.text, time.time(), int(id)))
            self._db.execute("UPDATE vectors SET vector = ? WHERE id = ?", (vector, int(id)))
        return id

    def forget(self, id: str) -> None:  # noqa: A002
        """Delete."""
        with self.timed(), self._db:
            self._db.execute("DELETE FROM memories WHERE id = ?", (int(id),))
            self._db.execute("DELETE FROM vectors WHERE id = ?", (int(id),))

    def clean_up(self) -> str:
        """Rewrite the file without its free pages, and cut the log."""
        with self.timed():
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return "VACUUM and a checkpoint"

    def recall(self, text: str, vector: bytes, k: int, scope: str | None = None) -> list[Hit]:
        """Search by vector."""
        given = self.given.vector(text, vector)
        with self.timed():
            rows = self._db.execute(
                "SELECT m.id, m.text, m.at FROM (SELECT id, distance FROM vectors WHERE vector MATCH ? AND k = ? "
                "AND scope = ?) AS found JOIN memories AS m ON m.id = found.id ORDER BY found.distance",
                (given, k, scope or ""),
            ).fetchall()
        return [Hit(str(one), str(found), str(at)) for one, found, at in rows]

    def get(self, id: str) -> dict[str, Json] | None:  # noqa: A002
        """Return a row by id."""
        with self.timed():
            row = self._db.execute("SELECT text FROM memories WHERE id = ?", (int(id),)).fetchone()
        return None if row is None else {"id": id, "text": row[0], "status": "active"}
