"""How much of what answers a question recall brings back, on LoCoMo, BEAM and MemOps, and in ten scripts.

Everything goes through the public API: import, then recall. Conversations are split in halves by a stated seed; the
parameters of ranking were chosen on one (`eval/recall_weights.py`), and both are reported. With `--cache DIR` the
stores, and so the vectors, are kept between runs.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import muniment
from muniment import Hit, Store

from ._abstention import auc, error_rates
from ._harness import Result, need
from ._longmemeval import measure_sessions
from ._memops import contradiction_rows, replay_scenarios
from ._models import described, path_of
from ._plot import line_plot
from ._scripts import find_in_every_script
from ._talks import SEED, Probe, Talk, beam, halves, locomo

KS = (1, 2, 3, 5, 8, 10, 15, 20)
SHOWN = (5, 10, 20)
METHODS = ("muniment", "words", "dense", "recency")


class Asked(NamedTuple):
    """A question, the positions that each method ranks first, and the strength of the evidence."""

    probe: Probe
    ranked: dict[str, list[str]]
    strength: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add where stores are kept, which model is used, and which sets."""
    parser.add_argument("--cache", type=Path, default=None, help="keep the stores there, with their vectors")
    parser.add_argument("--model", default=None, help="a model by path or as `make-model` names it, or `none`")
    parser.add_argument("--sets", default="locomo,beam,memops,unkeyed,scripts", help="which to run")
    parser.add_argument("--long", type=int, default=0, metavar="N", help="also N questions of LongMemEval; slow")
    parser.add_argument("--long-vectors", choices=("all", "user"), default="all", help="whose turns get vectors there")


def run(args: argparse.Namespace) -> Result:
    """Measure each set, and draw recall against k."""
    wanted = set(args.sets.split(","))
    result: Result = {"seed": SEED, "model": described(args.model)}
    lines: dict[str, list[float]] = {}
    with contextlib.ExitStack() as stack:
        cache = args.cache or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if "locomo" in wanted:
            path = need(args, "locomo/locomo_dev.json")
            with _store(cache, "locomo", args.model) as store:
                store.import_file(path, scope="eval/locomo", split=True)
                result["locomo"] = _measure(store, "eval/locomo", "turn", locomo(path), lines, "LoCoMo")
        if "beam" in wanted:
            talks = beam(need(args, "beam/beam_100k_dev.jsonl.xz"), cache / "beam-files")
            with _store(cache, "beam", args.model) as store:
                for talk in talks:
                    store.import_file(cache / "beam-files" / f"{talk.name}.jsonl", scope="eval/beam", split=True)
                result["beam"] = _measure(store, "eval/beam", "message", talks, lines, "BEAM")
        if "memops" in wanted:
            path = need(args, "memops/memops_dev.jsonl.xz")
            # Anew each time: what its scenarios forget is refused when they are played again.
            with tempfile.TemporaryDirectory() as folder, _store(Path(folder), "memops", args.model) as store:
                result["memops"] = replay_scenarios(store, path)
        if "unkeyed" in wanted:
            path = need(args, "memops/memops_dev.jsonl.xz")
            result["memops_unkeyed"] = contradiction_rows(path, args.model, cache)
        if "scripts" in wanted:
            # The packaged model reads English: words carry the other scripts, so they are measured by themselves.
            model = args.model or "none"
            with tempfile.TemporaryDirectory() as folder, _store(Path(folder), "scripts", model) as store:
                result["scripts"] = find_in_every_script(store, vectors=model != "none")
        if args.long:
            result["longmemeval"] = _long(args, cache)
    if lines:
        args.out.mkdir(parents=True, exist_ok=True)
        title = "recall against k: mean share of the gold turns or messages in the top k, reporting halves"
        (args.out / "recall.svg").write_text(line_plot(title, KS, lines), encoding="utf-8")
    return result


def _long(args: argparse.Namespace, cache: Path) -> Result:
    questions = need(args, "longmemeval/longmemeval_s_dev_questions.jsonl.xz")
    sessions = need(args, "longmemeval/longmemeval_s_sessions_full.jsonl.xz")
    return measure_sessions(questions, sessions, args.long, cache, args.model, args.long_vectors)


