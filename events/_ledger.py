"""
The shred ledger: which slots were destroyed and which values were forgotten, as long as the store lives.

It is written anew, sealed under the new root, at every forget. So its entries are kept as they are encoded, and only
what is new is encoded then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

LedgerTombstone = tuple[str, bytes, bytes | None, int, str, bool, int, int]
"""(domain, digest, belief key, form, scope, everyone, rank, record time): a tombstone as the shred ledger keeps it."""


class Ledger:
    """What was destroyed and forgotten up to one epoch of the keys; never changes."""

    def __init__(self, shredded: frozenset[int], tombstones: tuple[LedgerTombstone, ...]) -> None:
        self.shredded: Final = shredded
        """The slots whose keys were destroyed."""
        self.tombstones: Final = tombstones
        """The tombstones, oldest first."""
        self.first_never_shredded: Final = 1 + max(shredded, default=-1)
        """The first slot after all those whose keys were destroyed."""
        self._encoded_slots, self._encoded_tombstones = _items(shredded), _items(tombstones)

    def with_shredded(self, slots: Collection[int], tombstones: Sequence[LedgerTombstone]) -> Ledger:
        """Return the ledger with more slots and tombstones."""
        new = frozenset(slots) - self.shredded
        grown = Ledger.__new__(Ledger)
        grown.__dict__.update(
            shredded=self.shredded | new,
            tombstones=self.tombstones + tuple(tombstones),
            first_never_shredded=max(self.first_never_shredded, 1 + max(new, default=-1)),
            _encoded_slots=self._encoded_slots + _items(new),
            _encoded_tombstones=self._encoded_tombstones + _items(tombstones),
        )
        return grown

    def encoded(self) -> tuple[msgspec.Raw, msgspec.Raw]:
        """Return the slots and the tombstones as MessagePack arrays."""
        return (
            msgspec.Raw(_array_header(len(self.shredded)) + self._encoded_slots),
            msgspec.Raw(_array_header(len(self.tombstones)) + self._encoded_tombstones),
        )


def _items(items: Collection[object]) -> bytes:
    return _encode(list(items))[len(_array_header(len(items))) :]


def _array_header(count: int) -> bytes:
    if count < 16:
        return bytes([0x90 | count])
    return b"\xdc" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xdd" + count.to_bytes(4, "big")


_encode = msgspec.msgpack.Encoder().encode
