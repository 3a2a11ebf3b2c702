"""What the graph's tables are filled with: columns made from the register, and words read from the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from muniment.events import ActionBody, EventType, MemoryBody, parse_data

from ._bundle import Projections
from ._register import Register
from ._state import FAR_FUTURE, DecisionRecord, EventRow, Fate, Link, Memory
from ._tombstones import Tombstone

Columns: TypeAlias = dict[str, NDArray[np.generic]]
Row: TypeAlias = tuple[object, ...]
Scopes: TypeAlias = frozenset[str] | None
"""The scopes that a query may see; None for every scope, which is the operator's view."""

LISTS: Final = {
    "tags": '["VARCHAR"]',
    "reasons": '["VARCHAR"]',
    "evidence": '[{"id":"VARCHAR","verdict":"VARCHAR"}]',
}
"""Columns that travel as JSON text, and what DuckDB makes of them: it would guess the type of a list by its items."""

_NO_WORDS: Final = MemoryBody(content="")
_json = msgspec.json.Encoder(order="deterministic", decimal_format="string").encode


def memory_columns(state: Projections, memories: Sequence[Memory]) -> Columns:
    """Return memories with their words; what was erased, or whose key is gone, has none."""
    bodies = [None if m.erasure is not None else state.read_memory(m.place) for m in memories]
    words = [_NO_WORDS if body is None else body for body in bodies]
    envelopes = [m.envelope for m in memories]
    return {
        "seq": _numbers(m.seq for m in memories),
        "id": _texts(m.id.hex() for m in memories),
        "scope": _texts(m.scope for m in memories),
        "kind": _texts(str(e.kind) for e in envelopes),
        "content": _texts(None if body is None else body.content for body in bodies),
        "subject": _texts(w.subject for w in words),
        "attribute": _texts(w.attribute for w in words),
        "value": _texts(_value_text(w.value) for w in words),
        "origin": _texts(e.origin for e in envelopes),
        "rank": _numbers(e.rank for e in envelopes),
        "actor": _texts(e.actor for e in envelopes),
        "provenance": _texts(str(e.provenance) for e in envelopes),
        "source": _texts(w.source for w in words),
        "tags": _texts(_json(w.tags).decode() for w in words),
        "metadata": _texts(None if w.metadata is None else _json(parse_data(w.metadata)).decode() for w in words),
        "applies_when": _texts(w.applies_when for w in words),
        "reason": _texts(w.reason for w in words),
        # NaN is how numpy says that there is none: an importance is never NaN.
        "importance": np.array([np.nan if e.importance is None else e.importance for e in envelopes], np.float64),
        "many": _flags(e.many for e in envelopes),
        "conditional": _flags(e.conditional for e in envelopes),
        "pending": _flags(e.pending for e in envelopes),
        "valid_from": _numbers(e.valid_from for e in envelopes),
        "valid_to": _numbers(m.valid_until for m in memories),
        "recorded_at": _numbers(m.recorded_at for m in memories),
        "key": _texts(_hex(e.belief_key) for e in envelopes),
        "value_key": _texts(_hex(e.value_key) for e in envelopes),
        "erased_seq": _numbers(FAR_FUTURE if m.erasure is None else m.erasure.seq for m in memories),
    }


def fate_columns(register: Register, fates: Sequence[tuple[Memory, Fate]]) -> Columns:
    """Return what happened to memories; a successor is named by its sequence number, -1 for none."""
    return {
        "mem": _numbers(memory.seq for memory, _ in fates),
        "kind": _numbers(int(fate.kind) for _, fate in fates),
        "seq": _numbers(fate.seq for _, fate in fates),
        "recorded_at": _numbers(fate.recorded_at for _, fate in fates),
        "until": _numbers(fate.until for _, fate in fates),
        "successor": _numbers(_seq_of(register, fate.by) for _, fate in fates),
    }


def link_columns(links: Sequence[tuple[int, Link]], stated: bool) -> Columns:
    """Return links with both intervals; `stated` ones were made as links, others are part of a memory."""
    return {
        "nr": _numbers(nr for nr, _ in links),
        "start": _texts(link.start.hex() for _, link in links),
        "end": _texts(link.end.hex() for _, link in links),
        "type": _texts(str(link.type) for _, link in links),
        "stated": _flags(stated for _ in links),
        "seq": _numbers(link.seq for _, link in links),
        "recorded_at": _numbers(link.recorded_at for _, link in links),
        "valid_from": _numbers(link.valid_from for _, link in links),
        "valid_to": _numbers(FAR_FUTURE if link.valid_to is None else link.valid_to for _, link in links),
        "ended_seq": _numbers(link.ended_seq for _, link in links),
        "ended_at": _numbers(link.ended_at for _, link in links),
    }


