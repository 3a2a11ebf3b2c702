"""MemOps: its operations replayed as keyed writes and forgets, then its questions; and its updates without keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from muniment import Store, UserSession
from muniment.projections import PROPOSED_FROM, judge

from ._abstention import auc
from ._harness import Result
from ._models import embedder_of
from ._talks import halves_of, memops

K = 10
TOP = 3
_USER = "user:eval"


class _Written(NamedTuple):
    current: dict[str, str]
    gone: set[str]
    stale: set[tuple[str, str]]


def replay_scenarios(store: Store, path: Path) -> Result:
    """
    Write each scenario's operations in a scope of its own, and ask its questions.

    A confirmed value is written under its target; a tentative one without a key, on a condition; a forgotten target's
    records are forgotten one by one. A question names a value when its rubric demands that value in the answer.
    """
    scenarios = memops(path)
    tuning, reporting = halves_of([str(s["id"]) for s in scenarios])
    stale_hits = recalls = 0
    found: list[tuple[str, _Found]] = []
    for scenario in scenarios:
        scope = f"eval/memops/{scenario['id']}"
        written = _write(store.user_session(scope=scope, principal=_USER), scenario)
        session = store.session(scope=scope, actor="agent:eval")
        for probe in scenario["answer"]:
            hits = session.recall(probe["question"], k=K)
            recalls += 1
            stale_hits += sum(h.id in written.gone or (str(h.about), str(h.value)) in written.stale for h in hits)
            wanted, values = _values_named(probe, written.current), [str(hit.value) for hit in hits[:TOP]]
            demanded = len((probe.get("judge_rubric") or {}).get("must_include") or ())
            found.append((str(scenario["id"]), _Found(demanded, [value in values for value in wanted])))
    halves = (("tuning", tuning), ("reporting", reporting), ("all", tuning | reporting))
    return {
        "conditions": f"record level; k={K} for stale values, {TOP} for current ones; one scope a scenario",
        "recalls": recalls,
        "stale_or_forgotten_in_any_recall": stale_hits,
        "current_values_in_top_3": [
            {"half": half, "questions": name} | _in_top([one for s, one in found if s in names and fits(one)])
            for half, names in halves
            for name, fits in _QUESTIONS.items()
        ],
    }


class _Found(NamedTuple):
    demanded: int
    in_top: list[bool]


# The top 3 cannot hold what answers a question that demands more than three things.
_QUESTIONS: Final[dict[str, Callable[[_Found], bool]]] = {
    "name one current value": lambda one: len(one.in_top) == 1,
    "name one, and demand at most three things": lambda one: len(one.in_top) == 1 and one.demanded <= TOP,
    "name up to three": lambda one: 1 <= len(one.in_top) <= TOP,
}


def _in_top(found: list[_Found]) -> Result:
    values = [met for one in found for met in one.in_top]
    return {"values": len(values), "in_top_3": round(100 * sum(values) / max(1, len(values)), 1)}


def _write(user: UserSession, scenario: dict[str, Any]) -> _Written:
    current: dict[str, str] = {}
    ids: dict[str, list[str]] = {}
    written = _Written(current, set(), set())
    for operation in _in_order(scenario):
        target = operation.get("target") or {}
        name, value = str(target.get("target_name", "")), operation.get("new_value")
        quote = str(operation["trigger_span"]["quote"])
        if operation["type"] in ("remember", "update") and value:
            if operation["validity"] != "confirmed":
                user.remember(quote, applies_when="not yet confirmed")
                continue
            receipt = user.remember(quote, about=("user", name), value=str(value), kind="fact")
            old = ids.setdefault(name, [])
            if name in current and current[name] != str(value):
                written.gone.update(old)
                written.stale.add((str(("user", name)), current[name]))
            written.stale.discard((str(("user", name)), str(value)))
            if receipt.id not in old:
                old.append(receipt.id)
            current[name] = str(value)
        elif operation["type"] == "forget" and name in ids:
            for identity in ids.pop(name):
                if user.get(identity).status != "erased":
                    user.forget(identity, reason="asked for in the scenario")
                written.gone.add(identity)
            written.stale.add((str(("user", name)), current.pop(name)))
    return written


def _values_named(probe: dict[str, Any], current: dict[str, str]) -> list[str]:
    told = " \n".join(map(str, (probe.get("judge_rubric") or {}).get("must_include") or ())).casefold()
    return [value for value in dict.fromkeys(current.values()) if value.casefold() in told]


def _in_order(scenario: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(
        (o for o in scenario["operations"] if o.get("trigger_span")),
        key=lambda o: (o["trigger_span"]["segment_index"], o["trigger_span"]["turn_index"]),
    )


class _Pair(NamedTuple):
    old: str
    new: str
    updates: bool


def contradiction_rows(path: Path, model: str | None, cache: Path) -> Result:
    """Tell updates from other facts of the same scenario, by their words alone; parameters were chosen on one half."""
    if model == "none":
        return {"skipped": "it needs vectors"}
    embedder = embedder_of(model)
    scenarios = memops(path)
    tuning, reporting = halves_of([str(s["id"]) for s in scenarios])
    pairs = {
        half: [pair for s in scenarios if str(s["id"]) in names for pair in _pairs(s)]
        for half, names in (("tuning", tuning), ("reporting", reporting))
    }
    texts = sorted({text for part in pairs.values() for pair in part for text in (pair.old, pair.new)})
    kept = cache / f"memops-quotes-{embedder.model_id}.npy"
    vectors = np.load(kept) if kept.exists() else embedder.embed(texts)
    np.save(kept, vectors)
    at = {text: vectors[i] for i, text in enumerate(texts)}
    rows: list[Result] = []
    for half, part in pairs.items():
        judged = [(pair, *judge(pair.old, pair.new, float(at[pair.old] @ at[pair.new]))) for pair in part]
        can = [score for pair, score, _ in judged if pair.updates]
        cannot = [score for pair, score, _ in judged if not pair.updates]
        linked = [pair.updates for pair, score, reasons in judged if score >= PROPOSED_FROM and reasons]
        cosines = [(pair, float(at[pair.old] @ at[pair.new])) for pair in part]
        rows.append({
            "half": half, "updates": len(can), "distinct": len(cannot), "auc": auc(can, cannot),
            "cosine_alone_auc": auc([c for p, c in cosines if p.updates], [c for p, c in cosines if not p.updates]),
            "updates_linked": round(100 * sum(linked) / max(1, len(can)), 1),
            "distinct_linked": round(100 * linked.count(False) / max(1, len(cannot)), 2),
        })  # fmt: skip
    return {"bound": PROPOSED_FROM, "rows": rows}


def _pairs(scenario: dict[str, Any]) -> Iterator[_Pair]:
    """Yield each update with the statement before it of the same target, and every two statements of two targets."""
    last: dict[str, str] = {}
    first: dict[str, str] = {}
    for operation in _in_order(scenario):
        if operation["type"] not in ("remember", "update"):
            continue
        name = str((operation.get("target") or {}).get("target_id"))
        quote = str(operation["trigger_span"]["quote"])
        if operation["type"] == "update" and name in last and last[name] != quote:
            yield _Pair(last[name], quote, True)
        first.setdefault(name, quote)
        last[name] = quote
    for (_, old), (_, new) in combinations(first.items(), 2):
        if old != new:
            yield _Pair(old, new, False)
