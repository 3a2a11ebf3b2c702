"""What must be nowhere after a forget: noted before it, from inside, by the keys that then exist."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from muniment.events import Disk, KeyTree

from ._erasure_open import open_all, read_keys
from ._erasure_scan import Needle, byte_needles, text_needles, vector_needles
from ._erasure_world import Told


class Secrets:
    """The contents, words and vectors of forgotten memories, and every key that a rotation ended."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._content: list[Needle] = []
        self._roots: dict[bytes, None] = {}
        self._pages: dict[bytes, None] = {}
        self._chunks: dict[bytes, None] = {}
        self._slots: dict[int, bytes] = {}
        self._counts: Counter[str] = Counter()

    def note_before(self, told: list[Told]) -> None:
        """Note what of these memories must go, and the keys of this moment."""
        keys = read_keys(self._store)
        self.note_root()
        for slot, key in enumerate(keys.slots):
            self._slots.setdefault(slot, key)
        self._pages |= dict.fromkeys(keys.pages)
        self._chunks |= dict.fromkeys(keys.chunks.values())
        for one in told:
            self._content += text_needles("content", one.id, one.content)
            for word in one.words:
                self._content += text_needles("word", one.id, word)
            self._counts.update(content=1, words=len(one.words))
        wanted = {one.id for one in told}
        for item in open_all(self._store, keys):
            identity = item.where.partition(".bin:")[2]
            if identity in wanted:
                self.note_vector(identity, np.frombuffer(item.plain, dtype="<f2").astype(np.float32))

    def note_vector(self, identity: str, vector: NDArray[np.float32]) -> None:
        """Note a memory's vector."""
        self._content += vector_needles(identity, vector)
        self._counts.update(vectors=1)

    def note_root(self) -> None:
        """Note the root of this moment, and the page and chunk keys that it opens."""
        keys = KeyTree(self._store / "root.key", self._store / "keys", Disk())
        self._roots[keys._root] = None
        self._pages |= dict.fromkeys(ref.key for ref in keys._table.pages)
        self._chunks |= dict.fromkeys(keys._table.chunks.values())

    def needles(self) -> list[Needle]:
        """Return all that must be nowhere by now; the root that is current is left out, unless it is the only one."""
        tree = KeyTree(self._store / "root.key", self._store / "keys", Disk()) if self._store.exists() else None
        current = None if tree is None or len(self._roots) == 1 else tree._root
        shredded = frozenset() if tree is None else tree.shredded
        found = list(self._content)
        for kind, keys in (("root", self._roots), ("page-key", self._pages), ("chunk-key", self._chunks)):
            for number, key in enumerate(keys):
                if key != current:
                    found += byte_needles(kind, f"{kind} {number}", key)
        for slot in sorted(shredded):
            if slot in self._slots:
                found += byte_needles("slot-key", f"slot {slot}", self._slots[slot])
        return found

    def counts(self) -> dict[str, int]:
        """Return how many things of each kind were looked for."""
        tree = KeyTree(self._store / "root.key", self._store / "keys", Disk())
        return {
            **self._counts, "roots": len(self._roots) - 1, "page_keys": len(self._pages),
            "chunk_keys": len(self._chunks), "slot_keys": len(tree.shredded & self._slots.keys()),
        }  # fmt: skip
