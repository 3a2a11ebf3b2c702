"""
Filters over values: equality and the comparison operators of LangGraph's reference store.

Where the reference raises because one item has no number to compare, the item does not match.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from muniment.events import BadArgument

_EQUALITY: Final[Mapping[str, Callable[[object, object], bool]]] = {"$eq": operator.eq, "$ne": operator.ne}
_ORDER: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def check_filter(wanted: object) -> None:
    """Raise BadArgument for an operator that there is not, or one whose operand is no number."""
    if isinstance(wanted, Mapping):
        parts = cast("Mapping[str, object]", wanted)
        has_operators = _has_operators(parts)
        for name, operand in parts.items():
            if not has_operators:
                check_filter(operand)
            elif name not in _EQUALITY and name not in _ORDER:
                known = ", ".join((*_EQUALITY, *_ORDER))
                raise BadArgument(argument="filter", detail=f"unsupported operator `{name}`, expected one of {known}")
            elif name in _ORDER and _number(operand) is None:
                raise BadArgument(argument="filter", detail=f"`{name}` compares numbers")
    elif isinstance(wanted, (list, tuple)):
        for part in cast("Sequence[object]", wanted):
            check_filter(part)


def matches(value: Mapping[str, object], wanted: Mapping[str, object] | None) -> bool:
    """Tell whether a value has all that a filter, already checked, asks for."""
    return all(_fits(value.get(name), part) for name, part in (wanted or {}).items())


def _fits(given: object, wanted: object) -> bool:
    if isinstance(wanted, Mapping):
        parts = cast("Mapping[str, object]", wanted)
        if _has_operators(parts):
            return all(_compares(given, name, operand) for name, operand in parts.items())
        return isinstance(given, dict) and matches(cast("dict[str, object]", given), parts)
    if isinstance(wanted, (list, tuple)):
        items = cast("Sequence[object]", wanted)
        if not isinstance(given, list) or len(cast("list[object]", given)) != len(items):
            return False
        return all(_fits(one, other) for one, other in zip(cast("list[object]", given), items, strict=True))
    return given == wanted


def _compares(given: object, name: str, operand: object) -> bool:
    if name in _EQUALITY:
        return _EQUALITY[name](given, operand)
    one, other = _number(given), _number(operand)
    return one is not None and other is not None and _ORDER[name](one, other)


def _number(value: object) -> float | None:
    try:
        return float(cast("float", value))
    except (TypeError, ValueError, OverflowError):
        return None


def _has_operators(parts: Mapping[str, object]) -> bool:
    return any(name.startswith("$") for name in parts)
