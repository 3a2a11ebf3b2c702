"""LongMemEval-S, session level: each question in a store of its own haystack of about 48 sessions."""

from __future__ import annotations

import lzma
import random
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from muniment import Hit, Session, Store
from muniment._engine import Engine, Options
from muniment._version import VERSION
from muniment.events import Disk, create_store
from muniment.projections import Embedder

from ._abstention import auc, error_rates
from ._harness import Result
from ._kept_vectors import KeptEmbedder
from ._models import embedder_of
from ._talks import halves_of

_K = 1_000
_ORDER = 5
"""The seed of the order in which questions are taken, where not all are asked."""
_FIGURES = (("any", 5), ("any", 10), ("all", 5), ("all", 10))


class _Asked(NamedTuple):
    """`untold` is the strength before any session that answers was remembered."""

    question: dict[str, Any]
    ranked: list[str]
    strength: float
    untold: float


def measure_sessions(questions: Path, sessions: Path, count: int, cache: Path, model: str | None, roles: str) -> Result:
    """
    Ask `count` questions, every one without an answer among them; a session ranks where its best turn ranks.

    Turns are remembered with their session as conversation, user and assistant turns both. `roles` says whose turns
    get vectors: `all` or `user`; what gets none is found by its words.
    """
    everything = list(_json_lines(questions))
    asked = _sample(everything, count)
    wanted = {session for one in asked for session in one["haystack_session_ids"]}
    kept = {one["id"]: one["turns"] for one in _sessions(sessions) if one["id"] in wanted}
    users = {text for turns in kept.values() for who, text in turns if who == "u"}
    embedder = _embedder(model, cache, None if roles == "all" else users)
    found = [_ask(one, kept, cache, embedder) for one in asked]
    tuning, reporting = halves_of([str(one["question_id"]) for one in everything])
    told = "words only" if embedder is None else f"vectors of {roles} turns"
    return {
        "conditions": f"session level; a session ranks where its best turn ranks; {told}",
        "questions": len(found),
        "of": len(everything),
        "rows": [
            _row(half, [one for one in found if str(one.question["question_id"]) in names])
            for half, names in (("tuning", tuning), ("reporting", reporting), ("all", tuning | reporting))
        ],
        "by_type_reporting": _by_type([one for one in found if str(one.question["question_id"]) in reporting]),
    }


def _embedder(model: str | None, cache: Path, only: Collection[str] | None) -> Embedder | None:
    if model == "none":
        return None
    return KeptEmbedder(embedder_of(model), cache / "long", only=only)


def _ask(one: dict[str, Any], kept: dict[str, list[tuple[str, str]]], cache: Path, embedder: Embedder | None) -> _Asked:
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        options = Options(load_embedder=None if embedder is None else lambda: embedder)
        store = Store(Engine(create_store(Path(folder) / "store", Disk(), 0), options, VERSION), created=True)
        with store:
            session = store.session(scope="eval/long", actor="user")
            answers = set(one["answer_session_ids"])
            _remember(session, [item for s, d in _dated(one) if s not in answers for item in _turns(s, d, kept[s])])
            untold = store.head.seq
            _remember(session, [item for s, d in _dated(one) if s in answers for item in _turns(s, d, kept[s])])
            store.embed()
            ranked = _ranked_sessions(session.recall(one["question"], k=_K))
            # With the usual `k`: it bounds the candidates, which are what strength is told from.
            now, before = session.recall(one["question"]), session.recall(one["question"], known_at=untold)
            return _Asked(one, ranked, now.strength, before.strength)


def _remember(session: Session, items: list[dict[str, object]]) -> None:
    for start in range(0, len(items), 500):
        session.remember_many(items[start : start + 500], on_refusal="skip")


def _row(half: str, found: list[_Asked]) -> Result:
    can = [one for one in found if not _is_unanswerable(one.question)]
    cannot = [one.strength for one in found if _is_unanswerable(one.question)]
    shares = {f"{how}@{k}": _share([(_gold(one), set(one.ranked[:k])) for one in can], how) for how, k in _FIGURES}
    strengths, untold = [one.strength for one in can], [one.untold for one in can]
    return {
        "half": half, "answerable": len(can), "unanswerable": len(cannot), **shares,
        "abstention_auc": auc(strengths, cannot), **error_rates(strengths, cannot),
        "untold_auc": auc(strengths, untold),
        "untold_not_called_weak": error_rates(strengths, untold)["unanswerable_not_called_weak"],
    }  # fmt: skip


def _by_type(found: list[_Asked]) -> list[Result]:
    can = [one for one in found if not _is_unanswerable(one.question)]
    rows: list[Result] = []
    for kind in sorted({str(one.question["question_type"]) for one in can}):
        part = [(_gold(one), set(one.ranked[:5])) for one in can if one.question["question_type"] == kind]
        rows.append({"type": kind, "n": len(part), "any@5": _share(part, "any"), "all@5": _share(part, "all")})
    return rows


def _gold(one: _Asked) -> set[str]:
    return set(one.question["answer_session_ids"])


def _sample(questions: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    unanswerable = [one for one in questions if _is_unanswerable(one)]
    rest = [one for one in questions if not _is_unanswerable(one)]
    random.Random(_ORDER).shuffle(rest)
    return (unanswerable + rest)[:count] if count > len(unanswerable) else rest[:count]


def _is_unanswerable(question: dict[str, Any]) -> bool:
    return str(question["question_id"]).endswith("_abs")


def _dated(question: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for session, when in zip(question["haystack_session_ids"], question["haystack_dates"], strict=True):
        yield session, str(when)[:10].replace("/", "-")


def _turns(session: str, date: str, turns: list[tuple[str, str]]) -> Iterator[dict[str, object]]:
    roles = {"u": "user", "a": "assistant"}
    for number, (who, text) in enumerate(turns):
        if any(character.isalnum() for character in text):
            told = {"conversation": session, "role": roles.get(who, who)}
            source = f"long:{session}/{number}"
            yield {"content": text, "kind": "chat", "valid_from": date, "metadata": told, "source": source}


def _ranked_sessions(hits: list[Hit]) -> list[str]:
    return list(dict.fromkeys(str(hit.metadata["conversation"]) for hit in hits))


def _share(found: list[tuple[set[str], set[str]]], how: str) -> float:
    met = [bool(gold & top) if how == "any" else gold <= top for gold, top in found]
    return round(100 * float(np.mean(met)), 1) if met else 0.0


def _sessions(path: Path) -> Iterator[dict[str, Any]]:
    for record in _json_lines(path):
        yield {"id": record.get("session_id", record.get("id")), "turns": record["turns"]}


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield msgspec.json.decode(line)
