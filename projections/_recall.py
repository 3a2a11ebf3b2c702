"""
Recall: one partition per scope, each with its words, its vectors and the facets that filters ask for.

Another scope's rows cannot be candidates, because they are in another partition. Applying an event only queues it;
words are taken in when somebody asks, and vectors are made then too, up to a bound, or by `embed_all`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, cast

import msgspec
import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from muniment.events import Batch, Event, Forgotten, Location, MemoryBody, MemoryEnvelope, SequenceGap

from ._marks import marks_of, thread_of
from ._state import Place
from ._threads import Threads
from ._tokens import analyze_query
from ._vectors import VectorIndex
from ._words import WordIndex, WordStats

VERSION: Final = 2
Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]
Scores = NDArray[np.float32]
ReadBody = Callable[[Place], MemoryBody | None]


class Facets(msgspec.Struct, array_like=True, frozen=True):
    """What filters may ask of a row, and what dies with its body."""

    tags: tuple[str, ...] = ()
    metadata: bytes | None = None
    thread: str | None = None


_NO_FACETS: Final = Facets()


class Arm(NamedTuple):
    """The candidates of one arm, as rows of the asked scopes laid end to end, and their scores."""

    rows: Rows
    scores: Scores


class _SavedPartition(msgspec.Struct, array_like=True):
    scope: str
    ids: list[bytes]
    seqs: list[int]
    slots: list[int]
    places: list[Place]
    erased: list[int]


class _SavedContent(msgspec.Struct, array_like=True):
    scope: str
    words: bytes
    facets: list[Facets]


class Partition:
    """The rows of one scope, in sequence order."""

    def __init__(self) -> None:
        self.ids: list[bytes] = []
        self.seqs: list[int] = []
        self.slots: list[int] = []
        self.places: list[Place] = []
        self.erased: set[int] = set()
        self.words = WordIndex()
        self.facets: list[Facets] = []
        self.threads = Threads()
        self.vectors: VectorIndex | None = None

    def upto(self, known: int) -> int:
        """Return how many rows were recorded up to a sequence number."""
        return bisect_right(self.seqs, known)

    def absorb(self, read_body: ReadBody) -> None:
        """Take in the words of the rows that were only queued."""
        start = self.words.rows
        if start == len(self.ids):
            return
        texts: list[str] = []
        marks: list[list[str]] = []
        for row in range(start, len(self.ids)):
            body = None if row in self.erased else read_body(self.places[row])
            texts.append("" if body is None else indexed_text(body))
            marks.append([] if body is None else marks_of(body))
            self.facets.append(_NO_FACETS if body is None else Facets(body.tags, body.metadata, thread_of(body)))
        self.words.add_many(texts, marks)
        self.threads.extend(facets.thread for facets in self.facets[self.threads.rows :])
        for row in range(start, len(self.ids)):
            if row in self.erased:
                self.words.erase(row)

    def erase(self, row: int) -> None:
        """Drop all that the row's body left here."""
        self.erased.add(row)
        if row < self.words.rows:
            self.words.erase(row)
            self.facets[row] = _NO_FACETS
            self.threads.erase(row)
        if self.vectors is not None:
            self.vectors.erase(row)


