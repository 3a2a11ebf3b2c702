"""A memory's life, as the register tells it: what happened to it, in order, and what leaned on it."""

from __future__ import annotations

from typing import NamedTuple

from muniment.projections import FAR_FUTURE, FateKind, Memory, Register


class Step(NamedTuple):
    """One thing that happened to a memory: `event` caused it, `by` is the memory that took its place."""

    what: str
    seq: int
    recorded_at: int
    event: bytes
    actor: str
    until: int | None = None
    by: bytes | None = None


class Life(NamedTuple):
    """A memory's steps, oldest first, the decisions that cited it with their verdicts, and what derives from it."""

    steps: tuple[Step, ...]
    decisions: tuple[tuple[bytes, str], ...]
    derived: tuple[bytes, ...]
    recalled_before: tuple[bytes, ...]


def life_of(register: Register, memory: Memory, successor: bytes | None) -> Life:
    """
    Return the life of a memory.

    `successor` is the memory that holds its key now: a keyed write supersedes without naming what it displaces, so that
    the memory itself has no trace of it.
    """
    envelope = memory.envelope
    speaker = envelope.principal or envelope.actor
    steps = [Step("remembered", memory.seq, memory.recorded_at, memory.id, speaker)]
    steps += [
        Step(
            fate.kind.name.lower(), fate.seq, fate.recorded_at, fate.event, fate.actor,
            None if fate.until >= FAR_FUTURE else fate.until, fate.by,
        )
        for fate in memory.fates
    ]  # fmt: skip
    named = {fate.by for fate in memory.fates if fate.kind is FateKind.SUPERSEDED}
    other = None if successor is None or successor in named else register.memories.get(successor)
    if other is not None:
        said_by = other.envelope.principal or other.envelope.actor
        steps.append(Step("superseded", other.seq, other.recorded_at, other.id, said_by, by=other.id))
    if memory.erasure is not None:
        erasure = memory.erasure
        steps.append(Step("forgotten", erasure.seq, erasure.recorded_at, erasure.event, erasure.actor))
    return Life(
        steps=tuple(sorted(steps, key=lambda step: step.seq)),
        decisions=tuple(
            (decision.id, verdict)
            for decision in register.decisions.values()
            for cited, verdict in decision.evidence
            if cited == memory.id
        ),
        derived=tuple(child.id for child in register.children.get(memory.id, ())),
        recalled_before=tuple(found.id for found in register.recalled_into.get(memory.id, ())),
    )
