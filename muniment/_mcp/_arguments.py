"""
What a client sent, as the values that a tool takes.

Models fill in forms: they send `"null"` and `""` for what they leave out, `"a,b"` or a JSON list in a string where a
list is asked for, `"5"` for 5. What can mean only one thing is taken so; everything else is refused by the argument's
name, in words that a model can act on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from ._tools import Param, Tool

Arguments: TypeAlias = dict[str, object]
_LEFT_OUT: Final = ("", "null")
"""`none` is not among them: it is what a patient's allergies may be."""
_WORDS: Final = ("content", "query", "reason")
"""What is said: where it is required and blank, it was not left out."""
_SHOWN: Final = 60
_MAX_ITEMS: Final = 1_000


class InvalidParams(Exception):
    """An argument that the tool does not take, by its name."""

    def __init__(self, argument: str, detail: str) -> None:
        self.argument, self.detail = argument, detail
        super().__init__(f"argument `{argument}`: {detail}")


def read_arguments(tool: Tool, given: Mapping[str, object] | None) -> Arguments:
    """
    Return the arguments by name, checked; what was left out is not in it.

    Raises:
        InvalidParams: a name is unknown, a required argument is missing, or a value is not of its sort.
    """
    sent = {} if given is None else given
    known = {param.name: param for param in tool.params}
    for name in sent:
        if name not in known:
            raise InvalidParams(shown(name).strip("`"), f"unknown; {tool.name} takes {', '.join(known) or 'none'}")
    found: Arguments = {}
    for name, param in known.items():
        value = sent.get(name)
        if _left_out(value):
            if param.required and name in _WORDS and isinstance(value, str) and not value.strip():
                found[name] = value  # for the engine to refuse, as on every other route
            elif param.required:
                raise InvalidParams(name, f"required, and got {'nothing' if value is None else shown(value)}")
            continue
        found[name] = _read(param, value)
    return found


def shown(value: object) -> str:
    """Return a value as an error may show it: short, and with nothing in it that a terminal or a log obeys."""
    text = value if isinstance(value, str) else repr(value)
    text = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return f"`{''.join(c if c.isprintable() else '�' for c in text)}`"


def _left_out(value: object) -> bool:
    if value is None:
        return True
    if isinstance(value, str):
        return value.strip() in _LEFT_OUT
    # An empty list filters by nothing; `recall(kinds=[])` from a form does not mean "of no kind".
    return isinstance(value, list) and not value


def _read(param: Param, value: object) -> object:
    match param.sort:
        case "texts":
            return _texts(param, value)
        case "pair":
            pair = _texts(param, value)
            if len(pair) != 2:
                raise InvalidParams(param.name, f"expected [subject, attribute], got {shown(value)}")
            return (pair[0], pair[1])
        case "object":
            return _object(param, value)
        case "integer":
            return _integer(param, value)
        case "number":
            return _number(param, value)
        case "boolean":
            return _boolean(param, value)
        case "value":
            return _value(param, value)
        case "moment":
            if isinstance(value, int) and not isinstance(value, bool):
                return value
            text = _text(param, value)
            # Longer ones are no sequence number that a log has.
            return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else text
        case _:
            return _text(param, value)


def _text(param: Param, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidParams(param.name, f"expected text, got {shown(value)}")
    _check_choice(param, value)
    if param.prefixes and not value.startswith(param.prefixes):
        raise InvalidParams(param.name, f"expected {' or '.join(param.prefixes)} and a name, got {shown(value)}")
    return value


def _check_choice(param: Param, word: str) -> None:
    if param.choices and word not in param.choices:
        raise InvalidParams(param.name, f"expected one of {', '.join(param.choices)}, got {shown(word)}")


def _texts(param: Param, value: object) -> list[str]:
    if isinstance(value, str):
        # Only a whole JSON list is one: `[draft] a` is a text that begins with a bracket.
        parsed = _json(value) if value.lstrip().startswith("[") else None
        value = parsed if isinstance(parsed, list) else [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list):
        raise InvalidParams(param.name, f"expected a list of texts, got {shown(value)}")
    items = cast("list[object]", value)
    if len(items) > _MAX_ITEMS:
        raise InvalidParams(param.name, f"expected at most {_MAX_ITEMS} items, got {len(items)}")
    texts: list[str] = []
    for item in items:
        if not isinstance(item, str):
            raise InvalidParams(param.name, f"expected a list of texts, got {shown(item)} in it")
        _check_choice(param, item)
        texts.append(item)
    return texts


def _object(param: Param, value: object) -> dict[str, object]:
    found = _json(value) if isinstance(value, str) else value
    if not isinstance(found, dict):
        raise InvalidParams(param.name, f"expected an object, got {shown(value)}")
    return cast("dict[str, object]", found)


def _integer(param: Param, value: object) -> int:
    number = _number(param, value)
    if not number.is_integer():
        raise InvalidParams(param.name, f"expected a whole number, got {shown(value)}")
    return int(number)


def _number(param: Param, value: object) -> float:
    number = value
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = None
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise InvalidParams(param.name, f"expected a number, got {shown(value)}")
    # Compared before any conversion: a whole number may be too large for a float.
    if (isinstance(number, float) and not math.isfinite(number)) or not param.low <= number <= param.high:
        raise InvalidParams(param.name, f"expected {param.low} to {param.high}, got {shown(value)}")
    return float(number)


def _boolean(param: Param, value: object) -> bool:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise InvalidParams(param.name, f"expected true or false, got {shown(value)}")
    return value


def _value(param: Param, value: object) -> str | int | float | bool:
    if not isinstance(value, (str, int, float)):
        raise InvalidParams(param.name, f"expected text, a number, true or false, got {shown(value)}")
    return value


def _json(text: str) -> object:
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return None
