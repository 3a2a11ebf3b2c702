"""The sentence vectors of one scope, searched exactly; above a size, candidates come from their signs or a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from muniment.events._errors import BadArgument

if TYPE_CHECKING:
    from ._neighbours import NeighbourGraph

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Bits = NDArray[np.uint64]
OpenSlots = Callable[[NDArray[np.int64]], Iterable[tuple[Rows, Floats]]]
"""Gives, some at a time, which of some key slots have a vector that opens, by their places, and the vectors."""
Counts: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16]
"""In how many signs rows differ; the greatest number that the type has is far, more than any vector has."""

GRAPH_FROM = 50_000  # vectors; below that a graph of them answers no sooner than their signs
GRAPH_SHARE = 0.9  # of the graph's rows have to be wanted: a walk among others finds too few
GRAPH_LATE = 0.1  # of the vectors may be in no graph before it is worth adding them
_BUILT_AT_ONCE = 1_024  # vectors, about a fifth of a second's work
_UNSEALED_AT_ONCE = 128  # vectors, half a millisecond's work: a question may have to wait for it
_ADDED_AT_ONCE = 32  # vectors of a graph that is in use: nobody can ask it meanwhile

# Vectors are kept as whole numbers on this grid. A sum of their products stays below 2**24, where float32 is exact, so
# a row's cosine is the same whatever else is stored and in whatever order a matrix product adds. It moves a cosine by
# about 1e-4. Whole numbers of that size fit two bytes, which is what a large index keeps of each.
SCALE = np.float32(4080)
_COSINE = np.float32(1 / (4080 * 4080))

# Above this many rows, the signs of the components choose which rows are scored: 32 times less to read.
SIGNS_FROM = 4_000
SIGNED_CANDIDATES = 256  # at least, and 4 times what is asked for, and one row in 200
HALVED_FROM = 32_000  # rows above which half of the signs choose four times as many, and all signs among those
_AT_ONCE = 50_000  # rows whose signs are compared at once: what is made of them stays in the processor's cache
_SCORED_AT_ONCE = 512  # rows that are made floating point at once, for the same reason
_FAR = {1: 0xFF, 2: 0xFFFF}  # by the bytes of the number that says in how many signs a row differs
_OPEN = np.int64(-1)  # instead of a key slot: there is nothing to be opened
_WORDS_IN_A_BYTE = 3  # of signs, whose number a byte tells, and still has one that is more than all of them


class VectorIndex:
    """
    Unit vectors by row; a row may come late or never.

    Not thread-safe: the owner holds a lock around every call. What was erased is overwritten, and a vector that comes
    for an erased row is dropped: it was computed before the forget.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._matrix: Floats | NDArray[np.int16] = np.zeros((0, dim), dtype=np.float32)
        self._signs: Bits = np.zeros((-(-dim // 64), 0), dtype=np.uint64)  # a word of every row, then the next
        self._present: Flags = np.zeros(0, dtype=np.bool_)
        self._erased: Flags = np.zeros(0, dtype=np.bool_)
        self._graph: NeighbourGraph | None = None
        self._unbuilt: set[int] | None = None  # rows that changed while a graph is being built
        self._sealed = np.full(0, _OPEN)  # the key slot of a row whose signs alone are here, and its vector kept
        self._still_sealed = 0
        self._open: OpenSlots = _none_open
        self._end = 0  # one past the highest row that was ever named
        self._settled = 0  # rows below which none is missing: what has a vector, or was erased, stays so

    def put(self, rows: Sequence[int] | Rows, vectors: Floats) -> None:
        """Keep one vector a row, replacing what the row had."""
        given = np.asarray(rows, dtype=np.int64)
        named: list[int] = given.tolist()
        if vectors.shape != (len(named), self.dim):
            raise BadArgument(
                argument="vectors", detail=f"expected shape {(len(named), self.dim)}, got {vectors.shape}"
            )
        if not named:
            return
        if min(named) < 0:
            raise BadArgument(argument="rows", detail=f"expected no negative row, got {min(named)}")
        self._reserve(max(named) + 1)
        # Of the one row that was just written, mostly: a slice takes less than a list.
        at = slice(named[0], named[0] + 1) if len(named) == 1 else given
        erased = self._erased[at]
        if np.count_nonzero(erased):
            self.put(given[~erased], vectors[~erased])
            return
        self._keep(at, vectors)
        self._signs[:, at] = _signs(vectors)
        self._present[at] = True
        self._changed(named)

    def _keep(self, at: slice | Rows, vectors: Floats) -> None:
        self._matrix[at] = _on_grid(vectors)
        if self._still_sealed:
            self._still_sealed -= int(np.count_nonzero(self._sealed[at] != _OPEN))
            self._sealed[at] = _OPEN

    def put_sealed(self, rows: Rows, slots: NDArray[np.int64], signs: Bits, open_slots: OpenSlots) -> None:
        """
        Keep the signs of rows that have no vector here, a line a word and a column a row; the vector comes later.

        `open_slots` is asked for the vectors of key slots once somebody asks for them, and says which of them there
        are: a row whose vector is not there is then one that never had any. It is the same for all rows.
        """
        if not len(rows):
            return
        self._reserve(int(rows.max()) + 1)
        fresh = ~(self._erased[rows] | self._present[rows])
        at = rows[fresh]
        self._signs[:, at] = signs[:, fresh]
        self._present[at] = True
        self._sealed[at] = slots[fresh]
        self._still_sealed += len(at)
        self._open = open_slots

    def signs(self, rows: Rows) -> Bits:
        """Return the signs of rows that have a vector, a line a word and a column a row."""
        return self._signs[:, rows]

    def known(self, start: int, end: int) -> Rows:
        """Return the rows between two that have a vector, here or kept."""
        return np.flatnonzero(self._present[start : min(end, self._end)]) + start

    @property
    def still_sealed(self) -> int:
        """How many vectors have not been asked for yet, of rows whose signs are here."""
        return self._still_sealed

    def unsealing(self) -> Iterator[None]:
        """Fetch them all, step by step; the owner holds the lock while it takes a step."""
        for start in range(0, self._end, _UNSEALED_AT_ONCE):
            self._unseal(np.arange(start, min(start + _UNSEALED_AT_ONCE, self._end)))
            yield

    def _unseal(self, rows: Rows) -> None:
        """Fetch the vectors of these rows where their signs alone are here; a row that has none is missing again."""
        if not self._still_sealed:
            return
        late = rows[self._sealed[rows] != _OPEN]
        if not len(late):
            return
        slots = self._sealed[late]
        lost = np.ones(len(late), dtype=np.bool_)
        for found, vectors in self._open(slots):
            lost[found] = False
            self._keep(late[found], vectors)
        gone = late[lost]
        self._still_sealed -= len(gone)
        self._sealed[gone], self._present[gone], self._signs[:, gone] = _OPEN, False, 0
        self._settled = min(self._settled, int(gone.min(initial=self._settled)))

    def erase(self, row: int) -> None:
        """Overwrite the row's vector, here and in the graph; the row gets none again."""
        if row < 0:
            raise BadArgument(argument="row", detail=f"expected no negative row, got {row}")
        self._reserve(row + 1)
        self._matrix[row] = 0
        self._signs[:, row] = 0
        self._present[row] = False
        self._erased[row] = True
        if self._still_sealed and self._sealed[row] != _OPEN:
            self._still_sealed -= 1
            self._sealed[row] = _OPEN
        self._changed([row])

    def missing(self, upto: int) -> Rows:
        """Return the rows below `upto` that have no vector yet; erased ones are not waited for."""
        known = min(upto, self._end)
        start = min(known, self._settled)
        late = np.flatnonzero(~(self._present[start:known] | self._erased[start:known])) + start
        self._settled = max(self._settled, int(late[0]) if len(late) else known)
        return np.concatenate((late, np.arange(known, upto, dtype=np.int64)))

    def scores(self, query: Floats, rows: Rows) -> Floats:
        """Return the cosine of each row, and NaN where there is no vector."""
        query = self._checked(query)
        at = np.asarray(rows, dtype=np.int64)
        found = np.full(len(at), np.nan, dtype=np.float32)
        here = np.flatnonzero((at >= 0) & (at < self._end))
        self._unseal(at[here])
        here = here[self._present[at[here]]]
        found[here] = self._exact(query, at[here])
        return found

    def search(self, query: Floats, *, allowed: Flags | None, upto: int, k: int) -> tuple[Rows, Floats]:
        """
        Return the k rows below `upto` nearest to the query, best first, and their cosines; of equals the lower first.

        With `allowed`, only rows that it marks are looked at; rows beyond its end are not allowed. A graph is asked
        only where all rows that there are may be looked at, or nearly all: for the past, `upto` is not the end.
        """
        query = self._checked(query)
        end = min(upto, self._end)
        wanted = self._present[:end]
        if allowed is not None:
            end = min(end, len(allowed))
            wanted = wanted[:end] & allowed[:end]
        rows = self._walked(query, wanted, k) if self._graph is not None and end == self._end else None
        candidates, cosines = self._nearest(query, wanted, k) if rows is None else self._scored(query, rows)
        best = np.lexsort((candidates, -cosines))[: max(k, 0)]
        return candidates[best], cosines[best]

    @property
    def wants_graph(self) -> bool:
        """Tell whether there are vectors enough for a graph, and a good part of them in none."""
        count = int(np.count_nonzero(self._present[: self._end]))
        held = 0 if self._graph is None else self._graph.size
        return count >= GRAPH_FROM and count - held > count * GRAPH_LATE and self._unbuilt is None

    def building(self) -> Iterator[Callable[[], None]]:
        """
        Build a graph of all vectors, or add to the one there is, step by step.

        The owner holds the lock while it takes a step, and not while it does the work that the step yields.
        """
        if self._graph is None:
            yield from self._built_apart()
            return
        rows = np.flatnonzero(self._present[: self._end] & ~self._graph.holds(self._end))
        for start in range(0, len(rows), _ADDED_AT_ONCE):
            part = rows[start : start + _ADDED_AT_ONCE]
            self._unseal(part)
            part = part[self._present[part]]
            self._graph.add(part, self._floats(part))
            yield _nothing

    def _built_apart(self) -> Iterator[Callable[[], None]]:
        from ._neighbours import NeighbourGraph  # noqa: PLC0415  # few stores grow to need it

        graph = NeighbourGraph(self.dim)
        self._unbuilt = set()
        try:
            rows = np.flatnonzero(self._present[: self._end])
            for start in range(0, len(rows), _BUILT_AT_ONCE):
                part = rows[start : start + _BUILT_AT_ONCE]
                self._unseal(part)
                part = part[self._present[part]]
                yield partial(graph.add, part, self._floats(part))
                # What was erased while it was added stays in memory no longer than that.
                self._follow(graph, sorted(self._unbuilt))
                self._unbuilt.clear()
            self._graph = graph
        finally:
            self._unbuilt = None

    def take(self, rows: Rows) -> Floats:
        """Return a copy of the vectors of these rows; zeros where there is none."""
        found = np.zeros((len(rows), self.dim), dtype=np.float32)
        known = rows < self._end
        found[known] = self._floats(rows[known])
        return found / SCALE

    def _checked(self, query: Floats) -> Floats:
        if query.shape != (self.dim,):
            raise BadArgument(argument="query", detail=f"expected shape {(self.dim,)}, got {query.shape}")
        return _on_grid(np.asarray(query, dtype=np.float32))

    def _nearest(self, query: Floats, wanted: Flags, k: int) -> tuple[Rows, Floats]:
        """Return at least the k nearest of the wanted rows and their cosines; nearly so when there are very many."""
        count = int(np.count_nonzero(wanted))
        if k <= 0:
            rows = np.zeros(0, dtype=np.int64)
        elif count > max(SIGNS_FROM, k):
            rows = self._by_signs(query, wanted, count, max(SIGNED_CANDIDATES, 4 * k, count // 200))
        elif count < len(wanted) // 4 or self._matrix.dtype != np.float32:
            rows = np.flatnonzero(wanted)
        else:
            if self._still_sealed:
                self._unseal(np.flatnonzero(wanted))
                wanted = wanted & self._present[: len(wanted)]
                count = int(np.count_nonzero(wanted))
            cosines = self._matrix[: len(wanted)] @ query
            if count < len(wanted):
                cosines[~wanted] = -np.inf
            rows = np.flatnonzero(wanted) if count <= k else _greatest(cosines, k)
            return rows, np.asarray(cosines[rows] * _COSINE, dtype=np.float32)
        rows, cosines = self._scored(query, rows)
        if len(rows) <= k:
            return rows, cosines
        near = _greatest(cosines, k)
        return rows[near], cosines[near]

    def _by_signs(self, query: Floats, wanted: Flags, of: int, count: int) -> Rows:
        # A row is chosen by its own signs alone, so that the same rows give the same candidates at any point in time.
        asked = _signs(query[None, :])[:, 0]
        if len(wanted) <= HALVED_FROM:
            differing = _differing(self._signs[:, : len(wanted)], asked)
            _leave_out(differing, wanted, of)
            return np.flatnonzero(differing <= _bound(differing, count))
        # Half of the signs tell which rows are far off; the others are looked at for the rest alone.
        half = -(-len(asked) // 2)
        by_half = _differing(self._signs[:half, : len(wanted)], asked[:half])
        _leave_out(by_half, wanted, of)
        enough = 4 * count
        every = len(wanted) >> 12 | 1  # odd: a filter may want every other row, as of two who talk in turn
        near = np.flatnonzero(by_half <= _bound(by_half[::every], -(-enough // every)))
        if len(near) < count:  # what every so manieth row told was not so of the others
            near = np.flatnonzero(by_half <= _bound(by_half, enough))
        differing = by_half.take(near).astype(np.uint16)
        for words, signs in zip(self._signs[half:], asked[half:], strict=True):
            differing += np.bitwise_count(words.take(near) ^ signs)
        return near.compress(differing <= _bound(differing, count))

    def _walked(self, query: Floats, wanted: Flags, k: int) -> Rows | None:
        """Return candidates from the graph and from what is in none; None where a walk would find too few."""
        graph, count = self._graph, int(np.count_nonzero(wanted))
        if graph is None or k <= 0 or count < GRAPH_SHARE * graph.size:
            return None
        near = graph.nearest(query, k)
        if near is None:
            return None
        near = near[wanted[near]]
        late, _ = self._nearest(query, wanted & ~graph.holds(len(wanted)), k)
        return np.concatenate((near, late)) if len(near) + len(late) >= min(k, count) else None

    def _changed(self, rows: list[int]) -> None:
        if self._unbuilt is not None:
            self._unbuilt.update(rows)
        if self._graph is not None:
            self._follow(self._graph, rows)

    def _follow(self, graph: NeighbourGraph, rows: list[int]) -> None:
        held = graph.holds(self._end)
        for row in rows:
            if held[row] and self._present[row]:
                graph.add(np.array([row]), self._floats(np.array([row])))
            elif held[row]:
                graph.erase(row, _stand_in(row, self.dim))

    def _scored(self, query: Floats, rows: Rows) -> tuple[Rows, Floats]:
        if self._still_sealed:
            self._unseal(rows)
            rows = rows[self._present[rows]]
        return rows, self._exact(query, rows)

    def _exact(self, query: Floats, rows: Rows) -> Floats:
        found = np.empty(len(rows), dtype=np.float32)
        for start in range(0, len(rows), _SCORED_AT_ONCE):
            part = slice(start, start + _SCORED_AT_ONCE)
            np.matmul(self._floats(rows[part]), query, out=found[part])
        found *= _COSINE
        return found

    def _floats(self, rows: Rows) -> Floats:
        self._unseal(rows)
        # `take` copies rows in half the time that indexing needs.
        return self._matrix.take(rows, axis=0).astype(np.float32, copy=False)

    def make_room(self, rows: int) -> None:
        """Make room for that many rows at once; otherwise it grows by halves, and copies."""
        if rows > len(self._present):
            self._grow(rows)

    def _reserve(self, end: int) -> None:
        self._end = max(self._end, end)
        if end > len(self._present):
            self._grow(max(end, len(self._present) * 3 // 2, 64))

    def _grow(self, room: int) -> None:
        matrix: Floats | NDArray[np.int16] = (
            np.zeros((room, self.dim), dtype=np.float32) if room <= SIGNS_FROM else _sparse((room, self.dim))
        )
        matrix[: len(self._matrix)] = self._matrix
        self._matrix = matrix
        sealed = np.full(room, _OPEN)
        sealed[: len(self._sealed)] = self._sealed
        self._sealed = sealed
        signs = np.zeros((len(self._signs), room), dtype=np.uint64)
        signs[:, : self._signs.shape[1]] = self._signs
        self._signs = signs
        self._present, self._erased = (
            np.concatenate((flags, np.zeros(room - len(flags), dtype=np.bool_)))
            for flags in (self._present, self._erased)
        )


def _sparse(shape: tuple[int, int]) -> NDArray[np.int16]:
    """Return zeros, of which memory holds the pages that were written to: of sealed rows, none."""
    # numpy asks for pages of 2 MiB, all of which a few hundred rows touch. A child that is forked has its own.
    room = mmap(-1, shape[0] * shape[1] * 2, flags=MAP_PRIVATE | MAP_ANONYMOUS)
    return np.frombuffer(room, dtype=np.int16).reshape(shape)


def _nothing() -> None:
    """Do nothing."""


def _none_open(slots: NDArray[np.int64]) -> Iterable[tuple[Rows, Floats]]:  # noqa: ARG001
    """Return that there are none."""
    return ()


def _greatest(cosines: Floats, k: int) -> Rows:
    """Return where the k greatest of more are, and their equals."""
    return np.flatnonzero(cosines >= np.partition(cosines, len(cosines) - k)[len(cosines) - k])


def _differing(signs: Bits, asked: Bits) -> Counts:
    """Return for each column in how many bits it differs from what is asked for; always less than is far."""
    rows = signs.shape[1]
    narrow = len(asked) <= _WORDS_IN_A_BYTE
    found: Counts = np.empty(rows, dtype=np.uint8) if narrow else np.empty(rows, dtype=np.uint16)
    for start in range(0, rows, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        # In its own type, a sum of bytes takes a quarter of the time.
        np.add.reduce(np.bitwise_count(signs[:, part] ^ asked[:, None]), axis=0, dtype=found.dtype, out=found[part])
    return found


def _leave_out(differing: Counts, wanted: Flags, of: int) -> None:
    """Make far what is not wanted; `of` are."""
    if of < len(wanted):
        # Assigning by a mask takes thirty times as long, where the mask is mixed.
        differing |= np.negative(np.logical_not(wanted).astype(differing.dtype))


def _bound(differing: Counts, count: int) -> int:
    """Return the least number at or below which there are at least `count`, or all that are not far."""
    # Counting is several times faster than a partition.
    found = np.bincount(differing)[: _FAR[differing.itemsize]].cumsum()
    return min(int(found.searchsorted(count)), len(found) - 1)


def _stand_in(row: int, dim: int) -> Floats:
    """Return a unit vector that depends on the row number only; spread out, so that a graph stays navigable."""
    vector = np.random.default_rng(row).standard_normal(dim).astype(np.float32)
    return _on_grid(np.asarray(vector / np.linalg.norm(vector), dtype=np.float32))


def _on_grid(vectors: Floats) -> Floats:
    return np.ascontiguousarray(np.rint(vectors * SCALE), dtype=np.float32)


def _signs(vectors: Floats) -> Bits:
    """Return one bit a component, set where it is above zero, in whole words: a line a word, a column a vector."""
    bits = np.packbits(vectors > 0, axis=1)
    if short := -bits.shape[1] % 8:
        bits = np.concatenate((bits, np.zeros((len(bits), short), dtype=np.uint8)), axis=1)
    return np.ascontiguousarray(bits.view(np.uint64).T)
