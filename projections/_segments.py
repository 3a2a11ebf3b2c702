"""
The words of one scope in segments, each of the memories of 4096 consecutive events.

Segments end at the same events in every scope, so that what was derived from a memory lies in the one chunk that its
sequence number names, and a forget destroys no more than that. A segment is taken from a saved chunk where there is
one, and from the log otherwise; one that is full is packed, and unpacked when a row of it is erased.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from muniment.events import MemoryBody, ProjectionStale

from ._bodies import ReadBody
from ._facet_index import FacetIndex, Mask
from ._facets import NO_FACETS, Facets
from ._joined import JoinedWords
from ._lookups import ScopeRows
from ._marks import marks_of, thread_of
from ._scoring import Scores, score
from ._threads import Threads
from ._words import PackedWords, WordIndex, WordStats

SEGMENT_BITS: Final = 12
_TAKEN_AT_ONCE: Final = 1 << 20
"""Characters of text after which a piece of a segment is taken into its words."""


class Fragment(msgspec.Struct, array_like=True, frozen=True):
    """A segment as it is saved: rows `first` to `first + rows - 1` of a scope; `hash` is the last row's event's."""

    scope: str
    first: int
    rows: int
    hash: bytes
    words: bytes
    facets: list[tuple[int, Facets]]


class Fragments(Protocol):
    """Where saved segments are taken from."""

    def take(self, chunk: int, scope: str) -> Fragment | None:
        """Return a saved segment, or None when it is not there, or not as it was written."""
        ...

    def release(self, chunk: int) -> None:
        """Let go of what was read of a chunk; it can be taken again."""
        ...


class Segment:
    """The words and facets of some consecutive rows; `changed` says that no saved chunk holds them so."""

    def __init__(self, first: int) -> None:
        self.first, self.changed = first, True
        self.words: WordIndex | PackedWords = WordIndex()
        self.facets: dict[int, Facets] = {}

    @property
    def end(self) -> int:
        """The row after the last one."""
        return self.first + self.words.rows

    @property
    def is_packed(self) -> bool:
        """Tell whether the words are in the form that does not change."""
        return isinstance(self.words, PackedWords)

    def unpacked(self) -> WordIndex:
        """Return the words in the form that can change."""
        if isinstance(self.words, PackedWords):
            self.words = WordIndex.load(self.words.dump)
        return self.words

    def packed(self) -> PackedWords:
        """Return the words in the form that is small."""
        if isinstance(self.words, WordIndex):
            self.words = PackedWords(self.words.dump())
        return self.words

    def erase(self, row: int) -> None:
        """Drop all that the row's body left here."""
        self.unpacked().erase(row - self.first)
        self.facets.pop(row - self.first, None)
        self.changed = True

    def fragment(self, scope: str, last_hash: bytes) -> Fragment:
        """Return the segment as it is saved."""
        dump = self.words.dump if isinstance(self.words, PackedWords) else self.words.dump()
        return Fragment(scope, self.first, self.words.rows, last_hash, dump, sorted(self.facets.items()))


