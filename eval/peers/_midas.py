"""midas-memory behind the protocol: its SQLite store, with its own belief revision on."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import ClassVar, Final

from . import _protocol
from ._protocol import Hit, Json, Memory, floats

_KINDS: Final = frozenset({"note", "chat", "mission", "fact", "preference", "constraint", "commitment"})
_PROJECT: Final = "eval"


class _GivenEmbedder:
    """Its embedder's face over vectors that were made before."""

    # What its own semantic embedders declare.
    min_relevance = 0.0
    dim = _protocol.DIM

    def __init__(self, given: _protocol.Given) -> None:
        self._given = given

    def embed(self, text: str) -> list[float]:
        """Return the vector of a text in hand."""
        return floats(self._given.of(text))

    def embed_many(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of texts in hand."""
        return [self.embed(text) for text in texts]


class Adapter(_protocol.Adapter):
    """What it calls a project is our scope for rules, a metadata filter for memories."""

    name = "midas"
    requirements = ("midas-memory==1.0.0", "numpy==2.4.6")
    versions = ("midas-memory", "numpy")
    sqlite = "sqlite3"
    settings: ClassVar = {
        "durability": "SQLite WAL, synchronous=FULL (the connection's default), a commit for each memory",
        "recall": "default: vectors (exact, numpy), importance and recency; hybrid off, as it is by default",
        "vectors": "given, made in the call that writes",
        "batch": "remember_many, which commits each memory by itself",
        "belief revision": "supersede=True, as its documentation shows; it is by similarity, without an id or a key",
        "at rest": "plain",
    }
    lacks: ClassVar = {
        "retire": "it forgets or supersedes; there is nothing between",
        "current": "it has no keys",
        "settle": "nothing follows a bulk load",
        "clean_up": "its store has no maintenance call",
        "supersede": "what a new text supersedes is for its similarity to say: it cannot be told an id",
        "confirm": "a confirmation is a memory that says so, from whoever calls it one",
    }

    def __init__(self) -> None:
        super().__init__()
        self._module = import_module("midas")
        self._coding = import_module("midas.coding")

    def open(self) -> None:
        """Open its SQLite store."""
        with self.timed():
            self._store = self._module.SQLiteStore(self.folder / "memory.db")
            self._memory = self._module.Memory(store=self._store, embedder=_GivenEmbedder(self.given), supersede=True)

    def close(self) -> None:
        """Close it."""
        with self.timed():
            self._store.close()

    def remember(self, memory: Memory) -> str:
        """Remember."""
        fields = self._fields(memory)
        with self.timed():
            identity = self._memory.remember(**fields).id
        self.given.drop()
        return str(identity)

    def remember_many(self, memories: Sequence[Memory]) -> list[str]:
        """Remember by its batch call."""
        items = [self._fields(memory) for memory in memories]
        with self.timed():
            records = self._memory.remember_many(items)
        self.given.drop()
        return [str(record.id) for record in records]

    def forget(self, id: str) -> None:  # noqa: A002
        """Forget by id."""
        with self.timed():
            found = self._memory.forget(id)
        if not found:
            raise _protocol.Refused("not found")

    def recall(self, text: str, vector: bytes, k: int, scope: str | None = None) -> list[Hit]:
        """Recall with the defaults."""
        return self._recall(text, vector, k, scope, None)

    def as_of(self, instant: float, text: str, vector: bytes, k: int, scope: str | None = None) -> list[Hit]:
        """Recall what memory said then."""
        return self._recall(text, vector, k, scope, instant)

    def _recall(self, text: str, vector: bytes, k: int, scope: str | None, instant: float | None) -> list[Hit]:
        self.given.hand(text, vector)
        filters = None if scope is None else {"scope": scope}
        with self.timed():
            hits = self._memory.recall(text, limit=k, metadata_filter=filters, as_of=instant)
        self.given.drop()
        return [Hit(str(hit.record.id), str(hit.record.content), str(hit.record.created_at)) for hit in hits]

    def get(self, id: str) -> dict[str, Json] | None:  # noqa: A002
        """Return a memory by id."""
        with self.timed():
            found = self._store.get(id)
        if found is None:
            return None
        status = "superseded" if found.superseded_by else "active"
        return {"id": found.id, "text": found.content, "status": status, "provenance": found.provenance}

    def history(self, id: str) -> list[str]:  # noqa: A002
        """Return the texts whose chain of supersessions leads through a memory."""
        with self.timed():
            records = {record.id: record for record in self._store.all()}
            chain = [records[id]] if id in records else []
            while chain and (last := chain[-1].superseded_by) in records:
                chain.append(records[last])
            while chain and (before := [r for r in records.values() if r.superseded_by == chain[0].id]):
                chain.insert(0, before[0])
        return [str(record.content) for record in chain]

    def prohibit(self, action: _protocol.Action, scope: str | None = None) -> str:
        """Remember a forbidden action, in words."""
        rule = f"never {_words(action)}"
        self.given.hand(rule, _protocol.words_vector(rule))
        with self.timed():
            return str(self._coding.remember_forbidden_action(self._memory, rule, project=scope or _PROJECT).id)

    def guard(
        self, action: _protocol.Action, use: str, evidence: Sequence[str] = (), scope: str | None = None
    ) -> dict[str, Json]:
        """Ask its guard and, for acts, its forbidden actions; it recalls the evidence itself."""
        del evidence
        words = _words(action)
        self.given.hand(words, _protocol.words_vector(words))
        filters = None if scope is None else {"scope": scope}
        with self.timed():
            verdict = self._memory.guard_reliance(words, intended_use=use, metadata_filter=filters)
            rules = self._coding.is_forbidden(self._memory, words, scope or _PROJECT)
        allowed = bool(verdict.allowed) and not (rules and use in ("external_action", "destructive_action"))
        return {"allowed": allowed, "reasons": [str(getattr(verdict, "reason", ""))]}

    def _fields(self, memory: Memory) -> dict[str, object]:
        self.given.hand(memory.text, memory.vector)
        fields: dict[str, object] = {
            "content": memory.text,
            "kind": memory.kind if memory.kind in _KINDS else "note",
            "source": memory.origin,
            "provenance": "user_confirmation" if memory.origin == "user" else "observation",
            "actor": "user" if memory.origin == "user" else "agent:eval",
        }
        if memory.scope is not None:
            fields["metadata"] = {"scope": memory.scope}
        if memory.valid_from is not None:
            fields["created_at"] = memory.valid_from
        return fields


def _words(action: _protocol.Action) -> str:
    arguments = action.get("args", {})
    told = " ".join(f"{name} {value}" for name, value in arguments.items()) if isinstance(arguments, dict) else ""
    return f"{str(action['name']).replace('.', ' ')} {told}".strip()
