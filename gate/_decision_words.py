"""Which decisions may hold a value in their arguments, without opening all of them for each forget."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from muniment.events import NO_SLOT
from muniment.projections import DecisionRecord, Projections

# What a value has of these is, in every text that it stands in, a whole run too: see `_stands_in`.
_RUNS: Final = re.compile("[0-9A-Za-z]+")


class DecisionWords:
    """
    The decisions by the words of their arguments; each is read once, when a forget first asks.

    Kept in memory are no words but their hashes, under the process's own secret. What was erased since may still be
    named: whoever asks reads what is named anyway.
    """

    def __init__(self, state: Projections, texts_of: Callable[[DecisionRecord], Iterable[str]]) -> None:
        self._state, self._texts_of = state, texts_of
        self._seq = 0
        self._ids: list[bytes] = []
        self._holders: dict[int, list[int]] = {}

    def candidates(self, forms: Iterable[str]) -> Iterator[DecisionRecord]:
        """Yield the decisions among which those are whose texts hold one of the normal forms, in sequence order."""
        self._catch_up()
        found: set[int] = set()
        for form in forms:
            found |= self._with_all(_hashes(form))
        decisions = self._state.register.decisions
        for number in sorted(found):
            decision = decisions.get(self._ids[number])
            if decision is not None:
                yield decision

    def _with_all(self, runs: set[int]) -> set[int]:
        if not runs:
            return set(range(len(self._ids)))  # nothing to go by, as in Chinese
        lists = sorted((self._holders.get(run, []) for run in runs), key=len)
        found = set(lists[0])
        for others in lists[1:]:
            found.intersection_update(others)
        return found

    def _catch_up(self) -> None:
        for decision in self._state.register.decisions.after(self._seq):
            self._seq = decision.seq
            if decision.slot == NO_SLOT or decision.erasure is not None:
                continue
            number = len(self._ids)
            self._ids.append(decision.id)
            for run in {run for text in self._texts_of(decision) for run in _hashes(text)}:
                self._holders.setdefault(run, []).append(number)


def _hashes(text: str) -> set[int]:
    return set(map(hash, _RUNS.findall(text)))
