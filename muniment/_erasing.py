"""Receipts of erasures, as they are given and as they can be asked for again."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from muniment.events import BadArgument, EventType, Forgotten, NotFound, format_id, to_datetime
from muniment.gate import Erasing, check_flag
from muniment.projections import Command, Projections

from ._answers import ErasureReceipt
from ._engine import Engine


def check_forget(cascade: object, dry_run: object, block: object) -> None:
    """Check how something is to be forgotten; raises BadArgument naming what is none of its values."""
    check_flag(cascade, "cascade")
    check_flag(dry_run, "dry_run")
    if block not in ("value", "key"):
        raise BadArgument(argument="block", detail=f"expected value or key, got `{block}`")


def dry_receipt(
    erasing: Erasing, scope: str, by: str, reason: str | None, *, kept: Sequence[bytes] = ()
) -> ErasureReceipt:
    """Return what a forget would erase, having written nothing."""
    return ErasureReceipt(
        id=None,
        seq=None,
        recorded_at=None,
        hash=None,
        status="dry_run",
        scope=scope,
        by=by,
        reason=reason,
        asked=tuple(format_id(m.id) for m in erasing.asked),
        derived=tuple(format_id(m.id) for m in erasing.derived),
        elsewhere=tuple(format_id(m.id) for m in erasing.elsewhere),
        kept=tuple(format_id(i) for i in kept),
        dry_run=True,
    )


def erasure_receipt(
    state: Projections, identity: bytes, scope: str, *, forgotten: Forgotten | None = None, repeated: bool = False
) -> ErasureReceipt:
    """
    Return the receipt of a forget that is in the log. Without its envelope what was left is not named.

    Raises:
        NotFound: no forget has that id.
    """
    register = state.register
    rows = [row for row in register.timeline.find(identity) if row.type == EventType.FORGOTTEN]
    if not rows:
        raise NotFound(id=format_id(identity))
    row = rows[0]
    if forgotten is None:
        erased = [m for m in register.memories.values() if m.erasure is not None and m.erasure.event == identity]
    else:
        named = [register.memories.get(target) for target, _ in forgotten.targets]
        erased = [m for m in named if m is not None and m.erasure is not None and m.erasure.event == identity]
    parents = {m.id for m in erased}
    derived = [m for m in erased if parents.intersection(m.envelope.derived_from)]
    reason = erased[0].erasure.reason if erased and erased[0].erasure is not None else None
    if forgotten is not None:
        reason = forgotten.reason
    return ErasureReceipt(
        id=format_id(identity),
        seq=row.seq,
        recorded_at=to_datetime(row.recorded_at),
        hash=register.event_hash(identity).hex(),
        status="erased",
        scope=row.scope or scope,
        by=row.actor,
        reason=reason,
        asked=tuple(format_id(m.id) for m in erased if m not in derived),
        derived=tuple(format_id(m.id) for m in derived),
        elsewhere=() if forgotten is None else tuple(format_id(i) for i in forgotten.elsewhere),
        kept=() if forgotten is None else tuple(format_id(i) for i in forgotten.kept),
        # Counted only where the event cannot say it: there may be very many.
        tombstones=sum(t.event == identity for t in state.tombstones.all)
        if forgotten is None
        else len(forgotten.tombstones),
        repeated=repeated,
    )


def name_erased_before(state: Projections, receipt: ErasureReceipt, named: Sequence[bytes]) -> ErasureReceipt:
    """Return the receipt of a forget of these ids with those that were erased before it; of a dry run, before now."""
    found = [state.register.memories.get(identity) for identity in dict.fromkeys(named)]
    already = [
        format_id(memory.id)
        for memory in found
        if memory is not None
        and memory.erasure is not None
        and (receipt.seq is None or memory.erasure.seq < receipt.seq)
    ]
    return msgspec.structs.replace(receipt, already=tuple(already))


def repeated_erasure(engine: Engine, command: Command, scope: str) -> ErasureReceipt:
    """Return the receipt of the forget that a command wrote before, once its keys are certainly gone."""
    engine.settle()
    return erasure_receipt(engine.state, command.id, scope, forgotten=engine.find_forget(command.id), repeated=True)
