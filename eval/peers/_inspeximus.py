"""inspeximus behind the protocol: its row store, with vectors kept and its hybrid recall."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar, cast

from . import _protocol
from ._protocol import Hit, Json, Memory, Refused, floats


class Adapter(_protocol.Adapter):
    """Its tenant is our scope; its key is `subject::attribute`, as its documentation advises."""

    name = "inspeximus"
    requirements = ("inspeximus==3.23.1", "numpy==2.4.6")
    versions = ("inspeximus", "numpy")
    sqlite = "sqlite3"
    settings: ClassVar = {
        "durability": "SQLite rollback journal, synchronous=NORMAL, which is its own choice: survives a crash, "
        "not every power cut",
        "recall": "default mode: words below 300 memories, words and vectors fused above; refresh() before each, "
        "as its documentation tells long-lived handles",
        "vectors": "given, made in the call that writes; persist_vectors=True",
        "batch": "none",
        "receipts": "off, as by default",
        "at rest": "plain; secure_delete=ON",
    }
    lacks: ClassVar = {
        "remember_many": "it has no call for batches",
        "supersede": "it supersedes by key: not without one",
        "retire": "it retires a key: not a memory without one",
        "settle": "nothing follows a bulk load",
        "guard": "it keeps a ledger of actions and a budget; it decides on no action",
    }

    def __init__(self) -> None:
        super().__init__()
        self._module = import_module("inspeximus")
        self._handles: dict[str | None, Any] = {}

    def open(self) -> None:
        """Open the store."""
        with self.timed():
            self._handle(None)

    def close(self) -> None:
        """Write what is pending."""
        with self.timed():
            for handle in self._handles.values():
                handle.flush()
            self._handles.clear()

    def remember(self, memory: Memory) -> str:
        """Remember, under its key where it has one."""
        handle, fields = self._handle(memory.scope), self._fields(memory)
        with self.timed():
            identity = handle.remember(memory.text, **fields)
        self.given.drop()
        last = handle.last_write
        if last and last.get("blocked"):
            raise Refused(f"{last.get('policy')}: {last.get('note')}")
        return str(identity)

    def supersede(self, id: str, memory: Memory) -> str:  # noqa: A002
        """State the newer value of the key."""
        if memory.about is None:
            raise self._no("supersede")
        del id
        return self.remember(memory)

    def retire(self, id: str, reason: str) -> None:  # noqa: A002
        """End the memory's key."""
        record = self._record(id)
        if not record.get("key"):
            raise self._no("retire")
        handle = self._handle(record.get("tenant"))
        with self.timed():
            handle.retire(record["key"], reason)

    def forget(self, id: str) -> None:  # noqa: A002
        """Delete for good."""
        with self.timed():
            done = self._handle(None).forget(ids=[id])
        if not done["forgotten"]:
            raise Refused("not found")

    def clean_up(self) -> str:
        """Give free pages back."""
        with self.timed():
            done = self._handle(None).vacuum()
        return f"vacuum(): {done.get('vacuumed')}"

    def recall(self, text: str, vector: bytes, k: int, scope: str | None = None) -> list[Hit]:
        """Recall with the defaults, what other processes wrote included."""
        return self._recall(text, vector, k, scope, None)

    def as_of(self, instant: float, text: str, vector: bytes, k: int, scope: str | None = None) -> list[Hit]:
        """Recall what was valid then, which is what was recorded then unless a memory says otherwise."""
        return self._recall(text, vector, k, scope, instant)

    def _recall(self, text: str, vector: bytes, k: int, scope: str | None, instant: float | None) -> list[Hit]:
        self.given.hand(text, vector)
        handle = self._handle(scope)
        with self.timed():
            handle.refresh()
            hits = handle.recall(text, k=k, as_of=instant)
        self.given.drop()
        return [Hit(str(hit["id"]), str(hit["text"]), str(hit.get("iso"))) for hit in hits]

    def get(self, id: str) -> dict[str, Json] | None:  # noqa: A002
        """Return a record by id."""
        with self.timed():
            found = next((record for record in self._records() if record["id"] == id), None)
        return None if found is None else {"id": id, "text": found["text"], "status": found.get("status", "active")}

    def current(self, about: tuple[str, str], scope: str | None = None) -> str | None:
        """Return the value that the key serves."""
        handle = self._handle(scope)
        with self.timed():
            handle.refresh()
            found = handle.current("::".join(about))
        return None if found is None else str(found["text"])

    def history(self, id: str) -> list[str]:  # noqa: A002
        """Return the timeline of the memory's key."""
        record = self._record(id)
        if not record.get("key"):
            raise _protocol.Unavailable("it keeps the history of keys: this memory has none")
        handle = self._handle(record.get("tenant"))
        with self.timed():
            steps = handle.history(record["key"])
        return [str(step["text"]) for step in steps]

    def _handle(self, scope: str | None) -> Any:
        if scope not in self._handles:
            # A handle for each tenant: the views of `for_tenant` cannot recall where the store has an embedder.
            self._handles[scope] = self._module.Inspeximus(
                str(self.folder / "memory.json"),
                embed=self._embed,
                embed_id="given",
                persist_vectors=True,
                tenant=scope,
            )
        return self._handles[scope]

    def _embed(self, text: str) -> list[float]:
        return floats(self.given.of(text))

    def _records(self) -> list[dict[str, Any]]:
        """Return every tenant's records, as the handle without a tenant sees them."""
        handle = self._handle(None)
        handle.refresh()
        return cast("list[dict[str, Any]]", handle.items)

    def _record(self, id: str) -> dict[str, Any]:  # noqa: A002
        found = next((record for record in self._records() if record["id"] == id), None)
        if found is None:
            raise Refused("not found")
        return dict(found)

    def _fields(self, memory: Memory) -> dict[str, object]:
        self.given.hand(memory.text, memory.vector)
        fields: dict[str, object] = {}
        if memory.about is not None:
            fields |= {"key": "::".join(memory.about), "object": memory.value or memory.text}
        if memory.origin is not None:
            fields["source"] = {"doc": memory.origin}
        if memory.derived_from:
            fields["derived_from"] = list(memory.derived_from)
        if memory.valid_from is not None:
            fields["valid_from"] = memory.valid_from
        return fields
