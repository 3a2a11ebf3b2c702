"""
The shred ledger: which slots were destroyed and which values were forgotten, as long as the store lives.

It is written anew, sealed under the new root, at every forget. So its entries are kept as they are encoded, and only
what is new is encoded then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

LedgerTombstone = tuple[str, bytes, bytes | None, int, str, bool, int, int]
"""(domain, digest, belief key, form, scope, everyone, rank, record time): a tombstone as the shred ledger keeps it."""


class Ledger(msgspec.Struct, frozen=True):
    """What was destroyed and forgotten up to one epoch of the keys, and how the items of both are encoded."""

    shredded: frozenset[int]
    tombstones: tuple[LedgerTombstone, ...]
    first_never_shredded: int
    slot_items: bytes
    tombstone_items: bytes

    @classmethod
    def of(cls, shredded: frozenset[int], tombstones: tuple[LedgerTombstone, ...]) -> Ledger:
        """Return the ledger of these slots and tombstones, the oldest first."""
        return cls(shredded, tombstones, 1 + max(shredded, default=-1), _items(shredded), _items(tombstones))

    def with_shredded(self, slots: Collection[int], tombstones: Sequence[LedgerTombstone]) -> Ledger:
        """Return the ledger with more slots and tombstones."""
        new = frozenset(slots) - self.shredded
        return Ledger(
            self.shredded | new,
            self.tombstones + tuple(tombstones),
            max(self.first_never_shredded, 1 + max(new, default=-1)),
            self.slot_items + _items(new),
            self.tombstone_items + _items(tombstones),
        )

    def encoded(self) -> tuple[msgspec.Raw, msgspec.Raw]:
        """Return the slots and the tombstones as MessagePack arrays."""
        return (
            msgspec.Raw(_array_header(len(self.shredded)) + self.slot_items),
            msgspec.Raw(_array_header(len(self.tombstones)) + self.tombstone_items),
        )


def _items(items: Collection[object]) -> bytes:
    return _encode(list(items))[len(_array_header(len(items))) :]


def _array_header(count: int) -> bytes:
    if count < 16:
        return bytes([0x90 | count])
    return b"\xdc" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xdd" + count.to_bytes(4, "big")


_encode = msgspec.msgpack.Encoder().encode
