"""
The memories that every product is given: LoCoMo's turns with the packaged embedder's vectors, repeated to a size.

Each copy of a turn has a word of its own and a vector moved a little, as in `eval recall-speed`: no two are equal.
Memory number n is the same for every product and at every size.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ._protocol import Memory

_NOISE = 0.15
_SEED = 7


class Question(NamedTuple):
    """A question with its vector."""

    text: str
    vector: bytes


class Texts:
    """Memories by number, and questions. Making the vectors is no part of any time."""

    def __init__(
        self,
        turns: Sequence[str],
        vectors: NDArray[np.float32],
        questions: Sequence[str],
        asked: NDArray[np.float32],
    ) -> None:
        self._turns, self._vectors = turns, vectors
        self.questions = [
            Question(text, vector.astype("<f4").tobytes()) for text, vector in zip(questions, asked, strict=True)
        ]

    def memories(self, start: int, stop: int, *, mark: str = "v") -> list[Memory]:
        """Return memories `start` to `stop`; another mark gives others, near the same numbers'."""
        numbers = np.arange(start, stop)
        base = self._vectors[numbers % len(self._turns)]
        dim = base.shape[1]
        # A generator for each number: a memory's vector must not depend on which batch it came in.
        salt = int.from_bytes(hashlib.sha256(mark.encode()).digest()[:4], "big")
        noise = np.stack([np.random.default_rng((_SEED, salt, int(n))).standard_normal(dim) for n in numbers])
        moved = base + _NOISE / np.sqrt(dim) * noise
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
        return [
            Memory(f"{self._turns[n % len(self._turns)]} {mark}{n}", vector.tobytes(), kind="chat")
            for n, vector in zip(numbers.tolist(), moved.astype("<f4"), strict=True)
        ]


def load_texts(path: Path, cache: Path, *, turns: int, questions: int) -> Texts:
    """Return the texts of LoCoMo; their vectors are made once, and kept in the cache."""
    from muniment.projections import packaged_embedder  # noqa: PLC0415  # loads a model's library

    data = path.read_bytes()
    samples = cast("list[dict[str, Any]]", json.loads(data))
    said = list(dict.fromkeys(turn["text"].strip() for sample in samples for turn in _turns(sample)))
    said = [text for text in said if len(text) >= 20][:turns]
    asked = [str(one["question"]) for sample in samples for one in sample["qa"]]
    asked = asked[:: max(1, len(asked) // questions)][:questions]
    embedder = packaged_embedder()
    key = hashlib.sha256(f"{embedder.model_id} {turns} {questions}".encode() + data).hexdigest()[:16]
    kept = cache / f"texts-{key}.npz"
    if not kept.exists():
        made = {"said": embedder.embed(said), "asked": np.stack([embedder.embed_query(text) for text in asked])}
        cache.mkdir(parents=True, exist_ok=True)
        np.savez(kept, **made)  # type: ignore[arg-type]  # the stub takes no mapping of arrays
    with np.load(kept) as vectors:
        return Texts(said, vectors["said"], asked, vectors["asked"])


def _turns(sample: dict[str, Any]) -> list[dict[str, str]]:
    talk = sample["conversation"]
    return [turn for name in sorted(talk) if isinstance(talk[name], list) for turn in talk[name]]
