"""The guard in front of a function: it decides on the arguments of the call that is actually made."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import FunctionType
from typing import Final, ParamSpec, TypeAlias, TypeVar, cast

from muniment.events import ActionDenied, BadArgument
from muniment.gate import Action, Argument, format_action

from ._answers import Decision
from ._session import Session
from ._store import Store

P = ParamSpec("P")
R = TypeVar("R")
Evidence = Sequence[str] | Callable[[], Sequence[str]]
_Member: TypeAlias = "FunctionType | classmethod[object, ..., object] | staticmethod[..., object]"
_Guard = Callable[[Callable[..., object]], Callable[..., object]]
_DATA: Final = (str, int, float, Sequence, Mapping)


def guarded(
    by: Session | Store,
    action: str,
    *,
    scope: str | None = None,
    actor: str | None = None,
    use: str | None = None,
    evidence: Evidence = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """
    Return a decorator that asks the guard before each call, with every argument of the call by its name.

    `by` is the acting agent's session, or a store together with `scope` and `actor`. A default that the call leaves
    out is an argument like any other. A call that is not allowed raises before the function runs.

    A method called on its object or class is decided on without it, unless it is JSON itself, as an object of a
    subclass of str. What the method takes from it the guard does not see. Write it above `@classmethod`.

    Raises:
        ActionDenied: with the decision's reasons, and what a user can sign, in its facts.
        BadValue: an argument cannot be stated exactly, so nobody could have confirmed it.
        BadArgument: one name stands for two arguments of the call, or they changed while the guard decided.
    """
    session = acting_session(by, scope, actor)

    def guard(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        def asked(*args: P.args, **kwargs: P.kwargs) -> Action:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return Action(action, _arguments(bound))

        def check(*args: P.args, **kwargs: P.kwargs) -> bytes:
            wanted = asked(*args, **kwargs)
            cited = evidence() if callable(evidence) else evidence
            decision = session.decide(wanted, use=use, evidence=cited)
            if not decision.allowed:
                raise _denial(action, decision)
            return format_action(wanted)

        def check_same(decided: bytes, *args: P.args, **kwargs: P.kwargs) -> None:
            # Whoever holds a list that was passed may have changed it while the guard decided.
            if format_action(asked(*args, **kwargs)) != decided:
                raise BadArgument(argument="arguments", detail="they changed while the guard decided on them")

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_later(*args: P.args, **kwargs: P.kwargs) -> object:
                check_same(await asyncio.to_thread(check, *args, **kwargs), *args, **kwargs)
                return await cast("Awaitable[object]", function(*args, **kwargs))

            return cast("Callable[P, R]", call_later)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            check_same(check(*args, **kwargs), *args, **kwargs)
            return function(*args, **kwargs)

        return call

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        member = _member(function)
        return guard(function) if member is None else cast("Callable[P, R]", _Guarded(cast("_Guard", guard), member))

    return decorate


def acting_session(by: Session | Store, scope: str | None, actor: str | None) -> Session:
    """Return the session that acts: the one given, or one made on the store for `scope` and `actor`."""
    if isinstance(by, Session):
        if scope is not None or actor is not None:
            raise BadArgument(argument="scope", detail="a session has its own scope and actor")
        return by
    if scope is None or actor is None:
        raise BadArgument(argument="scope", detail="with a store, `scope` and `actor` say whose act it is")
    return by.session(scope=scope, actor=actor)


def _member(function: object) -> _Member | None:
    # Elsewhere what is guarded stays a function: those who make tools of functions take nothing else.
    if isinstance(function, FunctionType):
        within = function.__qualname__.rpartition(".")[0]
        return function if within and not within.endswith("<locals>") else None
    return function if isinstance(function, (classmethod, staticmethod)) else None


class _Guarded:
    """What a class body makes of a guarded function: what a call is bound to is left out, and nothing else is."""

    def __init__(self, guard: _Guard, function: _Member) -> None:
        functools.update_wrapper(self, cast("Callable[..., object]", function))
        self._guard, self._function = guard, function

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._guard(cast("Callable[..., object]", self._function))(*args, **kwargs)

    def __get__(self, receiver: object, owner: type | None = None) -> Callable[..., object]:
        bound = self._function.__get__(receiver, owner)
        if isinstance(getattr(bound, "__self__", None), _DATA):
            # Data says what is done: left out, it would be an argument that nobody confirmed.
            return functools.partial(self, receiver)
        return self._guard(bound)


def _arguments(bound: inspect.BoundArguments) -> dict[str, Argument]:
    found: dict[str, object] = {}
    for name, parameter in bound.signature.parameters.items():
        value = cast("object", bound.arguments[name])
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            named = cast("dict[str, object]", value)
            if twice := sorted(named.keys() & found.keys()):
                # `f(real, to=feigned)` of `def f(to, /, **more)`: the one would be decided on, the other done.
                raise BadArgument(argument=twice[0], detail="it is given by position and by name at once")
            found.update(named)
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            found[name] = list(cast("tuple[object, ...]", value))
        else:
            found[name] = value
    # What is not JSON, `Action` refuses; a constraint among them, the guard denies.
    return cast("dict[str, Argument]", found)


def _denial(action: str, decision: Decision) -> ActionDenied:
    return ActionDenied(
        action=action,
        reasons=", ".join(decision.reasons),
        decision=decision.id,
        request=decision.request,
        needed=list(decision.needed),
        hint="show the request to the user: `muniment confirm REQUEST`",
    )
