"""Commands that are carried out once, whichever process, thread or handle was asked first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from muniment.events import Batch, Draft, Moment, Plan
from muniment.gate import Handle
from muniment.projections import Command

from ._engine import Engine


def append_once(
    engine: Engine,
    handle: Handle,
    command_id: str | None,
    payload_key: bytes,
    plan: Plan,
    append: Callable[[Plan], Batch | None] | None = None,
) -> Batch | Command | None:
    """
    Append what `plan` returns, or return the command that did so before, having written nothing.

    `append` is the engine's own, unless another of its ways is meant.

    Raises:
        CommandConflict, Tombstoned: as `Admission.repeat_of_command`.
    """
    first: list[Command] = []

    def once(at: Moment) -> Sequence[Draft]:
        # Looked for again under the lock: whoever held it before may have been given the same command.
        first.clear()
        command = engine.admission.repeat_of_command(handle, command_id, payload_key)
        if command is None:
            return plan(at)
        first.append(command)
        return []

    batch = (engine.append if append is None else append)(once)
    return first[0] if first else batch
