"""
Tombstones: the keyed digests of values that may not come back, and who may state them all the same.

A tombstone binds its scope and those below. One set by the user or the operator refuses everyone until it is lifted;
one set by an agent refuses all ranks up to its setter's; a retired or rejected value refuses the ranks below whoever
retired or rejected it.
"""

from __future__ import annotations

from typing import Final

import msgspec
from blake3 import blake3

from muniment.events import (
    Batch,
    Forgotten,
    LedgerTombstone,
    Lifted,
    MemoryEnvelope,
    Retired,
    Reviewed,
    RollbackAccepted,
    SequenceGap,
    covers,
)

from ._state import FAR_FUTURE, LATEST

VERSION: Final = 1
TEXT, VALUE, KEY = "text", "value", "key"


class Tombstone(msgspec.Struct, array_like=True):
    """
    One refused value. `domain` says what the digest is of: a whole text, a value under a belief key, or a belief key.

    `how` is forgotten, retired or rejected; `rank` is the setter's; `event` is what a lift names.
    """

    domain: str
    digest: bytes
    belief_key: bytes | None
    form: int
    scope: str
    how: str
    everyone: bool
    rank: int
    seq: int
    recorded_at: int
    event: bytes
    actor: str
    reason: str
    lifted_seq: int = FAR_FUTURE

    def refuses(self, scope: str, rank: int, known: int) -> bool:
        """Tell whether a write of that rank in that scope is refused, seen from a sequence number."""
        if not self.seq <= known < self.lifted_seq or not covers(self.scope, scope):
            return False
        if self.how == "forgotten":
            return self.everyone or rank <= self.rank
        return rank < self.rank


class Tombstones:
    """The set of refused values, by digest."""

    def __init__(self) -> None:
        self.seq = 0
        self.all: list[Tombstone] = []
        self._by_digest: dict[tuple[str, bytes], list[Tombstone]] = {}

    def apply(self, batch: Batch) -> None:
        """
        Take in the next batch; one that was applied before is passed over.

        Raises:
            SequenceGap: it does not follow the last one.
        """
        if batch.head.seq <= self.seq:
            return
        if batch.events and batch.events[0].header.seq != self.seq + 1:
            raise SequenceGap(expected=self.seq + 1, actual=batch.events[0].seq)
        for event in batch.events:
            envelope = event.envelope
            if isinstance(envelope, MemoryEnvelope):
                continue
            at = (event.seq, event.recorded_at, event.header.id)
            if isinstance(envelope, Forgotten):
                self._set(envelope, at, "forgotten", everyone=envelope.everyone, reason=envelope.reason)
                if envelope.closed_scope is not None:
                    self.drop_scope(envelope.closed_scope, event.seq)
            elif isinstance(envelope, Retired):
                self._set(envelope, at, "retired", everyone=False, reason="retired")
            elif isinstance(envelope, Reviewed):
                self._set(envelope, at, "rejected", everyone=False, reason="rejected at review")
            elif isinstance(envelope, Lifted):
                self._lift(envelope.target, event.seq)
            elif isinstance(envelope, RollbackAccepted):
                self._take_ledger(envelope, at)
        self.seq = batch.head.seq

    def find(self, domain: str, digest: bytes, *, scope: str, rank: int, known: int = LATEST) -> Tombstone | None:
        """Return the tombstone that refuses the digest, or None."""
        for tombstone in self._by_digest.get((domain, digest), ()):
            if tombstone.refuses(scope, rank, known):
                return tombstone
        return None

    def digest(self) -> bytes:
        """Return a hash of the whole set."""
        return blake3(self.save()).digest()

    def save(self) -> bytes:
        """Return the set as bytes."""
        return _encode((self.seq, self.all))

    def load(self, data: bytes) -> None:
        """Become what was saved."""
        self.seq, self.all = _decode(data)
        self._by_digest = {}
        for tombstone in self.all:
            self._index(tombstone)

    def _set(
        self,
        envelope: Forgotten | Retired | Reviewed,
        at: tuple[int, int, bytes],
        how: str,
        *,
        everyone: bool,
        reason: str,
    ) -> None:
        actor = envelope.principal or envelope.actor
        for domain, digest, belief_key, form in envelope.tombstones:
            self._add(
                Tombstone(
                    domain, digest, belief_key, form, envelope.scope, how, everyone, envelope.rank, *at, actor, reason
                )
            )

    def _take_ledger(self, envelope: RollbackAccepted, at: tuple[int, int, bytes]) -> None:
        seq, _, event = at
        for domain, digest, belief_key, form, scope, everyone, rank, recorded_at in envelope.tombstones:
            self._add(
                Tombstone(
                    domain,
                    digest,
                    belief_key,
                    form,
                    scope,
                    "forgotten",
                    everyone,
                    rank,
                    seq,
                    recorded_at,
                    event,
                    envelope.actor,
                    "forgotten before an older log was put back",
                )
            )

    def drop_scope(self, scope: str, seq: int) -> None:
        """Drop what was refused in a scope that was forgotten as a whole at a sequence number."""
        # The events that set these cannot be opened any more; the scope is closed to every write instead.
        self.all = [t for t in self.all if t.scope != scope or t.seq == seq]
        self._by_digest = {}
        for tombstone in self.all:
            self._index(tombstone)

    def _lift(self, event: bytes, seq: int) -> None:
        for tombstone in self.all:
            if tombstone.event == event:
                tombstone.lifted_seq = min(tombstone.lifted_seq, seq)

    def _add(self, tombstone: Tombstone) -> None:
        self.all.append(tombstone)
        self._index(tombstone)

    def _index(self, tombstone: Tombstone) -> None:
        self._by_digest.setdefault((tombstone.domain, tombstone.digest), []).append(tombstone)


def from_ledger(entries: tuple[LedgerTombstone, ...]) -> list[Tombstone]:
    """Return the shred ledger's tombstones, for a log that was put back from before they were set."""
    return [
        Tombstone(
            domain, digest, belief_key, form, scope, "forgotten", everyone, rank, 0, recorded_at, b"", "", "forgotten"
        )
        for domain, digest, belief_key, form, scope, everyone, rank, recorded_at in entries
    ]


_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder(tuple[int, list[Tombstone]]).decode
