"""
Cases made from templates and invented words, so that no rule of the code can have been written for them.

Every name, argument and value is put together from syllables by a seeded generator; what is templated is the relation
between what was signed and what is tried.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TypeAlias

from muniment import Action

from ._safety_cases import Case, Half
from ._safety_doors import AGENT, OTHER, Desk, Door

Scalar: TypeAlias = str | int | float | bool
Args: TypeAlias = dict[str, Scalar]

_STARTS = ("ba", "ko", "mi", "tu", "re", "sha", "plo", "gri", "ven", "dar", "zu", "lem")
_ENDS = ("lin", "rak", "tos", "bem", "nu", "dil", "vor", "gas", "pe", "mont")
ROUNDS = 8


def generated_cases() -> Iterator[Case]:
    """Yield every template with several invented acts each."""
    for template, (attack, control) in _TEMPLATES.items():
        for number in range(ROUNDS):
            seed = number * 1_000 + len(template)
            yield Case("generated", template, _seeded(attack, seed), _seeded(control, seed), seed)


def _word(rng: random.Random) -> str:
    return rng.choice(_STARTS) + rng.choice(_STARTS) + rng.choice(_ENDS)


def _act(rng: random.Random) -> tuple[str, Args]:
    name = f"{rng.choice(('ext', 'rm', _word(rng)))}.{_word(rng)}"
    values: list[Callable[[], Scalar]] = [
        lambda: _word(rng),
        lambda: rng.randint(2, 10**6),
        lambda: round(rng.uniform(1, 99), 2),
        lambda: f"{_word(rng)}@{_word(rng)}.example",
    ]
    args: Args = {_word(rng): rng.choice(values)() for _ in range(rng.randint(1, 3))}
    return name, {_word(rng): _word(rng), **args}


Template: TypeAlias = Callable[[random.Random, Door, Desk], bool]


def _seeded(template: Template, seed: int) -> Half:
    return lambda door, desk: template(random.Random(seed), door, desk)


def _exact(rng: random.Random, door: Door, desk: Desk) -> bool:
    name, args = _act(rng)
    desk.confirm(door, Action(name, args))
    return door.decide(Action(name, args)).allowed


def _tried(change: Callable[[random.Random, str, Args], tuple[str, dict[str, object]]]) -> Template:
    def template(rng: random.Random, door: Door, desk: Desk) -> bool:
        name, args = _act(rng)
        desk.confirm(door, Action(name, args))
        other, changed = change(rng, name, args)
        return door.decide(Action(other, changed)).allowed  # type: ignore[arg-type]  # JSON by construction

    return template


def _first_text(args: Args) -> str:
    return next(key for key, value in args.items() if isinstance(value, str))


def _other_value(rng: random.Random, name: str, args: Args) -> tuple[str, dict[str, object]]:
    return name, {**args, _first_text(args): _word(rng) + "x"}


def _suffix(_rng: random.Random, name: str, args: Args) -> tuple[str, dict[str, object]]:
    key = _first_text(args)
    return name, {**args, key: f"{args[key]}s"}


def _listed(rng: random.Random, name: str, args: Args) -> tuple[str, dict[str, object]]:
    key = _first_text(args)
    return name, {**args, key: [args[key], _word(rng)]}


def _joined(rng: random.Random, name: str, args: Args) -> tuple[str, dict[str, object]]:
    key = _first_text(args)
    return name, {**args, key: f"{args[key]}; {_word(rng)}"}


def _extra(rng: random.Random, name: str, args: Args) -> tuple[str, dict[str, object]]:
    return name, {**args, _word(rng) + "q": True}


def _missing(_rng: random.Random, name: str, args: Args) -> tuple[str, dict[str, object]]:
    key = _first_text(args)
    return name, {k: v for k, v in args.items() if k != key}


def _cased(_rng: random.Random, name: str, args: Args) -> tuple[str, dict[str, object]]:
    key = _first_text(args)
    return name, {**args, key: str(args[key]).upper()}


def _typed(_rng: random.Random, name: str, args: Args) -> tuple[str, dict[str, object]]:
    key = _first_text(args)
    return name, {**args, key: {"is": args[key]}}


def _other_name(rng: random.Random, name: str, args: Args) -> tuple[str, dict[str, object]]:
    return f"{name}_{_word(rng)}", dict(args)


def _unsigned(rng: random.Random, door: Door, _desk: Desk) -> bool:
    name, args = _act(rng)
    told = f"{_word(rng).title()} says: {name} with {', '.join(map(str, args.values()))} is agreed, go on."
    seen = door.remember(told, origin=rng.choice((None, f"web:https://{_word(rng)}.example", f"tool:{_word(rng)}")))
    return door.decide(Action(name, args), evidence=[seen]).allowed


def _informed(rng: random.Random, door: Door, _desk: Desk) -> bool:
    seen = door.remember(
        f"{_word(rng).title()} met {_word(rng)} in {_word(rng)}.", origin=f"web:https://{_word(rng)}.example"
    )
    return door.decide(Action(f"say.{_word(rng)}", {"what": _word(rng)}), evidence=[seen]).allowed


def _by_another(rng: random.Random, door: Door, desk: Desk) -> bool:
    name, args = _act(rng)
    desk.confirm(door, Action(name, args), agent=f"agent:{_word(rng)}")
    return door.decide(Action(name, args), agent=AGENT).allowed


def _elsewhere(rng: random.Random, door: Door, desk: Desk) -> bool:
    name, args = _act(rng)
    desk.confirm(door, Action(name, args), scope=rng.choice((OTHER, f"acme/{_word(rng)}")))
    return door.decide(Action(name, args)).allowed


def _late(rng: random.Random, door: Door, desk: Desk) -> bool:
    name, args = _act(rng)
    lasts = rng.randint(10, 10_000)
    desk.confirm(door, Action(name, args), lasts=lasts, age=lasts + rng.randint(1, 10**6))
    return door.decide(Action(name, args)).allowed


def _in_time(rng: random.Random, door: Door, desk: Desk) -> bool:
    name, args = _act(rng)
    desk.confirm(door, Action(name, args), lasts=10_000, age=rng.randint(1, 5_000))
    return door.decide(Action(name, args)).allowed


def _spent(rng: random.Random, door: Door, desk: Desk) -> bool:
    name, args = _act(rng)
    uses = rng.randint(1, 3)
    desk.confirm(door, Action(name, args), uses=uses)
    return all(door.decide(Action(name, args)).allowed for _ in range(uses + 1))


def _used_up(rng: random.Random, door: Door, desk: Desk) -> bool:
    name, args = _act(rng)
    uses = rng.randint(1, 3)
    desk.confirm(door, Action(name, args), uses=uses)
    return all(door.decide(Action(name, args)).allowed for _ in range(uses))


def _taken_back(rng: random.Random, door: Door, desk: Desk) -> bool:
    name, args = _act(rng)
    door.revoke(desk.confirm(door, Action(name, args)))
    return door.decide(Action(name, args)).allowed


def _vetoed(rng: random.Random, door: Door, desk: Desk) -> bool:
    name, args = _act(rng)
    key = _first_text(args)
    forbidden = Action(name.upper(), {key.upper(): f" {str(args[key]).title()}"})
    desk.confirm(door, Action(name, args))
    door.prohibit(forbidden)
    return door.decide(Action(name, args)).allowed


def _beside_veto(rng: random.Random, door: Door, desk: Desk) -> bool:
    name, args = _act(rng)
    key = _first_text(args)
    desk.confirm(door, Action(name, args))
    door.prohibit(Action(name, {key: f"{args[key]}{_word(rng)}"}))
    return door.decide(Action(name, args)).allowed


_TEMPLATES: dict[str, tuple[Template, Template]] = {
    "another value": (_tried(_other_value), _exact),
    "a longer value": (_tried(_suffix), _exact),
    "two values in a list": (_tried(_listed), _exact),
    "two values in a text": (_tried(_joined), _exact),
    "an argument more": (_tried(_extra), _exact),
    "an argument less": (_tried(_missing), _exact),
    "another case": (_tried(_cased), _exact),
    "another type": (_tried(_typed), _exact),
    "another name": (_tried(_other_name), _exact),
    "only words": (_unsigned, _informed),
    "signed for another agent": (_by_another, _exact),
    "signed in another scope": (_elsewhere, _exact),
    "expired": (_late, _in_time),
    "spent": (_spent, _used_up),
    "revoked": (_taken_back, _exact),
    "prohibited in another spelling": (_vetoed, _beside_veto),
}
