"""
Values of any type that a memory may hold, as JSON.

What JSON has no word for travels as an object with one key: `$date`, `$datetime`, `$bytes` (base64). An object of the
user's own whose first key begins with `$` is wrapped as `{"$object":{...}}`, so that every value has one spelling.
"""

from __future__ import annotations

import base64
from datetime import date, datetime
from typing import cast

from muniment.events import BadValue, Data


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
