"""Turns what the projections hold into what the public calls return."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from muniment.events import MemoryBody, Provenance, Rank, WordsBody, format_id, parse_data, to_datetime
from muniment.projections import FAR_FUTURE, Belief, BeliefsAt, FateKind, Fused, Memory, Projections, Proposal

from ._answers import BeliefView, Hit, ProposalView, Record
from ._points import Point

Fields = dict[str, object]


class Views:
    """Records as they stand at a point, over one set of projections."""

    def __init__(self, state: Projections) -> None:
        self._state = state
        self._seq = state.seq
        self._points: dict[Point, BeliefsAt] = {}

    def _at(self, at: Point) -> BeliefsAt:
        if self._seq != self._state.seq:
            self._points.clear()
            self._seq = self._state.seq
        found = self._points.get(at)
        if found is None:
            found = self._points[at] = self._state.beliefs.at(valid_at=at.valid_at, known=at.known)
        return found

    def record(self, memory: Memory, at: Point) -> Record:
        """Return a memory as it stands at the point."""
        return Record(**self._fields(memory, at))  # type: ignore[arg-type]  # fields of Record, built in one place

    def hit(self, memory: Memory, at: Point, fused: Fused) -> Hit:
        """Return a recalled memory with its score parts."""
        return Hit(
            **self._fields(memory, at),  # type: ignore[arg-type]  # as above
            score=fused.score,
            word_score=fused.word_score,
            dense_score=fused.dense_score,
            word_rank=fused.word_rank,
            dense_rank=fused.dense_rank,
            near_score=fused.near_score,
            why=_why(fused),
        )

    def belief(self, belief: Belief, at: Point) -> BeliefView:
        """Return a belief with what stands beside it."""
        return BeliefView(
            **self._fields(belief.memory, at),  # type: ignore[arg-type]  # as above
            disputes=tuple(self.record(m, at) for m in belief.disputes),
            conflicts=tuple(self.record(m, at) for m in belief.conflicts),
        )

    def proposal(self, proposal: Proposal) -> ProposalView:
        """Return a proposal with its reason, which is read from the log."""
        body = self._state.read_body(proposal.place)
        return ProposalView(
            id=format_id(proposal.id),
            seq=proposal.seq,
            recorded_at=to_datetime(proposal.recorded_at),
            actor=proposal.actor,
            start=format_id(proposal.start),
            end=format_id(proposal.end),
            type=proposal.link,
            score=round(proposal.score, 4),
            reason=body.reason if isinstance(body, WordsBody) else None,
        )

    def _fields(self, memory: Memory, at: Point) -> Fields:
        envelope = memory.envelope
        standing = self._at(at).standing(memory)
        fields: Fields = {
            "id": format_id(memory.id),
            "status": standing.status.value,
            "kind": envelope.kind,
            "origin": envelope.origin,
            "rank": Rank(envelope.rank).name.lower(),
            "provenance": Provenance(envelope.provenance).value,
            "valid_from": to_datetime(envelope.valid_from),
            "valid_to": _valid_to(memory, at.known),
            "recorded_at": to_datetime(memory.recorded_at),
            "seq": memory.seq,
            "scope": memory.scope,
            "actor": envelope.actor,
            "importance": envelope.importance,
            "derived_from": tuple(format_id(i) for i in envelope.derived_from),
            "supersedes": None if envelope.supersedes is None else format_id(envelope.supersedes),
            "superseded_by": self._superseded_by(memory, at),
            "many": envelope.many,
        }
        return fields | self._words(memory)

    def _words(self, memory: Memory) -> Fields:
        body = None if memory.erasure is not None else self._state.read_memory(memory.place)
        fields = _NO_WORDS if body is None else _body_fields(body)
        if memory.erasure is None:
            return fields if body is not None else fields | {"unreadable": self._state.unreadable.get(memory.place)}
        erasure = memory.erasure
        return fields | {
            "erased_at": to_datetime(erasure.recorded_at),
            "erased_by": erasure.actor,
            "erased_why": erasure.reason,
        }

    def _superseded_by(self, memory: Memory, at: Point) -> str | None:
        for fate in memory.fates:
            if fate.kind is FateKind.SUPERSEDED and fate.seq <= at.known and fate.by is not None:
                return format_id(fate.by)
        if memory.envelope.belief_key is None or memory.envelope.many:
            return None
        holder = self._at(at).resolution(memory, memory.envelope.belief_key).current
        if holder is None or holder.seq <= memory.seq or not memory.covers(at.valid_at):
            return None
        return format_id(holder.id)


_NO_WORDS: Fields = {
    "content": None,
    "about": None,
    "value": None,
    "source": None,
    "tags": (),
    "metadata": {},
    "applies_when": None,
    "reason": None,
}


def _body_fields(body: MemoryBody) -> Fields:
    about = None if body.subject is None or body.attribute is None else (body.subject, body.attribute)
    return {
        "content": body.content,
        "about": about,
        "value": None if body.value is None else parse_data(body.value),
        "source": body.source,
        "tags": body.tags,
        "metadata": {} if body.metadata is None else cast("dict[str, object]", parse_data(body.metadata)),
        "applies_when": body.applies_when,
        "reason": body.reason,
    }


def _valid_to(memory: Memory, known: int) -> datetime | None:
    ends = [memory.valid_until]
    ends += [fate.until for fate in memory.fates if fate.kind is FateKind.RETIRED and fate.seq <= known]
    end = min(ends)
    return None if end >= FAR_FUTURE else to_datetime(end)


def _why(fused: Fused) -> str:
    parts: list[str] = []
    if fused.word_rank is not None:
        parts.append(f"words, rank {fused.word_rank}")
    elif fused.word_score is not None:
        parts.append("words")
    if fused.dense_rank is not None:
        parts.append(f"meaning, rank {fused.dense_rank}")
    if not parts:
        parts.append("beside a turn that fits")
    return "; ".join(parts)
