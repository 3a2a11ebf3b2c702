"""Which weights of ranking fit the tuning halves of LoCoMo and BEAM best, and what each kind of evidence is worth.

It reads the stores that `eval recall --cache DIR` made. The fit is a softmax over a conversation's turns whose target
is the gold ones, with an L2 term; one question of BEAM counts as many times one of LoCoMo as makes the sets weigh
1 to `--beam`. The reporting halves are shown, and take no part.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import muniment
from muniment import Store
from muniment.projections._evidence import FEATURES, Witnesses
from muniment.projections._ranking import WEIGHTS, question_of

from ._harness import Result, need
from ._talks import Probe, Talk, beam, halves, locomo

_RIDGE = 3e-2
_STEPS = 40
_SHOWN = (5, 10, 20)
Reals = NDArray[np.float64]


class _Case(NamedTuple):
    probe: Probe
    features: Reals
    gold: NDArray[np.int64]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add where the stores are, and how much BEAM weighs beside LoCoMo."""
    parser.add_argument("--cache", type=Path, required=True, help="where `eval recall` keeps its stores")
    parser.add_argument("--beam", type=float, default=2.0, help="the weight of BEAM beside that of LoCoMo")


def run(args: argparse.Namespace) -> Result:
    """Fit, and compare with the weights in use and with each kind of evidence left out."""
    path = need(args, "locomo/locomo_dev.json")
    with muniment.open(args.cache / "locomo-default") as store:
        first = _cases(store, "eval/locomo", "locomo:{}/", locomo(path))
    talks = beam(need(args, "beam/beam_100k_dev.jsonl.xz"), args.cache / "beam-files")
    with muniment.open(args.cache / "beam-default") as store:
        second = _cases(store, "eval/beam", "jsonl:{}/", talks)
    sets = [(1.0, first[0]), (args.beam, second[0])]
    fitted = _fit(sets, np.ones(len(FEATURES)))
    rows = [
        _row("in use", np.array([WEIGHTS[name] for name in FEATURES]), first, second),
        _row("fitted", fitted, first, second),
    ]
    for number, name in enumerate(FEATURES):
        kept = np.ones(len(FEATURES))
        kept[number] = 0.0
        rows.append(_row(f"without {name}", _fit(sets, kept), first, second))
    weights = {name: round(float(value), 2) for name, value in zip(FEATURES, fitted, strict=True)}
    return {"beam_weight": args.beam, "weights": weights, "rows": rows}


def _cases(store: Store, scope: str, source: str, talks: list[Talk]) -> tuple[list[_Case], list[_Case]]:
    tuning, reporting = halves(talks)
    return (
        [case for talk in tuning for case in _cases_of(store, f"{scope}/{talk.name}", source, talk)],
        [case for talk in reporting for case in _cases_of(store, f"{scope}/{talk.name}", source, talk)],
    )


def _cases_of(store: Store, scope: str, source: str, talk: Talk) -> list[_Case]:
    state = store._engine.state
    state.recall.absorb([scope])
    partition = state.recall.partition(scope)
    if partition is None:
        return []
    records = store.session(scope=scope, actor="agent:eval").list(limit=10_000)
    row_of = {(record.source or "").removeprefix(source.format(talk.name)): row for row, record in enumerate(records)}
    instants = np.array([memory.envelope.valid_from for memory in partition.rows], dtype=np.int64)
    rows = np.arange(len(records))
    found: list[_Case] = []
    for probe in talk.probes:
        gold = np.array(sorted(row_of[p] for p in probe.gold if p in row_of), dtype=np.int64)
        vector = store._engine.dense.query_vector(probe.question, [scope])
        vectors = partition.vectors
        if not len(gold) or not probe.answerable or vector is None or vectors is None:
            continue
        question = question_of(probe.question)
        stats = partition.words.statistics(question.terms, len(rows))
        words = partition.words.scores(question.terms, stats, len(rows))
        cosines = vectors.scores(vector, rows)
        witnesses = Witnesses(
            question, stats, partition.words, partition.words.threads, words, np.ones(len(rows), dtype=np.bool_),
            cosines.__getitem__, instants.__getitem__, len(rows),
        )  # fmt: skip
        found.append(_Case(probe, witnesses.of(rows).features, gold))
    return found


def _fit(sets: list[tuple[float, list[_Case]]], kept: Reals) -> Reals:
    """Return the weights of least loss by Newton's method; the loss is convex. What no row has gets no weight."""
    every = [(case, share / len(cases)) for share, cases in sets for case in cases]
    scale = np.concatenate([case.features for case, _ in every]).std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    lines = [(case.features * kept / scale, case.gold, share) for case, share in every]
    weights = np.zeros(len(kept))
    loss = _loss(lines, weights)
    for _ in range(_STEPS):
        slope, curve = 2 * _RIDGE * weights, 2 * _RIDGE * np.eye(len(kept))
        for x, gold, share in lines:
            scores = x @ weights
            chance = np.exp(scores - scores.max())
            chance /= chance.sum()
            mean = chance @ x
            slope += share * (mean - x[gold].mean(axis=0))
            curve += share * (x.T @ (chance[:, None] * x) - np.outer(mean, mean))
        step, size = np.linalg.solve(curve, slope), 1.0
        after = _loss(lines, weights - step)
        # A whole step may overshoot where the scores are far apart: half of it then, and half of that.
        while size > 1e-6 and after > loss - 1e-4 * size * (slope @ step):
            size /= 2
            after = _loss(lines, weights - size * step)
        if size <= 1e-6 or loss - after < 1e-9:
            break
        weights, loss = weights - size * step, after
    return np.asarray(weights * kept / scale)


def _loss(lines: list[tuple[Reals, NDArray[np.int64], float]], weights: Reals) -> float:
    total = _RIDGE * float(weights @ weights)
    for x, gold, share in lines:
        scores = x @ weights
        most = scores.max()
        total += share * float(most + np.log(np.exp(scores - most).sum()) - scores[gold].mean())
    return total


def _row(
    name: str, weights: Reals, first: tuple[list[_Case], list[_Case]], second: tuple[list[_Case], list[_Case]]
) -> Result:
    row: Result = {"weights": name}
    for label, (tuning, reporting) in (("locomo", first), ("beam", second)):
        for half, cases in (("tuning", tuning), ("reporting", reporting)):
            row[f"{label} {half}"] = " ".join(f"{_recall(cases, weights, k):.1f}" for k in _SHOWN)
    return row


def _recall(cases: list[_Case], weights: Reals, k: int) -> float:
    shares: list[float] = []
    for case in cases:
        top = np.argsort(-(case.features @ weights), kind="stable")[:k]
        shares.append(len(set(top.tolist()) & set(case.gold.tolist())) / len(case.gold))
    return 100 * float(np.mean(shares)) if shares else 0.0
