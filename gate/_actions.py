"""
Actions: the one small language in which a call is described, signed for, and prohibited.

An action is a name and arguments. An argument is literal JSON, compared exactly, unless one of the constraint types
below is used on purpose. An action that was taken holds literals only.

Canonical bytes are JSON without spaces, keys sorted. Every argument is an array whose first item says what it is, so
that no literal, whatever it holds, can be read back as a constraint:

    {"args":{"path":["under","/srv/data"],"to":["=","ann@example.org"]},"name":["=","fs.copy"]}
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

import msgspec

from muniment.events._errors import BadArgument, BadValue

from ._text import is_invisible, visible

MAX_ARGS = 100
MAX_NAME = 200
_MAX_DEPTH = 32
_INT64 = range(-(2**63), 2**63)

Scalar: TypeAlias = str | int | float | bool | None
Json: TypeAlias = "Scalar | Sequence[Json] | Mapping[str, Json]"


class Pattern(msgspec.Struct, frozen=True):
    """Text with wildcards: `*` is any run of characters, `?` is one. Only prohibitions may hold it."""

    text: str

    def __post_init__(self) -> None:
        _check_label("pattern", self.text)


class OneOf(msgspec.Struct, frozen=True):
    """One of the listed scalars, and nothing that merely resembles one: 1 is neither true nor "1" nor 1.0."""

    values: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        given = cast(object, self.values)
        if isinstance(given, str) or not isinstance(given, Sequence) or not given:
            raise BadArgument(argument="values", detail="OneOf takes a sequence with at least one value")
        values = tuple(_frozen(value, "a value of OneOf", 0) for value in cast("Sequence[object]", given))
        if any(isinstance(value, (tuple, Mapping)) for value in values):
            raise BadArgument(argument="values", detail="OneOf takes texts, numbers, booleans and null")
        msgspec.structs.force_setattr(self, "values", values)


class PathPrefix(msgspec.Struct, frozen=True):
    """The path itself or anything below it, by segments: `/srv/data` covers `/srv/data/x`, not `/srv/database`.

    Links are not followed: whoever lets an agent make symbolic links inside the prefix lets it out.
    """

    prefix: str

    def __post_init__(self) -> None:
        if not isinstance(cast(object, self.prefix), str) or path_segments(self.prefix) is None:
            raise BadArgument(
                argument="prefix", detail="a path without `.`, `..`, `//`, backslash or control character"
            )


class Range(msgspec.Struct, frozen=True):
    """A number between two bounds, both included; one of them may be left out. A boolean is not a number."""

    min: int | float | None = None
    max: int | float | None = None

    def __post_init__(self) -> None:
        for bound in (self.min, self.max):
            if bound is not None and not is_number(bound):
                raise BadArgument(argument="range", detail="its bounds are finite numbers")
            _frozen(bound, "a bound of Range", 0)
        if self.min is None and self.max is None:
            raise BadArgument(argument="range", detail="it has no bound; say Free() if any value will do")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise BadArgument(argument="range", detail=f"min {self.min} is above max {self.max}")


class Free(msgspec.Struct, frozen=True):
    """Any value at all. A destructive action is never authorised by it."""


Constraint: TypeAlias = OneOf | PathPrefix | Range | Free | Pattern

if TYPE_CHECKING:
    Argument: TypeAlias = "Json | Constraint"
else:
    # msgspec looks up the annotations of every struct inside a struct, and knows no recursive types.
    Argument = Any


class Action(msgspec.Struct, frozen=True, eq=False):
    """A call by name and arguments: `Action("email.send", {"to": "ann@example.org"})`.

    The arguments are copied and frozen; changing what was passed in changes nothing here. Two actions are equal when
    their canonical bytes are, so 1, 1.0, True and "1" all differ.
    """

    name: str | Pattern
    args: Mapping[str, Argument] = {}

    def __post_init__(self) -> None:
        if not isinstance(self.name, Pattern):
            _check_label("action name", self.name)
            msgspec.structs.force_setattr(self, "name", str.__str__(self.name))
        given = cast(object, self.args)
        if not isinstance(given, Mapping):
            raise BadArgument(argument="args", detail="a mapping from argument names to values")
        if len(cast("Mapping[object, object]", given)) > MAX_ARGS:
            raise BadArgument(argument="args", detail=f"at most {MAX_ARGS} arguments")
        args: dict[str, object] = {}
        for key, value in cast("Mapping[object, object]", given).items():
            name = _text_key(key)
            _check_label("argument name", name)
            args[name] = value if isinstance(value, Constraint) else _frozen(value, f"argument {visible(name)}", 0)
        msgspec.structs.force_setattr(self, "args", MappingProxyType(args))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Action) and format_action(self) == format_action(other)

    def __hash__(self) -> int:
        return hash(format_action(self))

    def __reduce__(self) -> tuple[object, ...]:
        return (parse_action, (format_action(self),))

    @property
    def is_literal(self) -> bool:
        """Whether this can be a call that was made: no pattern and no constraint."""
        return not isinstance(self.name, Pattern) and not any(
            isinstance(value, Constraint) for value in self.args.values()
        )


def is_number(value: object) -> TypeGuard[int | float]:
    """Tell whether a value is a finite number; booleans are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def same_json(one: Json, other: Json) -> bool:
    """Compare two literals by canonical bytes, so that 1, 1.0, True and "1" all differ, at every depth."""
    return encode_json(one) == encode_json(other)


