"""What a file says of its memories by name: what they derive from and supersede, their links, and what ended them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from muniment.events import AlreadyDone, Draft, Id, InvalidInput, LinkType, Moment, Refused, format_id
from muniment.gate import Handle, MemoryFields, rank_of
from muniment.projections import FateKind, Memory

from ._engine import Engine
from ._import_fields import Item
from ._importers import Ending, Linking, Note

_AT_ONCE: Final = 500
_LINK_TYPES: Final = frozenset(link.value for link in LinkType)


class _Link(NamedTuple):
    where: str
    start: Id
    type: str
    end: str


class Ends:
    """
    The names that a file gives its memories, and what is still to be said of them.

    Endings wait until all of the file was read: what a later memory supersedes must not have ended before. Links wait
    until both ends are there.
    """

    def __init__(self, engine: Engine, skip: Callable[[str, str, str], None], *, dry_run: bool) -> None:
        self._engine, self._skip, self._dry_run = engine, skip, dry_run
        self.ids: dict[str, Id] = {}
        self.here: dict[str, Id] = {}
        """Memories of the file that the scope has itself; they can be derived from, and nothing is said of them."""
        self.retired = self.linked = 0
        self._kept_out: set[str] = set()
        self._endings: list[Ending] = []
        self._links: list[_Link] = []
        self._linkings: list[Linking] = []

    # --- what is said by name -----------------------------------------------------------------------------------------

    def keep_out(self, name: str) -> None:
        """Learn that the turn of this name was not let in."""
        if name:
            self._kept_out.add(name)

    def is_kept_out(self, names: Iterable[str]) -> bool:
        """Tell whether any of the names is one that was not let in."""
        return not self._kept_out.isdisjoint(names)

    def references(self, note: Note, handle: Handle, where: str) -> MemoryFields:
        """Return what a memory derives from and supersedes, as far as that is there."""
        if self._dry_run:
            return {}  # what it names was not written
        known = self.here | self.ids
        parents = [known[name] for name in note.derived_from if name in known]
        missing = len(note.derived_from) - len(parents)
        if missing:
            self._skip(where, f"{missing} of what it derives from is not in the file", "dangling")
        fields: MemoryFields = {"derived_from": [format_id(parent) for parent in parents]}
        if note.supersedes is None:
            return fields
        target = self._engine.state.register.memories.get(self._id(note.supersedes))
        if target is not None and target.erasure is not None:
            return fields
        if target is not None and target.envelope.origin == handle.origin:
            return fields | {"supersedes": format_id(target.id)}
        if target is not None and handle.origin.startswith(f"{target.envelope.origin}/"):
            return fields  # what only stands beside another takes over from nothing
        # It was said by another voice of the file, which this one may not change here, and may come later than this
        # one; it ends all the same.
        self._endings.append(Ending(where, note.supersedes, None, note.reason or "superseded before it was exported"))
        return fields

    def end(self, ending: Ending) -> None:
        """Learn that a memory holds no more."""
        self._endings.append(ending)

    def link(self, linking: Linking) -> None:
        """Learn of a link between two memories of the file."""
        self._linkings.append(linking)

    def links_of(self, item: Item, identity: Id) -> None:
        """Learn of the links that a memory of the file begins."""
        for kind, end in item.links:
            if kind in _LINK_TYPES:
                self._links.append(_Link(item.where, identity, kind, end))
            else:
                self._skip(item.where, "one of its links is of no known type", "damaged")

    # --- writing it ---------------------------------------------------------------------------------------------------

    def write_links(self) -> None:
        """Write the links whose ends are both there."""
        named = [one for one in self._linkings if one.start in self.ids]
        if named:
            self._links += [_Link(one.where, self.ids[one.start], one.type, one.end) for one in named]
            self._linkings = [one for one in self._linkings if one.start not in self.ids]
        ready = [link for link in self._links if link.end in self.ids]
        if len(ready) == len(self._links):
            self._links = []
        elif ready:
            self._links = [link for link in self._links if link.end not in self.ids]
        for start in range(0, len(ready), _AT_ONCE):
            self._append_links(ready[start : start + _AT_ONCE])

    def finish(self) -> None:
        """Write the links that waited for a later memory, and the endings; what cannot be written is reported."""
        self.write_links()
        for where in (*(link.where for link in self._links), *(one.where for one in self._linkings)):
            self._skip(where, "a link leads to what is not in the file, or was not let in", "dangling")
        for start in range(0, len(self._endings), _AT_ONCE):
            self._append_endings(self._endings[start : start + _AT_ONCE])

    def _append_links(self, links: list[_Link]) -> None:
        drafts: list[Draft] = []

        def plan(at: Moment) -> list[Draft]:
            drafts.clear()
            seen: set[tuple[Id, Id, str]] = set()
            for link in links:
                memory = self._engine.state.register.memories.get(link.start)
                wanted = (link.start, self._id(link.end), link.type)
                if memory is None or memory.erasure is not None or wanted in seen or self._was_linked(wanted):
                    continue
                seen.add(wanted)
                end = self._engine.state.register.memories.get(wanted[1])
                if end is not None and end.erasure is None:
                    drafts.append(self._engine.deeds.link(_voice_of(memory), wanted[0], wanted[1], wanted[2], at))
            return drafts

        if not self._dry_run:
            self._engine.append(plan)
        self.linked += len(drafts)

    def _append_endings(self, endings: list[Ending]) -> None:
        drafts: list[Draft] = []

        def plan(at: Moment) -> list[Draft]:
            drafts.clear()
            seen: set[bytes] = set()
            for ending in endings:
                memory = self._engine.state.register.memories.get(self._id(ending.name))
                if memory is None or memory.erasure is not None or memory.id in seen or _was_retired(memory):
                    continue
                seen.add(memory.id)
                until = ending.at
                if until is not None:
                    until = max(until, memory.envelope.valid_from)  # withdrawn before it would have held
                name, reason, voice = self._id(ending.name), self._words(ending.reason), _voice_of(memory)
                with suppress(AlreadyDone):
                    drafts.append(
                        self._engine.deeds.retire(voice, name, at, reason=reason, valid_to=until, imported=True)
                    )
            return drafts

        if not self._dry_run:
            self._engine.append(plan)
        self.retired += len(drafts)

    def _words(self, reason: str) -> str:
        try:
            return self._engine.preparer.words(reason, "reason") or "ended"
        except (Refused, InvalidInput):
            return "ended, for a reason that cannot be kept"

    def _id(self, name: str) -> Id:
        return self.ids.get(name, Id(b""))

    def _was_linked(self, wanted: tuple[Id, Id, str]) -> bool:
        # One that was ended since does not come back with its file.
        links = self._engine.state.register.links_at.get(wanted[0], ())
        return any((link.start, link.end, link.type) == wanted for link in links)


def _was_retired(memory: Memory) -> bool:
    return any(fate.kind is FateKind.RETIRED for fate in memory.fates)


def _voice_of(memory: Memory) -> Handle:
    """Return the handle that said it in an import: nothing else may end it or link from it."""
    origin = memory.envelope.origin
    return Handle(scope=memory.scope, reads=(), actor=memory.envelope.actor, origin=origin, rank=rank_of(origin))
