"""What the reference does inside: who may change what, what derives from what, what is kept out, what is noted."""

from __future__ import annotations

import copy
import hashlib
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from ._adapter import Adapter, Entry, Key, Refused
from ._clock import days_ago
from ._faults import FAULTS
from ._reference_state import Record, State, Tombstone, normal_form

_RANKS = {"document": 0, "agent": 1, "user": 2, "operator": 3}
_FORM_STEPS = ("compatibility", "invisible", "look_alike", "case", "white_space", "trailing_stop")


class Core(Adapter):
    """The inside of the reference; each `_leak` is where a fault would be."""

    leaks: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._state = State()

    def _leak(self, fault: str, scope: str) -> bool:
        """Tell whether a fault is switched on in a scope."""
        step = scope.split("/", 2)[1] if "/" in scope else ""
        return step in self.leaks and FAULTS[step] == fault

    def _add(
        self, text: str, scope: str, by: str, key: Key | None, value: str | None, source: str | None,
        derived_from: tuple[str, ...], valid_from: datetime | None, valid_to: datetime | None,
    ) -> Record:  # fmt: skip
        state = self._state
        state.seq += 1
        record = Record(
            f"{state.seq:032x}", scope, text, by, key, value, source, derived_from, valid_from, valid_to, state.seq
        )
        state.records[record.id] = record
        return record

    def _displace(self, record: Record) -> None:
        # Of one key: what a weaker speaker says is set beside the current value as disputed; else it takes its place.
        for other in self._held(record.scope):
            if other is record or other.key != record.key or record.valid_to is not None:
                continue
            faults = ("anyone_may_change", "laundered", "refed_old_wins")
            free = any(self._leak(fault, record.scope) for fault in faults)
            if _RANKS[record.by] < _RANKS[other.by] and not free:
                record.status = "disputed"
                return
            other.closed, other.status = record.seq, "superseded"
            record.replaces = other.id

    def _held(self, scope: str) -> list[Record]:
        return [one for one in self._state.records.values()
                if one.status == "active" and (one.scope == scope or scope in one.shared)
                and (one.valid_to is None or one.valid_to > days_ago(0))]  # fmt: skip

    def _record(self, id: str, scope: str, *, crosses: str = "") -> Record:  # noqa: A002
        record = self._state.records.get(id)
        if record is None or (record.scope != scope and not (crosses and self._leak(crosses, scope))):
            raise Refused("no such memory in this scope")
        return record

    def _check_rank(self, record: Record, by: str) -> None:
        if _RANKS[by] < _RANKS[record.by] and not self._leak("anyone_may_change", record.scope):
            raise Refused("whoever said it has more authority")

    def _derived(self, record: Record, by: str) -> list[Record]:
        if self._leak("derived_survives", record.scope):
            return []
        found: list[Record] = []
        for one in self._state.records.values():
            sources = set(one.derived_from)
            if record.id not in sources or one in found:
                continue
            if self._leak("derived_needs_all", record.scope) and len(sources) > 1:
                continue
            if one.scope != record.scope and (by != "operator" or self._leak("copy_survives", record.scope)):
                continue
            found.append(one)
            if not self._leak("derived_one_hop", record.scope):
                found += self._derived(one, by)
        return found

    def _erase(self, record: Record) -> None:
        self._state.attic.append(copy.copy(record))
        self._state.records.pop(record.id, None)

    def _bury(self, record: Record) -> Tombstone:
        digests = {self._digest(record.scope, "text", record.text)}
        if record.key is not None and record.value is not None:
            digests.add(self._digest(record.scope, repr(record.key), record.value))
        note = record.text if self._leak("tombstone_quotes", record.scope) else ""
        tombstone = Tombstone(f"tombstone-{len(self._state.tombstones)}", record.scope, digests, note)
        if self._leak("short_values_skipped", record.scope) and len(record.text) < 8:
            tombstone.lifted = True
        self._state.tombstones.append(tombstone)
        return tombstone

    def _check_tombstones(self, text: str, scope: str, key: Key | None, value: str | None, by: str) -> None:
        admitting = ("restated_is_admitted", "laundered", "refed_old_wins")
        if any(self._leak(fault, scope) for fault in admitting):
            return
        if key is None and self._leak("second_unit_admitted", scope):
            return
        digests = {self._digest(scope, "text", text)}
        if key is not None and value is not None:
            digests.add(self._digest(scope, repr(key), value))
        for one in self._state.tombstones:
            if one.lifted or not (one.scope == scope or self._binds_here_too(one, scope)):
                continue
            known = one.digests if one.scope == scope else self._translated(one, scope, text)
            if digests & known and by != "operator":
                raise Refused("this value was rejected here")

    def _binds_here_too(self, tombstone: Tombstone, scope: str) -> bool:
        near = tombstone.scope.rpartition("/")[0] == scope.rpartition("/")[0]
        return near and self._leak("tombstone_binds_others", scope)

    def _translated(self, tombstone: Tombstone, scope: str, text: str) -> set[str]:
        # Digests are bound to their scope; the leak that ignores scopes has to work it out for the other one.
        there = self._digest(tombstone.scope, "text", text)
        return {self._digest(scope, "text", text)} if there in tombstone.digests else set()

    def _digest(self, scope: str, what: str, text: str) -> str:
        form = normal_form(text, [step for step in _FORM_STEPS if self._leak(f"form_lacks_{step}", scope)])
        return hashlib.blake2b(f"{scope}\0{what}\0{form}".encode(), key=self._state.secret, digest_size=16).hexdigest()

    def _note(self, scope: str, action: str, target: str, quoted: str) -> None:
        # What was written is quoted nowhere: the log outlives a deletion.
        said = quoted if action == "forget" else ""
        entry = Entry(f"entry-{len(self._state.log)}-{action}", action, target, f"{action} {target} {said}".strip())
        self._state.log.append((scope, entry))
