"""
Recall: one partition per scope, each with its words, its vectors and the facets that filters ask for.

Another scope's rows cannot be candidates, because they are in another partition. Applying an event only queues it;
words are taken in when somebody asks, and vectors are made then too, up to a bound, or by `embed_all`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import msgspec
import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from muniment.events import Batch, Forgotten, ProjectionStale, SequenceGap

from ._bodies import Bodies, ReadBody
from ._lookups import ById, ScopeRows
from ._lookups import Rows as ScopeTable
from ._segments import SEGMENT_BITS, Fragment, Fragments, ScopeWords
from ._state import Memory
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

    def __init__(self, scope: str, stored: Stored, bodies: Bodies, saved: Fragments) -> None:
        self.scope, self._stored, self.bodies = scope, stored, bodies
        self.words = ScopeWords(scope, lambda: self.rows, bodies.read_again, saved)
        self.erased = self.words.erased
        self.closed = False
        self.vectors: VectorIndex | None = None

    @property
    def rows(self) -> ScopeRows:
        """The memories."""
        return self._stored.rows[self.scope]

    def erase(self, row: int) -> None:
        """Drop all that the row's body left here."""
        self.words.erase(row)
        if self.vectors is not None:
            self.vectors.erase(row)


class Recall:
    """The partitions of all scopes."""

    def __init__(self, stored: Stored, read_body: ReadBody) -> None:
        self._stored = stored
        self._bodies = Bodies(read_body)
        self._saved: Fragments = NothingSaved()
        self._saved_upto: dict[int, int] = {}
        self._partitions: dict[str, Partition] = {}
        self.seq = 0

    def partition(self, scope: str) -> Partition | None:
        """Return the partition of a scope, or None when it holds no memory."""
        found = self._partitions.get(scope)
        if found is None and scope in self._stored.rows:
            found = self._partitions[scope] = Partition(scope, self._stored, self._bodies, self._saved)
        return found

    def scopes(self) -> list[str]:
        """Return the scopes that hold memories."""
        return list(self._stored.rows)

    def loaded(self) -> list[Partition]:
        """Return the partitions that somebody has asked for, by their scopes."""
        return [self._partitions[scope] for scope in sorted(self._partitions)]

    def apply(self, batch: Batch) -> None:
        """
        Erase what the batch forgets, once the register has taken it in; what was applied before is passed over.

        Raises:
            SequenceGap: it does not follow the last one.
        """
        if batch.head.seq <= self.seq:
            return
        if batch.events and batch.events[0].header.seq != self.seq + 1:
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
        return WordsDigest(self).digest()

    # --- saving -------------------------------------------------------------------------------------------------------

    def unsaved(self) -> list[int]:
        """Return the chunks of words that no saved one equals."""
        upto = {chunk: self._end_of(chunk) for chunk in range(self.chunks)}
        changed = {chunk for chunk, seq in upto.items() if self._saved_upto.get(chunk, -1) < seq}
        for partition in self._partitions.values():
            changed |= partition.words.changed()
        return sorted(changed)

    def unsaved_chunks(self) -> Iterator[tuple[int, bytes]]:
        """Yield what `unsaved` names, and what is derived from their memories' bodies."""
        for chunk in self.unsaved():
            yield chunk, self.chunk(chunk)

    def saved_chunk(self, number: int, *, release: bool = False) -> None:
        """Learn that a chunk was saved as it is; `release` says that it will not be asked any more."""
        self._saved_upto[number] = self._end_of(number)
        for partition in self._partitions.values():
            partition.words.saved(number, release=release)

    def absorb_chunk(self, number: int) -> None:
        """Take in the words of one chunk, in all scopes."""
        for partition in self._sorted():
            partition.words.absorb((number,))

    def has_words(self, scope: str, chunk: int) -> bool:
        """Tell whether a chunk's words of a scope were made, in memory or saved."""
        partition = self._partitions.get(scope)
        return chunk in self._saved_upto or (partition is not None and partition.words.is_loaded(chunk))

    @property
    def chunks(self) -> int:
        """How many chunks of events there are."""
        return (self.seq >> SEGMENT_BITS) + 1

    def chunk(self, number: int) -> bytes:
        """Return a chunk of words as it is saved; it is made where it was not."""
        found = (partition.words.fragment(number) for partition in self._sorted())
        return _encode([fragment for fragment in found if fragment is not None])

    def differs(self, number: int) -> bool:
        """Tell whether what was absorbed of a chunk is not what it was taken from."""
        return any(number in partition.words.changed() for partition in self._partitions.values())

    def unsave(self, chunks: Collection[int] | None = None) -> None:
        """Learn that chunks, or all, are not saved after all."""
        for number in list(self._saved_upto) if chunks is None else chunks:
            self._saved_upto.pop(number, None)

    def trust(self, upto: Mapping[int, int]) -> None:
        """Learn that chunks were saved, each up to a sequence number."""
        self._saved_upto.update(upto)

    @property
    def saved_upto(self) -> Mapping[int, int]:
        """Which chunks were saved, each up to which sequence number."""
        return self._saved_upto

    def release(self, number: int) -> None:
        """Let go of a chunk's words, which are made again when somebody asks."""
        for partition in self._partitions.values():
            partition.words.release(number)
        self._saved.release(number)

    def inherit_vectors(self, other: Recall) -> bool:
        """Take over the vectors of another recall where its rows are the same, and tell whether all of them were."""
        same = True
        for scope, partition in other._partitions.items():
            mine = self.partition(scope)
            if partition.vectors is None:
                continue
            if mine is not None and mine.erased == partition.erased and _same_rows(mine, partition):
                mine.vectors = partition.vectors
            else:
                same = False
        return same

    def _sorted(self) -> list[Partition]:
        found = (self.partition(scope) for scope in sorted(self._stored.rows))
        return [partition for partition in found if partition is not None]

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
        self._bodies.forget()
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

    def release(self, chunk: int) -> None:
        """Do nothing."""


