"""
The tree over the log: RFC 6962, so that tools of certificate transparency check its proofs.

    record   what the tree is made of: the 32-byte chain hash of an event (see `_codec`)
    leaf     SHA-256(0x00 || record)
    node     SHA-256(0x01 || left || right)
    root     of no records: SHA-256 of nothing; of n > 1: the node of the first k and the other n - k records, where
             k is the largest power of two below n

The chain already commits to everything before it; the tree is what lets somebody who has only a root and a few hashes
see that an event is in the log, or that a log continues an older one. There is no I/O here: whole subtrees are read
through a function, `read(level, index)`, which returns the hash of records [index * 2^level, (index + 1) * 2^level).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

Hash: TypeAlias = bytes
"""A SHA-256 digest: 32 bytes."""
ReadNode: TypeAlias = Callable[[int, int], Hash]
"""Returns the hash of a whole subtree by its level, leaves being level 0, and its index within the level."""

HASH_BYTES: Final = 32
EMPTY_ROOT: Final[Hash] = hashlib.sha256(b"").digest()
_LEAF: Final = b"\x00"
_NODE: Final = b"\x01"
_SIZE_BYTES: Final = 8

_sha256 = hashlib.sha256


class BadProof(ValueError):
    """A proof does not lead where it should, or does not have the length that its sizes call for."""


def leaf_hash(record: bytes) -> Hash:
    """Return the hash of one leaf: SHA-256(0x00 || record)."""
    return _sha256(_LEAF + record).digest()


def node_hash(left: Hash, right: Hash) -> Hash:
    """Return the hash over two subtrees: SHA-256(0x01 || left || right)."""
    return _sha256(_NODE + left + right).digest()


class CompactRange:
    """
    What has to be kept of a tree to append to it and to know its root: one hash for each bit set in its size.

    Records are appended in any grouping, and cost the same work in all: just under two hashes each.
    """

    def __init__(self) -> None:
        self.size = 0
        self._pending: list[Hash | None] = []

    def extend(self, records: Iterable[bytes]) -> None:
        """Append records, hashing them level by level."""
        sha256, leaf, node = _sha256, _LEAF, _NODE
        nodes = [sha256(leaf + record).digest() for record in records]
        self.size += len(nodes)
        level = 0
        while nodes:
            if level == len(self._pending):
                self._pending.append(None)
            waiting = self._pending[level]
            if waiting is not None:
                nodes.insert(0, waiting)
            self._pending[level] = nodes.pop() if len(nodes) % 2 else None
            pairs = iter(nodes)
            nodes = [sha256(node + left + right).digest() for left, right in zip(pairs, pairs, strict=True)]
            level += 1

    def root(self) -> Hash:
        """Return the root of the tree so far."""
        found: Hash | None = None
        for subtree in self._pending:
            if subtree is not None:
                found = subtree if found is None else node_hash(subtree, found)
        return EMPTY_ROOT if found is None else found

    def copy(self) -> CompactRange:
        """Return another range over the same records, to be continued apart from this one."""
        other = CompactRange()
        other.size, other._pending = self.size, list(self._pending)
        return other

    def save(self) -> bytes:
        """Return the range as bytes: u64 size, then the subtrees' hashes from the smallest to the largest."""
        return self.size.to_bytes(_SIZE_BYTES) + b"".join(subtree for subtree in self._pending if subtree is not None)

    @classmethod
    def load(cls, data: bytes) -> CompactRange:
        """
        Return the range that was saved.

        Raises:
            ValueError: the bytes are not those of a range of that size.
        """
        size = int.from_bytes(data[:_SIZE_BYTES])
        if len(data) != _SIZE_BYTES + HASH_BYTES * size.bit_count():
            raise ValueError(f"a range over {size} records has {size.bit_count()} hashes, not {len(data)} bytes")
        found = cls()
        found.size = size
        at = _SIZE_BYTES
        for level in range(size.bit_length()):
            if size >> level & 1:
                found._pending.append(data[at : at + HASH_BYTES])
                at += HASH_BYTES
            else:
                found._pending.append(None)
        return found


def read_records(records: Sequence[bytes]) -> ReadNode:
    """Return a function that hashes whole subtrees of some records when asked: at most all of them for one proof."""

    def read(level: int, index: int) -> Hash:
        part = CompactRange()
        part.extend(records[index << level : (index + 1) << level])
        return part.root()

    return read


def tree_root(size: int, read: ReadNode) -> Hash:
    """Return the root over the first `size` records."""
    return _subtree(0, size, read) if size else EMPTY_ROOT


