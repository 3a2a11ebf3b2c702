"""
What the user signed and forbade, parsed once and found by name: the guard looks at few of many.

It is a cache of the register and never the truth: whether an entry holds at a position is asked of the entry.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from muniment.events import MunimentError
from muniment.projections import Confirmation, Prohibition, Register

from ._actions import Action, Pattern, parse_action
from ._matching import needle, texts_of
from ._text import folded

_UNREADABLE: Final = ""
"""The name under which entries stand that have none; no action is called so. Whoever reads one of them errs again."""


class Rulebook:
    """The confirmations and prohibitions of one register, by the names that they speak of."""

    def __init__(self, register: Register) -> None:
        self._register = register
        self._made_for: tuple[object, ...] = ()
        self._parsed: dict[bytes, Action] = {}
        self._seen_confirmations = self._seen_prohibitions = 0
        self._confirmed: dict[tuple[str, str], list[Confirmation]] = {}
        self._forbidden: dict[str, dict[str | None, list[Prohibition]]] = {}
        self._patterns: dict[str, list[Prohibition]] = {}
        self._lengths: set[int] = set()

    def confirmations(self, scope: str, name: str) -> list[Confirmation]:
        """Return those given in exactly this scope for exactly this name, in the order in which they were recorded."""
        self._catch_up()
        return [*self._confirmed.get((scope, _UNREADABLE), ()), *self._confirmed.get((scope, name), ())]

    def prohibitions(self, taken: Action) -> list[Prohibition]:
        """Return those that could forbid a call, whatever their scope and whether they still hold."""
        self._catch_up()
        name = folded(taken.name) if isinstance(taken.name, str) else ""
        found: list[Prohibition] = []
        by_needle = self._forbidden.get(name)
        if by_needle is not None:
            # A block list of a thousand addresses is asked about those that the call holds.
            wanted = {None} if by_needle.keys() == {None} else {None, *texts_of(taken)}
            for text in by_needle.keys() & wanted:
                found += by_needle[text]
        for length in self._lengths:
            found += self._patterns.get(name[:length], ())
        return found

    def action(self, entry: Confirmation | Prohibition) -> Action | None:
        """Return what an entry speaks of; None when that was erased."""
        if entry.action is None:
            return None
        known = self._parsed.get(entry.id)
        if known is None:
            known = self._parsed[entry.id] = parse_action(entry.action)
        return known

    def _catch_up(self) -> None:
        register = self._register
        # A forget may take words, entries and whole scopes away, and moves the key epoch whenever it does.
        made_for = (id(register.confirmations), id(register.prohibitions), register.key_epoch)
        if made_for != self._made_for:
            self._start_over()
        if len(register.prohibitions) > self._seen_prohibitions:
            for prohibition in islice(register.prohibitions.values(), self._seen_prohibitions, None):
                self._take_in(prohibition)
            self._seen_prohibitions = len(register.prohibitions)
        if len(register.confirmations) > self._seen_confirmations:
            for confirmation in islice(register.confirmations.values(), self._seen_confirmations, None):
                name = self._name_of(confirmation)
                self._confirmed.setdefault((confirmation.scope, name), []).append(confirmation)
            self._seen_confirmations = len(register.confirmations)
        self._made_for = made_for

    def _start_over(self) -> None:
        register = self._register
        self._seen_confirmations = self._seen_prohibitions = 0
        self._confirmed, self._forbidden, self._patterns, self._lengths = {}, {}, {}, set()
        # What was erased must not live on here.
        for identity in list(self._parsed):
            entry = register.confirmations.get(identity) or register.prohibitions.get(identity)
            if entry is None or entry.action is None:
                del self._parsed[identity]

    def _name_of(self, confirmation: Confirmation) -> str:
        try:
            signed = self.action(confirmation)
        except MunimentError:
            signed = None
        return signed.name if signed is not None and isinstance(signed.name, str) else _UNREADABLE

    def _take_in(self, prohibition: Prohibition) -> None:
        try:
            forbidden = self.action(prohibition)
        except MunimentError:
            forbidden = None
        if forbidden is None:
            # What it forbade was erased or cannot be read. It may have been anything: it is asked about everything.
            self._add_pattern("", prohibition)
        elif isinstance(forbidden.name, Pattern):
            literal = folded(forbidden.name.text).replace("?", "*").partition("*")[0]
            self._add_pattern(literal, prohibition)
        else:
            by_needle = self._forbidden.setdefault(folded(forbidden.name), {})
            by_needle.setdefault(needle(forbidden), []).append(prohibition)

    def _add_pattern(self, start: str, prohibition: Prohibition) -> None:
        self._patterns.setdefault(start, []).append(prohibition)
        self._lengths.add(len(start))
