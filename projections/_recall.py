"""
Recall: one partition per scope, each with its words, its vectors and the facets that filters ask for.

Another scope's rows cannot be candidates, because they are in another partition. Applying an event only queues it;
words are taken in when somebody asks, and vectors are made then too, up to a bound, or by `embed_all`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Protocol

import msgspec
import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from muniment.events import Batch, Forgotten, Location, SequenceGap

from ._lookups import ById, ScopeRows
from ._lookups import Rows as ScopeTable
from ._segments import SEGMENT_BITS, Fragment, Fragments, ReadBody, ScopeWords
from ._state import Memory, Place
from ._vectors import VectorIndex

VERSION: Final = 4
Mask = NDArray[np.bool_]


class Stored(Protocol):
    """The register, as far as recall stands on it: the rows are its rows."""

    @property
    def rows(self) -> ScopeTable: ...

    @property
    def memories(self) -> ById[Memory]: ...


class _SavedRows(msgspec.Struct, array_like=True):
    seq: int
    erased: list[tuple[str, list[int]]]
    chunks: list[tuple[int, int]]


class Partition:
    """What is derived from the rows of one scope, in sequence order."""

    def __init__(self, scope: str, stored: Stored, read_body: ReadBody, saved: Fragments) -> None:
        self._scope, self._stored = scope, stored
        self.words = ScopeWords(scope, lambda: self.rows, read_body, saved)
        self.erased = self.words.erased
        self.closed = False
        self.vectors: VectorIndex | None = None

    @property
    def rows(self) -> ScopeRows:
        """The memories."""
        return self._stored.rows[self._scope]

    def erase(self, row: int) -> None:
        """Drop all that the row's body left here."""
        self.words.erase(row)
        if self.vectors is not None:
            self.vectors.erase(row)


class Recall:
    """The partitions of all scopes."""

    def __init__(self, stored: Stored, read_body: ReadBody) -> None:
        self._stored, self._read_body = stored, read_body
        self._saved: Fragments = NothingSaved()
        self._saved_upto: dict[int, int] = {}
        self._partitions: dict[str, Partition] = {}
        self.seq = 0

    def partition(self, scope: str) -> Partition | None:
        """Return the partition of a scope, or None when it holds no memory."""
        found = self._partitions.get(scope)
        if found is None and scope in self._stored.rows:
            found = self._partitions[scope] = Partition(scope, self._stored, self._read_body, self._saved)
        return found

    def scopes(self) -> list[str]:
        """Return the scopes that hold memories."""
        return list(self._stored.rows)

    def apply(self, batch: Batch) -> None:
        """
        Erase what the batch forgets, once the register has taken it in; what was applied before is passed over.

        Raises:
            SequenceGap: it does not follow the last one.
        """
        if batch.head.seq <= self.seq:
            return
        if batch.events and batch.events[0].seq != self.seq + 1:
            raise SequenceGap(expected=self.seq + 1, actual=batch.events[0].seq)
        for event in batch.events:
            if isinstance(event.envelope, Forgotten):
                self.forget(event.envelope)
        self.seq = batch.head.seq

    def absorb(self, scopes: Iterable[str] | None = None) -> None:
        """Take in the queued words of some scopes, or of all."""
        for scope in list(self._stored.rows) if scopes is None else scopes:
            partition = self.partition(scope)
            if partition is not None:
                partition.words.absorb()

    def locate(self, row: int, scopes: Sequence[str]) -> bytes:
        """Return the id of a row, counted over the asked scopes laid end to end."""
        for scope in scopes:
            partition = self.partition(scope)
            if partition is None:
                continue
            if row < len(partition.rows):
                return partition.rows[row].id
            row -= len(partition.rows)
        raise IndexError(row)

    def digest(self) -> bytes:
        """Return a hash of all words and facets; vectors, being floating point, are left out."""
        self.absorb()
        hasher = blake3(_encode(self.seq))
        for scope in sorted(self._stored.rows):
            partition = self.partition(scope)
            if partition is not None:
                hasher.update(_encode((scope, len(partition.rows), sorted(partition.erased))))
                for digest in partition.words.digests():
                    hasher.update(digest)
        return hasher.digest()

    # --- saving -------------------------------------------------------------------------------------------------------

    def unsaved_chunks(self) -> Iterator[tuple[int, bytes]]:
        """Yield the chunks of words that no saved one equals, and what is derived from their memories' bodies."""
        upto = {chunk: self._end_of(chunk) for chunk in range((self.seq >> SEGMENT_BITS) + 1)}
        changed = {chunk for chunk, seq in upto.items() if self._saved_upto.get(chunk, -1) < seq}
        for partition in self._partitions.values():
            changed |= partition.words.changed()
        parts: dict[int, list[ScopeWords]] = {chunk: [] for chunk in sorted(changed)}
        for scope in sorted(self._stored.rows):
            found = self.partition(scope)
            for chunk in () if found is None else found.words.chunks():
                if found is not None and chunk in parts:
                    parts[chunk].append(found.words)
        for chunk, words in parts.items():
            fragments = [part.fragment(chunk) for part in words]
            yield chunk, _encode([fragment for fragment in fragments if fragment is not None])

    def saved_chunk(self, number: int) -> None:
        """Learn that a chunk was saved as it is."""
        self._saved_upto[number] = self._end_of(number)
        for partition in self._partitions.values():
            partition.words.saved(number)

    def save(self) -> bytes:
        """Return what outlives a forget: which rows were erased, and which chunks were saved up to where."""
        erased = [(scope, sorted(p.erased)) for scope, p in sorted(self._partitions.items()) if p.erased]
        return _encode(_SavedRows(self.seq, erased, sorted(self._saved_upto.items())))

    def take_from(self, saved: Fragments) -> None:
        """Take words from saved chunks where they fit the log, before anything is asked."""
        self._saved = saved

    def load(self, data: bytes, chunks: Collection[int]) -> None:
        """Become what was saved, over a register that was loaded; `chunks` are those that still have a key."""
        rows = _decode_rows(data)
        self.seq = rows.seq
        self._saved_upto = {chunk: seq for chunk, seq in rows.chunks if chunk in chunks}
        self._partitions = {}
        for scope, erased in rows.erased:
            found = self.partition(scope)
            if found is not None:
                found.erased.update(erased)

    def erase(self, identities: Iterable[bytes]) -> None:
        """Drop all that the memories' bodies left here."""
        for identity in identities:
            memory = self._stored.memories.get(identity)
            partition = None if memory is None else self.partition(memory.scope)
            if memory is not None and partition is not None:
                partition.erase(memory.row)
                self._saved_upto.pop(memory.seq >> SEGMENT_BITS, None)

    def _end_of(self, chunk: int) -> int:
        return min(self.seq, ((chunk + 1) << SEGMENT_BITS) - 1)

    def forget(self, envelope: Forgotten) -> None:
        """Drop all that the bodies of what is forgotten left here."""
        if envelope.closed_scope is not None:
            gone = self._partitions.pop(envelope.closed_scope, None)
            if gone is not None:
                gone.closed = True
            self._saved_upto = {}
        self.erase(identity for identity, _ in envelope.targets)


class NothingSaved:
    """No saved segments."""

    def take(self, chunk: int, scope: str) -> Fragment | None:  # noqa: ARG002
        """Return None."""
        return None


def location(place: Place) -> Location:
    """Return a place as the log names it."""
    return Location(place.segment, place.offset, place.length)


_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode_rows = msgspec.msgpack.Decoder(_SavedRows).decode
