"""
The host's policy: which action name means which use, and by how much to tighten the floor.

    [actions]
    "calendar.read" = "answer"
    "email.*" = "external_action"        # the longest name that fits wins, and one without `*` before any with

    [limits]
    max_uses = 5                         # of one confirmation
    max_expires_seconds = 86400
    require_evidence = true              # external and destructive actions must cite some
    deny = ["db.drop*"]                  # never, whatever was signed
    review = ["web:*", "tool:*"]         # what comes from there is inert until a person has approved it

A name that is not listed is destructive. There is no key that loosens anything: an unknown one is an error.
"""

from __future__ import annotations

import enum
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

import msgspec
from blake3 import blake3

from muniment.events import check_path
from muniment.events._errors import BadArgument

from ._actions import encode_json
from ._text import folded, is_invisible, visible

_DOMAIN = b"muniment policy v1\n"
_LIMITS = ("max_uses", "max_expires_seconds", "require_evidence", "deny", "review")


class Use(enum.StrEnum):
    """What a memory is used for, in order of what it takes to justify it: `Use.ANSWER < Use.EXTERNAL_ACTION`."""

    PLANNING = "planning"
    ANSWER = "answer"
    EXTERNAL_ACTION = "external_action"
    DESTRUCTIVE_ACTION = "destructive_action"

    @property
    def level(self) -> int:
        """The place in that order, from 0."""
        return _LEVELS[self.value]

    # Inherited from str, these would compare by alphabet: `answer < planning`.
    def __lt__(self, other: str) -> bool:
        return self.level < Use(other).level

    def __le__(self, other: str) -> bool:
        return self.level <= Use(other).level

    def __gt__(self, other: str) -> bool:
        return self.level > Use(other).level

    def __ge__(self, other: str) -> bool:
        return self.level >= Use(other).level


_LEVELS = {use.value: level for level, use in enumerate(Use)}


