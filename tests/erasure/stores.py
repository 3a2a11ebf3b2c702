"""A store with a small embedder, and everything that the keys on its disk open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import muniment
from eval._erasure_open import open_all, read_keys
from muniment import KeyFile, Store, UserSession
from muniment._engine import Engine, Options
from muniment._version import VERSION
from muniment.events import Disk, find_store

SCOPE, AGENT = "acme/apollo", "agent:planner"
SECRET = "the quinquagenarian hides a floccinaucinihil"
RARE = "floccinaucinihil"
NOW = 1_772_000_000_000_000


class Letters:
    """An embedder that counts letters: a text's vector is known without a model."""

    model_id = "letters"
    dim = 26

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text."""
        counts = [[text.lower().count(chr(97 + n)) for n in range(26)] for text in texts]
        vectors: NDArray[np.float32] = np.asarray(counts, dtype=np.float32)
        lengths = np.maximum(np.sqrt((vectors * vectors).sum(axis=1, keepdims=True)), 1)
        unit: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
        return unit

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question."""
        vector: NDArray[np.float32] = self.embed([text])[0]
        return vector

    def embed_windows(self, text: str) -> NDArray[np.float32]:
        """Return the vector of the one window."""
        return self.embed([text])


def clock() -> int:
    """Stand still: record times come from the order of the log."""
    return NOW


def open_store(path: Path, disk: Disk | None = None) -> Store:
    """Open a store whose vectors are counted letters."""
    return Store(
        Engine(find_store(path), Options(load_embedder=Letters, clock=clock, disk=disk), VERSION), created=False
    )


def create_store(path: Path) -> KeyFile:
    """Make a store for which `user:ann` signs, and return the key."""
    key = KeyFile.create(path.with_suffix(".userkey"))
    with muniment.open(path, create=True, model="none", clock=clock) as store:
        store.enroll("user:ann", key.public_key, scopes=("acme",))
    return key


def ann(store: Store, key: KeyFile, scope: str = SCOPE) -> UserSession:
    """Return the session in which the user signs."""
    return store.user_session(scope=scope, principal="user:ann", signer=key)


def vector_of(text: str) -> bytes:
    """Return a text's vector as the vector file seals it."""
    vector: NDArray[np.float32] = Letters().embed([text])[0]
    return vector.astype("<f2").tobytes()


def readable(path: Path, *wanted: str | bytes) -> list[str]:
    """Return where any of the texts or bytes can be read, with whatever key is on the store's disk."""
    looked_for = [want.encode() if isinstance(want, str) else want for want in wanted]
    found = open_all(path, read_keys(path))
    return [item.where for item in found if any(want in item.plain for want in looked_for)]
