"""
What else holds a value that is to be forgotten: decisions (in what they cite too), confirmations and prohibitions.

They have keys of their own, so they can go with the value. They go only where the one who forgets has authority over
them, and only in the scopes that the forget binds. A prohibition never goes: a veto whose action nobody can read would
veto nothing, or everything, also when a past decision is decided again. What holds the value and stays is named, so
that somebody with more authority can see to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, cast

import msgspec

from muniment.events import ActionBody, MemoryBody, Rank, covers, normal_form, parse_data
from muniment.projections import DecisionRecord, Memory, Projections

from ._decision_words import DecisionWords
from ._handles import Handle

_FOUND_INSIDE: Final = 8
"""
Bytes of a normal form that is also looked for inside longer texts. A shorter one must be the whole text: a forgotten
`red` does not take the arguments of every decision that mentions the colour.
"""


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """The key slots of what goes with the value, and the ids of what holds it and stays."""

    slots: tuple[int, ...]
    kept: tuple[bytes, ...]


def find_holding(
    state: Projections,
    decisions: DecisionWords,
    handle: Handle | None,
    memories: Iterable[Memory],
    scope: str,
    texts: Iterable[str],
) -> Holding:
    """Return what holds any of the texts, or a word of the memories, in the scopes of both. No handle: the operator."""
    memories = list(memories)
    forms = _forms(state, memories, texts)
    scopes = {scope, *(memory.scope for memory in memories)}
    slots: set[int] = set()
    kept: list[bytes] = []

    def bound(other: str) -> bool:
        return any(covers(outer, other) for outer in scopes)

    register = state.register
    for confirmation in register.confirmations.values():
        if confirmation.action is not None and bound(confirmation.scope) and _holds(confirmation.action, forms):
            if _is_person(handle):
                slots.add(confirmation.slot)
            else:
                kept.append(confirmation.id)
    for decision in decisions.candidates(forms):
        if decision.erasure is None and bound(decision.scope) and _decision_holds(state, decision, forms):
            if _is_person(handle) or _is_own(handle, decision):
                slots.add(decision.slot)
            else:
                kept.append(decision.id)
    for prohibition in register.prohibitions.values():
        if prohibition.action is not None and bound(prohibition.scope) and _holds(prohibition.action, forms):
            kept.append(prohibition.id)
    kept += [memory.id for memory in _quoting(state, memories, forms) if bound(memory.scope)]
    return Holding(slots=tuple(sorted(slots)), kept=tuple(kept))


def repeats(text: str, said: str) -> bool:
    """Tell whether a value stands in what is said, in any spelling that normalises to it, and not inside a word."""
    return _stands_in(normal_form(text), normal_form(said))


def words_of(body: MemoryBody) -> list[str]:
    """Return what a memory says: its content, and its value where that was typed."""
    found = [body.content]
    if body.value is not None:
        found.append(str(parse_data(body.value)))
    return found


def _forms(state: Projections, memories: Iterable[Memory], texts: Iterable[str]) -> set[str]:
    said = list(texts)
    for memory in memories:
        body = state.read_memory(memory.place)
        if body is not None:
            said.append(body.content)
            # A number or a date is too common in arguments to say whose it is.
            if body.value is not None and isinstance(value := parse_data(body.value), str):
                said.append(value)
    return {form for text in said if (form := normal_form(text))}


def _stands_in(form: str, said: str) -> bool:
    # Only ASCII is written with spaces between words for sure: a Chinese name has none around it.
    start = said.find(form) if form else -1
    while start != -1:
        end = start + len(form)
        before, after = said[start - 1 : start], said[end : end + 1]
        if not (_joins(before, form[0]) or _joins(form[-1], after)):
            return True
        start = said.find(form, start + 1)
    return False


def _joins(left: str, right: str) -> bool:
    both = left + right
    return len(both) == 2 and both.isascii() and both.isalnum()


def _holds(action: bytes, forms: set[str]) -> bool:
    return any(_is_one_of(said, forms) for said in _forms_of(action))


def _forms_of(action: bytes) -> Iterator[str]:
    # Every text of the canonical bytes: a constraint's, and an argument's name, can hold a value too.
    return map(normal_form, _texts(msgspec.json.decode(action)))


def _is_one_of(said: str, forms: set[str]) -> bool:
    return said in forms or any(len(form.encode()) >= _FOUND_INSIDE and _stands_in(form, said) for form in forms)


def _texts(data: object) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, list):
        for item in cast("list[object]", data):
            yield from _texts(item)
    elif isinstance(data, dict):
        for key, item in cast("dict[object, object]", data).items():
            yield from _texts(key)
            yield from _texts(item)


def decision_words(state: Projections) -> DecisionWords:
    """Return what finds decisions by the words of their arguments."""

    def texts_of(decision: DecisionRecord) -> Iterator[str]:
        said = state.read_body(decision.place)
        return _decided_forms(said) if isinstance(said, ActionBody) else iter(())

    return DecisionWords(state, texts_of)


def _decision_holds(state: Projections, decision: DecisionRecord, forms: set[str]) -> bool:
    said = state.read_body(decision.place)
    return isinstance(said, ActionBody) and any(_is_one_of(text, forms) for text in _decided_forms(said))


def _decided_forms(said: ActionBody) -> Iterator[str]:
    yield from _forms_of(said.action)
    yield from map(normal_form, said.unknown)


def _quoting(state: Projections, memories: list[Memory], forms: set[str]) -> list[Memory]:
    # What took its place ("moved, it was the 12th"), and what was written just after recalling it and does not say that
    # it derives from it. They are records of their own, and not what is forgotten.
    register = state.register
    gone = {memory.id for memory in memories}
    near: dict[bytes, Memory] = {}
    for memory in memories:
        successors = [register.memories.get(fate.by) for fate in memory.fates if fate.by is not None]
        for other in (*successors, *register.recalled_into.get(memory.id, ())):
            if other is not None and other.id not in gone and other.erasure is None:
                near[other.id] = other
    return [other for other in near.values() if _quotes(state, other, forms)]


def _quotes(state: Projections, memory: Memory, forms: set[str]) -> bool:
    body = state.read_memory(memory.place)
    return body is not None and any(
        _is_one_of(normal_form(text), forms) for text in (body.content, body.reason) if text is not None
    )


def _is_person(handle: Handle | None) -> bool:
    return handle is None or handle.rank >= Rank.USER


def _is_own(handle: Handle | None, decision: DecisionRecord) -> bool:
    return handle is not None and handle.rank == Rank.AGENT and decision.actor == handle.actor