def prove_record(size: int, index: int, read: ReadNode) -> list[Hash]:
    """
    Return the proof that the tree over `size` records holds record `index`, counted from 0: RFC 6962's audit path.

    Raises:
        ValueError: there is no such record.
    """
    if not 0 <= index < size:
        raise ValueError(f"no record {index} in a tree of {size}")
    return _record_proof(0, size, index, read)


def check_record(proof: Sequence[Hash], size: int, root: Hash, index: int, record: bytes) -> None:
    """
    Return if the proof shows that the tree of that size and root holds `record` as number `index`, counted from 0.

    Raises:
        BadProof: it does not.
    """
    if not 0 <= index < size:
        raise BadProof(f"no record {index} in a tree of {size}")
    if _run_record_proof(list(proof), 0, size, index, leaf_hash(record)) != root:
        raise BadProof("the path does not lead from the record to the root")


def prove_tree(size: int, old_size: int, read: ReadNode) -> list[Hash]:
    """
    Return the proof that the tree over `size` records begins with the records of the one over `old_size`.

    Raises:
        ValueError: the old tree is empty, or larger.
    """
    if not 1 <= old_size <= size:
        raise ValueError(f"a tree of {size} does not extend one of {old_size}")
    return _tree_proof(0, size, old_size, read)


def check_tree(proof: Sequence[Hash], size: int, root: Hash, old_size: int, old_root: Hash) -> None:
    """
    Return if the proof shows that the tree of that size and root begins with all records of the old one.

    Raises:
        BadProof: it does not.
    """
    if not 1 <= old_size <= size:
        raise BadProof(f"a tree of {size} does not extend one of {old_size}")
    if _run_tree_proof(list(proof), 0, size, old_size, old_root) != (old_root, root):
        raise BadProof("the two roots do not follow from the proof")


def _split(count: int) -> int:
    """Return the largest power of two below `count`, which is 2 or more."""
    return 1 << ((count - 1).bit_length() - 1)


def _subtree(low: int, high: int, read: ReadNode) -> Hash:
    # `low` is a multiple of the largest power of two that fits: every caller cuts with _split.
    count = high - low
    if count & (count - 1) == 0:
        level = count.bit_length() - 1
        return read(level, low >> level)
    middle = low + _split(count)
    return node_hash(_subtree(low, middle, read), _subtree(middle, high, read))


def _record_proof(low: int, high: int, index: int, read: ReadNode) -> list[Hash]:
    if high - low == 1:
        return []
    middle = low + _split(high - low)
    if index < middle:
        return [*_record_proof(low, middle, index, read), _subtree(middle, high, read)]
    return [*_record_proof(middle, high, index, read), _subtree(low, middle, read)]


def _run_record_proof(proof: list[Hash], low: int, high: int, index: int, leaf: Hash) -> Hash:
    if high - low == 1:
        if proof:
            raise BadProof("the path has hashes left over")
        return leaf
    if not proof:
        raise BadProof("the path is too short")
    *rest, beside = proof
    middle = low + _split(high - low)
    if index < middle:
        return node_hash(_run_record_proof(rest, low, middle, index, leaf), beside)
    return node_hash(beside, _run_record_proof(rest, middle, high, index, leaf))


def _tree_proof(low: int, high: int, old: int, read: ReadNode) -> list[Hash]:
    if old == high:
        # Common ground. The checker has the old root itself, so that one is not sent.
        return [] if low == 0 else [_subtree(low, high, read)]
    middle = low + _split(high - low)
    if old <= middle:
        return [*_tree_proof(low, middle, old, read), _subtree(middle, high, read)]
    return [*_tree_proof(middle, high, old, read), _subtree(low, middle, read)]


def _run_tree_proof(proof: list[Hash], low: int, high: int, old: int, old_root: Hash) -> tuple[Hash, Hash]:
    """Return what the proof makes of records [low, high) in the old tree and in the new one."""
    if old == high:
        if len(proof) != (low != 0):
            raise BadProof("the proof has another length than the sizes call for")
        return (old_root, old_root) if low == 0 else (proof[0], proof[0])
    if not proof:
        raise BadProof("the proof is too short")
    *rest, beside = proof
    middle = low + _split(high - low)
    if old <= middle:
        before, after = _run_tree_proof(rest, low, middle, old, old_root)
        return before, node_hash(after, beside)
    before, after = _run_tree_proof(rest, middle, high, old, old_root)
    return node_hash(beside, before), node_hash(beside, after)
