"""Muniment behind the protocol, through its public face."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

import muniment
from eval._erasure_open import open_all, read_keys
from muniment import Session, Store, UserSession

from . import _protocol
from ._protocol import DIM, Given, Hit, Json, Memory, Refused

T = TypeVar("T")
_SCOPE: Final = "eval"
_AGENT: Final = "agent:eval"
_ANN: Final = "user:ann"
_AT_ONCE: Final = 256
"""As many missing vectors as a question makes itself; beyond that words answer alone, and `settle` makes them."""


class _GivenEmbedder:
    """An embedder's face over vectors that were made before."""

    model_id = "given"
    dim = DIM

    def __init__(self, given: Given) -> None:
        self._given = given

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts in hand."""
        return np.frombuffer(b"".join(map(self._given.of, texts)), dtype="<f4").reshape(-1, DIM)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question in hand."""
        return np.frombuffer(self._given.of(text), dtype="<f4")

    def embed_windows(self, text: str) -> NDArray[np.float32]:
        """Return the one vector of a text."""
        return self.embed([text])


class Adapter(_protocol.Adapter):
    """Muniment from this checkout, in the interpreter of the runner."""

    name = "muniment"
    versions = ("numpy", "hnswlib", "duckdb")
    settings: ClassVar = {
        "durability": "every write is synced to the disk before it returns; it has no weaker setting",
        "recall": "default: words, vectors and the turns around, fused; every recall reads the log's tail first",
        "vectors": "given; made at the first recall after a write, or by store.embed()",
        "batch": "remember_many, one lock and one sync",
        "at rest": "sealed: a body under its memory's own key",
    }
    lacks: ClassVar = {"clean_up": "nothing is left to clean up: the key goes with the forget"}

    def __init__(self) -> None:
        super().__init__()
        self._sessions: dict[str, Session] = {}

    def open(self) -> None:
        """Open or make the store; the user's key is kept beside it, outside."""
        with self.timed():
            self._store: Store = muniment.open(self.folder / "store", create=True)
        # The one place where the given vectors get in: `muniment.open` takes an ONNX file, which would have to be run.
        self._store._engine.dense._load = lambda: _GivenEmbedder(self.given)
        self._sessions.clear()

    def close(self) -> None:
        """Close the store."""
        with self.timed():
            self._store.close()

    def remember(self, memory: Memory) -> str:
        """Remember, by the handle of whoever it is from."""
        session, fields = self._session(memory.scope, memory.origin), self._fields(memory)
        with self.timed():
            return _refusing(lambda: session.remember(memory.text, **fields).id)  # type: ignore[arg-type]

    def remember_many(self, memories: Sequence[Memory]) -> list[str]:
        """Remember in one batch; all are from the first one's origin and in its scope."""
        session = self._session(memories[0].scope, memories[0].origin)
        items = [{"content": memory.text, **self._fields(memory)} for memory in memories]
        with self.timed():
            return _refusing(lambda: [receipt.id for receipt in session.remember_many(items)])

    def settle(self) -> str:
        """Put in every vector that is missing, and save."""
        with self.timed():
            count = self._store.embed()
        self.given.drop()
        return f"store.embed(): {count} vectors"

    def supersede(self, id: str, memory: Memory) -> str:  # noqa: A002
        """Supersede."""
        session, fields = self._session(memory.scope, memory.origin), self._fields(memory)
        with self.timed():
            return _refusing(lambda: session.supersede(id, memory.text, reason="newer", **fields).id)  # type: ignore[arg-type]

    def retire(self, id: str, reason: str) -> None:  # noqa: A002
        """Retire."""
        session = self._session_of(id)
        with self.timed():
            _refusing(lambda: session.retire(id, reason=reason))

    def forget(self, id: str) -> None:  # noqa: A002
        """Forget as the operator, who may erase what anybody said, with what derives from it."""
        operator = self._store.operator()
        with self.timed():
            _refusing(lambda: operator.forget(id, reason="asked by the user"))

    def recall(self, text: str, vector: bytes, k: int, scope: str | None = None) -> list[Hit]:
        """Recall with the defaults."""
        return self._recall(text, vector, k, scope, None)

    def as_of(self, instant: float, text: str, vector: bytes, k: int, scope: str | None = None) -> list[Hit]:
        """Recall what was known then."""
        return self._recall(text, vector, k, scope, datetime.fromtimestamp(instant, UTC))

    def _recall(self, text: str, vector: bytes, k: int, scope: str | None, known_at: datetime | None) -> list[Hit]:
        self.given.hand(text, vector)
        session = self._session(scope, None)
        with self.timed():
            hits = session.recall(text, k=k, known_at=known_at)
        if len(self.given) <= _AT_ONCE:
            self.given.drop()
        return [Hit(hit.id, hit.content or "", hit.recorded_at.isoformat()) for hit in hits]

    def get(self, id: str) -> dict[str, Json] | None:  # noqa: A002
        """Return a memory, a stub where it was erased."""
        session = self._session_of(id)
        with self.timed():
            found = session.get(id)
        return {"id": found.id, "text": found.content, "status": str(found.status), "origin": str(found.origin)}

    def current(self, about: tuple[str, str], scope: str | None = None) -> str | None:
        """Return what is believed under the key now."""
        session = self._session(scope, None)
        with self.timed():
            beliefs = session.beliefs(about=about)
        return beliefs[0].content if beliefs else None

    def history(self, id: str) -> list[str]:  # noqa: A002
        """Return the chain of supersessions."""
        session = self._session_of(id)
        with self.timed():
            records = session.history(id)
        return [record.content or "" for record in records]

    def prohibit(self, action: _protocol.Action, scope: str | None = None) -> str:
        """Prohibit with the user's signature."""
        user, act = self._user(scope or _SCOPE), _action(action)
        with self.timed():
            return user.prohibit(act, reason="never").id

    def confirm(self, action: _protocol.Action, scope: str | None = None) -> str:
        """Confirm once, for an hour, with the user's signature."""
        user, act = self._user(scope or _SCOPE), _action(action)
        with self.timed():
            return user.confirm(act, agent=_AGENT).id

    def guard(
        self, action: _protocol.Action, use: str, evidence: Sequence[str] = (), scope: str | None = None
    ) -> dict[str, Json]:
        """Decide, for good: a confirmation is spent. By the default policy unknown names are destructive."""
        session, act = self._session(scope, None), _action(action)
        with self.timed():
            decision = session.decide(act, use=use, evidence=evidence)
        return {"allowed": decision.allowed, "reasons": list(decision.reasons)}

    def readable(self, folder: Path) -> bytes:
        """Return everything that the keys in the folder still open: raw bytes show nothing, forgotten or not."""
        store = folder / "store"
        return b"\n".join(opened.plain for opened in open_all(store, read_keys(store)))

    def facts(self) -> dict[str, Json]:
        """Return the versions; this checkout's own need not be installed."""
        facts = super().facts()
        versions = cast("dict[str, Json]", facts["versions"])
        return {**facts, "versions": {"muniment": muniment.__version__, **versions}}

    # --- handles ------------------------------------------------------------------------------------------------------

    def _fields(self, memory: Memory) -> dict[str, object]:
        self.given.hand(memory.text, memory.vector)
        if memory.about is not None:
            # What is embedded is the text and its key.
            self.given.hand(f"{memory.text}\n{' '.join(memory.about)}", memory.vector)
        fields: dict[str, object] = {"kind": memory.kind}
        for name in ("about", "value"):
            if getattr(memory, name) is not None:
                fields[name] = getattr(memory, name)
        if memory.derived_from:
            fields["derived_from"] = memory.derived_from
        if memory.valid_from is not None:
            fields["valid_from"] = datetime.fromtimestamp(memory.valid_from, UTC)
        return fields

    def _session(self, scope: str | None, origin: str | None) -> Session:
        where = scope or _SCOPE
        if origin == "user":
            return self._store.session(scope=where, actor="user")
        if where not in self._sessions:
            self._sessions[where] = self._store.session(scope=where, actor=_AGENT)
        return self._sessions[where] if origin is None else self._sessions[where].via(origin)

    def _scope_of(self, id: str) -> str:  # noqa: A002
        memory = self._store._engine.state.register.memories.get(bytes.fromhex(id))
        return _SCOPE if memory is None else memory.scope

    def _session_of(self, id: str) -> Session:  # noqa: A002
        return self._session(self._scope_of(id), None)

    def _user(self, scope: str) -> UserSession:
        where = self.folder.parent / f"{self.folder.name}.ann.key"
        if os.path.exists(where):
            key = muniment.KeyFile(where)
        else:
            key = muniment.KeyFile.create(where)
            self._store.enroll(_ANN, key.public_key, scopes=(scope.partition("/")[0],))
        return self._store.user_session(scope=scope, principal=_ANN, signer=key)


def _action(action: _protocol.Action) -> muniment.Action:
    return muniment.Action(str(action["name"]), dict(cast("dict[str, str]", action.get("args", {}))))


def _refusing(call: Callable[[], T]) -> T:
    try:
        return call()
    except muniment.Refused as error:
        raise Refused(f"{error.code}: {error}") from error
