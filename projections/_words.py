"""BM25 over the texts of one scope, as of any row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

import msgspec
import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from muniment.events._errors import BadArgument, ProjectionStale

from ._columns import with_room
from ._postings import Numbers, Postings
from ._tokens import ANALYZER_ID, analyze

# Anserini's defaults (Yang, Fang and Lin, 2017), after Trotman, Puurula and Burgess (2014): on short texts a word said
# twice, or a text twice as long, says less than Lucene's 1.2 and 0.75 assume.
K1 = 0.9
B = 0.4

LAYOUT = 2
"""Raised whenever a dump is laid out differently; what it says, and its digest, stay the same."""
_DIGEST_CONTEXT = "muniment 2026 word index digest"
_ADDED_AT_ONCE = 4096
_FEW = 64
"""Tokens of a single text that are taken in one by one sooner than in arrays."""
_NEWLINE = 10
PREFIX_BYTES = 8
"""By how many bytes terms are told apart at first."""
_NOTHING = (np.zeros(0, np.int32), np.zeros(0, np.int32))


class WordStats(NamedTuple):
    """What BM25 has to know of a collection; the sum of several partitions is that of their union."""

    rows: int  # live rows
    length: int  # tokens in them
    found_in: tuple[int, ...]  # for each term asked about, in the order asked, the rows that hold it

    def plus(self, other: WordStats) -> WordStats:
        """Return the statistics of both collections together, asked about the same terms."""
        found_in = tuple(a + b for a, b in zip(self.found_in, other.found_in, strict=True))
        return WordStats(self.rows + other.rows, self.length + other.length, found_in)


class _Saved(msgspec.Struct, array_like=True, frozen=True):
    # What is not searched as bytes is read where it lies: a million memories have some hundred megabytes of it.
    analyzer: str
    lengths: memoryview
    erased: memoryview
    terms: bytes
    list_lengths: memoryview
    rows: memoryview
    counts: memoryview

    def digest(self) -> bytes:
        """Return a hash of what it says, however narrow its numbers were saved, and of no library's version."""
        lists, rows, counts = self.postings()
        wide = [array.astype("<i4").tobytes() for array in (_numbers(self.lengths), rows, counts)]
        said = ("", wide[0], self.erased, self.terms, lists.astype("<i8").tobytes(), wide[1], wide[2])
        return blake3(msgspec.msgpack.encode(said), derive_key_context=_DIGEST_CONTEXT).digest()

    def postings(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return the length of each term's list, and all lists of rows and of counts, one after the other."""
        return _numbers(self.list_lengths), _numbers(self.rows), _numbers(self.counts)


class WordIndex:
    """
    The words of rows 0 to n-1, in the order they were added.

    `upto=t` answers as if only the first t rows had ever been added, bit by bit the same. An erased row counts at no
    `upto`. Not thread-safe: the owner holds a lock around every call.
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._spare: list[int] = []
        self._postings = Postings()
        self._lengths = np.zeros(256, dtype=np.int32)
        self._erased: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._total = 0
        self.rows = 0

    def add_many(self, texts: Sequence[str], marks: Sequence[Sequence[str]] = ()) -> None:
        """Append one row a text, with its marks; a blank text without any makes a row that nothing finds."""
        for start in range(0, len(texts), _ADDED_AT_ONCE):
            part = slice(start, start + _ADDED_AT_ONCE)
            self._add([analyze(text) for text in texts[part]], marks[part])

    def erase(self, row: int) -> None:
        """Take out all that the row's text left here; only the fact that the row existed stays."""
        if not 0 <= row < self.rows:
            raise BadArgument(argument="row", detail=f"expected 0 to {self.rows - 1}, got {row}")
        if self._is_erased(row):
            return
        emptied = set(self._postings.erase(row))
        if emptied:
            # A term that only this row held would be a trace of it.
            for term in [term for term, id_ in self._ids.items() if id_ in emptied]:
                del self._ids[term]
            self._spare.extend(sorted(emptied))
        self._total -= int(self._lengths[row])
        self._lengths[row] = 0
        self._erased = np.insert(self._erased, int(np.searchsorted(self._erased, row)), row)

    def statistics(self, terms: Sequence[str], upto: int) -> WordStats:
        """Return the statistics of the live rows below `upto`."""
        upto = min(upto, self.rows)
        length = self._total if upto == self.rows else int(self._lengths[:upto].sum(dtype=np.int64))
        live = upto - int(np.searchsorted(self._erased, upto))
        found_in = (len(self._postings.of(self._ids[term], upto)[0]) if term in self._ids else 0 for term in terms)
        return WordStats(live, length, tuple(found_in))

    def holders(self, term: str, upto: int) -> NDArray[np.int32]:
        """Return the rows below `upto` that hold a term or a mark, ascending."""
        return self.postings(term, upto)[0]

    def postings(self, term: str, upto: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the rows below `upto` that hold a term, ascending, and how often each does."""
        return self._postings.of(self._ids[term], upto) if term in self._ids else _NOTHING

    def lengths(self, rows: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int32]:
        """Return how many tokens each row has."""
        return self._lengths[rows]

    def most(self, term: str, mean: float) -> float:  # noqa: ARG002  # of few rows: not worth a closer look
        """Return above which share of its weight no row's score for a term is; `mean` is that of all lengths."""
        return 1.0

    def dump(self) -> bytes:
        """Return the index as bytes; equal indexes give equal bytes, however they were made."""
        return msgspec.msgpack.encode(self._saved(ANALYZER_ID))

    @classmethod
    def load(cls, data: bytes) -> WordIndex:
        """
        Return the index that was dumped.

        Raises `ProjectionStale` when it was made by another analyser or is no dump; the caller has made sure that
        the bytes are those that were written.
        """
        saved = _parse(data)
        made = cls()
        terms = saved.terms.decode().split("\n") if saved.terms else []
        made._ids = dict(zip(terms, range(len(terms)), strict=True))
        made._postings = Postings.packed(*saved.postings())
        made._lengths = _numbers(saved.lengths).astype(np.int32)
        made._erased = np.frombuffer(saved.erased, "<i8").astype(np.int64)
        made._total = int(made._lengths.sum(dtype=np.int64))
        made.rows = len(made._lengths)
        return made

    def digest(self) -> bytes:
        """Return 32 bytes that are equal exactly when two indexes hold the same rows and the same erasures."""
        # Library versions are left out: what matters is the terms that they gave.
        return self._saved("").digest()

    def _saved(self, analyzer: str) -> _Saved:
        terms = sorted(self._ids)
        lengths, rows, counts = self._postings.pack([self._ids[term] for term in terms])
        return _Saved(
            analyzer=analyzer,
            lengths=_small(self._lengths[: self.rows]),
            erased=memoryview(self._erased.astype("<i8").tobytes()),
            terms="\n".join(terms).encode(),
            list_lengths=_small(lengths),
            rows=_small(rows),
            counts=_small(counts),
        )

    def _add(self, rows: Sequence[Sequence[str]], marks: Sequence[Sequence[str]]) -> None:
        if len(rows) == 1 and len(rows[0]) <= _FEW:
            self._add_few(rows[0], marks[0] if marks else ())
            return
        ids: list[int] = []
        counts: list[int] = []
        sizes: list[int] = []
        for tokens, marked in zip_longest(rows, marks, fillvalue=()):
            counted = Counter(tokens)
            counted.update(marked)  # a mark is no token: it adds nothing to the length
            ids.extend(map(self._id, counted))
            counts.extend(counted.values())
            sizes.append(len(counted))
        self._postings.new_lists(max(0, len(self._ids) + len(self._spare) - self._postings.lists))
        terms = np.array(ids, dtype=np.int64)
        at = np.repeat(np.arange(self.rows, self.rows + len(rows), dtype=np.int32), sizes)
        order = np.argsort(terms, kind="stable")
        self._postings.append(terms[order], at[order], np.array(counts, dtype=np.int32)[order])
        needed = self.rows + len(rows)
        self._lengths = with_room(self._lengths, needed)
        self._lengths[self.rows : needed] = [len(tokens) for tokens in rows]
        self._total += sum(map(len, rows))
        self.rows = needed

    def _add_few(self, tokens: Sequence[str], marks: Sequence[str]) -> None:
        # What was just written, mostly: a question waits for it.
        counted: dict[int, int] = {}
        for term in (*tokens, *marks):
            found = self._id(term)
            counted[found] = counted.get(found, 0) + 1
        self._postings.new_lists(max(0, len(self._ids) + len(self._spare) - self._postings.lists))
        self._postings.append_row(self.rows, counted)
        self._lengths = with_room(self._lengths, self.rows + 1)
        self._lengths[self.rows] = len(tokens)
        self._total += len(tokens)
        self.rows += 1

    def _id(self, term: str) -> int:
        found = self._ids.get(term)
        if found is None:
            found = self._spare.pop() if self._spare else len(self._ids)
            self._ids[term] = found
        return found

    def _is_erased(self, row: int) -> bool:
        at = int(np.searchsorted(self._erased, row))
        return at < len(self._erased) and bool(self._erased[at] == row)


class PackedWords:
    """
    A word index that is only read: a dump, searched where it lies, so that little is made when it is loaded.

    `JoinedWords` asks it, alone or with others, and answers as the index that was dumped does.
    """

    def __init__(self, dump: bytes) -> None:
        """Take a dump; raises `ProjectionStale` as `WordIndex.load` does."""
        self.dump = dump
        saved = _parse(dump)
        self._terms = saved.terms
        ends = np.flatnonzero(np.frombuffer(saved.terms, np.uint8) == _NEWLINE)
        self._term_ends = (np.append(ends, len(saved.terms)) if saved.terms else ends).astype(np.int32)
        lengths, self._rows, self._counts = saved.postings()
        self.edges = np.append(np.int32(0), np.cumsum(lengths, dtype=np.int32))
        """Where the list of each term starts, and where the last one ends."""
        self._lengths = _numbers(saved.lengths).astype(np.int32)
        self._erased = np.frombuffer(saved.erased, "<i8")
        self._total = int(self._lengths.sum(dtype=np.int64))
        self.rows = len(self._lengths)

    def is_erased(self, row: int) -> bool:
        """Tell whether a row was erased."""
        at = int(np.searchsorted(self._erased, row))
        return at < len(self._erased) and bool(self._erased[at] == row)

    def totals(self, upto: int) -> WordStats:
        """Return how many live rows there are below `upto`, and how long they are."""
        upto = min(upto, self.rows)
        length = self._total if upto == self.rows else int(self._lengths[:upto].sum(dtype=np.int64))
        return WordStats(upto - int(np.searchsorted(self._erased, upto)), length, ())

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return how many tokens each row has."""
        return self._lengths[rows]

    def digest(self) -> bytes:
        """Return what `WordIndex.digest` returns of the same index."""
        return _parse(self.dump).digest()

    def prefixes(self) -> NDArray[np.uint64]:
        """Return the first eight bytes of every term, zeros behind shorter ones, as numbers; they ascend."""
        ends = self._term_ends.astype(np.int64)
        starts = np.append(0, ends[:-1] + 1)[: len(ends)]
        text = np.frombuffer(self._terms + bytes(PREFIX_BYTES), np.uint8)
        at = starts[:, None] + np.arange(PREFIX_BYTES)
        first = np.where(at < ends[:, None], text[at], np.uint8(0))
        return np.ascontiguousarray(first).view(">u8")[:, 0].astype(np.uint64)

    def sizes(self) -> NDArray[np.int32]:
        """Return how many bytes each term has."""
        return np.diff(self._term_ends, prepend=np.int32(-1)) - np.int32(1)

    def lists(self, start: int, end: int) -> tuple[Numbers, Numbers]:
        """Return the rows that hold a term, and how often, by where its list starts and ends."""
        return self._rows[start:end], self._counts[start:end]

    def postings_from(self, at: int, term: bytes) -> tuple[Numbers, Numbers]:
        """Return the rows that hold a term, and how often, where the term is known not to stand before `at`."""
        while at < len(self._term_ends):
            here = self._term(at)
            if here == term:
                return self.lists(int(self.edges[at]), int(self.edges[at + 1]))
            # UTF-8 sorts as code points do, which is how the terms were sorted.
            if here > term:
                break
            at += 1
        return self.lists(0, 0)

    def _term(self, at: int) -> bytes:
        start = int(self._term_ends[at - 1]) + 1 if at else 0
        return self._terms[start : int(self._term_ends[at])]


def _parse(dump: bytes) -> _Saved:
    try:
        saved = msgspec.msgpack.decode(dump, type=_Saved)
    except msgspec.DecodeError as error:
        raise ProjectionStale(name="words", detail="not a dump of a word index") from error
    if saved.analyzer != ANALYZER_ID:
        raise ProjectionStale(name="words", detail=f"made by {saved.analyzer}, this is {ANALYZER_ID}")
    return saved


def shares(counts: NDArray[np.int32], lengths: NDArray[np.int32], mean: float) -> NDArray[np.float32]:
    """Return which share of a term's weight each row gets that holds it; `mean` is that of all lengths."""
    # The same operations on the same numbers whatever came later, so that the past answers bit by bit.
    often = counts.astype(np.float32)
    damping = lengths.astype(np.float32) * np.float32(K1 * B / mean) + np.float32(K1 * (1 - B))
    return np.asarray(often / (often + damping), dtype=np.float32)


def weight(rows: int, found_in: int) -> float:
    """Return how much it says that a row holds a term which that many rows hold."""
    return math.log1p((rows - found_in + 0.5) / (found_in + 0.5))


def _small(numbers: NDArray[np.int32] | NDArray[np.int64]) -> memoryview:
    # A byte that says how wide each number is, and the numbers: rows of a segment fit two bytes, nearly all else one.
    most = int(numbers.max(initial=0))
    width = 1 if most < 1 << 8 else 2 if most < 1 << 16 else 4
    return memoryview(bytes((width,)) + numbers.astype(f"<u{width}").tobytes())


def _numbers(small: memoryview) -> Numbers:
    return np.frombuffer(small[1:], f"<u{small[0]}")