def _store(cache: Path, name: str, model: str | None) -> contextlib.AbstractContextManager[Store]:
    where = cache / f"{name}-{'default' if model is None else Path(model).name}"
    # BEAM's users paste keys and passwords: masked, their messages can still be found.
    return muniment.open(where, create=True, model=model and path_of(model), secrets="mask")


def _measure(
    store: Store, scope: str, level: str, talks: Sequence[Talk], lines: dict[str, list[float]], label: str
) -> Result:
    """Ask every question of every talk in the talk's own scope; return recall, baselines and abstention."""
    tuning, reporting = halves(talks)
    asked = {talk.name: _ask(store, f"{scope}/{talk.name}", talk) for talk in talks}
    rows: list[Result] = []
    for method in METHODS:
        for half, part in (("tuning", tuning), ("reporting", reporting), ("all", talks)):
            found = _rankings(asked, part, method)
            shown: Result = {f"@{k}": _mean(found, k) for k in SHOWN}
            rows.append({"method": method, "half": half, "n": len(found), **shown})
            if half == "reporting" and method != "recency":
                lines[f"{label}, {method}"] = [_mean(found, k) for k in KS]
    ours = _rankings(asked, reporting, "muniment")
    categories = sorted({probe.category for probe, _ in ours})
    strengths = {half: _strengths(asked, part) for half, part in (("tuning", tuning), ("reporting", reporting))}
    return {
        "conditions": f"level {level}; mean share of the gold {level}s in the top k; candidates are one conversation",
        "reporting_talks": " ".join(sorted(talk.name for talk in reporting)),
        "recall": rows,
        "by_category_at_10": [_category(ours, category) for category in categories],
        "abstention": [
            {"half": half, "answerable": len(can), "not": len(cannot), "auc": auc(can, cannot)}
            | error_rates(can, cannot)
            for half, (can, cannot) in strengths.items()
        ],
    }


def _rankings(asked: dict[str, list[Asked]], talks: Sequence[Talk], method: str) -> list[tuple[Probe, list[str]]]:
    """Return the answerable questions whose gold is known, each with what the method ranked."""
    found = [one for talk in talks for one in asked[talk.name]]
    return [(one.probe, one.ranked[method]) for one in found if one.probe.gold and one.probe.answerable]


def _category(found: Sequence[tuple[Probe, list[str]]], category: str) -> Result:
    part = [one for one in found if one[0].category == category]
    return {"category": category, "n": len(part), "@10": _mean(part, 10)}


def _ask(store: Store, scope: str, talk: Talk) -> list[Asked]:
    session = store.session(scope=scope, actor="agent:eval")
    found: list[Asked] = []
    for probe in talk.probes:
        hits = session.recall(probe.question, k=max(KS))
        # For the baselines every row with its scores in each arm; ranked by one arm alone.
        everything = session.recall(probe.question, k=1_000)
        found.append(
            Asked(
                probe,
                {
                    "muniment": _positions(hits),
                    "words": _positions(sorted(everything, key=lambda hit: (-(hit.word_score or -9.0), hit.seq))),
                    "dense": _positions(sorted(everything, key=lambda hit: (-(hit.dense_score or -9.0), hit.seq))),
                    "recency": list(talk.positions[::-1]),
                },
                hits.strength,
            )
        )
    return found


def _positions(hits: Sequence[Hit]) -> list[str]:
    return [(hit.source or "").rpartition("/")[2] for hit in hits]


def _mean(found: Sequence[tuple[Probe, list[str]]], k: int) -> float:
    shares = [len(probe.gold & set(ranked[:k])) / len(probe.gold) for probe, ranked in found]
    return round(100 * float(np.mean(shares)), 1) if shares else 0.0


def _strengths(asked: dict[str, list[Asked]], talks: Sequence[Talk]) -> tuple[list[float], list[float]]:
    found = [one for talk in talks for one in asked[talk.name]]
    can = [one.strength for one in found if one.probe.answerable]
    return can, [one.strength for one in found if not one.probe.answerable]
