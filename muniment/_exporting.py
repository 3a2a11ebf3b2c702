"""
Export: a scope's memories as JSON lines, a header first.

    {"muniment_export":1,"store":"<hex>","scope":"acme","head":"<seq>:<chain>","memories":2}
    {"content":"The launch is on 12 March.","kind":"fact","about":["launch","date"],"value":{"$date":"2026-03-12"},...}

Values are written as `_json_values` says. Ids and record times are told, and are not what an import will give; rank is
not told at all: whoever imports has their own.
What depends on rank is told instead: without `entitled` something stronger held the key, and this one stands beside it;
`settled` says that it holds no more, although nothing else in the file tells so. Where that differs over its interval,
`parts` has it for each part, and the two fields say what is true of all of them:

    "parts":[{"valid_from":"...","valid_to":"...","entitled":true,"settled":false},...]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Final

import msgspec

from muniment.events import BadArgument, ScopeUnknown, Status, format_id, format_instant, parse_scope
from muniment.projections import FAR_FUTURE, Fate, FateKind, Memory

from ._answers import Record
from ._engine import Engine
from ._explaining import reasons_of
from ._export_parts import Part, parts_of, parts_of_unkeyed
from ._json_values import format_value
from ._points import Point
from ._views import Views

EXPORT_FORMAT: Final = 1
_SET_APART: Final = frozenset({Status.PENDING, Status.REJECTED, Status.QUARANTINED})
"""What an import leaves out."""


def export_scope(engine: Engine, scope: str, file: IO[str]) -> int:
    """
    Write the memories of one scope that were not erased, and return how many.

    Raises:
        ScopeUnknown: nothing was ever written there.
    """
    checked = parse_scope(scope)
    if not callable(getattr(file, "write", None)):
        raise BadArgument(argument="file", detail=f"expected an open file, got {type(file).__name__}")
    register = engine.state.register
    if checked not in register.scopes:
        raise ScopeUnknown(scope=checked)
    at = Point(engine.now(), engine.state.seq)
    memories = [m for m in register.in_scope(checked, at.known) if m.erasure is None]
    header: dict[str, object] = {
        "muniment_export": EXPORT_FORMAT,
        "store": engine.files.store_id.hex(),
        "scope": checked,
        "head": f"{engine.head.seq}:{engine.head.chain.hex()}",
        "memories": len(memories),
    }
    file.write(_line(header))
    exporter = _Exporter(engine, at, memories)
    for memory in memories:
        file.write(_line(exporter.fields(memory)))
    return len(memories)


class _Exporter:
    def __init__(self, engine: Engine, at: Point, memories: Sequence[Memory]) -> None:
        self._state, self._at, self._views = engine.state, at, Views(engine.state)
        retirements = {retired.event for memory in memories if (retired := _retirement(memory)) is not None}
        self._reasons = reasons_of(engine, retirements) if retirements else {}
        self._parts: dict[tuple[str, bytes], dict[bytes, list[Part]]] = {}

    def fields(self, memory: Memory) -> dict[str, object]:
        """Return a memory as it is written."""
        record = self._views.record(memory, self._at)
        parts, retired = self._parts_of(memory), _retirement(memory)
        return _exported(memory, record) | {
            "retired_from": None if retired is None else format_instant(retired.until),
            "retired_for": None if retired is None else self._reasons.get(retired.event),
            "links": self._links_from(memory),
            "entitled": all(part.entitled for part in parts),
            "settled": bool(parts) and all(part.settled for part in parts),
            "parts": [_part(part) for part in parts] if len(parts) > 1 else None,
        }

    def _links_from(self, memory: Memory) -> list[tuple[str, str]]:
        links = self._state.register.links_at.get(memory.id, ())
        live = (link for link in links if link.start == memory.id and link.ended_seq == FAR_FUTURE)
        # What was linked twice alike is one link to whoever reads it, and an import makes one.
        return list(dict.fromkeys((link.type, format_id(link.end)) for link in live))

    def _parts_of(self, memory: Memory) -> Sequence[Part]:
        envelope, register = memory.envelope, self._state.register
        if envelope.belief_key is None or envelope.many:
            return parts_of_unkeyed(memory, known=self._at.known, lookup=register.memories.get, is_told=self._is_told)
        key = (memory.scope, envelope.belief_key)
        found = self._parts.get(key)
        if found is None:
            found = self._parts[key] = parts_of(
                register.statements(memory), known=self._at.known, lookup=register.memories.get, is_told=self._is_told
            )
        return found[memory.id]

    def _is_told(self, memory: Memory) -> bool:
        if memory.erasure is not None:
            return False
        standing = self._state.beliefs.standing(memory, valid_at=self._at.valid_at, known=self._at.known)
        return standing.status not in _SET_APART


def _retirement(memory: Memory) -> Fate | None:
    retired = [fate for fate in memory.fates if fate.kind is FateKind.RETIRED]
    return min(retired, key=lambda fate: fate.until, default=None)


def _exported(memory: Memory, record: Record) -> dict[str, object]:
    envelope = memory.envelope
    return {
        "id": record.id,
        "recorded_at": format_instant(memory.recorded_at),
        "content": record.content,
        "kind": record.kind,
        "about": None if record.about is None else list(record.about),
        "value": format_value(record.value),
        "many": record.many,
        "origin": record.origin,
        "actor": record.actor,
        "provenance": record.provenance,
        "source": record.source,
        "tags": list(record.tags),
        "metadata": format_value(record.metadata),
        "importance": record.importance,
        "applies_when": record.applies_when,
        "valid_from": format_instant(envelope.valid_from),
        "valid_to": None if envelope.valid_to is None else format_instant(envelope.valid_to),
        "reason": record.reason,
        "derived_from": list(record.derived_from),
        "supersedes": record.supersedes,
        "status": record.status,
    } | ({} if record.unreadable is None else {"unreadable": record.unreadable})


def _part(part: Part) -> dict[str, object]:
    return {
        "valid_from": format_instant(part.since),
        "valid_to": None if part.until == FAR_FUTURE else format_instant(part.until),
        "entitled": part.entitled,
        "settled": part.settled,
    }


def _line(fields: dict[str, object]) -> str:
    return msgspec.json.encode(fields).decode() + "\n"
