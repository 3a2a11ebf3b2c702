"""
Whether a call is the one that was signed for, and whether it is one that was prohibited.

The two lean opposite ways. A confirmation covers a call only if every argument is exactly what the signature says. A
prohibition vetoes a call that could be what it forbids: by another spelling, inside a list, by way of a parent folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

from ._actions import (
    Action,
    Argument,
    Constraint,
    Free,
    Json,
    OneOf,
    PathPrefix,
    Pattern,
    Range,
    Scalar,
    check_confirmable,
    is_number,
    path_segments,
    same_json,
)
from ._text import folded, visible


def matches_confirmation(signed: Action, taken: Action) -> tuple[bool, list[str]]:
    """Return whether the signature covers the call, and else each thing that is missing, extra or unequal.

    Names and argument names are compared exactly. Raises `BadArgument` if `signed` holds a pattern.
    """
    check_confirmable(signed)
    # A constraint in the call would match by its text, or by nothing: only calls that were made can be covered.
    if not taken.is_literal:
        return False, ["the call itself holds a pattern or a constraint"]
    reasons: list[str] = []
    if signed.name != taken.name:
        reasons.append(f"action {_shown_name(taken)} is not the confirmed {_shown_name(signed)}")
    reasons += [f"argument {visible(name)} is missing" for name in sorted(signed.args.keys() - taken.args.keys())]
    reasons += [
        f"argument {visible(name)} was not confirmed" for name in sorted(taken.args.keys() - signed.args.keys())
    ]
    for name in sorted(signed.args.keys() & taken.args.keys()):
        value = taken.args[name]
        if isinstance(value, Constraint) or not _covers(signed.args[name], value):
            reasons.append(f"argument {visible(name)} is not what was confirmed")
    return not reasons, reasons


def matches_prohibition(prohibited: Action, taken: Action) -> bool:
    """Return whether the prohibition vetoes the call.

    The name must match, and each argument that the prohibition names; arguments it does not name may be anything. An
    argument matches when the value, or anything in a list or object it holds, could be what is prohibited.
    """
    if isinstance(taken.name, Pattern) or not _name_matches(prohibited.name, taken.name):
        return False
    return all(
        isinstance(constraint, Free) or any(_vetoes(constraint, value) for value in _named(taken, name))
        for name, constraint in prohibited.args.items()
    )


def needle(prohibited: Action) -> str | None:
    """Return a text without which no call is vetoed by this prohibition: one of `texts_of(call)`; None if unknown.

    Only words are told: paths, numbers and constraints are met in too many spellings.
    """
    for wanted in prohibited.args.values():
        if isinstance(wanted, str) and not wanted.startswith("/") and _as_number(wanted) is None:
            return folded(wanted)
    return None


def texts_of(taken: Action) -> set[str]:
    """Return every text of a call that a prohibited word is compared with."""
    found: set[str] = set()
    for value in taken.args.values():
        if not isinstance(value, Constraint):
            _gather(value, found)
    return found


def _gather(value: Json, found: set[str]) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            _gather(key, found)
            _gather(item, found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _gather(item, found)
    else:
        found.update(folded(part) for part in _parts(_as_text(value)))


def _shown_name(action: Action) -> str:
    return visible(action.name.text if isinstance(action.name, Pattern) else action.name)


# --- confirmations ----------------------------------------------------------------------------------------------------


def _covers(signed: Argument, value: Json) -> bool:
    match signed:
        case Free():
            return True
        case OneOf():
            return any(same_json(allowed, value) for allowed in signed.values)
        case Range():
            return is_number(value) and _in_range(signed, value)
        case PathPrefix():
            return isinstance(value, str) and _is_under(path_segments(value), path_segments(signed.prefix))
        case Pattern():
            return False
        case _:
            return same_json(signed, value)


def _in_range(bounds: Range, value: int | float) -> bool:
    return (bounds.min is None or bounds.min <= value) and (bounds.max is None or value <= bounds.max)


def _is_under(path: list[str] | None, prefix: list[str] | None) -> bool:
    return path is not None and prefix is not None and path[: len(prefix)] == prefix


# --- prohibitions -----------------------------------------------------------------------------------------------------


def _name_matches(wanted: str | Pattern, name: str) -> bool:
    if isinstance(wanted, Pattern):
        return matches_wildcards(folded(wanted.text), folded(name))
    return folded(wanted) == folded(name)


def _named(taken: Action, name: str) -> Iterator[Json]:
    """Yield the values given under that name in any spelling, since we cannot know which one the tool reads."""
    for key, value in taken.args.items():
        if folded(key) == folded(name) and not isinstance(value, Constraint):
            yield value


def _vetoes(constraint: Argument, value: Json) -> bool:
    if isinstance(value, Mapping):
        whole = isinstance(constraint, Mapping) and _holds_all(constraint, value)
        return whole or any(_vetoes(constraint, key) or _vetoes(constraint, item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        whole = isinstance(constraint, (list, tuple)) and _holds_each(constraint, value)
        return whole or any(_vetoes(constraint, item) for item in value)
    return _vetoes_scalar(constraint, value)


def _vetoes_scalar(constraint: Argument, value: Json) -> bool:
    parts = list(_parts(_as_text(value)))
    match constraint:
        case Free():
            matched = True
        case OneOf():
            matched = any(_vetoes_scalar(one, value) for one in constraint.values)
        case Range():
            number = _as_number(value)
            matched = number is not None and _in_range(constraint, number)
        case PathPrefix():
            matched = isinstance(value, str) and any(_reaches(part, constraint.prefix) for part in parts)
        case Pattern():
            wanted = folded(constraint.text)
            matched = any(matches_wildcards(wanted, folded(part)) for part in parts)
        case None | bool() | int() | float() | str():
            matched = _same_loosely(constraint, value, parts)
        case _:
            # A prohibited list of one element is that element: `["prod"]` also vetoes `"prod"`.
            matched = isinstance(constraint, tuple) and len(constraint) == 1 and _vetoes_scalar(constraint[0], value)
    return matched


def _holds_each(wanted: Sequence[Json], value: Sequence[Json]) -> bool:
    return bool(wanted) == bool(value) and all(any(_vetoes(item, got) for got in value) for item in wanted)


def _holds_all(wanted: Mapping[str, Json], value: Mapping[str, Json]) -> bool:
    return bool(wanted) == bool(value) and all(
        any(folded(key) == folded(got) and _vetoes(item, value[got]) for got in value) for key, item in wanted.items()
    )


def _same_loosely(wanted: Scalar, value: Json, parts: list[str]) -> bool:
    """Compare scalars as a tool might that coerces them: `5`, `5.0` and `"5"` are one, and so are true and `"true"`."""
    number, other = _as_number(wanted), _as_number(value)
    if number is not None and other is not None:
        return number == other
    if any(folded(part) == folded(_as_text(wanted)) for part in parts):
        return True
    # One folder has many spellings, and a call on a folder reaches what is in it.
    is_path = isinstance(wanted, str) and wanted.startswith("/")
    return is_path and any(_reaches(part, _as_text(wanted), below=False) for part in parts)


def _as_text(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _as_number(value: object) -> int | float | None:
    if is_number(value):
        return value
    if isinstance(value, str) and len(value) < 64:
        try:
            number = float(folded(value).replace("_", "x"))
        except ValueError:
            return None
        return number if is_number(number) else None
    return None


def _parts(text: str) -> Iterator[str]:
    """Yield the text, and the items if it is a list written as text: `a@x.org, Bob <b@x.org>`."""
    yield text
    items = [item for item in re.split(r"[,;|\n]", text) if item.strip()]
    if len(items) > 1:
        yield from items
    for item in items:
        if (inner := re.search(r"<([^<>]+)>", item)) is not None:
            yield inner[1]


def matches_wildcards(pattern: str, text: str) -> bool:
    """Match `*` and `?` in time bounded by the product of the lengths, whatever the pattern."""
    at, seen, star, resume = 0, 0, -1, 0
    while seen < len(text):
        if at < len(pattern) and pattern[at] == "*":
            star, resume = at, seen
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", text[seen]):
            at += 1
            seen += 1
        elif star >= 0:
            resume += 1
            at, seen = star + 1, resume
        else:
            return False
    return pattern[at:].strip("*") == ""


# --- where a path could lead ------------------------------------------------------------------------------------------

_URL = re.compile(r"[a-z][a-z0-9+.-]+://")
_FILE_URL = re.compile(r"file:(//[^/]*)?")
_EXPANDED = re.compile(r"[*?\[{$`]|^~")


def _reaches(path: str, protected: str, *, below: bool = True) -> bool:
    """Tell whether a call on `path` could touch `protected`: the same place, one above it, or (`below`) one inside it.

    What cannot be shown to lie elsewhere does reach it: a relative path depends on a folder that we do not know.
    """
    # C code reads up to the NUL, Python past it: no telling which path the tool will take.
    if "\0" in path:
        return True
    target, shield = _resolved(path), _resolved(protected, literal=True)
    if target is None or shield is None:
        return False
    (absolute, segments), (shield_absolute, guarded) = target, shield
    if absolute != shield_absolute:
        return below
    shared = min(len(segments), len(guarded))
    return segments[:shared] == guarded[:shared] and (below or len(segments) <= len(guarded))


def _resolved(path: str, *, literal: bool = False) -> tuple[bool, list[str]] | None:
    """Return whether the path is absolute, and its segments; None for a URL of anything but a file.

    Unless it is `literal`, the path ends where a shell would begin to expand it: beyond that it may be anything.
    """
    text = folded(path).replace("\\", "/")
    if (file_url := _FILE_URL.match(text)) is not None:
        text = unquote(text[file_url.end() :])
    elif _URL.match(text) is not None:
        return None
    absolute = text.startswith("/")
    segments: list[str] = []
    todo = text.split("/")
    while todo:
        segment = todo.pop(0)
        if not literal and _EXPANDED.search(segment):
            # `/srv/*/../../etc` climbs out by way of whatever the wildcard finds.
            return (True, []) if ".." in todo else (absolute, segments)
        if segment == ".." and not segments and not absolute:
            return True, []
        if segment == "..":
            segments = segments[:-1]
        elif segment not in ("", "."):
            segments.append(segment)
    return absolute, segments
