"""
The nine at-rest edits of agent-memory-integrity (agmi), run against a store: which are refused, reported or accepted.

The suite is on the package index, and no dependency of ours: `pip install agent-memory-integrity`. Each edit is made by
two attackers against two owners, see `_agmi_adapter`; the row of an owner who keeps nothing elsewhere is there to show
what an anchor is for. REJECTED: the store refused to open. REPORTED: it opened, and `verify` named the edit. ACCEPTED:
neither.

One edit stays accepted even with an anchor: a forged entry *behind* the last one, sealed with the store's own keys. The
log then extends the anchor; whoever holds the store's keys can write to it, and is one of its writers. What he wrote
has the origin that he could give it, and signs for nobody.

The suite's memory-level attacks judge what an agent retrieves, which is not what this evaluation is about.
"""

from __future__ import annotations

import argparse
import importlib
from importlib import metadata

from ._agmi_adapter import MunimentAdapter
from ._harness import DataAbsent, Result

PACKAGE = "agent-memory-integrity"


def run(args: argparse.Namespace) -> Result:
    """Run the suite's edits, and return its scorecard."""
    del args
    try:
        suite, version = importlib.import_module("agmi.attacks.at_rest"), metadata.version(PACKAGE)
    except ImportError as error:
        raise DataAbsent(f"`{PACKAGE}` is not installed") from error
    rows: list[Result] = []
    details: list[Result] = []
    for anchored in (True, False):
        for thorough in (False, True):
            adapter = MunimentAdapter(thorough=thorough, anchored=anchored)
            row: Result = {"store": adapter.name}
            for kind in suite.AT_REST_ATTACKS_WITH_SNAPSHOT:
                attack = kind()
                outcome = attack.run(adapter)
                verdict = _verdict(outcome.status, adapter.verify_detail)
                row[attack.name] = verdict
                said = outcome.guard or outcome.error or outcome.detail
                details.append({"store": adapter.name, "edit": attack.name, "verdict": verdict, "detail": str(said)})
            rows.append(row)
    unjudged = [one for one in details if one["verdict"] in ("ERROR", "NOT EVALUABLE")]
    return {
        "ok": not unjudged and "ACCEPTED" not in rows[0].values(),
        "accepted": {str(row["store"]): sum(word == "ACCEPTED" for word in row.values()) for row in rows},
        "suite": f"{PACKAGE} {version}",
        "scorecard": rows,
        "details": details,
    }


def _verdict(status: str, detail: str | None) -> str:
    if status == "safe":
        return "REJECTED" if (detail or "").startswith("opening") else "REPORTED"
    return {"VULNERABLE": "ACCEPTED", "n/a": "NOT EVALUABLE"}.get(status, "ERROR")
