"""
inspeximus behind the acceptance tests, as a library, words only, with receipts and its authority rule on.

A scope is its tenant, a key is `subject::attribute` as its documentation advises. Every write names a source with an
authority, since its rules act on these: user 1.0, agent 0.6, document 0.3.
"""

# ruff: noqa: ARG002  # what is not there takes what it would take

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

from eval.atlas.agent_memory_atlas import Adapter, Case, Entry, Fact, Item, Key, Refused, Unavailable

_AUTHORITY = {"user": 1.0, "agent": 0.6, "document": 0.3, "operator": 1.0}


class InspeximusAdapter(Adapter):
    """`inspeximus.Inspeximus`, a view of a tenant for each scope."""

    name = "inspeximus"
    version = metadata.version("inspeximus")
    views = ("current", "graph")
    stores = ("current", "graph", "items", "history")
    write_paths = ("remember", "admit", "remember_dedup")
    calls: ClassVar[dict[str, str]] = {
        "by": "source={'doc':, 'authority':} with Inspeximus(supersession='authority', receipts=True)",
        "remember": "for_tenant(scope).remember(key=, object=, source=, derived_from=, valid_from=, "
        "raise_on_block=True)",
        "claim": "source={'doc': 'user', 'authority': 1.0}, which is the caller's to say",
        "supersede": "remember under the same key", "retire": "retire(key)", "reject": "retire(key)",
        "forget": "forget_subject of the record's source, which reaches what derives from it; operator: without a "
        "tenant",
        "feed": "remember of each, blocked ones left out", "write_by": "remember, admit, remember_dedup",
        "share": "grant(agent=, ids=), read by as_agent",
        "recall": "refresh, recall(k=)", "recall_as": "recall(scope=, where={'tenant': ...}) on the tenant's view",
        "get": "items of the tenant's view", "current": "current(key); as_of(key, when, as_recorded)",
        "now": "the wall clock", "history": "history(key)", "source_of": "the record's source",
        "look": "current(key) of every key, graph(), items, history(key)",
        "jobs": "sleep(retention_days=365), consolidate(), apply_retention(max_age_days= 365 less the days)",
        "reindex": "reload()", "reopen": "flush and open", "audit": "poll_events of the tenant's view",
        "tombstones": "erasure_report", "status": "the record's status, or a standing objection",
        "withhold": "object_processing(subject=source)", "propose": "remember(provisional=True)",
        "waiting": "provisional()", "review": "confirm or discard_provisional", "restore": "revert(key)",
    }  # fmt: skip

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._module: Any = importlib.import_module("inspeximus")
        self._written = 0
        self._granted: dict[str, list[str]] = {}
        self._open()

    def _open(self) -> None:
        path = str(self.folder / "memory.json")
        self._store = self._module.Inspeximus(path, receipts=True, supersession="authority")

    def close(self) -> None:
        """Write what is pending."""
        self._store.flush()

    def reopen(self) -> None:
        """Write and open."""
        self._store.flush()
        self._open()

    def _view(self, scope: str) -> Any:
        return self._store.for_tenant(scope)

    def _record(self, id: str, scope: str) -> dict[str, Any]:  # noqa: A002
        for record in self._view(scope).items:
            if record["id"] == id:
                return dict(record)
        raise Refused("no such record in this tenant")

    def _key(self, id: str, scope: str) -> str:  # noqa: A002
        key = self._record(id, scope).get("key")
        if not key:
            raise Unavailable("it corrects, retires and tells the history of keys: this record has none")
        return str(key)

    # --- writing ------------------------------------------------------------------------------------------------------

    def remember(
        self, text: str, *, scope: str, by: str = "user", key: Key | None = None, value: str | None = None,
        source: str | None = None, derived_from: Sequence[str] = (), valid_from: datetime | None = None,
        valid_to: datetime | None = None, claim: str | None = None,
    ) -> str:  # fmt: skip
        """Remember; an end of validity has no place, and is left out."""
        del valid_to
        self._written += 1
        authority = 1.0 if claim == "user" else _AUTHORITY[by]
        fields = self._keyed(key, value)
        fields["source"] = {"doc": source or f"{by}/{self._written}", "authority": authority}
        if derived_from:
            fields["derived_from"] = list(derived_from)
        if valid_from is not None:
            fields["valid_from"] = valid_from.timestamp()
        return self._taken(lambda view: view.remember(text, raise_on_block=True, **fields), scope)

    def _keyed(self, key: Key | None, value: str | None) -> dict[str, Any]:
        return {} if key is None else {"key": "::".join(key), "object": value}

    def _taken(self, write: Callable[[Any], Any], scope: str) -> str:
        try:
            written = write(self._view(scope))
        except self._module.WriteBlocked as error:
            raise Refused(str(error)[:120]) from error
        return str(written["id"] if isinstance(written, dict) else written)

    def supersede(
        self, id: str, text: str, *, scope: str, by: str = "user", key: Key | None = None,  # noqa: A002
        value: str | None = None, valid_from: datetime | None = None,
    ) -> str:  # fmt: skip
        """State the newer value of the record's key."""
        there = self._key(id, scope).split("::", 1)
        return self.remember(
            text, scope=scope, by=by, key=key or (there[0], there[-1]), value=value, valid_from=valid_from
        )

    def retire(self, id: str, *, scope: str, by: str = "user") -> None:  # noqa: A002
        """End the key."""
        self._view(scope).retire(self._key(id, scope), "it does not hold")

    def reject(self, id: str, *, scope: str) -> str:  # noqa: A002
        """End the key: its guard against echoes is what keeps an old value out."""
        key = self._key(id, scope)
        self._view(scope).retire(key, "it was wrong")
        return key

    def lift(self, receipt: str, *, scope: str) -> None:
        """Not there."""
        raise Unavailable("a retired key has nothing that is lifted")

    def forget(self, id: str, *, scope: str, by: str = "user") -> None:  # noqa: A002
        """Erase the record's source."""
        record = self._record(id, scope)
        eraser = self._store if by == "operator" else self._view(scope)
        if not eraser.forget_subject(record["source"]["doc"], basis="asked")["erased"]:
            raise Refused("nothing was erased")

    def feed(self, facts: Sequence[Fact], *, scope: str) -> None:
        """Remember each."""
        for fact in facts:
            try:
                self.remember(fact.text, scope=scope, by="document", key=fact.key, value=fact.value, source=fact.source)
            except Refused:
                continue

    def write_by(self, path: str, text: str, *, scope: str, key: Key | None = None, value: str | None = None) -> None:
        """Write as an agent: plainly, through its quality gate, or without near duplicates, which takes no key."""
        self._written += 1
        fields = self._keyed(key, value) | {"source": {"doc": f"agent/{self._written}", "authority": 0.6}}
        if path == "admit":
            self._taken(lambda view: view.admit(text, **fields), scope)
        elif path == "remember_dedup":
            self._taken(lambda view: view.remember_dedup(text), scope)
        else:
            self._taken(lambda view: view.remember(text, raise_on_block=True, **fields), scope)

    def share(self, id: str, *, scope: str, to: str) -> None:  # noqa: A002
        """Grant one record to the other's agent."""
        self._view(scope).grant(agent=to, ids=[id])
        self._granted.setdefault(to, []).append(scope)

    # --- reading ------------------------------------------------------------------------------------------------------

    def recall(self, query: str, *, scope: str, k: int = 10) -> list[Item]:
        """Recall in the tenant, and what was granted to it elsewhere."""
        self._store.refresh()
        hits = list(self._view(scope).recall(query, k=k))
        for other in self._granted.get(scope, ()):
            hits += self._view(other).as_agent(scope).recall(query, k=k)
        return [Item(str(hit["id"]), str(hit["text"])) for hit in hits][:k]

    def recall_as(self, query: str, *, scope: str, asked: str) -> list[Item]:
        """Recall on the tenant's view, the other scope in each argument."""
        self._store.refresh()
        view, found = self._view(scope), list[Item]()
        attempts: list[dict[str, Any]] = [{}, {"scope": asked}, {"where": {"tenant": asked}}, {"tenant": asked}]
        for attempt in attempts:
            try:
                found += [Item(str(hit["id"]), str(hit["text"])) for hit in view.recall(query, **attempt)]
            except (TypeError, ValueError):
                continue
        return found

    def context(self, query: str, *, scope: str) -> str:
        """Not there."""
        raise Unavailable("recall gives records; its blocks for prompts are digests of sessions")

    def get(self, id: str, *, scope: str) -> str | None:  # noqa: A002
        """Return a record of the tenant."""
        try:
            return str(self._record(id, scope)["text"])
        except Refused:
            return None

    def current(self, key: Key, *, scope: str, valid_at: datetime | None = None, known_at: object = None) -> list[str]:
        """Return what the key serves, or served."""
        name, view = "::".join(key), self._view(scope)
        if valid_at is None and known_at is None:
            found = view.current(name)
        else:
            when = time.time() if valid_at is None else valid_at.timestamp()
            found = view.as_of(name, when, as_recorded=known_at)
        return [] if found is None else [str(found["text"])]

    def now(self) -> object:
        """Return the time."""
        return time.time()

    def history(self, id: str, *, scope: str) -> list[str]:  # noqa: A002
        """Return the timeline of the record's key."""
        return [str(step["text"]) for step in self._view(scope).history(self._key(id, scope))]

    def source_of(self, id: str, *, scope: str) -> str | None:  # noqa: A002
        """Return the source."""
        return str(self._record(id, scope)["source"]["doc"])

    def look(self, where: str, *, scope: str) -> list[str]:
        """Return what a view or store shows."""
        view = self._view(scope)
        keys = sorted({str(record["key"]) for record in view.items if record.get("key")})
        if where == "items":
            return [str(record["text"]) for record in view.items]
        if where == "graph":
            return [str(edge["text"]) for edge in view.graph()["edges"]]
        if where == "history":
            return [str(step["text"]) for key in keys for step in view.history(key)]
        return [str(found["text"]) for key in keys if (found := view.current(key)) is not None]

    # --- upkeep and oversight -----------------------------------------------------------------------------------------

    def jobs(self, *, days: int = 0) -> None:
        """Run its upkeep."""
        self._store.sleep(retention_days=365)
        self._store.consolidate()
        self._store.apply_retention(max_age_days=max(0, 365 - days))

    def reindex(self) -> None:
        """Read the file again; without an embedder there are no vectors to make."""
        self._store.flush()
        self._store.reload()

    def audit(self, *, scope: str) -> list[Entry]:
        """Return the tenant's events."""
        return [
            Entry(str(event["seq"]), str(event["type"]), str(event["memory_id"]), json.dumps(event))
            for event in self._view(scope).poll_events(0, limit=10_000)
        ]

    def tombstones(self, *, scope: str) -> list[str]:
        """Return the tombstones of its erasures."""
        return [json.dumps(one) for one in self._view(scope).erasure_report()["erasures"]]

    def status(self, id: str, *, scope: str) -> str:  # noqa: A002
        """Return the status."""
        record = self._record(id, scope)
        objections = self._view(scope).objections()
        if any(one["subject"] == record["source"]["doc"] and one["status"] == "standing" for one in objections):
            return "under objection"
        return str(record["status"])

    def withhold(self, id: str, *, scope: str) -> None:  # noqa: A002
        """Object to the processing of the record's source."""
        doc = self._record(id, scope)["source"]["doc"]
        self._view(scope).object_processing(doc, actor="ann", ground="own_situation")

    def propose(self, text: str, *, scope: str, key: Key | None = None, value: str | None = None) -> str:
        """Write provisionally."""
        fields = self._keyed(key, value)
        return self._taken(lambda view: view.remember(text, provisional=True, **fields), scope)

    def waiting(self, *, scope: str) -> list[Item]:
        """Return the queue."""
        return [Item(str(one["id"]), str(one["text"])) for one in self._view(scope).provisional()]

    def review(self, id: str, *, approve: bool, scope: str) -> None:  # noqa: A002
        """Confirm or discard."""
        view = self._view(scope)
        if approve:
            view.confirm(id, by="ann")
        else:
            view.discard_provisional(id, basis="looked at")

    def restore(self, id: str, *, scope: str) -> None:  # noqa: A002
        """Revert the key."""
        if not self._view(scope).revert(self._key(id, scope), reason="it was right").get("ok"):
            raise Refused("not reverted")

    def may(self, action: str, *, evidence: Sequence[str], scope: str) -> bool:
        """Not there."""
        raise Unavailable("it keeps a ledger of actions and a budget for each source; nobody grants an action")

    def negative_case(self) -> Case:
        """Not there."""
        raise Unavailable("the package on the index has no tests in it")
