"""Replay to a moment: the same fold over the same log, stopped where the moment is."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from muniment.events import Batch, Event, Forgotten, Reader
from muniment.projections import Projections, without_collection

Leaves = Callable[[Event], bool]


def fold(
    reader: Reader,
    *,
    until: int | None = None,
    recorded_until: int | None = None,
    leave_out: Leaves | None = None,
) -> Projections:
    """
    Return projections folded from a log's first event up to a moment, batches wholly or not at all.

    `until` is a sequence number inside the last batch, `recorded_until` an instant; without either the whole log is
    folded. What was erased after the moment is marked erased all the same, since its content is gone at every moment.
    `leave_out` makes a counterfactual: the events it names are passed over as if they had said nothing.
    """
    state = Projections(reader.open_body, reader.read_body)
    with without_collection():
        past = False
        for batch in reader.read_new():
            past = past or _is_past(batch, until, recorded_until)
            if past:
                _erase_later(batch, state)
                continue
            state.apply(batch if leave_out is None else _without(batch, leave_out))
    return state


def follow_erasures(reader: Reader, state: Projections) -> None:
    """Mark what was erased since the reader's position; a past changes in nothing else."""
    for batch in reader.read_new():
        _erase_later(batch, state)


def _erase_later(batch: Batch, state: Projections) -> None:
    for event in batch.events:
        if isinstance(event.envelope, Forgotten):
            state.erase_later(event, event.envelope)


def _is_past(batch: Batch, until: int | None, recorded_until: int | None) -> bool:
    first = batch.events[0]
    if until is not None and first.seq > until:
        return True
    return recorded_until is not None and first.recorded_at > recorded_until


def _without(batch: Batch, leave_out: Leaves) -> Batch:
    return Batch([replace(event, envelope=None) if leave_out(event) else event for event in batch.events], batch.head)