class ScopeWords:
    """The segments of one scope, by chunk."""

    def __init__(self, scope: str, rows: Callable[[], ScopeRows], read_body: ReadBody, saved: Fragments) -> None:
        self._scope, self._rows, self._read_body, self._saved = scope, rows, read_body, saved
        self._segments: dict[int, Segment] = {}
        self._chunks: list[int] = []
        self._firsts: list[int] = []
        self._bounded = 0
        self._threads = Threads()
        self._facets = FacetIndex()
        self._closed: JoinedWords | None = None
        self._waiting: set[int] = set()
        """Closed chunks of which rows were erased since they were joined."""
        self._settled = 0
        """Rows below which all words are in memory, and packed unless they are of the newest chunk."""
        self.erased: set[int] = set()

    def chunks(self) -> Mapping[int, tuple[int, int]]:
        """Return the first row of each chunk, and the row after its last."""
        self._bound()
        ends = [*self._firsts[1:], self._bounded]
        return {chunk: (first, end) for chunk, first, end in zip(self._chunks, self._firsts, ends, strict=True)}

    def absorb(self, chunks: Iterable[int] | None = None) -> None:
        """Take in the words of some chunks, or of all."""
        self._bound()
        if chunks is not None:
            self._absorb(chunks)
        elif self._settled < self._bounded:
            self._absorb(self._chunks[max(bisect_right(self._firsts, max(self._settled - 1, 0)) - 1, 0) :])
            self._settled = self._bounded

    def _absorb(self, chunks: Iterable[int]) -> None:
        for chunk in chunks:
            number = bisect_left(self._chunks, chunk)
            if number == len(self._chunks) or self._chunks[number] != chunk:
                continue
            is_newest = number == len(self._chunks) - 1
            first, end = self._firsts[number], self._bounded if is_newest else self._firsts[number + 1]
            segment = self._segments.get(chunk)
            if segment is None:
                segment = self._segments[chunk] = self._load(chunk, first, end) or Segment(first)
                self._reopen(number)
            if segment.end < end:
                if segment.is_packed:
                    self._reopen(number)
                self._extend(segment, end)
            if not is_newest:
                segment.packed()

    def _reopen(self, number: int) -> None:
        """Learn that a closed chunk changes by more than erasures."""
        if self._closed is not None and number < len(self._closed.parts):
            if number == len(self._closed.parts) - 1:
                self._closed.pop()
                self._waiting.discard(number)
            else:
                self._closed = None
                self._waiting.clear()

    def erase(self, row: int) -> None:
        """Drop all that the row's body left here; what is not loaded yet is corrected when it is."""
        self.erased.add(row)
        self._facets.erase(row)
        self._bound()
        number = bisect_right(self._firsts, row) - 1
        segment = self._segments.get(self._chunks[number])
        if segment is not None and row < segment.end:
            segment.erase(row)
            self._settled = 0
            if self._closed is not None and number < len(self._closed.parts):
                # Its words are not put together again for each row of many: that waits for somebody who asks.
                self._closed.erase(number, row - segment.first)
                self._waiting.add(number)
        if row < self._threads.rows:
            self._threads.erase(row)

    def changed(self) -> set[int]:
        """Return the loaded chunks that no saved one equals."""
        return {chunk for chunk, segment in self._segments.items() if segment.changed}

    def fragment(self, chunk: int) -> Fragment | None:
        """Return the scope's part of a chunk as it is saved; None when it has none."""
        self.absorb((chunk,))
        segment = self._segments.get(chunk)
        return None if segment is None else segment.fragment(self._scope, self._rows()[segment.end - 1].hash)

    def saved(self, chunk: int, *, release: bool = False) -> None:
        """Learn that the chunk was saved as it is; `release` says that it will not be asked any more."""
        if release:
            self.release(chunk)
        elif chunk in self._segments:
            self._segments[chunk].changed = False

    def is_loaded(self, chunk: int) -> bool:
        """Tell whether the chunk's words are in memory."""
        return chunk in self._segments

    def release(self, chunk: int) -> None:
        """Let go of a chunk's words: whoever asks for them next makes them from what was saved, or from the log."""
        self._segments.pop(chunk, None)
        self._closed = None
        self._waiting.clear()
        self._settled = 0

    def states(self) -> Mapping[int, tuple[int, int, int]]:
        """Return what each chunk's words follow from: its first row, the row after its last, how many were erased."""
        erased = sorted(self.erased)
        return {
            chunk: (first, end, bisect_left(erased, end) - bisect_left(erased, first))
            for chunk, (first, end) in self.chunks().items()
        }

    def digest_of(self, chunk: int) -> bytes:
        """Return a digest of a chunk's words and its facets, which it leaves as loaded as they were."""
        loaded = chunk in self._segments
        self.absorb((chunk,))
        segment = self._segments[chunk]
        digest = segment.words.digest() + _encode(sorted(segment.facets.items()))
        if not loaded and not segment.changed:
            self.release(chunk)
        return digest

    def statistics(self, terms: Sequence[str], upto: int) -> WordStats:
        """Return the statistics of the live rows below `upto`."""
        total = WordStats(0, 0, (0,) * len(terms))
        for words, first in self._below(upto):
            total = total.plus(words.statistics(terms, upto - first))
        return total

    def scores(self, terms: Sequence[str], stats: WordStats, upto: int) -> Scores:
        """Return the scores of the rows below `upto`; `stats` is of all scopes that are asked together."""
        return score(self._below(upto), terms, stats, upto)

    def among(self, rows: NDArray[np.int64], term: str, upto: int) -> NDArray[np.bool_]:
        """Tell for each of some ascending rows whether it is below `upto` and holds a term or a mark."""
        found = np.zeros(len(rows), dtype=np.bool_)
        for words, first in self._below(upto):
            holders = words.holders(term, upto - first)
            if len(holders):
                start, end = np.searchsorted(rows, (first, first + words.rows))
                here = (rows[start:end] - first).astype(np.int32)
                at = np.minimum(np.searchsorted(holders, here), len(holders) - 1)
                found[start:end] = holders[at] == here
        return found

    def holders(self, term: str, upto: int) -> NDArray[np.int64]:
        """Return the rows below `upto` that hold a term or a mark, ascending."""
        found = [words.holders(term, upto - first).astype(np.int64) + first for words, first in self._below(upto)]
        return np.concatenate(found or [np.zeros(0, np.int64)])

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return how many tokens each row has; all of them were absorbed."""
        found = np.zeros(len(rows), dtype=np.int32)
        for words, first in self._below(len(self._rows())):
            here = (rows >= first) & (rows < first + words.rows)
            found[here] = words.lengths(rows[here] - first)
        return found

    @property
    def threads(self) -> Threads:
        """The conversations, over every row there is."""
        self._bound()
        if self._threads.rows < self._bounded:
            self.absorb()
            start = self._threads.rows
            named = [(row, facets.thread) for row, facets in self._facets_from(start) if facets.thread is not None]
            self._threads.extend(self._bounded - start, named)
        return self._threads

    def with_tags(self, tags: Iterable[str]) -> Mask:
        """Return which rows have all of some tags."""
        self.absorb()
        return self._facets.with_tags(tags, self._bounded, self._facets_from)

    def with_values(self, where: Mapping[str, object]) -> Mask:
        """Return which rows have each value under its key in their metadata."""
        self.absorb()
        return self._facets.with_values(where, self._bounded, self._facets_from)

    def known_keys(self, keys: Collection[str]) -> set[str]:
        """Return those of some keys that the metadata of any row has."""
        self.absorb()
        return self._facets.known_keys(keys, self._bounded, self._facets_from)

    def facets(self, row: int) -> Facets:
        """Return the facets of a row that was absorbed."""
        segment = self._segments[self._chunks[bisect_right(self._firsts, row) - 1]]
        return segment.facets.get(row - segment.first, NO_FACETS)

    def _facets_from(self, start: int) -> Iterator[tuple[int, Facets]]:
        """Yield the facets of the absorbed rows from one on, in order; those that have none are left out."""
        for chunk in self._chunks[max(bisect_right(self._firsts, start) - 1, 0) :]:
            segment = self._segments[chunk]
            if segment.first >= start:
                yield from ((segment.first + row, facets) for row, facets in segment.facets.items())
                continue
            # By row, not by facet: mostly one row came since.
            for row in range(start - segment.first, segment.words.rows):
                found = segment.facets.get(row)
                if found is not None:
                    yield segment.first + row, found

    def _below(self, upto: int) -> Iterator[tuple[JoinedWords | WordIndex, int]]:
        """Yield what holds the words of the rows below `upto`, and its first row: the closed segments as one."""
        if not self._chunks:
            return
        newest = self._segments[self._chunks[-1]]
        # One that was just loaded is as it was saved until something is added to it.
        closed = len(self._chunks) - (0 if newest.is_packed else 1)
        if self._closed is None:
            self._closed = JoinedWords([])
        while len(self._closed.parts) > closed:
            self._closed.pop()
            self._waiting.discard(len(self._closed.parts))
        for chunk in self._chunks[len(self._closed.parts) : closed]:
            self._closed.append(self._segments[chunk].packed())
        while self._waiting:
            number = self._waiting.pop()
            self._closed.put_back(number, self._segments[self._chunks[number]].packed())
        if closed and upto > 0:
            yield self._closed, 0
        if isinstance(newest.words, WordIndex) and newest.first < upto:
            yield newest.words, newest.first

    def _bound(self) -> None:
        rows = self._rows()
        while self._bounded < len(rows):
            chunk = rows.seq_of(self._bounded) >> SEGMENT_BITS
            if not self._chunks or self._chunks[-1] != chunk:
                self._chunks.append(chunk)
                self._firsts.append(self._bounded)
            self._bounded = rows.upto(((chunk + 1) << SEGMENT_BITS) - 1)

    def _load(self, chunk: int, first: int, end: int) -> Segment | None:
        saved = self._saved.take(chunk, self._scope)
        if saved is None or saved.first != first or not 0 < saved.rows <= end - first:
            return None
        if self._rows()[first + saved.rows - 1].hash != saved.hash:
            return None  # of another log, which was put back since
        segment = Segment(first)
        try:
            packed = segment.words = PackedWords(saved.words)
        except ProjectionStale:
            return None
        segment.facets, segment.changed = dict(saved.facets), False
        erased = [row for row in range(first, segment.end) if row in self.erased] if self.erased else []
        for row in erased:
            if not packed.is_erased(row - first):
                segment.erase(row)  # since it was saved
        return segment

    def _extend(self, segment: Segment, end: int) -> None:
        rows, words = self._rows(), segment.unpacked()
        start = segment.end
        texts: list[str] = []
        marks: list[list[str]] = []
        held = 0
        for row in range(start, end):
            body = None if row in self.erased else self._read_body(rows[row].place)
            texts.append("" if body is None else indexed_text(body))
            marks.append([] if body is None else marks_of(body))
            facets = NO_FACETS if body is None else Facets(body.tags, body.metadata, thread_of(body))
            if facets != NO_FACETS:
                segment.facets[row - segment.first] = facets
            held += len(texts[-1])
            if held >= _TAKEN_AT_ONCE or row + 1 == end:
                # A segment of long texts would otherwise be in memory whole, and all its tokens with it.
                words.add_many(texts, marks)
                texts, marks, held = [], [], 0
        for row in range(start, end):
            if row in self.erased:
                words.erase(row - segment.first)
        segment.changed = True


def indexed_text(body: MemoryBody) -> str:
    """Return the text of a memory that search reads: its content, then its subject and attribute."""
    about = " ".join(part for part in (body.subject, body.attribute) if part)
    return f"{body.content}\n{about}" if about else body.content


_encode: Final = msgspec.msgpack.Encoder(order="deterministic").encode
