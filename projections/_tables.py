"""
Tables: records in a fixed order, most of them saved in sections and read one by one when they are asked for.

A table has a *base*, which never changes, and over it what changed or came since. A record of the base is decoded when
it is asked for, and may be another object the next time; whoever changes one tells the table so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from itertools import pairwise
from typing import Final, Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from ._sections import Buffer, PlainSections, Sections

Record = TypeVar("Record", bound=msgspec.Struct)
_RECENT: Final = 4_096
_COPIED_AT_ONCE: Final = 1 << 20
_WIDTHS: Final = (np.uint8, np.uint16, np.uint32, np.uint64)
_HEAD_BYTES: Final = 32
LAYOUT: Final = 2
"""Of the sections. Raised whenever a saved table would be read as another one."""


class Shape(msgspec.Struct, Generic[Record], frozen=True):
    """
    What a table holds: how a record is read, and by what it is found.

    `numbers` are columns, `keys` are indexes from 64-bit keys to records; neither may depend on what changes later.
    Two records may share a key, so whoever finds one looks whether it is the right one.
    """

    name: str
    decode: Callable[[bytes], Record]
    numbers: Mapping[str, Callable[[Record], int]]
    keys: Mapping[str, Callable[[Record], Iterable[int]]]


class Scopes:
    """Numbers for scopes, and which of those numbers stand for scopes that were forgotten as a whole."""

    def __init__(self) -> None:
        self.names: list[str | None] = []
        self.closed: set[int] = set()
        self._numbers: dict[str, int] = {}

    def number(self, scope: str) -> int:
        """Return the scope's number, a new one when it has none."""
        found = self._numbers.get(scope)
        if found is None:
            found = self._numbers[scope] = len(self.names)
            self.names.append(scope)
        return found

    def find(self, scope: str) -> int | None:
        """Return the scope's number, or None."""
        return self._numbers.get(scope)

    def live(self) -> list[str]:
        """Return the scopes that have a number."""
        return list(self._numbers)

    def close(self, scope: str) -> int | None:
        """Let nothing be found under the scope any more, and return its number; what it gets later has another one."""
        found = self._numbers.pop(scope, None)
        if found is not None:
            self.closed.add(found)
        return found

    def saved(self) -> list[str | None]:
        """Return the names by number; None where the scope was closed, and nothing saved has that number."""
        return [None if number in self.closed else name for number, name in enumerate(self.names)]

    def copy(self) -> Scopes:
        """Return the same numbers, which no later scope changes."""
        made = Scopes()
        made.names, made.closed, made._numbers = list(self.names), set(self.closed), dict(self._numbers)
        return made

    def load(self, names: list[str | None]) -> None:
        """Become what was saved."""
        self.names, self.closed = names, set()
        self._numbers = {name: number for number, name in enumerate(names) if name is not None}


