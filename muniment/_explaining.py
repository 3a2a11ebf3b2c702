"""Why something is as it is: a memory's life, or a decision asked again on the state just before it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import cast

from muniment.events import ActionBody, Forgotten, MemoryBody, WordsBody, format_id, to_datetime
from muniment.gate import Question, Use, describe_action, parse_action
from muniment.projections import ById, DecisionRecord, Memory
from muniment.replay import Life, Step, life_of

from ._answers import Answer, Decision, Record
from ._deciding import decision_of, name_unknown, recorded_decision
from ._engine import Engine
from ._points import Point
from ._replayed import Past
from ._views import Views


class LifeStep(Answer, frozen=True, kw_only=True):
    """One thing that happened to a memory: what, when, who, and why where a reason was given and is still there."""

    what: str
    seq: int
    recorded_at: datetime
    actor: str
    reason: str | None
    event: str
    until: datetime | None
    by: str | None


class DecisionCiting(Answer, frozen=True, kw_only=True):
    """A decision that cited a memory: what it made of it, and how it came out."""

    id: str
    verdict: str
    allowed: bool
    use: str
    actor: str
    recorded_at: datetime


class MemoryExplanation(Answer, frozen=True, kw_only=True):
    """A memory's life. `decisions` cited it; `derived` and `recalled_before` came of it."""

    explains: str = "memory"
    id: str
    record: Record
    steps: tuple[LifeStep, ...]
    decisions: tuple[DecisionCiting, ...]
    derived: tuple[str, ...]
    recalled_before: tuple[str, ...]


class DecisionExplanation(Answer, frozen=True, kw_only=True):
    """
    A decision as recorded, decided again on the state just before it, and as the guard would decide now.

    `outcome` is `same`, `differs`, or `not_redecidable` when it leaned on content erased since, or a secret in its
    arguments was masked; then `again` is None.
    `policy_changed` tells that the policy of today is not the one it was decided under.
    """

    explains: str = "decision"
    id: str
    scope: str
    actor: str
    action: str | None
    recorded: Decision
    again: Decision | None
    now: Decision | None
    outcome: str
    policy_changed: bool


def explain_memory(engine: Engine, memory: Memory) -> MemoryExplanation:
    """Return the life of a memory, whatever its scope."""
    register = engine.state.register
    record = Views(engine.state).record(memory, Point(engine.now(), engine.state.seq))
    successor = None if record.superseded_by is None else bytes.fromhex(record.superseded_by)
    life = life_of(register, memory, successor)
    reasons = reasons_of(engine, {step.event for step in life.steps})
    return MemoryExplanation(
        id=record.id,
        record=record,
        steps=tuple(_step(step, reasons) for step in life.steps),
        decisions=_citing(life, register.decisions),
        derived=tuple(format_id(identity) for identity in life.derived),
        recalled_before=tuple(format_id(identity) for identity in life.recalled_before),
    )


def explain_decision(engine: Engine, record: DecisionRecord, replay: Callable[[], Past]) -> DecisionExplanation:
    """Return a decision with what the guard says to the same question before it, and now."""
    store_id, state = engine.files.store_id, engine.state
    body = None if record.erasure is not None else cast("ActionBody | None", state.read_body(record.place))
    again = now = None
    recorded = recorded_decision(state, record, None, store_id)
    if body is not None and not body.masked:
        action = parse_action(body.action)
        cited = tuple(identity for identity, _ in record.evidence)
        question = Question(
            scope=record.scope, reads=_reads(engine, record), agent=record.actor, action=action, asked=Use(record.use),
            evidence=cited, decided_at=engine.now(), known=state.seq,
        )  # fmt: skip
        now = name_unknown(decision_of(engine.guard.decide(question), question, store_id, None), body.unknown)
        if not any(_is_erased(engine, identity) for identity in cited):
            past = replay()
            question = Question(
                scope=record.scope, reads=question.reads, agent=record.actor, action=action, asked=Use(record.use),
                evidence=cited, decided_at=record.decided_at, known=past.state.seq,
            )  # fmt: skip
            again = name_unknown(decision_of(past.guard.decide(question), question, store_id, None), body.unknown)
    return DecisionExplanation(
        id=format_id(record.id),
        scope=record.scope,
        actor=record.actor,
        action=None if body is None else describe_action(parse_action(body.action)),
        recorded=recorded,
        again=again,
        now=now,
        outcome=_outcome(recorded, again),
        policy_changed=now is not None and now.policy != recorded.policy,
    )


def _outcome(recorded: Decision, again: Decision | None) -> str:
    if again is None:
        return "not_redecidable"
    same = (recorded.allowed, recorded.use, recorded.reasons, recorded.confirmation, recorded.prohibition)
    return (
        "same"
        if same == (again.allowed, again.use, again.reasons, again.confirmation, again.prohibition)
        else "differs"
    )


def _reads(engine: Engine, record: DecisionRecord) -> tuple[str, ...]:
    # What the session could read is not in the log; what it was seen to read is: the scopes of evidence that the guard
    # judged by more than its absence.
    memories = engine.state.register.memories
    seen = [memories[i].scope for i, verdict in record.evidence if i in memories and verdict != "not_found"]
    return tuple(dict.fromkeys(scope for scope in seen if scope != record.scope))


def _is_erased(engine: Engine, identity: bytes) -> bool:
    memory = engine.state.register.memories.get(identity)
    return memory is not None and memory.erasure is not None


def _step(step: Step, reasons: dict[bytes, str | None]) -> LifeStep:
    return LifeStep(
        what=step.what,
        seq=step.seq,
        recorded_at=to_datetime(step.recorded_at),
        actor=step.actor,
        reason=reasons.get(step.event),
        event=format_id(step.event),
        until=None if step.until is None else to_datetime(step.until),
        by=None if step.by is None else format_id(step.by),
    )


def _citing(life: Life, decisions: ById[DecisionRecord]) -> tuple[DecisionCiting, ...]:
    return tuple(
        DecisionCiting(
            id=format_id(identity),
            verdict=verdict,
            allowed=decisions[identity].allowed,
            use=decisions[identity].use,
            actor=decisions[identity].actor,
            recorded_at=to_datetime(decisions[identity].recorded_at),
        )
        for identity, verdict in life.decisions
    )


def reasons_of(engine: Engine, wanted: Collection[bytes]) -> dict[bytes, str | None]:
    """Return the reason of each event, read from the log: the register keeps no words."""
    found: dict[bytes, str | None] = {}
    reader = engine.reader()
    try:
        for batch in reader.read_new():
            for event in batch.events:
                if event.header.id not in wanted:
                    continue
                if isinstance(event.envelope, Forgotten):
                    found[event.header.id] = event.envelope.reason
                    continue
                body = reader.open_body(event)
                found[event.header.id] = body.reason if isinstance(body, (WordsBody, MemoryBody)) else None
            if len(found) == len(wanted):
                break
    finally:
        reader.log.close()
    return found
