"""The cases in which something happens after a decision: it comes out the same at its own position."""

from __future__ import annotations

from collections.abc import Iterator

from ._safety_cases import REMOVE, Case, Half
from ._safety_doors import Desk, Door


def redecision_cases() -> Iterator[Case]:
    """Yield CASES 60: what happens later never changes how a decision comes out at its own position."""
    for later in (
        "revoke",
        "prohibit",
        "confirm",
        "forget evidence",
        "supersede evidence",
        "retire evidence",
        "spend again",
        "page",
    ):
        for first in ("allowed", "denied"):
            yield Case("60 decided again", f"{first}, then {later}", _rewrites(later, first), _redecides(later, first))


def _later(door: Door, desk: Desk, first: str, later: str) -> str | None:
    seen = door.remember("The staging bucket is old.")
    confirmation = desk.confirm(door, REMOVE) if first == "allowed" else None
    decided = door.decide(REMOVE, evidence=[] if later == "forget evidence" else [seen]).id
    if later == "revoke" and confirmation is not None:
        door.revoke(confirmation)
    elif later == "prohibit":
        door.prohibit(REMOVE)
    elif later == "confirm":
        desk.confirm(door, REMOVE, uses=None)
    elif later == "forget evidence":
        door.forget(seen)
    elif later == "supersede evidence":
        door.supersede(seen, "The staging bucket is new.")
    elif later == "retire evidence":
        door.retire(seen)
    elif later == "page":
        door.remember("That decision was approved.", origin="web:https://x.example")
    else:
        door.decide(REMOVE)
    return decided


def _rewrites(later: str, first: str) -> Half:
    def half(door: Door, desk: Desk) -> bool:
        outcome, allowed = door.outcome(_later(door, desk, first, later) or "")
        return outcome != "same" or allowed != (first == "allowed")

    return half


def _redecides(later: str, first: str) -> Half:
    def half(door: Door, desk: Desk) -> bool:
        return door.outcome(_later(door, desk, first, later) or "") == ("same", first == "allowed")

    return half
