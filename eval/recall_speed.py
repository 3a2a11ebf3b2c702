"""How long a whole recall takes at ten and a hundred thousand memories, the embedding of the question stated apart.

The memories are LoCoMo's turns, repeated: each copy has a word of its own and a vector moved a little, so that no two
are equal. Vectors are put in directly, since making them would take hours; all else goes through the public API. One
scope, the default settings of recall, k = 8. On a machine that others use, the time of the calling thread's processor
says more than the wall clock: it is stated beside, and is whole only with OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import muniment
from muniment import Session, Store
from muniment.projections import Embedder, packaged_embedder
from muniment.projections._vector_file import rounded
from muniment.projections._vectors import VectorIndex

from ._harness import Result, need, time_each
from ._recall_beside import after_writes, beside_hnswlib, ingest

_SCOPE = "eval/speed"
_SEED = 7
_NOISE = 0.15
_DRAWN = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sizes, and where LoCoMo's store is kept."""
    parser.add_argument("--sizes", default="10000,100000", help="numbers of memories, with commas")
    parser.add_argument("--graph-to", type=int, default=100_000, help="the largest size at which hnswlib is built too")
    parser.add_argument("--ingest", type=int, default=2_000, help="texts to remember and embed; 0 for none")
    parser.add_argument("--cache", type=Path, default=None, help="where `eval recall` keeps its stores")


