"""Any unique prefix of an id, where a person types it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from muniment.events import BadArgument, NotFound, format_id, is_id_prefix
from muniment.projections import Projections

SORTS: Final = ("memory", "decision", "request", "confirmation", "prohibition", "tombstone")


def find_id(state: Projections, prefix: str, sorts: Sequence[str], scope: str | None) -> tuple[str, str]:
    """
    Return (sort, full id) of the one thing whose id begins so, among some sorts, in one scope or in all.

    Raises:
        NotFound: there is none. BadArgument: there are several, or no such sort.
    """
    if unknown := set(sorts) - set(SORTS):
        raise BadArgument(argument="sorts", detail=f"expected some of {', '.join(SORTS)}, got `{sorted(unknown)[0]}`")
    if not is_id_prefix(prefix):
        raise NotFound(id=prefix)
    register = state.register
    tables: dict[str, list[tuple[bytes, str]]] = {
        "memory": [(m.id, m.scope) for m in register.memories.values()],
        "decision": [(d.id, d.scope) for d in register.decisions.values()],
        "request": [(r.id, r.scope) for r in register.requests.values()],
        "confirmation": [(c.id, c.scope) for c in register.confirmations.values()],
        "prohibition": [(p.id, p.scope) for p in register.prohibitions.values()],
        # A forget of a whole scope stands under that scope, and its tombstones too.
        "tombstone": [(t.event, t.scope) for t in state.tombstones.all]
        + [(event, closed) for closed, (_, _, event) in register.closed.items()],
    }
    found = {
        (sort, format_id(identity))
        for sort in sorts
        for identity, where in tables[sort]
        if (scope is None or where == scope) and format_id(identity).startswith(prefix)
    }
    if len(found) > 1:
        raise BadArgument(argument="id", detail=f"`{prefix}` begins {len(found)} ids: type more of it")
    if not found:
        raise NotFound(id=prefix)
    return found.pop()
