"""The conversations of the sets, their questions, and where each question's answer was said."""

from __future__ import annotations

import json
import lzma
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

SEED = 11
"""
Which conversations are for choosing parameters, and which for reporting. Ranking was first made with seed 5, and its
reporting halves were looked at: weights and bounds are chosen anew on these halves.
"""
_DIA_ID = re.compile(r"D:?(\d+):(\d+)")


class Probe(NamedTuple):
    """A question, the positions where its answer was said, its category, and whether it can be answered at all."""

    question: str
    gold: frozenset[str]
    category: str
    answerable: bool


class Talk(NamedTuple):
    """A conversation: its name in the set, its positions in order, and its questions."""

    name: str
    positions: tuple[str, ...]
    probes: tuple[Probe, ...]


def locomo(path: Path) -> list[Talk]:
    """Return the talks of LoCoMo. Malformed evidence is read as far as it can be; what names no turn is left out."""
    found: list[Talk] = []
    for sample in cast("list[dict[str, Any]]", json.loads(path.read_text(encoding="utf-8"))):
        sessions = [v for k, v in sample["conversation"].items() if re.fullmatch(r"session_\d+", k)]
        positions = tuple(str(turn["dia_id"]) for turns in sessions for turn in turns)
        known = set(positions)
        probes: list[Probe] = []
        for one in sample["qa"]:
            named = {f"D{int(a)}:{int(b)}" for text in one["evidence"] for a, b in _DIA_ID.findall(text)}
            category = _LOCOMO_CATEGORIES[one["category"]]
            probes.append(Probe(one["question"], frozenset(named & known), category, category != "adversarial"))
        found.append(Talk(str(sample["sample_id"]), positions, tuple(probes)))
    return found


def beam(path: Path, folder: Path) -> list[Talk]:
    """Return the talks of BEAM, each also written to `folder` as a file to import; positions are line numbers."""
    found: list[Talk] = []
    for record in _json_lines(path):
        turns = [m for batch in record["batches"] for group in batch["turns"] for m in group]
        name = f"beam-{record['chat']}"
        lines = [{"role": m["role"], "content": m["content"]} for m in turns]
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
        line_of = {m["id"]: str(number) for number, m in enumerate(turns, 1)}
        probes = [
            Probe(
                one["question"],
                frozenset(line_of[i] for i in _leaves(one.get("source_chat_ids", [])) if i in line_of),
                ability,
                ability != "abstention",
            )
            for ability, asked in record["probing_questions"].items()
            for one in asked
        ]
        found.append(Talk(name, tuple(line_of.values()), tuple(probes)))
    return found


def memops(path: Path) -> list[dict[str, Any]]:
    """Return the scenarios of MemOps as they are."""
    return list(_json_lines(path))


def halves(talks: Sequence[Talk], seed: int = SEED) -> tuple[list[Talk], list[Talk]]:
    """Return the talks for choosing parameters, and those for reporting."""
    chosen, _ = halves_of([talk.name for talk in talks], seed)
    return [t for t in talks if t.name in chosen], [t for t in talks if t.name not in chosen]


def halves_of(names: Sequence[str], seed: int = SEED) -> tuple[set[str], set[str]]:
    """Return two halves of some names, the same ones for the same seed."""
    ordered = sorted(names)
    random.Random(seed).shuffle(ordered)
    half = len(ordered) // 2
    return set(ordered[:half]), set(ordered[half:])


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield msgspec.json.decode(line)


def _leaves(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for item in cast("dict[str, object]", value).values() for leaf in _leaves(item)]
    if isinstance(value, list):
        return [leaf for item in cast("list[object]", value) for leaf in _leaves(item)]
    return [value]


_LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
