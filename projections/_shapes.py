"""How the register's tables are laid out: their columns, and by what their records are found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec

from muniment.events import Kind

from ._lookups import command_key, ends_of
from ._state import CommandRow, DecisionRecord, EventRow, Link, Memory
from ._tables import Shape, Table, key_of

Number: TypeAlias = Callable[[str], int]
"""Gives the number of a scope."""
AnyTable: TypeAlias = Table[Memory] | Table[Link] | Table[CommandRow] | Table[DecisionRecord] | Table[EventRow]


class _Scoped(Protocol):
    @property
    def scope(self) -> str: ...


def memory_shape(number: Number) -> Shape[Memory]:
    """Return the layout of memories."""
    return Shape(
        name="memories",
        decode=msgspec.msgpack.Decoder(Memory).decode,
        numbers={
            "seq": lambda m: m.seq,
            "scope": lambda m: number(m.scope),
            "slot": lambda m: m.slot,
            "kind": lambda m: kind_number(m.envelope.kind),
            "valid_from": lambda m: m.envelope.valid_from,
            "valid_until": lambda m: m.valid_until,
        },
        keys={
            "id": lambda m: (key_of(m.id),),
            "scope": lambda m: (number(m.scope),),
            "text": lambda m: (key_of(m.envelope.text_key),),
            "key": lambda m: () if m.envelope.belief_key is None else (key_of(m.envelope.belief_key),),
            "parent": lambda m: {key_of(i) for i in m.envelope.derived_from} if m.envelope.derived_from else (),
            "recalled": lambda m: {key_of(i) for i in m.envelope.recalled} if m.envelope.recalled else (),
        },
    )


def link_shape(number: Number) -> Shape[Link]:
    """Return the layout of links."""
    return Shape(
        name="links",
        decode=msgspec.msgpack.Decoder(Link).decode,
        numbers={"scope": lambda link: number(link.scope)},
        keys={"end": ends_of},
    )


def command_shape(number: Number) -> Shape[CommandRow]:
    """Return the layout of commands."""
    return Shape(
        name="commands",
        decode=msgspec.msgpack.Decoder(CommandRow).decode,
        numbers={"scope": lambda row: number(row.scope)},
        keys={"command": lambda row: (command_key(row.scope, row.actor, row.command_id),)},
    )


def decision_shape(number: Number) -> Shape[DecisionRecord]:
    """Return the layout of decisions."""
    return Shape(
        name="decisions",
        decode=msgspec.msgpack.Decoder(DecisionRecord).decode,
        numbers={"seq": lambda d: d.seq, "scope": lambda d: number(d.scope), "slot": lambda d: d.slot},
        keys={"id": lambda d: (key_of(d.id),)},
    )


def event_shape(number: Number) -> Shape[EventRow]:
    """Return the layout of the timeline."""
    return Shape(
        name="timeline",
        decode=msgspec.msgpack.Decoder(EventRow).decode,
        numbers={"seq": lambda r: r.seq, "recorded_at": lambda r: r.recorded_at, "scope": lambda r: number(r.scope)},
        keys={"id": lambda r: (key_of(r.id),)},
    )


def kind_number(kind: str) -> int:
    """Return the number of a kind in the column of kinds."""
    return _KINDS.get(kind, len(_KINDS))


def scope_of(record: _Scoped) -> str:
    """Return the scope of a record."""
    return record.scope


def belief_keys_of(memory: Memory) -> Sequence[tuple[str, bytes]]:
    """Return the belief key that a memory states a value of, with its scope."""
    envelope = memory.envelope
    return () if envelope.belief_key is None else ((envelope.scope, envelope.belief_key),)


def text_keys_of(memory: Memory) -> Sequence[tuple[str, bytes]]:
    """Return the digest of a memory's text, with its scope."""
    return ((memory.envelope.scope, memory.envelope.text_key),)


def parents_of(memory: Memory) -> Sequence[bytes]:
    """Return what a memory declares to derive from."""
    return memory.envelope.derived_from


def recalled_of(memory: Memory) -> Sequence[bytes]:
    """Return what had been recalled before a memory was written."""
    return memory.envelope.recalled


# Saved with the register: other numbers take another VERSION of it.
_KINDS: Final = {kind.value: number for number, kind in enumerate(Kind)}