class Recall:
    """The partitions of all scopes."""

    def __init__(self, read_body: ReadBody) -> None:
        self._read_body = read_body
        self.seq = 0
        self.partitions: dict[str, Partition] = {}
        self._rows: dict[bytes, tuple[str, int]] = {}

    def apply(self, batch: Batch) -> None:
        """
        Queue the batch's memories, and erase what it forgets; a batch that was applied before is passed over.

        Raises:
            SequenceGap: it does not follow the last one.
        """
        if batch.head.seq <= self.seq:
            return
        if batch.events and batch.events[0].seq != self.seq + 1:
            raise SequenceGap(expected=self.seq + 1, actual=batch.events[0].seq)
        for event in batch.events:
            if isinstance(event.envelope, MemoryEnvelope):
                self._queue(event, event.envelope)
            elif isinstance(event.envelope, Forgotten):
                self._forget(event.envelope)
        self.seq = batch.head.seq

    def absorb(self, scopes: Iterable[str] | None = None) -> None:
        """Take in the queued words of some scopes, or of all."""
        for scope in list(self.partitions) if scopes is None else scopes:
            partition = self.partitions.get(scope)
            if partition is not None:
                partition.absorb(self._read_body)

    def find_words(self, query: str, scopes: Sequence[str], masks: Sequence[Mask | None], known: int) -> Arm:
        """Return the rows that hold a word of the query and that the masks allow."""
        self.absorb(scopes)
        terms = list(analyze_query(query).terms)
        if not terms:
            return _EMPTY
        parts = [(self.partitions.get(scope), mask) for scope, mask in zip(scopes, masks, strict=True)]
        stats = WordStats(0, 0, (0,) * len(terms))
        for partition, _ in parts:
            if partition is not None:
                stats = stats.plus(partition.words.statistics(terms, partition.upto(known)))
        found: list[tuple[Rows, Scores]] = []
        base = 0
        for partition, mask in parts:
            if partition is None:
                continue
            rows, scores = partition.words.scores(terms, stats, partition.upto(known))
            if mask is not None:
                kept = mask[rows]
                rows, scores = rows[kept], scores[kept]
            found.append((rows + base, scores))
            base += len(partition.ids)
        return _joined(found)

    def find_meaning(
        self, query: NDArray[np.float32], scopes: Sequence[str], masks: Sequence[Mask | None], known: int, depth: int
    ) -> Arm:
        """Return the rows nearest to a query vector among those that the masks allow, at most `depth` a scope."""
        found: list[tuple[Rows, Scores]] = []
        base = 0
        for scope, mask in zip(scopes, masks, strict=True):
            partition = self.partitions.get(scope)
            if partition is None:
                continue
            if partition.vectors is not None:
                upto = partition.upto(known)
                allowed = None if mask is None else mask[:upto]
                rows, scores = partition.vectors.search(query, allowed=allowed, upto=upto, k=depth)
                found.append((rows + base, scores))
            base += len(partition.ids)
        return _joined(found)

    def locate(self, row: int, scopes: Sequence[str]) -> bytes:
        """Return the id of a row, counted over the asked scopes laid end to end."""
        for scope in scopes:
            partition = self.partitions.get(scope)
            if partition is None:
                continue
            if row < len(partition.ids):
                return partition.ids[row]
            row -= len(partition.ids)
        raise IndexError(row)

    def digest(self) -> bytes:
        """Return a hash of all words, facets and rows; vectors, being floating point, are left out."""
        self.absorb()
        hasher = blake3()
        hasher.update(self.save_rows())
        for scope in sorted(self.partitions):
            partition = self.partitions[scope]
            hasher.update(partition.words.digest())
            hasher.update(_encode(partition.facets))
        return hasher.digest()

    def save_rows(self) -> bytes:
        """Return what outlives a forget: ids and places."""
        return _encode(
            (
                self.seq,
                [
                    _SavedPartition(scope, p.ids, p.seqs, p.slots, p.places, sorted(p.erased))
                    for scope, p in sorted(self.partitions.items())
                ],
            )
        )

    def save_content(self) -> bytes:
        """Return what a forget must destroy: words and facets."""
        self.absorb()
        return _encode([_SavedContent(s, p.words.dump(), p.facets) for s, p in sorted(self.partitions.items())])

    def load_rows(self, data: bytes) -> None:
        """Become the rows that were saved; all words are queued."""
        self.seq, saved = _decode_rows(data)
        self.partitions, self._rows = {}, {}
        for part in saved:
            partition = self.partitions[part.scope] = Partition()
            partition.ids, partition.seqs, partition.slots = part.ids, part.seqs, part.slots
            partition.places, partition.erased = part.places, set(part.erased)
            for row, identity in enumerate(part.ids):
                self._rows[identity] = (part.scope, row)

    def load_content(self, data: bytes) -> None:
        """Take the words that were saved with these rows."""
        for part in _decode_content(data):
            partition = self.partitions[part.scope]
            partition.words = WordIndex.load(part.words)
            partition.facets = part.facets
            partition.threads.extend(facets.thread for facets in part.facets)

    def _queue(self, event: Event, envelope: MemoryEnvelope) -> None:
        partition = self.partitions.get(envelope.scope)
        if partition is None:
            partition = self.partitions[envelope.scope] = Partition()
        self._rows[event.header.id] = (envelope.scope, len(partition.ids))
        partition.ids.append(event.header.id)
        partition.seqs.append(event.seq)
        partition.slots.append(event.header.slot)
        partition.places.append(Place(*event.where))

    def erase(self, identities: Iterable[bytes]) -> None:
        """Drop all that the memories' bodies left here."""
        for identity in identities:
            if identity in self._rows:
                scope, row = self._rows[identity]
                self.partitions[scope].erase(row)

    def _forget(self, envelope: Forgotten) -> None:
        self.erase(identity for identity, _ in envelope.targets)
        if envelope.closed_scope is not None and envelope.closed_scope in self.partitions:
            for identity in self.partitions.pop(envelope.closed_scope).ids:
                del self._rows[identity]


def indexed_text(body: MemoryBody) -> str:
    """Return the text of a memory that search reads: its content, then its subject and attribute."""
    about = " ".join(part for part in (body.subject, body.attribute) if part)
    return f"{body.content}\n{about}" if about else body.content


def location(place: Place) -> Location:
    """Return a place as the log names it."""
    return Location(place.segment, place.offset, place.length)


def _joined(found: list[tuple[Rows, Scores]]) -> Arm:
    if not found:
        return _EMPTY
    return Arm(np.concatenate([rows for rows, _ in found]), np.concatenate([scores for _, scores in found]))


_EMPTY: Final = Arm(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32))
_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode_rows = msgspec.msgpack.Decoder(tuple[int, list[_SavedPartition]]).decode
_decode_content = cast("Callable[[bytes], list[_SavedContent]]", msgspec.msgpack.Decoder(list[_SavedContent]).decode)