class WordsDigest:
    """
    The digest of a recall, made chunk by chunk, so that neither all words are in memory nor its owner stands still.

    What changed after it was made is made again. With `only_made`, words that nobody has made yet are left out.
    """

    def __init__(self, recall: Recall, *, only_made: bool = False) -> None:
        self._recall, self._only_made = recall, only_made
        self._made: dict[tuple[str, int], tuple[tuple[int, int, int], bytes]] = {}

    def waiting(self) -> list[int]:
        """Return the chunks of which something is to be made, or made again."""
        return sorted({chunk for _, chunk, _ in self._waiting()})

    def make(self, number: int) -> None:
        """Make what waits in one chunk."""
        for partition, chunk, state in list(self._waiting(number)):
            self._made[partition.scope, chunk] = state, partition.words.digest_of(chunk)
        self._recall._saved.release(number)

    def digest(self, instead: WordsDigest | None = None) -> bytes:
        """Return the digest of the whole, having made what still waits; `instead` has what is left out here."""
        for number in self.waiting():
            self.make(number)
        hasher = blake3(_encode(self._recall.seq))
        for partition in self._recall._sorted():
            hasher.update(_encode((partition.scope, len(partition.rows), sorted(partition.erased))))
            for chunk in partition.words.chunks():
                found = self._made.get((partition.scope, chunk))
                if found is None and instead is not None:
                    found = instead._made.get((partition.scope, chunk))
                hasher.update(b"" if found is None else found[1])
        return hasher.digest()

    def _waiting(self, only: int | None = None) -> Iterator[tuple[Partition, int, tuple[int, int, int]]]:
        for partition in self._recall._sorted():
            for chunk, state in partition.words.states().items():
                known = self._made.get((partition.scope, chunk))
                if only not in (None, chunk) or (known is not None and known[0] == state):
                    continue
                if known is not None or not self._only_made or self._recall.has_words(partition.scope, chunk):
                    yield partition, chunk, state


def _same_rows(one: Partition, other: Partition) -> bool:
    # A key slot is one memory's for ever.
    count = len(one.rows)
    every = np.arange(count)
    try:
        return count == len(other.rows) and np.array_equal(
            one.rows.numbers_of("slot", every), other.rows.numbers_of("slot", every)
        )
    except ProjectionStale:
        return False  # what was saved of the other one is damaged


_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode_rows = msgspec.msgpack.Decoder(_SavedRows).decode
