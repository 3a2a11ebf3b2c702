"""The audit of a decision: everything that bears on it in one artefact that JSON can carry."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from muniment.events import ActionBody, format_id, to_datetime
from muniment.gate import describe_action, parse_action
from muniment.projections import DecisionRecord, Memory

from ._answers import Answer, Record
from ._engine import Engine
from ._explaining import DecisionExplanation, LifeStep, explain_memory


class AuditedEvidence(Answer, frozen=True, kw_only=True):
    """One cited memory: what the guard made of it, where it comes from, and everything that happened to it."""

    id: str
    verdict: str
    origin: str | None
    rank: str | None
    provenance: str | None
    record: Record | None
    history: tuple[LifeStep, ...]
    sources: tuple[Record, ...]


class AuditedSignature(Answer, frozen=True, kw_only=True):
    """What a user signed or forbade, and the signed line itself, which anybody with the public key can verify."""

    id: str
    seq: int
    recorded_at: datetime
    scope: str
    by: str
    action: str | None
    signed: str | None


class Audit(Answer, frozen=True, kw_only=True):
    """
    A decision with all that bore on it. `missing` names what could not be shown, and why; `complete` when nothing is.

    `hash` is the decision's event in the chain, and `head` the log's: `verify` ties the one to the other.
    """

    decision: DecisionExplanation
    evidence: tuple[AuditedEvidence, ...]
    confirmation: AuditedSignature | None
    prohibition: AuditedSignature | None
    seq: int
    hash: str
    head: str
    complete: bool
    missing: tuple[str, ...]


def audit_decision(engine: Engine, record: DecisionRecord, explained: DecisionExplanation) -> Audit:
    """Return the audit of a recorded decision."""
    register = engine.state.register
    missing: list[str] = []
    if explained.action is None:
        missing.append("action: erased")
    elif explained.outcome == "not_redecidable":
        missing.append("decision: it leaned on what was erased or masked since, and cannot be decided again")
    evidence = [_evidence(engine, identity, verdict, missing) for identity, verdict in record.evidence]
    cited = {item.id for item in evidence}
    for item in explained.recorded.excluded:
        if item.id not in cited:
            missing.append(f"evidence {item.id}: no memory's id")
            evidence.append(_unseen(item.id, item.verdict))
    confirmation = _signature(engine, record.confirmation, "confirmation", missing)
    prohibition = _signature(engine, record.prohibition, "prohibition", missing)
    head = engine.head
    return Audit(
        decision=explained,
        evidence=tuple(evidence),
        confirmation=confirmation,
        prohibition=prohibition,
        seq=record.seq,
        hash=register.event_hash(record.id).hex(),
        head=f"{head.seq}:{head.chain.hex()}",
        complete=not missing,
        missing=tuple(missing),
    )


def _evidence(engine: Engine, identity: bytes, verdict: str, missing: list[str]) -> AuditedEvidence:
    name = format_id(identity)
    memory = engine.state.register.memories.get(identity)
    if memory is None or verdict == "not_found":
        # What the agent could not see is not shown by way of its decision either.
        missing.append(f"evidence {name}: not there, or not visible to the agent")
        return _unseen(name, verdict)
    life = explain_memory(engine, memory)
    if memory.erasure is not None:
        missing.append(f"evidence {name}: its content was erased")
    return AuditedEvidence(
        id=name,
        verdict=verdict,
        origin=life.record.origin,
        rank=life.record.rank,
        provenance=life.record.provenance,
        record=life.record,
        history=life.steps,
        sources=tuple(explain_memory(engine, source).record for source in _sources(engine, memory)),
    )


def _unseen(name: str, verdict: str) -> AuditedEvidence:
    return AuditedEvidence(
        id=name, verdict=verdict, origin=None, rank=None, provenance=None, record=None, history=(), sources=()
    )


def _sources(engine: Engine, memory: Memory) -> list[Memory]:
    """Return everything that the memory says it derives from, however far back."""
    memories = engine.state.register.memories
    found: dict[bytes, Memory] = {}
    todo = list(memory.envelope.derived_from)
    while todo:
        source = memories.get(todo.pop())
        if source is not None and source.id not in found:
            found[source.id] = source
            todo += source.envelope.derived_from
    return sorted(found.values(), key=lambda source: source.seq)


def _signature(engine: Engine, identity: bytes | None, sort: str, missing: list[str]) -> AuditedSignature | None:
    if identity is None:
        return None
    register = engine.state.register
    entry = register.confirmations.get(identity) or register.prohibitions.get(identity)
    name = format_id(identity)
    if entry is None:
        missing.append(f"{sort} {name}: gone with its scope")
        return None
    if entry.action is None:
        missing.append(f"{sort} {name}: erased")
    signed = _signed_line(engine, identity)
    if signed is None and entry.action is not None and sort == "confirmation":
        missing.append(f"{sort} {name}: its signed line cannot be read")
    return AuditedSignature(
        id=name,
        seq=entry.seq,
        recorded_at=to_datetime(entry.recorded_at),
        scope=entry.scope,
        by=getattr(entry, "principal", "") or cast("str", getattr(entry, "actor", "")),
        action=None if entry.action is None else describe_action(parse_action(entry.action)),
        signed=signed,
    )


def _signed_line(engine: Engine, identity: bytes) -> str | None:
    # The register keeps no signed lines; the log does.
    reader = engine.reader()
    try:
        for batch in reader.read_new():
            for event in batch.events:
                if event.header.id == identity:
                    body = reader.open_body(event)
                    line = body.signed if isinstance(body, ActionBody) else None
                    return None if line is None else line.decode()
    finally:
        reader.log.close()
    return None