def path_segments(path: str) -> list[str] | None:
    """Split a canonical path; None when it is spelled in any way that could lead elsewhere.

    An absolute path begins with an empty segment. One trailing slash names the same folder, and is dropped.
    """
    if not path or "\\" in path or any(is_invisible(char) for char in path):
        return None
    segments = path.split("/")
    if len(segments) > 1 and not segments[-1]:
        segments.pop()
    if any(segment in ("", ".", "..") for segment in segments[1:]) or segments[0] in (".", "..", "~"):
        return None
    return segments


def check_action(action: object) -> Action:
    """Return the action; raises `BadArgument` for anything else, such as its bare name."""
    if not isinstance(action, Action):
        raise BadArgument(argument="action", detail=f"expected an Action, got {type(action).__name__}")
    return action


def check_confirmable(action: Action) -> None:
    """Raise `BadArgument` if the action holds a pattern: a signature covers what it names and no more."""
    if isinstance(action.name, Pattern):
        raise BadArgument(argument="action", detail="a confirmation names one action; patterns are for prohibitions")
    for name, value in action.args.items():
        if isinstance(value, Pattern):
            raise BadArgument(argument=name, detail="patterns are for prohibitions; use OneOf, PathPrefix or Range")


def free_arguments(signed: Action) -> list[str]:
    """List the arguments that a statement leaves open altogether: `Free()`, and the prefix `/`, which is every path."""
    return sorted(
        name
        for name, value in signed.args.items()
        if isinstance(value, Free) or (isinstance(value, PathPrefix) and value.prefix == "/")
    )


# --- canonical bytes --------------------------------------------------------------------------------------------------


def format_action(action: Action) -> bytes:
    """Return the canonical bytes of an action; equal actions have equal bytes."""
    return encode_json(action_to_wire(action))


def parse_action(data: bytes) -> Action:
    """Read canonical bytes; any other spelling of the same action is `BadValue`."""
    action = action_from_wire(decode_json(data, "an action"))
    if format_action(action) != data:
        raise BadValue(what="an action", detail="it is not in canonical form")
    return action


def action_to_wire(action: Action) -> dict[str, object]:
    """Return the action as the object that its canonical bytes spell."""
    return {
        "name": _wire_of(action.name),
        "args": {name: _wire_of(value) for name, value in action.args.items()},
    }


def action_from_wire(raw: object) -> Action:
    """Read the object that `action_to_wire` makes; raises `BadValue`, or `BadArgument` from the parts."""
    match raw:
        case {"name": ["=", str() as name], "args": dict() as args, **rest} if not rest:
            return Action(name, _args_from_wire(cast("dict[str, object]", args)))
        case {"name": ["like", str() as text], "args": dict() as args, **rest} if not rest:
            return Action(Pattern(text), _args_from_wire(cast("dict[str, object]", args)))
        case _:
            raise BadValue(what="an action", detail="it has fields other than a name and arguments")


def decode_json(data: bytes, what: str) -> object:
    """Decode JSON from a stranger; whatever is wrong with it is `BadValue`."""
    try:
        return cast(object, msgspec.json.decode(data))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BadValue(what=what, detail="it is not JSON") from error


def encode_json(value: object) -> bytes:
    """Encode as JSON without spaces and with sorted keys; the read-only mappings of an action count as objects."""
    return msgspec.json.encode(value, enc_hook=_plain, order="deterministic")


def _plain(value: object) -> object:
    if isinstance(value, MappingProxyType):
        return dict(cast("Mapping[object, object]", value))
    raise NotImplementedError(type(value).__name__)  # how msgspec asks a hook to say that it does not know a type


