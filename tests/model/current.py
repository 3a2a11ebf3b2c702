"""
What is current, written from the design's words alone, as slowly and plainly as they read.

At (valid, known) each statement of a key is taken in sequence order, what waits for a person from its approval on. Who
is entitled takes the interval; who is not disputes it, or agrees. Retiring, rejecting and forgetting leave a hole that
revives nothing. What is quarantined is a hole too, and so is what another record supersedes under another key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .facts import Said


class Key(NamedTuple):
    """The value of a single-valued key at a point, what stands beside it, and the status of each statement."""

    value: Said | None
    disputes: list[Said]
    conflicts: list[Said]
    statuses: dict[str, str]


class Current:
    """The answers that follow from the records of one scope."""

    def __init__(self, records: Sequence[Said]) -> None:
        self._records = sorted(records, key=lambda said: said.seq)
        self._by_id = {said.id: said for said in records}

    def status(self, said: Said, valid: int, known: int) -> tuple[str, bool]:
        """Return (status, holds) of a record at a point: holds means that recall may offer it."""
        if said.erased:
            return "erased", False
        if is_set_apart(said, known):
            return "quarantined", False
        if any(h.what == "rejected" and h.seq <= known for h in said.happenings):
            return "rejected", False
        if any(h.what == "retired" and h.seq <= known and h.until <= valid for h in said.happenings):
            return "retired", False
        if said.has_lapsed(valid, known):
            return "retired", False
        if self._successors(said, valid, known):
            return "superseded", False
        if said.admitted(known) > known:
            return "pending", False
        live = "conditional" if said.conditional else "active"
        if said.about is None or said.many or not said.covers(valid):
            return live, said.covers(valid)
        key = self.key(said.about, valid, known)
        status = key.statuses[said.id]
        return (live if status == "active" else status), key.value is said

    def key(self, about: tuple[str, str], valid: int, known: int) -> Key:
        """Return what holds of a key at a point."""
        stated = [s for s in self._records if s.about == about and not s.many and s.covers(valid)]
        stated = [s for s in stated if s.admitted(known) <= known]
        moments: list[tuple[int, int, Said]] = []
        for said in stated:
            since, over = said.admitted(known), self._ends(said, valid, known)
            if all(seq > since for seq in over):
                moments.append((since, 0, said))
                moments += [(seq, 1, said) for seq in over]
        value: Said | None = None
        disputes: list[Said] = []
        conflicts: list[Said] = []
        agreeing: list[Said] = []
        for _, ends, said in sorted(moments, key=lambda moment: moment[:2]):
            if value is not None and is_set_apart(value, known):
                value, conflicts, agreeing = None, [], []
            if ends:
                disputes = [d for d in disputes if d is not said]
                conflicts = [c for c in conflicts if c is not said]
                if said is value:
                    value, conflicts, agreeing = None, [], []
            elif value is None or said.may_change(value):
                conflicts = _conflicts(said, value, conflicts)
                agreeing = [a for a in (*agreeing, *disputes) if a.value == said.value]
                disputes = [d for d in disputes if d.value != said.value and not d.may_change(said)]
                value = said
            elif said.value == value.value:
                agreeing.append(said)
            else:
                disputes.append(said)
        if value is not None and is_set_apart(value, known):
            value, conflicts, agreeing = None, [], []
        # A dispute that its own side has replaced is history, and not a dispute any more.
        disputes = [d for d in disputes if not self._successors(d, valid, known)]
        statuses = {said.id: "superseded" for said in stated}
        statuses |= {said.id: "active" for said in (value, *agreeing) if said is not None}
        statuses |= {said.id: "disputed" for said in disputes}
        if value is None:
            return Key(None, [], [], statuses)
        return Key(value, _shown(disputes, known), _shown(conflicts, known), statuses)

    def _ends(self, said: Said, valid: int, known: int) -> list[int]:
        ends = [said.erased_seq] if said.erased else []
        for happening in said.happenings:
            if happening.seq > known:
                continue
            if happening.what == "rejected" or (happening.what == "retired" and happening.until <= valid):
                ends.append(happening.seq)
        # A successor under the same key speaks for itself.
        ends += [s.seq for s in self._successors(said, valid, known) if s.about != said.about or s.many]
        return ends

    def _successors(self, said: Said, valid: int, known: int) -> list[Said]:
        by = [self._by_id[h.by] for h in said.happenings if h.what == "superseded" and h.seq <= known]
        return [successor for successor in by if successor.covers(valid) and successor.admitted(known) <= known]


def is_set_apart(said: Said, known: int) -> bool:
    """Tell whether a record is quarantined, by the last word on it."""
    words = [h.what for h in said.happenings if h.seq <= known and h.what in ("quarantined", "released")]
    return bool(words) and words[-1] == "quarantined"


def _conflicts(said: Said, value: Said | None, conflicts: list[Said]) -> list[Said]:
    if value is None or value.rank != said.rank:
        return []
    displaced = (*conflicts, value)
    return [d for d in displaced if d.speaker.actor != said.speaker.actor and d.value != said.value]


def _shown(records: Sequence[Said], known: int) -> list[Said]:
    return [said for said in records if not said.erased and not is_set_apart(said, known)]