class Policy(msgspec.Struct, frozen=True, eq=False):
    """What the host states about action names, and its limits. `Policy()` has none: every action is destructive.

    Names are literal, or end in `*`; a limit of None leaves the floor as it is. Raises `BadArgument` otherwise.
    """

    actions: Mapping[str, Use] = {}
    max_uses: int | None = None
    max_expires_seconds: int | None = None
    require_evidence: bool = False
    deny: tuple[str, ...] = ()
    review: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        actions = {_checked_name(name): _checked_use(name, use) for name, use in self.actions.items()}
        _refuse_ambiguous(actions)
        msgspec.structs.force_setattr(self, "actions", MappingProxyType(actions))
        msgspec.structs.force_setattr(self, "deny", tuple(sorted({_checked_name(name) for name in self.deny})))
        msgspec.structs.force_setattr(self, "review", tuple(sorted({_checked_name(name) for name in self.review})))
        for key in ("max_uses", "max_expires_seconds"):
            limit = cast("object", getattr(self, key))
            if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or not 0 < limit < 2**63):
                raise BadArgument(argument=key, detail="a whole number above 0")
        if not isinstance(cast("object", self.require_evidence), bool):
            raise BadArgument(argument="require_evidence", detail="true or false")

    @classmethod
    def from_toml(cls, text: str) -> Policy:
        """Read a policy; an unknown table, key or use is `BadArgument`, never ignored."""
        try:
            document = cast("dict[str, object]", tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise BadArgument(argument="policy", detail=f"it is not TOML: {error}") from error
        _refuse_unknown(document, ("actions", "limits"), "policy")
        limits = _table(document, "limits")
        _refuse_unknown(limits, _LIMITS, "limits")
        for key in ("deny", "review"):
            if not isinstance(limits.get(key, []), list):
                raise BadArgument(argument=key, detail="a list of names")
        # What the casts claim, the constructor checks.
        return cls(
            actions=cast("dict[str, Use]", _table(document, "actions")),
            deny=tuple(cast("list[str]", limits.get("deny", []))),
            review=tuple(cast("list[str]", limits.get("review", []))),
            max_uses=cast("int | None", limits.get("max_uses")),
            max_expires_seconds=cast("int | None", limits.get("max_expires_seconds")),
            require_evidence=cast("bool", limits.get("require_evidence", False)),
        )

    @classmethod
    def from_file(cls, path: str | Path) -> Policy:
        """Read a policy from a TOML file."""
        try:
            text = check_path(path, "policy").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadArgument(argument="policy", detail=f"`{path}` cannot be read: {error}") from error
        return cls.from_toml(text)

    def use_of(self, name: str, asked: Use | None = None) -> Use:
        """Return the use that an action of that name has; `asked` can raise it, and a lower one is ignored."""
        # A wildcard must not catch `db.Drop` past the entry for `db.drop`; nor may folding make an unknown name known.
        stated = max(self._stated(name, str), self._stated(name, folded))
        return stated if asked is None else max(stated, asked)

    def denies(self, name: str) -> bool:
        """Tell whether the host rules the action out altogether, in every spelling that `folded` takes for its name."""
        return any(_fits(pattern, name, folded) for pattern in self.deny)

    def reviews(self, origin: str) -> bool:
        """Tell whether what comes from an origin waits for a person."""
        return bool(self.review) and any(_fits(pattern, origin, folded) for pattern in self.review)

    @property
    def fingerprint(self) -> str:
        """BLAKE3, in hexadecimal, of `muniment policy v1\\n` and the policy as JSON with sorted keys."""
        fields: dict[str, object] = {
            "actions": {name: use.value for name, use in self.actions.items()},
            "deny": list(self.deny),
            "max_expires_seconds": self.max_expires_seconds,
            "max_uses": self.max_uses,
            "require_evidence": self.require_evidence,
        }
        if self.review:
            fields["review"] = list(self.review)
        return blake3(_DOMAIN + encode_json(fields)).hexdigest()

    def _stated(self, name: str, spell: Callable[[str], str]) -> Use:
        fitting = [pattern for pattern in self.actions if _fits(pattern, name, spell)]
        if not fitting:
            return Use.DESTRUCTIVE_ACTION
        return self.actions[max(fitting, key=lambda pattern: (not pattern.endswith("*"), len(pattern)))]


def _fits(pattern: str, name: str, spell: Callable[[str], str]) -> bool:
    if pattern.endswith("*"):
        return spell(name).startswith(spell(pattern[:-1]))
    return spell(name) == spell(pattern)


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise BadArgument(argument="actions", detail="names are texts, and not blank")
    if "*" in name[:-1]:
        raise BadArgument(argument="actions", detail=f"{visible(name)}: `*` may only stand at the end")
    if any(is_invisible(char) for char in name):
        raise BadArgument(argument="actions", detail=f"{visible(name)} holds a control or invisible character")
    return name


def _checked_use(name: str, use: object) -> Use:
    try:
        checked = Use(cast("str", use))
    except ValueError as error:
        uses = ", ".join(use.value for use in Use)
        raise BadArgument(argument=name, detail=f"its use is one of {uses}") from error
    # That a name nobody listed is destructive is the floor, and no policy can loosen it.
    if name == "*" and checked is not Use.DESTRUCTIVE_ACTION:
        raise BadArgument(argument="*", detail="names that are not listed are destructive, and stay so")
    return checked


def _refuse_ambiguous(names: Iterable[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(folded(name), name)
        if first != name:
            raise BadArgument(argument="actions", detail=f"{visible(first)} and {visible(name)} are the same name")


def _refuse_unknown(table: Mapping[str, object], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            raise BadArgument(argument=where, detail=f"unknown key {visible(key)}; it takes {', '.join(known)}")


def _table(document: Mapping[str, object], name: str) -> dict[str, object]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise BadArgument(argument=name, detail="it is a table")
    return cast("dict[str, object]", table)