def _wire_of(value: Argument) -> list[object]:
    match value:
        case OneOf():
            return ["one_of", *value.values]
        case PathPrefix():
            return ["under", value.prefix]
        case Range():
            return ["range", value.min, value.max]
        case Free():
            return ["free"]
        case Pattern():
            return ["like", value.text]
        case _:
            return ["=", value]


def _args_from_wire(raw: dict[str, object]) -> dict[str, Argument]:
    return {name: _argument_from_wire(name, value) for name, value in raw.items()}


def _argument_from_wire(name: str, raw: object) -> Argument:
    match raw:
        case ["=", value]:
            return cast(Json, value)
        case ["one_of", *values]:
            return OneOf(tuple(cast("list[Scalar]", values)))
        case ["under", str() as prefix]:
            return PathPrefix(prefix)
        case ["range", low, high]:
            return Range(cast("int | float | None", low), cast("int | float | None", high))
        case ["free"]:
            return Free()
        case ["like", str() as text]:
            return Pattern(text)
        case _:
            raise BadValue(what=f"argument {visible(name)}", detail="it is no known kind of argument")


# --- checks -----------------------------------------------------------------------------------------------------------


def _check_label(what: str, text: object) -> None:
    if not isinstance(text, str):
        raise BadArgument(argument=what, detail=f"a text, not {type(text).__name__}")
    if not text.strip() or len(text) > MAX_NAME:
        raise BadArgument(argument=what, detail=f"from 1 to {MAX_NAME} characters, not all blank")
    # An unseen character would let two names look alike to whoever signs.
    if any(is_invisible(char) for char in text):
        raise BadArgument(argument=what, detail=f"{visible(text)} holds a control or invisible character")


def _text_key(key: object) -> str:
    if not isinstance(key, str):
        raise BadValue(what="an argument", detail=f"its name is {type(key).__name__}, not text")
    return str.__str__(key)


def _frozen(value: object, what: str, depth: int) -> Json:
    """Copy a literal into types that cannot change, refusing what JSON would not give back as it was."""
    if depth > _MAX_DEPTH:
        raise BadValue(what=what, detail=f"nested more than {_MAX_DEPTH} deep")
    match value:
        case None | bool():
            return value
        case str():
            return _exact_text(value, what)
        case int():
            if value not in _INT64:
                raise BadValue(what=what, detail="an integer beyond 64 bits")
            return int(value)
        case float():
            if not math.isfinite(value):
                raise BadValue(what=what, detail="not a finite number")
            return float(value)
        case list() | tuple():
            return tuple(_frozen(item, what, depth + 1) for item in cast("Sequence[object]", value))
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return MappingProxyType(
                {_exact_text(_text_key(key), what): _frozen(item, what, depth + 1) for key, item in items}
            )
        case _ if isinstance(value, Constraint):
            raise BadValue(what=what, detail="a constraint can only be a whole argument")
        case _:
            raise BadValue(what=what, detail=f"{type(value).__name__} is not JSON")


def _exact_text(text: str, what: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadValue(what=what, detail="a lone surrogate") from error
    return str.__str__(text)


# --- for people -------------------------------------------------------------------------------------------------------


def describe_action(action: Action) -> str:
    """Return the action on one line, whole, with unseen characters shown: `email.send(to="ann@example.org")`.

    Literals are in quotes or are JSON; words outside quotes are constraints. It is what gets signed, so nothing is
    shortened.
    """
    name = f"any action like {visible(action.name.text)}" if isinstance(action.name, Pattern) else _label(action.name)
    args = ", ".join(f"{_label(key)}={_describe(value)}" for key, value in sorted(action.args.items()))
    return f"{name}({args})"


def _label(name: str) -> str:
    # A name that could imitate the arguments after it is put in quotes.
    return name if re.fullmatch(r"[\w.:/-]+", name) else visible(name)


def _describe(value: Argument) -> str:
    match value:
        case OneOf():
            text = "one of " + " | ".join(_describe(item) for item in value.values)
        case PathPrefix():
            text = f"any path at or under {visible(value.prefix)}"
        case Range():
            bounds = [
                f"{word} {bound}" for word, bound in (("from", value.min), ("to", value.max)) if bound is not None
            ]
            text = "any number " + " ".join(bounds)
        case Free():
            text = "ANY VALUE"
        case Pattern():
            text = f"any text like {visible(value.text)}"
        case str():
            text = visible(value)
        case None | bool() | int() | float():
            text = encode_json(value).decode()
        case Mapping():
            text = "{" + ", ".join(f"{visible(key)}: {_describe(item)}" for key, item in sorted(value.items())) + "}"
        case _:
            text = "[" + ", ".join(_describe(item) for item in value) + "]"
    return text
