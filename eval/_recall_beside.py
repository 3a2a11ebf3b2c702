"""What `eval recall-speed` compares with: bare hnswlib, recall after a write, and the bare model for ingest."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import hnswlib
import numpy as np
from numpy.typing import NDArray

import muniment
from muniment import Session
from muniment.projections import Embedder
from muniment.projections._vectors import VectorIndex

from ._harness import Result, time_each

_AT_ONCE: Final = 256
_TURNS: Final = 5
Floats = NDArray[np.float32]


def beside_hnswlib(index: VectorIndex, queries: Sequence[Floats], size: int, depth: int) -> Result:
    """
    Time `knn_query` for `depth` rows with an exact scoring of what it gives, by one thread, and how many it finds.

    M 16, ef_construction 200, ef 200: recall of the ten nearest is stated beside, since a walk can be made as quick as
    one likes. Once by itself, each question after the other, and once in turn with the index, question by question,
    so that neither finds all it needs in the processor's cache, as it does in a benchmark and nowhere else.
    """
    vectors = index.take(np.arange(size))
    started = time.perf_counter()
    graph = hnswlib.Index(space="ip", dim=index.dim)
    graph.init_index(max_elements=size, M=16, ef_construction=200, random_seed=1)
    graph.add_items(vectors, np.arange(size), num_threads=2)
    built = time.perf_counter() - started
    graph.set_ef(max(200, depth))

    def search(query: Floats) -> NDArray[np.int64]:
        labels = graph.knn_query(query, k=depth, num_threads=1)[0][0].astype(np.int64)
        return np.asarray(labels[np.argsort(-(vectors[labels] @ query), kind="stable")])

    timed = time_each([partial(search, query) for query in queries], clock=time.thread_time_ns)
    allowed = np.ones(size, dtype=np.bool_)
    turns = in_turn(
        [partial(index.search, query, allowed=allowed, upto=size, k=depth) for query in queries],
        [partial(search, query) for query in queries],
    )
    shares: list[float] = []
    for query in queries[:50]:
        nearest = np.argsort(-(vectors @ query), kind="stable")[:10]
        shares.append(len(set(nearest.tolist()) & set(search(query)[:10].tolist())) / 10)
    return {
        "p50_us": round(timed.p50),
        "p99_us": round(timed.p99),
        "recall@10": round(float(np.mean(shares)), 4),
        "built_s": round(built, 1),
        "in turn": turns,
    }


def in_turn(ours: Sequence[Callable[[], object]], theirs: Sequence[Callable[[], object]]) -> Result:
    """Time calls in pairs, and return the medians and the slowest in a hundred of each, and our multiple of theirs."""
    times: tuple[list[int], list[int]] = ([], [])
    for _ in range(_TURNS):
        for pair in zip(ours, theirs, strict=True):
            for call, found in zip(pair, times, strict=True):
                started = time.thread_time_ns()
                call()
                found.append(time.thread_time_ns() - started)
    mine, others = ((np.percentile(found, (50, 99)) / 1e3).tolist() for found in times)
    return {
        "ours_p50_us": round(mine[0]),
        "ours_p99_us": round(mine[1]),
        "hnswlib_p50_us": round(others[0]),
        "hnswlib_p99_us": round(others[1]),
        "p50_ratio": round(mine[0] / others[0], 2),
        "p99_ratio": round(mine[1] / others[1], 2),
    }


def after_writes(path: Path, session: Session, questions: Sequence[str]) -> Result:
    """Return by how much a recall takes longer right after a write of this handle, and of another on the same store."""
    quiet = _median(session, questions, lambda _: None)
    own = _median(session, questions, lambda n: session.remember(f"written just before, number {n}"))
    with muniment.open(path, model="none") as other:
        there = other.session(scope=session.scope, actor="user")
        others = _median(session, questions, lambda n: there.remember(f"written elsewhere, number {n}"))
    return {
        "quiet_us": round(quiet),
        "after_own_write_us": round(own),
        "after_another_handles_write_us": round(others),
        "own_to_quiet": round(own / quiet, 3),
        "others_to_quiet": round(others / quiet, 3),
    }


def ingest(base: Path, texts: Sequence[str], embedder: Embedder) -> Result:
    """Return how many texts a second are remembered and embedded, and how many the bare model takes alike."""
    rounds: list[tuple[float, float]] = []
    for number in range(3):
        started = time.perf_counter()
        for start in range(0, len(texts), _AT_ONCE):
            embedder.embed(texts[start : start + _AT_ONCE])
        bare = time.perf_counter() - started
        with muniment.open(base / f"ingest-{number}", create=True) as store:
            store._engine.dense._loaded()
            session = store.session(scope="eval/ingest", actor="user")
            started = time.perf_counter()
            for start in range(0, len(texts), _AT_ONCE):
                session.remember_many([{"content": text} for text in texts[start : start + _AT_ONCE]])
            store.embed()
            rounds.append((bare, time.perf_counter() - started))
    bare, ours = (statistics.median(each) for each in zip(*rounds, strict=True))
    return {
        "texts": len(texts),
        "bare_model_a_second": round(len(texts) / bare),
        "remembered_and_embedded_a_second": round(len(texts) / ours),
        "ratio": round(bare / ours, 3),
        "ratio_at_least": 0.9,
    }


def _median(session: Session, questions: Sequence[str], before: Callable[[int], object]) -> float:
    times: list[float] = []
    for number, question in enumerate(questions):
        before(number)
        started = time.perf_counter_ns()
        session.recall(question)
        times.append((time.perf_counter_ns() - started) / 1e3)
    return statistics.median(times)
