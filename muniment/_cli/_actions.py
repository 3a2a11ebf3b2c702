"""Actions on the command line: `--arg to=ann@example.org` is text, `--arg-json n=5` is typed, the rest constrains."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, TypeVar, cast

import click

from muniment.gate import Action, Free, OneOf, PathPrefix, Pattern, Range
from muniment.gate._actions import Argument, Scalar

Decorated = TypeVar("Decorated", bound=Callable[..., object])
_KEY: Final = "muniment.arguments"


def call_options(command: Decorated) -> Decorated:
    """Give a command `--arg` and `--arg-json`: the arguments of a call that is made."""
    command = _option("--arg-json", "NAME=JSON", "An argument that is JSON.", _parse_json)(command)
    return _option("--arg", "NAME=TEXT", "An argument that is text.", lambda text: text)(command)


def constraint_options(command: Decorated) -> Decorated:
    """Give a command the arguments of a call, and what a signature may say of them instead of naming one value."""
    for option in (
        _option("--arg-range", "NAME=MIN..MAX", "Any number between these; one may be left out.", _parse_range),
        _option("--arg-under", "NAME=PATH", "Any path at or under this one.", PathPrefix),
        _option("--arg-one-of", "NAME=JSON", "One of a JSON list of texts and numbers.", _parse_one_of),
        click.option(
            "--arg-free", metavar="NAME", multiple=True, expose_value=False, callback=_keep_free, help="Any value."
        ),
    ):
        command = option(command)
    return call_options(command)


def like_option(command: Decorated) -> Decorated:
    """Give a command `--arg-like`, which only a prohibition may say."""
    return _option("--arg-like", "NAME=PATTERN", "Any text like this: `*` and `?` stand for others.", Pattern)(command)


def given_action(context: click.Context, name: str, *, pattern: bool = False) -> Action:
    """Return the action that a command line spells; with `pattern` a name with `*` or `?` is one."""
    arguments = cast("dict[str, Argument]", context.meta.get(_KEY, {}))
    return Action(Pattern(name) if pattern and any(char in name for char in "*?") else name, arguments)


def parse_json(text: str, option: str) -> object:
    """Return the JSON value of an option, refusing what JSON itself does not know."""
    try:
        return cast("object", json.loads(text, parse_constant=_refuse_constant))
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint=option) from error


def _option(
    name: str, metavar: str, help_text: str, parse: Callable[[str], Argument]
) -> Callable[[Decorated], Decorated]:
    def keep(context: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
        for pair in values:
            argument, separator, text = pair.partition("=")
            if not separator or not argument:
                raise click.BadParameter(f"expected {metavar}, got `{pair}`", ctx=context, param=param)
            _put(context, param, argument, parse(text))

    return click.option(name, metavar=metavar, multiple=True, expose_value=False, callback=keep, help=help_text)


def _keep_free(context: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
    for argument in values:
        _put(context, param, argument, Free())


def _put(context: click.Context, param: click.Parameter, argument: str, value: Argument) -> None:
    arguments = cast("dict[str, Argument]", context.meta.setdefault(_KEY, {}))
    if argument in arguments:
        raise click.BadParameter(f"argument `{argument}` is given twice", ctx=context, param=param)
    arguments[argument] = value


def _parse_json(text: str) -> Argument:
    return cast("Argument", parse_json(text, "--arg-json"))


def _parse_one_of(text: str) -> OneOf:
    found = parse_json(text, "--arg-one-of")
    if not isinstance(found, list):
        raise click.BadParameter("expected a JSON list", param_hint="--arg-one-of")
    return OneOf(tuple(cast("list[Scalar]", found)))


def _parse_range(text: str) -> Range:
    low, dots, high = text.partition("..")
    if not dots:
        raise click.BadParameter(f"expected MIN..MAX, got `{text}`", param_hint="--arg-range")
    return Range(_number(low), _number(high))


def _number(text: str) -> int | float | None:
    if not text:
        return None
    found = parse_json(text, "--arg-range")
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise click.BadParameter(f"`{text}` is no number", param_hint="--arg-range")
    return found


def _refuse_constant(word: str) -> object:
    raise ValueError(f"`{word}` is no JSON")
