"""Vectors of texts, kept in one file between runs: embedding LongMemEval takes longer than anything asked of it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from muniment.projections import Embedder


class KeptEmbedder:
    """
    An embedder that looks a text up before it embeds it, and keeps what it embedded.

    The file is records of 16 bytes of BLAKE2b of the text and its vector as little-endian float32, one after another;
    a torn last one is cut off. With `only`, other texts get no vector: zeros, which are like nothing.
    """

    def __init__(self, inner: Embedder, folder: Path, *, only: Collection[str] | None = None) -> None:
        self._inner, self._only = inner, only
        self.model_id, self.dim = inner.model_id, inner.dim
        self._path = folder / f"{inner.model_id}.vectors"
        folder.mkdir(parents=True, exist_ok=True)
        self._known: dict[bytes, NDArray[np.float32]] = {}
        size = 16 + 4 * self.dim
        data = self._path.read_bytes() if self._path.exists() else b""
        for at in range(0, len(data) // size * size, size):
            self._known[data[at : at + 16]] = np.frombuffer(data, "<f4", self.dim, at + 16)
        if len(data) % size:
            with self._path.open("r+b") as file:
                file.truncate(len(data) // size * size)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector a text."""
        wanted = list(dict.fromkeys(t for t in texts if self._counts(t) and _digest(t) not in self._known))
        if wanted:
            vectors = self._inner.embed(wanted)
            with self._path.open("ab") as file:
                for text, vector in zip(wanted, vectors, strict=True):
                    self._known[_digest(text)] = vector
                    file.write(_digest(text) + vector.astype("<f4").tobytes())
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in enumerate(texts):
            if self._counts(text):
                out[row] = self._known[_digest(text)]
        return out

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question, which is not kept."""
        return self._inner.embed_query(text)

    def embed_windows(self, text: str) -> NDArray[np.float32]:
        """Return the vectors of a text's windows, which are not kept."""
        return self._inner.embed_windows(text)

    def _counts(self, text: str) -> bool:
        return self._only is None or text in self._only


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
