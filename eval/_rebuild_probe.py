"""
A rebuild with vectors kept, in a process of its own: `python -m eval._rebuild_probe STORE QUESTION`, answered in JSON.

Vectors are drawn around a thousand centres, since making them of texts would take hours; how they are kept, sealed,
read again and searched is as for any model.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import hnswlib
import numpy as np
from numpy.typing import NDArray

from muniment import Store
from muniment._engine import Engine, Options
from muniment._version import VERSION
from muniment.events import find_store
from muniment.projections._neighbours import BUILDING_EFFORT, LINKS
from muniment.projections._vector_file import VectorFile

from ._harness import Result
from ._openings import fold
from ._synthetic import SCOPES

_DIM: Final = 384
_CENTRES: Final = 1_000


class Drawn:
    """An embedder that draws its vectors."""

    model_id, dim = "drawn around centres", _DIM

    def __init__(self) -> None:
        self._random = np.random.default_rng(5)
        self._centres = self._random.standard_normal((_CENTRES, _DIM), np.float32)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a unit vector for each text, near one of the centres."""
        near = self._centres[self._random.integers(0, _CENTRES, len(texts))]
        drawn = near + self._random.standard_normal(near.shape, np.float32)
        return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return a unit vector."""
        return self.embed([text]).reshape(_DIM)

    def embed_windows(self, text: str) -> NDArray[np.float32]:
        """Return one unit vector."""
        return self.embed([text])


def main(path: str, question: str) -> None:
    """Answer one question, print it with the peak of memory, and die without closing anything."""
    before = _peak()
    answer = _QUESTIONS[question](Path(path))
    print(json.dumps({**answer, "peak_before": before, "peak": _peak()}), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def _fold(path: Path) -> Result:
    return fold(path, 3)


def _vectors(path: Path) -> Result:
    store = _opened(path)
    made = store.embed()
    store.close()
    return {"made": made}


def _rebuild(path: Path) -> Result:
    store = _opened(path)
    started, cpu = time.perf_counter(), time.process_time()
    report = store.rebuild()
    return {
        "ok": report.ok,
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu,
        "missing": sum(store._engine.dense.missing_count([scope]) for scope in SCOPES),
    }


def _graph(path: Path) -> Result:
    engine = _opened(path)._engine
    file = VectorFile(engine.files.projections, Drawn.model_id, _DIM, engine.keys.live_key)
    rows = engine.state.register.rows[SCOPES[0]]
    found = file.load().take(rows.numbers_of("slot", np.arange(len(rows))))
    kept = np.concatenate([vectors for _, vectors in found])
    index = hnswlib.Index(space="ip", dim=_DIM)
    index.init_index(max_elements=len(kept), M=LINKS, ef_construction=BUILDING_EFFORT, random_seed=1)
    started, cpu = time.perf_counter(), time.process_time()
    index.add_items(kept, np.arange(len(kept)), num_threads=1)
    return {
        "vectors": len(kept),
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu,
    }


def _recall(path: Path) -> Result:
    started = time.perf_counter()
    store = _opened(path)
    first = store.session(scope=SCOPES[0], actor="agent:probe").recall("baba dobu tiru")
    seconds = time.perf_counter() - started
    started = time.perf_counter()
    store.session(scope=SCOPES[0], actor="agent:probe").recall("baba dobu tiru")
    return {"first_ms": seconds * 1e3, "next_ms": (time.perf_counter() - started) * 1e3, "found": len(first)}


def _opened(path: Path) -> Store:
    return Store(Engine(find_store(path), Options(load_embedder=Drawn), VERSION), created=False)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


_QUESTIONS: Final[dict[str, Callable[[Path], Result]]] = {
    "fold": _fold,
    "vectors": _vectors,
    "rebuild": _rebuild,
    "graph": _graph,
    "recall": _recall,
}

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