def own_links(memories: Iterable[Memory]) -> list[Link]:
    """Return the links that memories are recorded with: what each derives from, and what it supersedes."""
    found: list[Link] = []
    for memory in memories:
        envelope, seq, at = memory.envelope, memory.seq, memory.recorded_at
        ends = [(parent, "derives-from") for parent in envelope.derived_from]
        if envelope.supersedes is not None:
            ends.append((envelope.supersedes, "supersedes"))
        found += [
            Link(memory.id, end, kind, seq, at, envelope.valid_from, envelope.valid_to, memory.scope)
            for end, kind in ends
        ]
    return found


def event_columns(rows: Sequence[EventRow]) -> Columns:
    """Return the timeline."""
    return {
        "seq": _numbers(row.seq for row in rows),
        "recorded_at": _numbers(row.recorded_at for row in rows),
        "type": _texts(EventType(row.type).name.lower() for row in rows),
        "id": _texts(row.id.hex() for row in rows),
        "scope": _texts(row.scope for row in rows),
        "actor": _texts(row.actor for row in rows),
        "origin": _texts(row.origin for row in rows),
        "target": _texts(_hex(row.target) for row in rows),
    }


def decision_columns(state: Projections, decisions: Sequence[DecisionRecord]) -> Columns:
    """Return verdicts with the action in its canonical JSON, unless that was erased."""
    return {
        "seq": _numbers(d.seq for d in decisions),
        "recorded_at": _numbers(d.recorded_at for d in decisions),
        "id": _texts(d.id.hex() for d in decisions),
        "scope": _texts(d.scope for d in decisions),
        "actor": _texts(d.actor for d in decisions),
        "use": _texts(str(d.use) for d in decisions),
        "allowed": _flags(d.allowed for d in decisions),
        "reasons": _texts(_json(d.reasons).decode() for d in decisions),
        "evidence": _texts(
            _json([{"id": identity.hex(), "verdict": verdict} for identity, verdict in d.evidence]).decode()
            for d in decisions
        ),
        "confirmation": _texts(_hex(d.confirmation) for d in decisions),
        "prohibition": _texts(_hex(d.prohibition) for d in decisions),
        "policy": _texts(d.policy for d in decisions),
        "at_seq": _numbers(d.at_seq for d in decisions),
        "decided_at": _numbers(d.decided_at for d in decisions),
        "action": _texts(_action_text(state, d) for d in decisions),
        "erased": _flags(d.erasure is not None for d in decisions),
    }


def tombstone_columns(tombstones: Sequence[Tombstone]) -> Columns:
    """Return which values are refused: where, since when, by whom and why, never what."""
    return {
        "seq": _numbers(t.seq for t in tombstones),
        "id": _texts(t.event.hex() for t in tombstones),
        "scope": _texts(t.scope for t in tombstones),
        "domain": _texts(t.domain for t in tombstones),
        "how": _texts(t.how for t in tombstones),
        "everyone": _flags(t.everyone for t in tombstones),
        "rank": _numbers(t.rank for t in tombstones),
        "recorded_at": _numbers(t.recorded_at for t in tombstones),
        "actor": _texts(t.actor for t in tombstones),
        "reason": _texts(t.reason for t in tombstones),
        "lifted_seq": _numbers(t.lifted_seq for t in tombstones),
    }


def select_list(columns: Mapping[str, object]) -> str:
    """Return the SELECT list that turns filled columns into a table's."""
    return ", ".join(_selected(name) for name in columns)


def _selected(name: str) -> str:
    if name in LISTS:
        return f"from_json({name}, '{LISTS[name]}')"
    if name == "importance":
        return "CASE WHEN NOT isnan(importance) THEN importance END"
    return "nullif(successor, -1)" if name == "successor" else f'"{name}"'


def _value_text(packed: bytes | None) -> str | None:
    if packed is None:
        return None
    value = parse_data(packed)
    return value if isinstance(value, str) else _json(value).decode()


def _action_text(state: Projections, decision: DecisionRecord) -> str | None:
    body = None if decision.erasure is not None else state.read_body(decision.place)
    return body.action.decode() if isinstance(body, ActionBody) else None


def _seq_of(register: Register, identity: bytes | None) -> int:
    memory = None if identity is None else register.memories.get(identity)
    return -1 if memory is None else memory.seq


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _numbers(values: Iterable[int]) -> NDArray[np.generic]:
    return np.fromiter(values, np.int64)


def _flags(values: Iterable[bool]) -> NDArray[np.generic]:
    return np.fromiter(values, np.bool_)


def _texts(values: Iterable[str | None]) -> NDArray[np.generic]:
    return np.array(list(values), dtype=object)