class Table(Generic[Record]):
    """Records in the order in which they came."""

    def __init__(self, shape: Shape[Record], scopes: Scopes) -> None:
        self.shape, self._scopes = shape, scopes
        self.fresh: list[Record] = []
        self.saved = 0
        self._sections: Sections = PlainSections()
        self._arrays: dict[str, NDArray[np.int64]] = {}
        self._keys: dict[str, tuple[NDArray[np.uint64], NDArray[np.uint32]]] = {}
        self._changed: dict[int, Record] = {}
        self._recent: dict[int, Record] = {}

    def load(self, sections: Sections, count: int) -> None:
        """Stand on saved sections; what came since is dropped."""
        self._sections, self.saved = sections, count
        self.fresh = []
        self._arrays, self._keys, self._changed, self._recent = {}, {}, {}, {}

    def __len__(self) -> int:
        return self.saved - (int((~self._kept()).sum()) if self._scopes.closed else 0) + len(self.fresh)

    def __iter__(self) -> Iterator[Record]:
        for number in range(self.saved):
            if not self.is_closed(number):
                yield self.at(number, keep=False)
        yield from self.fresh

    def nth(self, index: int) -> Record:
        """Return a record by its place among all, counted from the end where it is negative."""
        if index < 0:
            index += len(self)
        saved = self.saved if not self._scopes.closed else len(self.live_numbers())
        if not 0 <= index < saved:
            if index < 0:
                raise IndexError(index)
            return self.fresh[index - saved]
        return self.at(index if saved == self.saved else int(self.live_numbers()[index]))

    def at(self, number: int, *, keep: bool = True) -> Record:
        """Return a record of the base by its number."""
        found = self._changed.get(number) or self._recent.get(number)
        if found is None:
            ends = self.array("ends")
            start = int(ends[number - 1]) if number else 0
            data = self._sections.between(f"{self.shape.name}.records", start, int(ends[number]))
            found = self.shape.decode(data)
            if keep:
                if len(self._recent) >= _RECENT:
                    self._recent.clear()
                self._recent[number] = found
        return found

    def array(self, column: str) -> NDArray[np.int64]:
        """Return a column of the base."""
        found = self._arrays.get(column)
        if found is None:
            found = self._arrays[column] = self._unpacked(column)
        return found

    def numbers(self, index: str, key: int) -> list[int]:
        """Return the numbers of the base's records under a key, in order, those of closed scopes left out."""
        if not self.saved:
            return []
        keys, numbers = self.index(index)
        wanted = np.uint64(key)
        low = int(keys.searchsorted(wanted))
        high = low
        while high < len(keys) and keys[high] == wanted:
            high += 1
            if high - low == 8:
                high = int(keys.searchsorted(wanted, side="right"))
        found = numbers[low:high].tolist()
        return [number for number in found if not self.is_closed(number)] if self._scopes.closed else found

    def find(self, index: str, key: int) -> list[Record]:
        """Return the base's records under a key, in order."""
        return [self.at(number) for number in self.numbers(index, key)]

    def index(self, name: str) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Return an index of the base: its keys, ascending, and the number of the record of each."""
        found = self._keys.get(name)
        if found is None:
            keys, numbers = self._unpacked(f"by_{name}.key"), self._unpacked(f"by_{name}.number")
            found = self._keys[name] = (keys.view(np.uint64), numbers.astype(np.uint32))
        return found

    def _unpacked(self, name: str) -> NDArray[np.int64]:
        return _unpacked(self._sections.array(f"{self.shape.name}.{name}", np.uint8))

    def change(self, number: int, record: Record) -> None:
        """Keep a record of the base that was changed."""
        self._changed[number] = record

    def live_numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the base's records, those of closed scopes left out."""
        return np.flatnonzero(self._kept())

    def closed_numbers(self) -> set[int]:
        """Return the numbers of the base's records of closed scopes."""
        return set(np.flatnonzero(~self._kept()).tolist()) if self._scopes.closed else set()

    def close_scope(self, number: int | None, scope: str, scope_of: Callable[[Record], str]) -> None:
        """Drop what came of a scope that was forgotten as a whole; `Scopes` tells what the base leaves out."""
        if self.saved:
            self._changed = {n: record for n, record in self._changed.items() if self.array("scope")[n] != number}
        self.fresh = [record for record in self.fresh if scope_of(record) != scope]

    def detached(self) -> Table[Record]:
        """Return the records as they are now, for another thread to read while these go on."""
        made = Table(self.shape, self._scopes.copy())
        made.saved, made._sections, made._arrays = self.saved, self._sections.again(), dict(self._arrays)
        made.fresh = [copy(record) for record in self.fresh]
        made._changed = {number: copy(record) for number, record in self._changed.items()}
        return made

    # --- writing ------------------------------------------------------------------------------------------------------

    def pieces(self) -> Iterator[Buffer]:
        """Yield the bytes of all records, in order: the same whether they come from the base or not."""
        yield from self._record_pieces([])

    def sections(self) -> Iterator[tuple[str, Iterable[Buffer]]]:
        """Yield the table as sections, base and what came since in one."""
        name, lengths = self.shape.name, list[NDArray[np.int64]]()
        yield f"{name}.records", self._record_pieces(lengths)
        yield f"{name}.ends", _packed(np.cumsum(_joined(lengths), dtype=np.int64))
        kept = self._kept()
        for column, number_of in self.shape.numbers.items():
            fresh = np.fromiter(map(number_of, self.fresh), np.int64, len(self.fresh))
            old = self.array(column)[kept] if self.saved else np.zeros(0, np.int64)
            yield f"{name}.{column}", _packed(np.concatenate((old, fresh)))
        for index, keys_of in self.shape.keys.items():
            keys, numbers = self._merged(index, keys_of, kept)
            yield f"{name}.by_{index}.key", _packed(keys.view(np.int64))
            yield f"{name}.by_{index}.number", _packed(numbers.astype(np.int64))

    def _record_pieces(self, lengths: list[NDArray[np.int64]]) -> Iterator[Buffer]:
        yield from self._base_pieces(lengths)
        size = 1024
        for start in range(0, len(self.fresh), size):
            encoded = [_encode(record) for record in self.fresh[start : start + size]]
            lengths.append(np.fromiter(map(len, encoded), np.int64, len(encoded)))
            yield b"".join(encoded)

    def _base_pieces(self, lengths: list[NDArray[np.int64]]) -> Iterator[Buffer]:
        if not self.saved:
            return
        ends = self.array("ends")
        starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
        kept = self._kept()
        copied = kept.copy()
        copied[list(self._changed)] = False
        # Runs of records that are copied as they lie, and between them those that changed.
        edges = np.flatnonzero(np.diff(copied)) + 1
        bounds = [0, *edges.tolist(), self.saved]
        for first, last in pairwise(bounds):
            if copied[first]:
                lengths.append(ends[first:last] - starts[first:last])
                yield from self._copied(int(starts[first]), int(ends[last - 1]))
                continue
            encoded = [_encode(self._changed[n]) for n in range(first, last) if kept[n]]
            lengths.append(np.fromiter(map(len, encoded), np.int64, len(encoded)))
            yield b"".join(encoded)

    def _copied(self, start: int, end: int) -> Iterator[Buffer]:
        for at in range(start, end, _COPIED_AT_ONCE):
            yield self._sections.between(f"{self.shape.name}.records", at, min(end, at + _COPIED_AT_ONCE))

    def _merged(
        self, index: str, keys_of: Callable[[Record], Iterable[int]], kept: NDArray[np.bool_]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        keys, numbers = list[int](), list[int]()
        for number, record in enumerate(self.fresh, int(kept.sum())):
            for key in keys_of(record):
                keys.append(key)
                numbers.append(number)
        all_keys, all_numbers = np.array(keys, np.uint64), np.array(numbers, np.uint32)
        if self.saved:
            old_keys, old_numbers = self.index(index)
            if self._scopes.closed:
                stays = kept[old_numbers]
                renumbered = (np.cumsum(kept) - 1).astype(np.uint32)
                old_keys, old_numbers = old_keys[stays], renumbered[old_numbers[stays]]
            all_keys, all_numbers = np.concatenate((old_keys, all_keys)), np.concatenate((old_numbers, all_numbers))
        order = np.argsort(all_keys, kind="stable")
        return all_keys[order], all_numbers[order]

    def _kept(self) -> NDArray[np.bool_]:
        if not self._scopes.closed or not self.saved:
            return np.ones(self.saved, np.bool_)
        return ~np.isin(self.array("scope"), list(self._scopes.closed))

    def is_closed(self, number: int) -> bool:
        """Tell whether a record of the base belongs to a scope that was forgotten as a whole."""
        return bool(self._scopes.closed) and int(self.array("scope")[number]) in self._scopes.closed


def key_of(data: bytes) -> int:
    """Return the 64-bit key of random bytes: of an id its last eight, which are random, of a digest any eight."""
    return int.from_bytes(data[-8:], "little")


def _joined(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)


def _packed(numbers: NDArray[np.int64]) -> list[Buffer]:
    """
    Return numbers in few bytes: by how much each is above the least, or each step from one to the next above the least.

    Of each as many bytes as the greatest needs. Differences wrap around, and so do the sums that undo them.
    """
    if not len(numbers):
        return []
    plain = _above(numbers, np.int64(0), are_steps=0)
    stepped = _above(np.diff(numbers, prepend=numbers[:1]), numbers[0], are_steps=1)
    return min(plain, stepped, key=lambda pieces: len(pieces[1]))


def _above(numbers: NDArray[np.int64], start: np.int64, *, are_steps: int) -> list[Buffer]:
    least = numbers.min()
    above = (numbers - least).view(np.uint64)
    width = next(width for width in _WIDTHS if above.max() <= np.iinfo(width).max)
    return [np.array([len(numbers), are_steps, start, least], np.int64).tobytes(), above.astype(width).tobytes()]


def _unpacked(packed: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the numbers that `_packed` was given."""
    if not len(packed):
        return np.zeros(0, np.int64)
    count, are_steps, start, least = packed[:_HEAD_BYTES].view(np.int64)
    above = packed[_HEAD_BYTES:].view(f"<u{(len(packed) - _HEAD_BYTES) // count}").astype(np.int64)
    above += least
    if are_steps:
        np.cumsum(above, out=above)
    above += start
    return above


_encode: Final = msgspec.msgpack.Encoder(order="deterministic").encode
