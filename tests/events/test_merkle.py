"""The tree: RFC 6962 roots, proofs that hold for what is there, and for nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.events import (
    BadProof,
    CompactRange,
    check_record,
    check_tree,
    leaf_hash,
    prove_record,
    prove_tree,
    read_records,
    tree_root,
)

SIZES = 100
RECORDS = [hashlib.blake2b(bytes([n]), digest_size=32).digest() for n in range(SIZES)]
NODES = cache(read_records(RECORDS))
ROOTS = [tree_root(size, NODES) for size in range(SIZES)]

# The inputs and roots of the Certificate Transparency reference tests, for sizes 1 to 8.
CT_INPUTS = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
CT_ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def flipped(hashes: list[bytes], at: int, bit: int) -> list[bytes]:
    """Return the hashes with one bit of one of them changed."""
    changed = bytearray(hashes[at])
    changed[bit // 8] ^= 1 << bit % 8
    return [*hashes[:at], bytes(changed), *hashes[at + 1 :]]


def bits(size: int, at: int) -> Iterator[int]:
    """Yield every bit for small trees, and one that varies for the others."""
    yield from range(256) if size < 10 else [(size * 37 + at * 11) % 256]


def test_roots_are_those_of_certificate_transparency() -> None:
    inputs = [bytes.fromhex(one) for one in CT_INPUTS]

    assert CT_ROOTS == [tree_root(size, read_records(inputs)).hex() for size in range(1, 9)]


def test_the_empty_tree_has_the_hash_of_nothing() -> None:
    assert hashlib.sha256(b"").digest() == tree_root(0, read_records([])) == CompactRange().root()


def test_a_leaf_can_not_be_taken_for_a_node() -> None:
    assert leaf_hash(leaf_hash(b"a") + leaf_hash(b"b")) != tree_root(2, read_records([b"a", b"b"]))


@given(groups=st.lists(st.integers(0, 20), max_size=12))
def test_a_range_gives_the_same_root_however_records_are_grouped(groups: list[int]) -> None:
    records = [bytes([n % 251]) * 32 for n in range(sum(groups))]
    grown, at = CompactRange(), 0
    for count in groups:
        grown.extend(records[at : at + count])
        at += count

    assert tree_root(len(records), read_records(records)) == grown.root()
    assert len(records) == grown.size


@pytest.mark.parametrize("size", range(SIZES))
def test_a_range_goes_on_after_saving_as_if_it_had_not_been_saved(size: int) -> None:
    saved = CompactRange()
    saved.extend(RECORDS[:size])
    loaded = CompactRange.load(saved.save())
    loaded.extend(RECORDS[size:])

    assert ROOTS[size] == saved.root()
    assert tree_root(SIZES, NODES) == loaded.root()
    with pytest.raises(ValueError, match="has"):
        CompactRange.load(saved.save() + b"\0")


@pytest.mark.parametrize("size", range(SIZES))
def test_every_record_is_proven_and_nothing_else_is(size: int) -> None:
    """Every proof of every tree up to 99 records; with any hash changed, cut or added, it proves nothing."""
    for index in range(size):
        proof = prove_record(size, index, NODES)
        check_record(proof, size, ROOTS[size], index, RECORDS[index])
        wrong: list[list[bytes]] = [flipped(proof, at, bit) for at in range(len(proof)) for bit in bits(size, at)]
        wrong += [proof[:-1]] if proof else []
        wrong.append([*proof, ROOTS[size]])
        for bad in wrong:
            with pytest.raises(BadProof):
                check_record(bad, size, ROOTS[size], index, RECORDS[index])
        with pytest.raises(BadProof):
            check_record(proof, size, ROOTS[size], index, RECORDS[index - 1] if size > 1 else b"another")
        for place in {(index + 1) % size, size, -1} - {index}:
            with pytest.raises(BadProof):
                check_record(proof, size, ROOTS[size], place, RECORDS[index])


@pytest.mark.parametrize("size", range(1, SIZES))
def test_every_earlier_tree_is_proven_and_nothing_else_is(size: int) -> None:
    for old in range(1, size + 1):
        proof = prove_tree(size, old, NODES)
        check_tree(proof, size, ROOTS[size], old, ROOTS[old])
        wrong = [flipped(proof, at, bit) for at in range(len(proof)) for bit in bits(size, at)]
        wrong += [proof[:-1]] if proof else []
        wrong.append([*proof, ROOTS[size]])
        for bad in wrong:
            with pytest.raises(BadProof):
                check_tree(bad, size, ROOTS[size], old, ROOTS[old])
        with pytest.raises(BadProof):
            check_tree(proof, size, ROOTS[size], old, ROOTS[old - 1])
        with pytest.raises(BadProof):
            check_tree(proof, size, ROOTS[size - 1], old, ROOTS[old])


def test_sizes_that_cannot_be_are_refused() -> None:
    for size, index in ((0, 0), (3, 3), (3, -1)):
        with pytest.raises(ValueError, match="no record"):
            prove_record(size, index, NODES)
    for size, old in ((0, 0), (3, 4), (3, 0)):
        with pytest.raises(ValueError, match="does not extend"):
            prove_tree(size, old, NODES)
        with pytest.raises(BadProof):
            check_tree([], size, ROOTS[size], old, ROOTS[old])
