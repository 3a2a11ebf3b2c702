"""Memories by what they say of themselves: their text, their belief key, what they derive from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, overload

import numpy as np

from ._state import Memory
from ._tables import Table, key_of

Key = TypeVar("Key", bound=tuple[str, bytes] | bytes)


class Lookup(Generic[Key]):
    """
    Memories under some key, in sequence order.

    What came since the base is indexed when somebody asks: most folds end without anybody asking for most keys.
    """

    def __init__(
        self, table: Table[Memory], index: str, low: Callable[[Key], int], keys_of: Callable[[Memory], Sequence[Key]]
    ) -> None:
        self._table, self._index, self._low, self._keys_of = table, index, low, keys_of
        self._indexed: dict[Key, list[Memory]] = {}
        self._count = 0

    @overload
    def get(self, key: Key) -> Sequence[Memory] | None: ...
    @overload
    def get(self, key: Key, default: Sequence[Memory]) -> Sequence[Memory]: ...
    def get(self, key: Key, default: Sequence[Memory] | None = None) -> Sequence[Memory] | None:
        """Return the memories under a key, or the default when there are none."""
        fresh = self.fresh.get(key)
        if self._table.saved:
            found = [m for m in self._table.find(self._index, self._low(key)) if key in self._keys_of(m)]
            if found:
                return found if fresh is None else found + fresh
        return default if fresh is None else fresh

    def __getitem__(self, key: Key) -> Sequence[Memory]:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    @property
    def fresh(self) -> dict[Key, list[Memory]]:
        """What came since the base."""
        memories = self._table.fresh
        if len(memories) > self._count:
            keys_of, indexed = self._keys_of, self._indexed
            for memory in memories[self._count :] if self._count else memories:
                for key in keys_of(memory):
                    found = indexed.get(key)
                    if found is None:
                        indexed[key] = [memory]
                    else:
                        found.append(memory)
            self._count = len(memories)
        return self._indexed

    def reload(self) -> None:
        """Start again over a table that was loaded, or lost some of what came since."""
        self._indexed, self._count = {}, 0

    def distinct(self) -> list[int]:
        """Return the numbers of the base's memories that are the first under their keys."""
        if not self._table.saved:
            return []
        keys, numbers = self._table.index(self._index)
        firsts = np.flatnonzero(np.concatenate((np.ones(min(1, len(keys)), np.bool_), keys[1:] != keys[:-1])))
        closed = self._table.closed_numbers()
        return sorted(number for number in numbers[firsts].tolist() if number not in closed)

    def at(self, number: int) -> Memory:
        """Return a memory of the base by its number."""
        return self._table.at(number, keep=False)


class BeliefKeys(Lookup[tuple[str, bytes]]):
    """The statements of each belief key, in sequence order; the keys in the order of their first statements."""

    def of_scopes(self, scopes: set[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the keys of some scopes."""
        return (key for key in self if key[0] in scopes)

    def is_single(self, key: tuple[str, bytes]) -> bool:
        """Tell whether a key has one statement; quick where it has."""
        count = len(self._table.numbers(self._index, key_of(key[1]))) + len(self.fresh.get(key, ()))
        return count == 1 or (count > 1 and len(self.get(key, ())) == 1)

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        seen: set[tuple[str, bytes]] = set()
        for number in self.distinct():
            # Keys of two scopes, or, hardly ever, two keys of one, may share the number that the index is sorted by.
            memory = self.at(number)
            for sharing in self._table.find(self._index, key_of(memory.envelope.belief_key or b"")):
                key = (sharing.scope, sharing.envelope.belief_key or b"")
                if key not in seen:
                    seen.add(key)
                    yield key
        for key in self.fresh:
            if key not in seen:
                yield key

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def items(self) -> Iterator[tuple[tuple[str, bytes], Sequence[Memory]]]:
        """Yield each key with its statements."""
        for key in self:
            yield key, self[key]
