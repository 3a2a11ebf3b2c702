"""
Export: a scope's memories as JSON lines, a header first.

    {"muniment_export":1,"store":"<hex>","scope":"acme","head":"<seq>:<chain>","memories":2}
    {"content":"The launch is on 12 March.","kind":"fact","about":["launch","date"],"value":{"$date":"2026-03-12"},...}

What JSON has no word for travels as an object with one key: `$date`, `$datetime`, `$bytes` (base64). An object of the
user's own whose first key begins with `$` is wrapped as `{"$object":{...}}`, so that every value has one spelling. Ids
and record times are told, and are not what an import will give; rank is not told at all: whoever imports has their own.
"""

from __future__ import annotations

import base64
from datetime import date, datetime
from typing import IO, Final, cast

import msgspec

from muniment.events import BadValue, Data, ScopeUnknown, format_id, format_instant, parse_scope
from muniment.projections import FateKind, Memory

from ._answers import Record
from ._engine import Engine
from ._points import Point
from ._views import Views

EXPORT_FORMAT: Final = 1


def export_scope(engine: Engine, scope: str, file: IO[str]) -> int:
    """
    Write the memories of one scope that were not erased, and return how many.

    Raises:
        ScopeUnknown: nothing was ever written there.
    """
    checked = parse_scope(scope)
    register = engine.state.register
    if checked not in register.scopes:
        raise ScopeUnknown(scope=checked)
    views, at = Views(engine.state), Point(engine.now(), engine.state.seq)
    memories = [m for m in register.in_scope(checked, at.known) if m.erasure is None]
    header: dict[str, object] = {
        "muniment_export": EXPORT_FORMAT,
        "store": engine.files.store_id.hex(),
        "scope": checked,
        "head": f"{engine.head.seq}:{engine.head.chain.hex()}",
        "memories": len(memories),
    }
    file.write(_line(header))
    for memory in memories:
        file.write(_line(_exported(memory, views.record(memory, at))))
    return len(memories)


def _exported(memory: Memory, record: Record) -> dict[str, object]:
    envelope = memory.envelope
    retired = [fate for fate in memory.fates if fate.kind is FateKind.RETIRED]
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
        "retired_from": format_instant(min(fate.until for fate in retired)) if retired else None,
        "reason": record.reason,
        "derived_from": list(record.derived_from),
        "supersedes": record.supersedes,
        "links": [[kind, format_id(end)] for kind, end in envelope.links],
        "status": record.status,
    }


def _line(fields: dict[str, object]) -> str:
    return msgspec.json.encode(fields).decode() + "\n"


def format_value(data: object) -> object:
    """Return JSON from which `parse_value` gives back an equal value of the same type."""
    match data:
        case datetime():
            return {"$datetime": data.isoformat()}
        case date():
            return {"$date": data.isoformat()}
        case bytes():
            return {"$bytes": base64.b64encode(data).decode()}
        case list() | tuple():
            return [format_value(item) for item in cast("list[object]", data)]
        case dict():
            fields = {key: format_value(item) for key, item in cast("dict[str, object]", data).items()}
            return {"$object": fields} if next(iter(fields), "").startswith("$") else fields
        case _:
            return data


def parse_value(found: object) -> Data:
    """Return the value that `format_value` was given; raises BadValue for what it never writes."""
    if isinstance(found, list):
        return [parse_value(item) for item in cast("list[object]", found)]
    if not isinstance(found, dict):
        return cast("Data", found)
    fields = cast("dict[str, object]", found)
    if not next(iter(fields), "").startswith("$"):
        return {key: parse_value(item) for key, item in fields.items()}
    try:
        match fields:
            case {"$datetime": str(text), **rest} if not rest:
                return datetime.fromisoformat(text)
            case {"$date": str(text), **rest} if not rest:
                return date.fromisoformat(text)
            case {"$bytes": str(text), **rest} if not rest:
                return base64.b64decode(text, validate=True)
            case {"$object": dict(wrapped), **rest} if not rest:
                return {key: parse_value(item) for key, item in cast("dict[str, object]", wrapped).items()}
            case _:
                pass
    except ValueError as error:
        raise BadValue(what="an exported value", detail=str(error)) from error
    raise BadValue(what="an exported value", detail=f"`{next(iter(fields))}` is no type that is known")
