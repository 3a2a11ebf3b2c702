"""
midas-memory behind the acceptance tests, as a library, with belief revision on and its offline embedder.

It has no keys, no lineage and no state between live and deleted: what needs them is unavailable. A scope is its
`namespace`, filtered on recall as its documentation shows, and `midas.access` says what a caller may see.
"""

# ruff: noqa: ARG002  # what is not there takes what it would take

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Sequence
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

from eval.atlas.agent_memory_atlas import Adapter, Case, Entry, Fact, Item, Key, Refused, Unavailable

_PROVENANCE = {"user": "user_confirmation", "agent": "observation", "document": "observation"}
_ACTOR = {"user": "user:ann", "agent": "agent:planner", "document": "tool:reader"}


class MidasAdapter(Adapter):
    """`midas.Memory` over its SQLite store."""

    name = "midas-memory"
    version = metadata.version("midas-memory")
    views = ("memory_state",)
    stores = ("memory_state", "store")
    write_paths = ("remember", "remember_many", "capture")
    calls: ClassVar[dict[str, str]] = {
        "by": "provenance= and actor=: user is user_confirmation, the others observation",
        "remember": "Memory.remember(kind='fact' where there is a key); keys, values and lineage have no place",
        "claim": "remember(provenance='user_confirmation'), which is the caller's to say",
        "supersede": "remember, with Memory(supersede=True): its similarity says what is superseded",
        "forget": "Memory.forget(id)", "feed": "remember_many",
        "write_by": "remember, remember_many, capture, which keeps what it finds important",
        "share": "a reader of several namespaces",
        "recall": "recall(limit=k, metadata_filter={'namespace': scope})",
        "recall_as": "recall with the namespace asked for, what comes back judged by access.can_access(strict=True)",
        "context": "build_context(metadata_filter=)", "get": "store.get, judged by access.can_access",
        "current": "of a past instant: recall(limit=1, as_of=) for the words of the key",
        "history": "audit.belief_history",
        "source_of": "store.get().source",
        "look": "state.memory_state(scope=), access.visible_records(strict=True)",
        "jobs": "consolidate, forget_expired, forget_decayed, with now= so many days ahead", "reopen": "close and open",
        "audit": "SQLiteStore.audit_log", "grant": "remember(provenance='user_confirmation') that says so",
        "revoke": "forget", "may": "guard_reliance(intended_use='external_action')",
    }  # fmt: skip

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._midas: Any = importlib.import_module("midas")
        self._access: Any = importlib.import_module("midas.access")
        self._readers: dict[str, list[str]] = {}
        self._open()

    def _open(self) -> None:
        store: Any = importlib.import_module("midas.sqlite_store")
        self._store = store.SQLiteStore(self.folder / "memory.db")
        self._memory = self._midas.Memory(store=self._store, supersede=True)

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def reopen(self) -> None:
        """Close and open."""
        self._store.close()
        self._open()

    # --- writing ------------------------------------------------------------------------------------------------------

    def remember(
        self, text: str, *, scope: str, by: str = "user", key: Key | None = None, value: str | None = None,
        source: str | None = None, derived_from: Sequence[str] = (), valid_from: datetime | None = None,
        valid_to: datetime | None = None, claim: str | None = None,
    ) -> str:  # fmt: skip
        """Remember."""
        del value
        if derived_from:
            raise Unavailable("it records no lineage")
        if valid_to is not None:
            raise Unavailable("a memory has no end of validity that a caller can state")
        fields = self._fields(text, scope, by, key, source)
        if claim == "user":
            fields["provenance"] = "user_confirmation"
        if valid_from is not None:
            fields["created_at"] = valid_from.timestamp()
        return str(self._memory.remember(**fields).id)

    def _fields(self, text: str, scope: str, by: str, key: Key | None, source: str | None) -> dict[str, Any]:
        return {
            "content": text, "kind": "fact" if key else "note", "source": source, "provenance": _PROVENANCE[by],
            "actor": _ACTOR[by], "metadata": {"namespace": scope},
        }  # fmt: skip

    def supersede(
        self, id: str, text: str, *, scope: str, by: str = "user", key: Key | None = None,  # noqa: A002
        value: str | None = None, valid_from: datetime | None = None,
    ) -> str:  # fmt: skip
        """State the newer text."""
        del id
        return self.remember(text, scope=scope, by=by, key=key, value=value, valid_from=valid_from)

    def retire(self, id: str, *, scope: str, by: str = "user") -> None:  # noqa: A002
        """Not there."""
        raise Unavailable("it forgets or supersedes; there is nothing between")

    def reject(self, id: str, *, scope: str) -> str:  # noqa: A002
        """Not there."""
        raise Unavailable("a forgotten value leaves nothing that keeps it out")

    def forget(self, id: str, *, scope: str, by: str = "user") -> None:  # noqa: A002
        """Forget by id; it is not told by whom, or where."""
        if not self._memory.forget(id):
            raise Refused("not found")

    def feed(self, facts: Sequence[Fact], *, scope: str) -> None:
        """Remember a batch."""
        items = [self._fields(fact.text, scope, "document", fact.key, fact.source) for fact in facts]
        self._memory.remember_many(items)

    def write_by(self, path: str, text: str, *, scope: str, key: Key | None = None, value: str | None = None) -> None:
        """Write as an agent."""
        del value
        fields = self._fields(text, scope, "agent", key, None)
        if path == "remember_many":
            self._memory.remember_many([fields])
        elif path == "capture":
            self._memory.capture(**fields)
        else:
            self._memory.remember(**fields)

    def share(self, id: str, *, scope: str, to: str) -> None:  # noqa: A002
        """Allow a reader one more namespace."""
        self._readers.setdefault(to, []).append(scope)

    # --- reading ------------------------------------------------------------------------------------------------------

    def recall(self, query: str, *, scope: str, k: int = 10) -> list[Item]:
        """Recall in each namespace that the reader is allowed."""
        found: list[Item] = []
        for place in (scope, *self._readers.get(scope, ())):
            hits = self._memory.recall(query, limit=k, metadata_filter={"namespace": place})
            found += [Item(str(hit.record.id), str(hit.record.content)) for hit in hits]
        return found[:k]

    def recall_as(self, query: str, *, scope: str, asked: str) -> list[Item]:
        """Recall what is asked for, and drop what the caller may not see."""
        filters = {"namespace": asked} if asked else None
        hits = self._memory.recall(query, metadata_filter=filters)
        allowed = [hit.record for hit in hits if self._access.can_access(hit.record, [scope], strict=True)]
        return [Item(str(record.id), str(record.content)) for record in allowed]

    def context(self, query: str, *, scope: str) -> str:
        """Return the block."""
        return str(self._memory.build_context(query, metadata_filter={"namespace": scope}).text)

    def get(self, id: str, *, scope: str) -> str | None:  # noqa: A002
        """Return a memory that the caller may see."""
        record = self._store.get(id)
        if record is None or not self._access.can_access(record, [scope], strict=True):
            return None
        return str(record.content)

    def current(self, key: Key, *, scope: str, valid_at: datetime | None = None, known_at: object = None) -> list[str]:
        """Return what is recalled first for the words of the key, as of an instant."""
        if known_at is not None:
            raise Unavailable("as_of is one axis of time: when a memory was recorded is not kept beside it")
        if valid_at is None:
            raise Unavailable("it has no keys: what holds now is what recall gives")
        hits = self._memory.recall(
            " ".join(key), limit=1, metadata_filter={"namespace": scope}, as_of=valid_at.timestamp()
        )
        return [str(hit.record.content) for hit in hits]

    def now(self) -> object:
        """Not there."""
        raise Unavailable("as_of is one axis of time: when a memory was recorded is not kept beside it")

    def history(self, id: str, *, scope: str) -> list[str]:  # noqa: A002
        """Return the chain."""
        audit: Any = importlib.import_module("midas.audit")
        return [str(record.content) for record in audit.belief_history(self._memory, id)]

    def source_of(self, id: str, *, scope: str) -> str | None:  # noqa: A002
        """Return the source."""
        source = self._store.get(id).source
        return None if source is None else str(source)

    def look(self, where: str, *, scope: str) -> list[str]:
        """Return what its state view or its store shows."""
        if where == "store":
            records = self._access.visible_records(self._memory, [scope], strict=True)
        else:
            state: Any = importlib.import_module("midas.state")
            records = state.memory_state(self._memory, scope={"namespace": scope})
        return [str(record.content) for record in records]

    # --- upkeep and oversight -----------------------------------------------------------------------------------------

    def jobs(self, *, days: int = 0) -> None:
        """Run what its `maintain` runs."""
        now = time.time() + days * 86_400
        self._memory.consolidate(now=now)
        self._memory.forget_expired({"chat": 30.0, "note": 90.0}, now=now)
        self._memory.forget_decayed(now=now, max_records=50_000)

    def audit(self, *, scope: str) -> list[Entry]:
        """Return the chain of the whole store, which does not say of which namespace an entry is."""
        return [
            Entry(str(entry["seq"]), str(entry["op"]), str(entry["record_id"]), json.dumps(entry))
            for entry in self._store.audit_log()
        ]

    def grant(self, action: str, *, scope: str) -> str:
        """Remember that the user approved it."""
        return self.remember(f"The user approved: {action}.", scope=scope, claim="user")

    def revoke(self, grant: str, *, scope: str) -> None:
        """Forget that."""
        self.forget(grant, scope=scope)

    def may(self, action: str, *, evidence: Sequence[str], scope: str) -> bool:
        """Ask its guard, which recalls the evidence itself."""
        verdict = self._memory.guard_reliance(
            action, intended_use="external_action", acting_agent=_ACTOR["agent"], metadata_filter={"namespace": scope}
        )
        return bool(verdict.allowed)

    def negative_case(self) -> Case:
        """Not there."""
        raise Unavailable("the package on the index has no tests in it")
