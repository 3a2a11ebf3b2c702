"""What the register is asked by: mappings and sequences over its tables, in the order in which things were recorded."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar, overload

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from ._columns import Column
from ._state import Command, CommandRow, DecisionRecord, EventRow, Link, Memory
from ._tables import Scopes, Table, key_of

Owned = TypeVar("Owned", Memory, DecisionRecord)


class ById(Generic[Owned]):
    """Records by their ids; the values in sequence order."""

    def __init__(self, table: Table[Owned], scope_of: Callable[[Owned], str]) -> None:
        self.table: Table[Owned] = table
        self._scope_of: Callable[[Owned], str] = scope_of
        self._fresh: dict[bytes, Owned] = {}

    @overload
    def get(self, identity: bytes) -> Owned | None: ...
    @overload
    def get(self, identity: bytes, default: Owned) -> Owned: ...
    def get(self, identity: bytes, default: Owned | None = None) -> Owned | None:
        """Return the record, or the default."""
        found = self._fresh.get(identity)
        if found is not None:
            return found
        for record in self.table.find("id", key_of(identity)):
            if record.id == identity:
                return record
        return default

    def __getitem__(self, identity: bytes) -> Owned:
        found = self._fresh.get(identity) or self.get(identity)
        if found is None:
            raise KeyError(identity)
        return found

    def __contains__(self, identity: object) -> bool:
        return isinstance(identity, bytes) and self.get(identity) is not None

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[bytes]:
        return (record.id for record in self.table)

    def values(self) -> Iterable[Owned]:
        """Return the records, in sequence order."""
        return self.table

    def add(self, record: Owned) -> None:
        """Add the newest record."""
        self._fresh[record.id] = record
        self.table.fresh.append(record)

    def changed(self, record: Owned) -> None:
        """Keep a record that was changed."""
        if record.id in self._fresh:
            return
        for number in self.table.numbers("id", key_of(record.id)):
            if self.table.at(number).id == record.id:
                self.table.change(number, record)

    def at_seq(self, seq: int) -> Owned | None:
        """Return the record of an event, or None."""
        fresh = self.table.fresh
        if fresh and fresh[0].seq <= seq:
            at = bisect_left(fresh, seq, key=lambda record: record.seq)
            return fresh[at] if at < len(fresh) and fresh[at].seq == seq else None
        seqs = self.table.array("seq")
        at = int(seqs.searchsorted(seq))
        if at == len(seqs) or seqs[at] != seq or at in self.table.closed_numbers():
            return None
        return self.table.at(at)

    def after(self, seq: int) -> Iterator[Owned]:
        """Yield the records of the events after a sequence number, in order."""
        if self.table.saved:
            for number in range(int(self.table.array("seq").searchsorted(seq, side="right")), self.table.saved):
                if not self.table.is_closed(number):
                    yield self.table.at(number, keep=False)
        fresh = self.table.fresh
        yield from fresh[bisect_right(fresh, seq, key=lambda record: record.seq) :]

    def with_slots(self, slots: set[int]) -> list[Owned]:
        """Return the records whose bodies are under some key slots, in sequence order."""
        wanted = np.array(sorted(slots), np.int64)
        numbers = np.flatnonzero(np.isin(self.table.array("slot"), wanted)).tolist() if self.table.saved else []
        closed = self.table.closed_numbers()
        found = [self.table.at(number) for number in numbers if number not in closed]
        return found + [record for record in self.table.fresh if record.slot in slots]

    def close_scope(self, number: int | None, scope: str) -> None:
        """Drop what belongs to a scope that was forgotten as a whole."""
        self.table.close_scope(number, scope, self._scope_of)
        self._fresh = {record.id: record for record in self.table.fresh}

    def reload(self) -> None:
        """Start again over a table that was loaded."""
        self._fresh = {}


class ScopeRows(Sequence[Memory]):
    """The memories of one scope, in sequence order: row n is number n."""

    def __init__(self, table: Table[Memory], numbers: NDArray[np.uint32]) -> None:
        self._table, self._numbers = table, numbers
        self._saved = len(numbers)
        self._fresh: list[Memory] = []
        self._columns: dict[str, Column[Memory]] = {}

    def add(self, memory: Memory) -> None:
        """Add the newest memory, and tell it its row."""
        memory.row = self._saved + len(self._fresh)
        self._fresh.append(memory)

    def __len__(self) -> int:
        return self._saved + len(self._fresh)

    @overload
    def __getitem__(self, row: int) -> Memory: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Memory]: ...
    def __getitem__(self, row: int | slice) -> Memory | Sequence[Memory]:
        if isinstance(row, slice):
            return [self[n] for n in range(*row.indices(len(self)))]
        if row < 0:
            row += len(self)
        if row < self._saved:
            if row < 0:
                raise IndexError(row)
            return self._table.at(int(self._numbers[row]))
        return self._fresh[row - self._saved]

    def __iter__(self) -> Iterator[Memory]:
        for number in self._numbers.tolist():
            yield self._table.at(number, keep=False)
        yield from self._fresh

    def seq_of(self, row: int) -> int:
        """Return the sequence number of a row."""
        if row < self._saved:
            return int(self._table.array("seq")[int(self._numbers[row])])
        return self._fresh[row - self._saved].seq

    def column(self, name: str) -> NDArray[np.int64]:
        """Return a column of the register's memories for all rows; it is not to be written to."""
        found = self._columns.get(name)
        if found is None:
            base = self._table.array(name)[self._numbers] if self._saved else np.zeros(0, np.int64)
            found = self._columns[name] = Column(base, self._table.shape.numbers[name])
        return found.over(self._fresh)

    def numbers_of(self, name: str, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a column of the register's memories for some rows, in any order."""
        saved = rows < self._saved
        found = np.empty(len(rows), np.int64)
        if saved.any():
            found[saved] = self._table.array(name)[self._numbers[rows[saved]]]
        number_of = self._table.shape.numbers[name]
        found[~saved] = [number_of(self._fresh[row - self._saved]) for row in rows[~saved].tolist()]
        return found

    def upto(self, known: int) -> int:
        """Return how many rows were recorded up to a sequence number."""
        if self._fresh and self._fresh[-1].seq <= known:
            return self._saved + len(self._fresh)  # the present is what is asked for, nearly always
        if not self._fresh or self._fresh[0].seq > known:
            return bisect_right(range(self._saved), known, key=self.seq_of)
        return self._saved + bisect_right(self._fresh, known, key=lambda memory: memory.seq)


class Rows:
    """The rows of every scope."""

    def __init__(self, table: Table[Memory], scopes: Scopes) -> None:
        self._table, self._scopes = table, scopes
        self._rows: dict[str, ScopeRows] = {}

    @overload
    def get(self, scope: str) -> ScopeRows | None: ...
    @overload
    def get(self, scope: str, default: Sequence[Memory]) -> Sequence[Memory]: ...
    def get(self, scope: str, default: Sequence[Memory] | None = None) -> Sequence[Memory] | None:
        """Return the rows of a scope, or the default when it has none."""
        found = self._find(scope)
        return default if found is None else found

    def __getitem__(self, scope: str) -> ScopeRows:
        found = self._find(scope)
        if found is None:
            raise KeyError(scope)
        return found

    def __contains__(self, scope: object) -> bool:
        return isinstance(scope, str) and self._find(scope) is not None

    def __iter__(self) -> Iterator[str]:
        for scope in self._scopes.live():
            if scope in self:
                yield scope

    def items(self) -> Iterator[tuple[str, ScopeRows]]:
        """Yield each scope with its rows."""
        for scope in self:
            yield scope, self[scope]

    def of(self, scope: str) -> ScopeRows:
        """Return the rows of a scope, made when it has none."""
        found = self._rows.get(scope)
        if found is None and (found := self._find(scope)) is None:
            self._scopes.number(scope)
            found = self._rows[scope] = ScopeRows(self._table, np.zeros(0, np.uint32))
        return found

    def pop(self, scope: str) -> None:
        """Drop the rows of a scope."""
        self._rows.pop(scope, None)

    def reload(self) -> None:
        """Start again over a table that was loaded."""
        self._rows = {}

    def _find(self, scope: str) -> ScopeRows | None:
        found = self._rows.get(scope)
        if found is None and self._table.saved and (number := self._scopes.find(scope)) is not None:
            keys, numbers = self._table.index("scope")
            low, high = keys.searchsorted(np.array([number, number + 1], np.uint64))
            if low < high:
                found = self._rows[scope] = ScopeRows(self._table, numbers[low:high])
        return found


class Timeline(Sequence[EventRow]):
    """One row for each event that can be opened, in sequence order."""

    def __init__(self, table: Table[EventRow]) -> None:
        self.table = table

    def append(self, row: EventRow) -> None:
        """Add the newest row."""
        self.table.fresh.append(row)

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[EventRow]:
        return iter(self.table)

    @overload
    def __getitem__(self, index: int) -> EventRow: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[EventRow]: ...
    def __getitem__(self, index: int | slice) -> EventRow | Sequence[EventRow]:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        return self.table.nth(index)

    def find(self, identity: bytes) -> list[EventRow]:
        """Return the rows of an event id."""
        # The newest first: what is asked for has nearly always just been written, and an id stands for one event.
        for row in reversed(self.table.fresh):
            if row.id == identity:
                return [row]
        return [row for row in self.table.find("id", key_of(identity)) if row.id == identity]

    def upto_time(self, recorded_at: int) -> EventRow | None:
        """Return the last row recorded up to an instant."""
        fresh = self.table.fresh
        low = bisect_right(fresh, recorded_at, key=lambda row: row.recorded_at)
        return fresh[low - 1] if low else self._last_saved("recorded_at", recorded_at)

    def upto(self, seq: int) -> EventRow | None:
        """Return the last row up to a sequence number."""
        fresh = self.table.fresh
        low = bisect_right(fresh, seq, key=lambda row: row.seq)
        return fresh[low - 1] if low else self._last_saved("seq", seq)

    def _last_saved(self, column: str, most: int) -> EventRow | None:
        if not self.table.saved:
            return None
        low = int(np.searchsorted(self.table.array(column), most, side="right"))
        while low and self.table.is_closed(low - 1):
            low -= 1
        return self.table.at(low - 1) if low else None


class Commands:
    """The first event under each command id."""

    def __init__(self, table: Table[CommandRow]) -> None:
        self.table = table
        self._fresh: dict[tuple[str, str, str], Command] = {}

    def get(self, key: tuple[str, str, str]) -> Command | None:
        """Return the first use of (scope, actor, command id), or None."""
        found = self._fresh.get(key)
        if found is None and self.table.saved:
            for row in self.table.find("command", command_key(*key)):
                if (row.scope, row.actor, row.command_id) == key:
                    return row.command
        return found

    def add(self, scope: str, actor: str, command_id: str, command: Command) -> None:
        """Add a command, unless its id was used before."""
        key = (scope, actor, command_id)
        if key not in self._fresh and (not self.table.saved or self.get(key) is None):
            self._fresh[key] = command
            self.table.fresh.append(CommandRow(scope, actor, command_id, command))

    def close_scope(self, number: int | None, scope: str) -> None:
        """Drop the commands of a scope that was forgotten as a whole."""
        self.table.close_scope(number, scope, lambda row: row.scope)
        self._fresh = {(row.scope, row.actor, row.command_id): row.command for row in self.table.fresh}

    def reload(self) -> None:
        """Start again over a table that was loaded."""
        self._fresh = {}


class Links(Sequence[Link]):
    """Typed links, in sequence order, and by either of their ends."""

    def __init__(self, table: Table[Link]) -> None:
        self.table = table
        self._fresh: dict[bytes, list[Link]] = {}

    def __iter__(self) -> Iterator[Link]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)

    @overload
    def __getitem__(self, index: int) -> Link: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Link]: ...
    def __getitem__(self, index: int | slice) -> Link | Sequence[Link]:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        return self.table.nth(index)

    def get(self, identity: bytes, default: Sequence[Link] = ()) -> Sequence[Link]:
        """Return the links that begin or end at a memory."""
        found = [link for link in self.table.find("end", key_of(identity)) if identity in (link.start, link.end)]
        fresh = self._fresh.get(identity)
        return (found + (fresh or [])) or default

    def add(self, link: Link) -> None:
        """Add the newest link."""
        self.table.fresh.append(link)
        self._index(link)

    def end(self, wanted: tuple[bytes, bytes, str], *, live: int, seq: int, recorded_at: int) -> None:
        """End what links of (start, end, type) are live."""
        for number in self.table.numbers("end", key_of(wanted[0])):
            link = self.table.at(number)
            if (link.start, link.end, link.type) == wanted and link.ended_seq == live:
                link.ended_seq, link.ended_at = seq, recorded_at
                self.table.change(number, link)
        for link in self._fresh.get(wanted[0], []):
            if (link.start, link.end, link.type) == wanted and link.ended_seq == live:
                link.ended_seq, link.ended_at = seq, recorded_at

    def close_scope(self, number: int | None, scope: str) -> None:
        """Drop the links of a scope that was forgotten as a whole."""
        self.table.close_scope(number, scope, lambda link: link.scope)
        self.reload()
        for link in self.table.fresh:
            self._index(link)

    def reload(self) -> None:
        """Start again over a table that was loaded."""
        self._fresh = {}

    def _index(self, link: Link) -> None:
        self._fresh.setdefault(link.start, []).append(link)
        if link.end != link.start:
            self._fresh.setdefault(link.end, []).append(link)


def command_key(scope: str, actor: str, command_id: str) -> int:
    """Return the key under which a command is found."""
    return key_of(blake3("\0".join((scope, actor, command_id)).encode()).digest())


def ends_of(link: Link) -> Iterable[int]:
    """Return the keys of a link's ends, each once."""
    return {key_of(link.start), key_of(link.end)}
