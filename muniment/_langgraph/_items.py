"""
What an item is in the log: a memory about its key, whose content is the value as JSON with sorted keys.

The value as it was put, and what LangGraph tells beside it, are the memory's metadata:

    {"langgraph": {"key": "k1", "value": {...}, "index": true, "ttl": 5.0, "created": [AT, SEQ], "updated": AT}}

`created` stands in every version but the first, `updated` in those that only move the end of validity.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple, cast

from muniment._answers import Hit, Record
from muniment.events import BadValue, Data

from ._names import Namespace, about_key

FIELD: Final = "langgraph"


class Stored(NamedTuple):
    """An item as it stands; `id` is its memory's."""

    id: str
    namespace: Namespace
    key: str
    value: dict[str, Data]
    indexed: bool
    ttl: float | None
    created_at: datetime
    created_seq: int
    updated_at: datetime
    score: float | None


def stored_item(record: Record, namespace: Namespace) -> Stored | None:
    """Return the item that a memory is; None for one that somebody else remembered there."""
    fields = item_fields(record.metadata)
    if fields is None:
        return None
    key = cast("str", fields["key"])
    if record.about != about_key(key):
        return None
    created = cast("tuple[datetime, int]", fields.get("created") or (record.recorded_at, record.seq))
    return Stored(
        id=record.id,
        namespace=namespace,
        key=key,
        value=cast("dict[str, Data]", fields["value"]),
        indexed=bool(fields["index"]),
        ttl=cast("float | None", fields["ttl"]),
        created_at=created[0],
        created_seq=created[1],
        updated_at=cast("datetime", fields.get("updated") or record.recorded_at),
        score=record.score if isinstance(record, Hit) else None,
    )


def item_fields(metadata: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return what the adapter wrote into a memory's metadata; None when it did not."""
    fields = metadata.get(FIELD)
    if not isinstance(fields, dict):
        return None
    named = cast("dict[str, object]", fields)
    if not isinstance(named.get("key"), str) or not isinstance(named.get("value"), dict):
        return None
    return named if "index" in named and "ttl" in named else None


def read_value(value: Mapping[str, object]) -> tuple[dict[str, object], str]:
    """
    Return a value as JSON gives it back, and as the text that its memory says.

    Raises:
        BadValue: it is not JSON: a date, bytes, a number that is not finite, or an object of some class.
    """
    try:
        plain = cast("dict[str, object]", json.loads(json.dumps(dict(value), allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadValue(what="value", detail="it is not JSON") from error
    return plain, json.dumps(plain, ensure_ascii=False, sort_keys=True)


def metadata_of(
    key: str, value: Mapping[str, object], *, indexed: bool, ttl: float | None, before: Stored | None, same: bool
) -> dict[str, object]:
    """Return the metadata of an item's next version; `same` when it only moves the end of validity."""
    fields: dict[str, object] = {"key": key, "value": value, "index": indexed, "ttl": ttl}
    if before is not None:
        fields["created"] = [before.created_at, before.created_seq]
        if same:
            fields["updated"] = before.updated_at
    return {FIELD: fields}
