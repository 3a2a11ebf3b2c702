"""
The rows of one scope by their tags, and by what they have under the metadata keys that were asked for.

Made when somebody filters, and taken on from there. An erased row leaves nothing: what it alone had is dropped with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from muniment.events import format_data, parse_data

from ._columns import with_room
from ._facets import Facets

Mask: TypeAlias = NDArray[np.bool_]
Feed: TypeAlias = Callable[[int], Iterable[tuple[int, Facets]]]
"""Gives the facets of the rows from one on, in order; rows that have none may be left out."""

KEYS_KEPT: Final = 32
"""Metadata keys that are kept; the one asked for longest ago is dropped first."""
_NOTHING: Final = 0
_HASHED: Final = (str, int, float, bool, bytes, type(None))
"""Types whose values equal nothing but what a dict finds under them."""


def is_same(kept: object, asked: object) -> bool:
    """Tell whether a value of metadata is the one asked for: to Python True is 1, but who wrote one meant no other."""
    return kept == asked and isinstance(kept, bool) == isinstance(asked, bool)


class FacetIndex:
    """Answers for all rows of a scope at once."""

    def __init__(self) -> None:
        self._tags: _Tags | None = None
        self._keys: dict[str, _Values] = {}

    def with_tags(self, tags: Iterable[str], rows: int, feed: Feed) -> Mask:
        """Return which rows have all of some tags."""
        if self._tags is None:
            self._tags = _Tags()
        self._tags.extend(rows, feed)
        mask = np.ones(rows, dtype=np.bool_)
        for tag in tags:
            mask &= self._tags.having(tag)
        return mask

    def with_values(self, where: Mapping[str, object], rows: int, feed: Feed) -> Mask:
        """Return which rows have each value under its key."""
        mask = np.ones(rows, dtype=np.bool_)
        for key, values in self._of(where, rows, feed).items():
            mask &= values.having(where[key])
        return mask

    def known_keys(self, keys: Collection[str], rows: int, feed: Feed) -> set[str]:
        """Return those of some keys that any row has."""
        return {key for key, values in self._of(keys, rows, feed).items() if values.is_used}

    def erase(self, row: int) -> None:
        """Drop all that the row has."""
        if self._tags is not None:
            self._tags.erase(row)
        for values in self._keys.values():
            values.erase(row)

    def _of(self, keys: Collection[str], rows: int, feed: Feed) -> dict[str, _Values]:
        asked = {key: self._keys.pop(key) if key in self._keys else _Values() for key in keys}
        self._keys.update(asked)  # last again
        behind = [(key, values) for key, values in asked.items() if values.rows < rows]
        if behind:
            for row, facets in feed(min(values.rows for _, values in behind)):
                if facets.metadata is not None:
                    data = cast("Mapping[str, object]", parse_data(facets.metadata))
                    for key, values in behind:
                        if row >= values.rows and key in data:
                            values.add(row, data[key], rows)
            for _, values in behind:
                values.take_upto(rows)
        while len(self._keys) > max(KEYS_KEPT, len(asked)):
            del self._keys[next(iter(self._keys))]
        return asked


class _Values:
    """What each row has under one key, as a number for each value; 0 for nothing."""

    def __init__(self) -> None:
        self.rows = 0
        self._numbers: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._values: dict[int, object] = {}
        self._counts: dict[int, int] = {}
        self._by_value: dict[object, int] = {}
        self._last = _NOTHING

    @property
    def is_used(self) -> bool:
        """Whether any row has the key."""
        return bool(self._counts)

    def add(self, row: int, value: object, rows: int) -> None:
        """Take in what a row has, before `take_upto(rows)`."""
        found = self._by_value.get(_name_of(value))
        if found is None:
            found = self._last = self._last + 1
            self._by_value[_name_of(value)], self._values[found], self._counts[found] = found, value, 0
        self._counts[found] += 1
        self._numbers = with_room(self._numbers, rows)
        self._numbers[row] = found

    def take_upto(self, rows: int) -> None:
        """Learn that all rows below one were taken in."""
        self._numbers = with_room(self._numbers, rows)
        self.rows = rows

    def having(self, asked: object) -> Mask:
        """Return which rows have a value."""
        numbers = self._numbers[: self.rows]
        if type(asked) in _HASHED:
            return np.equal(numbers, self._by_value.get(_name_of(asked), -1))
        equal = [number for number, value in self._values.items() if is_same(value, asked)]
        return np.isin(numbers, np.array(equal, dtype=np.int32))

    def erase(self, row: int) -> None:
        """Drop what the row has, and the value when no other row has it."""
        number = int(self._numbers[row]) if row < self.rows else _NOTHING
        if number == _NOTHING:
            return
        self._numbers[row] = _NOTHING
        self._counts[number] -= 1
        if not self._counts[number]:
            del self._counts[number], self._by_value[_name_of(self._values.pop(number))]


class _Tags:
    """The tags of all rows, as pairs of a row and a number for each tag, in the order of the rows."""

    def __init__(self) -> None:
        self._taken = self._count = 0
        self._rows: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._numbers: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._tags: dict[int, str] = {}
        self._counts: dict[int, int] = {}
        self._by_tag: dict[str, int] = {}
        self._last = _NOTHING

    def extend(self, rows: int, feed: Feed) -> None:
        """Take in the rows below one."""
        if self._taken >= rows:
            return
        for row, facets in feed(self._taken):
            for tag in dict.fromkeys(facets.tags):
                self._add(row, tag)
        self._taken = rows

    def having(self, tag: str) -> Mask:
        """Return which rows have a tag."""
        mask = np.zeros(self._taken, dtype=np.bool_)
        found = self._by_tag.get(tag)
        if found is not None:
            mask[self._rows[: self._count][self._numbers[: self._count] == found]] = True
        return mask

    def erase(self, row: int) -> None:
        """Drop the row's tags, and those that no other row has."""
        start, end = np.searchsorted(self._rows[: self._count], (row, row + 1))
        for number in self._numbers[start:end].tolist():
            if number != _NOTHING:
                self._counts[number] -= 1
                if not self._counts[number]:
                    del self._counts[number], self._by_tag[self._tags.pop(number)]
        self._numbers[start:end] = _NOTHING

    def _add(self, row: int, tag: str) -> None:
        found = self._by_tag.get(tag)
        if found is None:
            found = self._last = self._last + 1
            self._by_tag[tag], self._tags[found], self._counts[found] = found, tag, 0
        self._counts[found] += 1
        self._rows, self._numbers = with_room(self._rows, self._count + 1), with_room(self._numbers, self._count + 1)
        self._rows[self._count], self._numbers[self._count] = row, found
        self._count += 1


def _name_of(value: object) -> object:
    # Equal for values that are equal to whatever is asked; a list or a dict stands for itself as it is written.
    if isinstance(value, (list, dict)):
        return (list, format_data(cast("object", value), what="metadata"))
    return (isinstance(value, bool), value)
