"""Secrets among the arguments of an action: masked where a decision is recorded, refused where it would be signed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import msgspec

from muniment.events import SecretFound

from ._actions import Action, Argument, Constraint, Json
from ._secrets import SecretScanner, mask


def mask_action(action: Action, secrets: SecretScanner) -> tuple[Action, bool]:
    """Return the action with every secret in it replaced by `[secret: RULE]`, and whether there was one."""
    found: list[str] = []

    def clean(text: str) -> str:
        hits = secrets.find(text)
        found.extend(hit.rule for hit in hits)
        return mask(text, hits) if hits else text

    name = clean(action.name) if isinstance(action.name, str) else action.name
    args: dict[str, Argument] = {
        clean(key): value if isinstance(value, Constraint) else _cleaned(value, clean)
        for key, value in action.args.items()
    }
    return (Action(name, args), True) if found else (action, False)


def refuse_secrets(action: Action, secrets: SecretScanner) -> None:
    """Raise SecretFound when anything in the action is a credential: what is signed is kept word for word."""
    rules: set[str] = set()
    for text in _words(action):
        rules.update(f"`{hit.rule}`" for hit in secrets.find(text))
    if rules:
        raise SecretFound(what="the action", rules=", ".join(sorted(rules)))


def _words(action: Action) -> list[str]:
    words = [action.name] if isinstance(action.name, str) else [action.name.text]
    for key, value in action.args.items():
        words.append(key)
        plain = msgspec.structs.astuple(value) if isinstance(value, Constraint) else (value,)

        def keep(text: str) -> str:
            words.append(text)
            return text

        for item in cast("tuple[Json, ...]", plain):
            _cleaned(item, keep)
    return words


def _cleaned(value: Json, clean: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(key): _cleaned(item, clean) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_cleaned(item, clean) for item in value]
    return value
