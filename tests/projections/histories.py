"""Histories made in memory: events as followers see them, without a log."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.events import (
    Batch,
    Body,
    Digest,
    Envelope,
    Event,
    EventHeader,
    Forgotten,
    Head,
    Linked,
    Location,
    MemoryBody,
    Quarantined,
    Released,
    Remembered,
    Retired,
    Reviewed,
    Superseded,
    Unlinked,
)
from muniment.projections import Memory, Projections

STEP = 10
"""Microseconds between two events."""


class History:
    """A log of events in memory, with its projections. Ids are the sequence numbers."""

    def __init__(self) -> None:
        self.bodies: dict[int, Body] = {}
        self.state = Projections(lambda event: self.bodies.get(event.seq), lambda place: self.bodies.get(place.offset))

    @property
    def memories(self) -> list[Memory]:
        """What was recorded, in order."""
        return sorted(self.state.register.memories.values(), key=lambda memory: memory.seq)

    def append(self, envelope: Envelope, body: Body | None = None) -> int:
        """Append one event, and return its sequence number."""
        seq = self.state.seq + 1
        header = EventHeader(1, envelope.TYPE, 0, seq, seq * STEP, seq.to_bytes(16, "big"), 1, seq, b"", b"", b"", 0, 0)
        if body is not None:
            self.bodies[seq] = body
        event = Event(header, envelope, Location(0, seq, 1), Digest(seq.to_bytes(32, "big")), b"")
        self.state.apply(Batch([event], Head(b"", seq, b"", 0, 0, recorded_at=seq * STEP, next_slot=seq + 1)))
        return seq

    def remember(
        self,
        content: str = "x",
        *,
        scope: str = "s",
        rank: int = 1,
        origin: str = "agent:a",
        about: str | None = None,
        value: str | None = None,
        many: bool = False,
        valid_from: int = 0,
        valid_to: int | None = None,
        conditional: bool = False,
        pending: bool = False,
        derived_from: Sequence[Memory] = (),
        links: Sequence[tuple[str, Memory]] = (),
        supersedes: Memory | None = None,
        body: MemoryBody | None = None,
    ) -> Memory:
        """Record a memory; its digests are the texts themselves."""
        kind = Remembered if supersedes is None else Superseded
        envelope = kind(
            scope=scope, actor=origin, origin=origin, rank=rank, kind="fact", provenance="observation",
            valid_from=valid_from, valid_to=valid_to, text_key=content.encode(), form=1,
            belief_key=None if about is None else about.encode(), value_key=None if value is None else value.encode(),
            many=many, conditional=conditional, pending=pending, derived_from=tuple(m.id for m in derived_from),
            links=tuple((link, end.id) for link, end in links),
            supersedes=None if supersedes is None else supersedes.id,
        )  # fmt: skip
        words = body or MemoryBody(content=content, subject=about, attribute=None if about is None else "is")
        seq = self.append(envelope, words)
        return self.state.register.memories[seq.to_bytes(16, "big")]

    def retire(self, memory: Memory, valid_to: int | None = None) -> None:
        """End a memory's validity."""
        self.append(Retired(scope=memory.scope, actor="u", origin="u", rank=3, target=memory.id, valid_to=valid_to))

    def review(self, memory: Memory, *, approve: bool) -> None:
        """Approve or reject a memory."""
        self.append(Reviewed(scope=memory.scope, actor="u", origin="u", rank=3, target=memory.id, approve=approve))

    def set_apart(self, memory: Memory, *, release: bool = False) -> None:
        """Quarantine a memory, or put it back."""
        kind = Released if release else Quarantined
        self.append(kind(scope=memory.scope, actor="u", origin="u", rank=3, targets=(memory.id,)))

    def forget(self, *memories: Memory, close: str | None = None) -> None:
        """Erase memories, or a whole scope."""
        for memory in memories:
            self.bodies.pop(memory.seq, None)
        self.append(
            Forgotten(
                scope="s", actor="u", origin="u", rank=3, targets=tuple((m.id, m.slot) for m in memories),
                tombstones=(),
                everyone=True, reason="asked", key_epoch=1, closed_scope=close,
            )
        )  # fmt: skip

    def link(self, start: Memory, end: Memory, kind: str, valid_from: int = 0, valid_to: int | None = None) -> None:
        """Link two memories."""
        self.append(
            Linked(
                scope=start.scope, actor="u", origin="u", rank=1, start=start.id, end=end.id, link=kind,
                valid_from=valid_from, valid_to=valid_to,
            )
        )  # fmt: skip

    def unlink(self, start: Memory, end: Memory, kind: str) -> None:
        """End a link."""
        self.append(
            Unlinked(scope=start.scope, actor="u", origin="u", rank=1, start=start.id, end=end.id, link=kind)
        )  # fmt: skip
