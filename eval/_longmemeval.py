"""LongMemEval-S, session level: each question in a store of its own haystack of about 48 sessions."""

from __future__ import annotations

import lzma
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import muniment
from muniment import Hit

from ._abstention import auc, error_rates
from ._harness import Result
from ._talks import SEED

_K = 200
SHOWN = (5, 10)


def measure_sessions(questions: Path, sessions: Path, count: int, cache: Path, model: str | None) -> Result:
    """
    Ask `count` questions, every one without an answer among them; a session ranks where its best turn ranks.

    Turns are imported as remembered text with their session as conversation; user and assistant turns both.
    """
    asked = _sample(list(_json_lines(questions)), count)
    wanted = {session for one in asked for session in one["haystack_session_ids"]}
    kept = {one["id"]: one["turns"] for one in _sessions(sessions) if one["id"] in wanted}
    found: list[tuple[dict[str, Any], list[str], float]] = []
    for one in asked:
        with tempfile.TemporaryDirectory(dir=cache) as folder, muniment.open(folder, create=True, model=model) as store:
            session = store.session(scope="eval/long", actor="user")
            items = [item for s, d in _dated(one) for item in _turns(s, d, kept[s])]
            for start in range(0, len(items), 500):
                session.remember_many(items[start : start + 500], on_refusal="skip")
            store.embed()
            hits = session.recall(one["question"], k=_K)
            found.append((one, _ranked_sessions(hits), hits.strength))
    can = [s for one, _, s in found if not _is_unanswerable(one)]
    cannot = [s for one, _, s in found if _is_unanswerable(one)]
    shares = {
        f"{how}@{k}": _share(
            [(set(o["answer_session_ids"]), r[:k]) for o, r, _ in found if not _is_unanswerable(o)], how
        )
        for how in ("any", "all")
        for k in SHOWN
    }
    return {
        "conditions": "session level; a session ranks where its best turn ranks",
        "answerable": len(can), "unanswerable": len(cannot), **shares,
        "abstention_auc": auc(can, cannot), **error_rates(can, cannot),
    }  # fmt: skip


def _sample(questions: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    unanswerable = [one for one in questions if _is_unanswerable(one)]
    rest = [one for one in questions if not _is_unanswerable(one)]
    random.Random(SEED).shuffle(rest)
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


def _share(found: list[tuple[set[str], list[str]]], how: str) -> float:
    met = [bool(gold & set(top)) if how == "any" else gold <= set(top) for gold, top in found]
    return round(100 * float(np.mean(met)), 1) if met else 0.0


def _sessions(path: Path) -> Iterator[dict[str, Any]]:
    for record in _json_lines(path):
        yield {"id": record.get("session_id", record.get("id")), "turns": record["turns"]}


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield msgspec.json.decode(line)
