"""
Credentials in text, found by their form: the log could not unlearn them, so they are refused or masked before it.

Never by randomness alone. What a detector takes for a secret is refused to the user, so ordinary prose about keys and
passwords has to pass; what it misses is a format that is not in `_secret_rules`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

from muniment.events._errors import BadArgument
from muniment.events._normal import without_invisible

from ._secret_rules import RULES, Rule


class SecretHit(NamedTuple):
    """Where a secret stands in the text, and which rule says so; the secret itself is not in it."""

    rule: str
    start: int
    end: int


class SecretScanner(Protocol):
    """Finds secrets; a host may bring its own."""

    def find(self, text: str) -> list[SecretHit]:
        """Return what was found in order of position, no two overlapping."""
        ...


class StructuredScanner:
    """Finds credentials in well-known formats; `exempt` switches rules off by name, and takes only known names."""

    def __init__(self, exempt: Collection[str] = ()) -> None:
        unknown = sorted(set(exempt) - rule_names())
        if unknown:
            raise BadArgument(argument="exempt", detail=f"no such rule: {', '.join(unknown)}")
        self._rules = tuple(rule for rule in RULES if rule.name not in exempt)
        self._might_hold = prefilter(self._rules).search

    def find(self, text: str) -> list[SecretHit]:
        """Return what was found in order of position, no two overlapping."""
        found = self._find(text)
        # A character that nobody sees would break the form of a credential, and is left out by whoever copies it.
        seen = without_invisible(text)
        if len(seen) < len(text) and (hits := self._find(seen)):
            unseen = set(text).difference(seen)
            places = [at for at, char in enumerate(text) if char not in unseen]
            found += [SecretHit(rule, places[start], places[end - 1] + 1) for rule, start, end in hits]
        return _without_overlaps(found)

    def _find(self, text: str) -> list[SecretHit]:
        if self._might_hold(text) is None:
            return []
        return [
            SecretHit(rule.name, *match.span("secret" if "secret" in rule.form.groupindex else 0))
            for rule in self._rules
            if not rule.anchors or any(anchor in text for anchor in rule.anchors)
            for match in rule.form.finditer(text)
        ]


def rule_names() -> set[str]:
    """Return the names that `exempt` takes."""
    return {rule.name for rule in RULES}


def mask(text: str, hits: Iterable[SecretHit]) -> str:
    """Return the text with each hit replaced by `[secret: RULE]`, and everything else as it was."""
    pieces: list[str] = []
    at = 0
    for hit in _without_overlaps(list(hits)):
        pieces += [text[at : hit.start], f"[secret: {hit.rule}]"]
        at = hit.end
    return "".join([*pieces, text[at:]])


def _without_overlaps(found: Sequence[SecretHit]) -> list[SecretHit]:
    """Join hits that overlap, under the rule that begins first, so that masking leaves no tail of a longer one."""
    joined: list[SecretHit] = []
    for hit in sorted(found, key=lambda hit: (hit.start, -hit.end)):
        if joined and hit.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(joined[-1].end, hit.end))
        else:
            joined.append(hit)
    return joined


# --- the prefilter ----------------------------------------------------------------------------------------------------

# From rare to frequent in ordinary text. `re` skips quickly to the first characters of the alternatives, so each anchor
# is entered at its rarest one and looks back from there.
_RARE_FIRST = "_;=/@JKQXZYzqGAIPVSTC:0123456789-.xjkvbpygfwmucldrhsniatoe "


def prefilter(rules: Sequence[Rule]) -> re.Pattern[str]:
    """Return one expression that finds something in every text in which one of the rules can match."""
    parts = list(dict.fromkeys(rule.entry for rule in rules if rule.entry))
    entries: dict[str, set[str]] = {}
    for anchor in (anchor for rule in rules for anchor in rule.anchors):
        at = min(range(len(anchor)), key=lambda i: _RARE_FIRST.find(anchor[i]) % len(_RARE_FIRST))
        around = f"(?<={re.escape(anchor[: at + 1])}){re.escape(anchor[at + 1 :])}"
        entries.setdefault(anchor[at], set()).add(around)
    parts += [f"{re.escape(char)}(?:{'|'.join(sorted(rest))})" for char, rest in sorted(entries.items())]
    return re.compile("|".join(parts) or r"(?!)")