class _Remembered:
    """An embedder that was asked every question before, so that embedding takes no part in what is timed."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self._kept = embedder, dict[str, NDArray[np.float32]]()
        self.model_id, self.dim = embedder.model_id, embedder.dim
        self.embed_windows = embedder.embed_windows
        found = np.random.default_rng(_SEED).standard_normal((_DRAWN, self.dim)).astype(np.float32)
        self._drawn: NDArray[np.float32] = found / np.linalg.norm(found, axis=1, keepdims=True)
        self._at = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of any direction, drawn before: what is written between two recalls means nothing here."""
        start = self._at % (_DRAWN - len(texts) + 1)
        self._at += len(texts)
        return self._drawn[start : start + len(texts)]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector, made once."""
        if text not in self._kept:
            self._kept[text] = self._embedder.embed_query(text)
        return self._kept[text]


def run(args: argparse.Namespace) -> Result:
    """Time recall at each size with the questions of LoCoMo."""
    path = need(args, "locomo/locomo_dev.json")
    samples = cast("list[dict[str, Any]]", json.loads(path.read_text(encoding="utf-8")))
    questions = [str(one["question"]) for sample in samples for one in sample["qa"]][::6]
    rows: list[Result] = []
    ingested: Result = {}
    with tempfile.TemporaryDirectory() as folder:
        turns, vectors = _real_turns(path, args.cache or Path(folder))
        for size in map(int, args.sizes.split(",")):
            path = Path(folder) / f"store-{size}"
            with muniment.open(path, create=True) as store:
                rows.append(_time(path, store, turns, vectors, questions, size, hnswlib=size <= args.graph_to))
        texts = list(dict.fromkeys(turn.content or "" for turn in turns))[: args.ingest]
        if texts:
            ingested = ingest(Path(folder), texts, packaged_embedder())
    return {
        "load_average": round(os.getloadavg()[0], 2),
        "questions": len(questions),
        "k": 8,
        "rows": rows,
        "ingest": ingested,
    }


def _real_turns(path: Path, cache: Path) -> tuple[list[muniment.Record], NDArray[np.float32]]:
    with muniment.open(cache / "locomo-default", create=True) as store:
        store.import_file(path, scope="eval/locomo", split=True)
        store.embed()
        state = store._engine.state
        turns: list[muniment.Record] = []
        vectors: list[NDArray[np.float32]] = []
        for scope in sorted(state.recall.scopes()):
            records = store.session(scope=scope, actor="agent:eval").list(limit=10_000)
            partition = state.recall.partition(scope)
            if partition is None or partition.vectors is None:
                continue
            turns += records
            vectors.append(partition.vectors.take(np.arange(len(records))))
        return turns, np.concatenate(vectors)


def _time(
    path: Path,
    store: Store,
    turns: list[muniment.Record],
    vectors: NDArray[np.float32],
    questions: list[str],
    size: int,
    *,
    hnswlib: bool,
) -> Result:
    session = store.session(scope=_SCOPE, actor="user")
    for start in range(0, size, 5_000):
        session.remember_many([_variation(turns, n) for n in range(start, min(size, start + 5_000))])
    engine = store._engine
    embedder = engine.dense._loaded()
    if embedder is None:
        raise RuntimeError("recall speed needs the packaged model")
    chance = np.random.default_rng(_SEED)
    partition = engine.state.recall.partition(_SCOPE)
    if partition is None:
        raise RuntimeError("nothing was remembered")
    index = partition.vectors = VectorIndex(embedder.dim)
    for start in range(0, size, 10_000):
        at = np.arange(start, min(size, start + 10_000))
        moved = vectors[at % len(vectors)] + _NOISE / np.sqrt(embedder.dim) * chance.standard_normal(
            (len(at), embedder.dim)
        )
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
        index.put(at, rounded(moved.astype(np.float32)))
    embedding = time_each([partial(embedder.embed_query, question) for question in questions[:40]])
    engine.dense._embedder = _Remembered(embedder)
    for question in questions:
        session.recall(question)
    whole = time_each([partial(session.recall, question) for question in questions])
    busy = time_each([partial(session.recall, question) for question in questions], clock=time.thread_time_ns)
    filtered = _filtered(session, turns, questions)
    vectors_of = [engine.dense._embedder.embed_query(question) for question in questions]
    allowed = np.ones(size, dtype=np.bool_)
    dense = time_each(
        [partial(index.search, v, allowed=allowed, upto=size, k=100) for v in vectors_of], clock=time.thread_time_ns
    )
    return {
        "memories": size,
        "whole_p50_us": round(whole.p50),
        "whole_p99_us": round(whole.p99),
        "whole_cpu_p50_us": round(busy.p50),
        "whole_cpu_p99_us": round(busy.p99),
        "filtered_cpu_p50_us": filtered,
        "dense_cpu_p50_us": round(dense.p50),
        "dense_cpu_p99_us": round(dense.p99),
        "dense_recall@10": _agreement(index, vectors_of, size),
        "embedding_p50_us": round(embedding.p50),
        "peak_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "hnswlib": beside_hnswlib(index, vectors_of, size, 100) if hnswlib else "left out",
        "after writes": after_writes(path, session, questions[:100]),
        "with a graph": _with_graph(session, index, questions, vectors_of) if hnswlib else "left out",
    }


def _with_graph(
    session: Session, index: VectorIndex, questions: list[str], vectors_of: list[NDArray[np.float32]]
) -> Result | str:
    """Time the same once the index has the graph that `muniment.open(graph=True)` builds beside."""
    if not index.wants_graph:
        return "too small for one"
    started = time.perf_counter()
    for work in index.building():
        work()
    built = time.perf_counter() - started
    whole = time_each([partial(session.recall, question) for question in questions])
    upto = index._end
    allowed = np.ones(upto, dtype=np.bool_)
    dense = time_each(
        [partial(index.search, v, allowed=allowed, upto=upto, k=100) for v in vectors_of], clock=time.thread_time_ns
    )
    return {
        "whole_p50_us": round(whole.p50),
        "dense_cpu_p50_us": round(dense.p50),
        "dense_cpu_p99_us": round(dense.p99),
        "dense_recall@10": _agreement(index, vectors_of, upto),
        "built_s": round(built, 1),
    }


def _filtered(session: muniment.Session, turns: list[muniment.Record], questions: list[str]) -> dict[str, int]:
    """Return the p50 of recalls that are limited, each asked for once before; the limits leave half and more."""
    limits: dict[str, dict[str, Any]] = {
        "kinds": {"kinds": ["chat"]},
        "where": {"where": {"role": turns[0].metadata["role"]}},
        "valid_at": {"valid_at": max(turn.valid_from for turn in turns)},
    }
    found: dict[str, int] = {}
    for name, limit in limits.items():
        session.recall(questions[0], **limit)
        calls = [partial(session.recall, question, **limit) for question in questions]
        found[name] = round(time_each(calls, clock=time.thread_time_ns).p50)
    return found


def _variation(turns: list[muniment.Record], number: int) -> dict[str, object]:
    turn, copy = turns[number % len(turns)], number // len(turns)
    told = {**turn.metadata, "conversation": f"{turn.metadata.get('conversation')!s}-{copy}"}
    content = turn.content if not copy else f"{turn.content} v{number}"
    return {"content": content, "kind": "chat", "metadata": told, "valid_from": turn.valid_from}


def _agreement(index: VectorIndex, queries: list[NDArray[np.float32]], size: int) -> float:
    """Return which share of the ten nearest rows the index finds."""
    shares: list[float] = []
    for query in queries[:50]:
        exact = np.argsort(-index.scores(query, np.arange(size)), kind="stable")[:10]
        found, _ = index.search(query, allowed=np.ones(size, dtype=np.bool_), upto=size, k=100)
        shares.append(len(set(exact.tolist()) & set(found.tolist())) / 10)
    return round(float(np.mean(shares)), 4)
