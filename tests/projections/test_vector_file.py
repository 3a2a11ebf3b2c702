"""Kept vectors: each sealed under its memory's key; the last of a memory counts; only what is asked for is opened."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from blake3 import blake3
from numpy.typing import NDArray

from muniment.projections._vector_file import VectorFile

DIM = 8


class Keys:
    def __init__(self) -> None:
        self.destroyed: set[int] = set()
        self.asked: list[int] = []

    def of(self, slot: int) -> bytes | None:
        self.asked.append(slot)
        return None if slot in self.destroyed else blake3(b"%d" % slot).digest()


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def file(tmp_path: Path, keys: Keys) -> VectorFile:
    return VectorFile(tmp_path, "a model", DIM, keys.of)


def keep(file: VectorFile, *slots: int, value: float = 1.0) -> None:
    file.append([(bytes([slot] * 16), slot, np.full(DIM, value * slot, np.float32)) for slot in slots])


def taken(file: VectorFile, *slots: int) -> dict[int, float]:
    asked = np.array(slots, np.int64)
    found: dict[int, float] = {}
    for numbers, vectors in file.load().take(asked):
        found.update(zip(asked[numbers].tolist(), first(vectors), strict=True))
    return found


def first(vectors: NDArray[np.float32]) -> list[float]:
    return [float(one) for one in vectors[:, 0]]


def test_vectors_come_back_by_their_slots(file: VectorFile) -> None:
    keep(file, 9, 2, 5)

    assert {2: 2.0, 9: 9.0} == taken(file, 1, 2, 3, 9, 10)
    assert {} == taken(file)


def test_what_nobody_asks_for_is_not_opened(file: VectorFile, keys: Keys) -> None:
    keep(file, 1, 2, 3)
    keys.asked.clear()
    taken(file, 2)

    assert [2] == keys.asked


def test_the_last_vector_of_a_memory_counts(file: VectorFile) -> None:
    keep(file, 1, 2)
    keep(file, 2, value=3.0)

    assert {1: 1.0, 2: 6.0} == taken(file, 1, 2)


def test_a_destroyed_key_takes_the_vector_along_and_no_other(file: VectorFile, keys: Keys) -> None:
    keep(file, 1, 2, 3)
    keys.destroyed.add(2)

    assert {1: 1.0, 3: 3.0} == taken(file, 1, 2, 3)


def test_what_was_made_anew_since_is_told_and_stays(file: VectorFile, tmp_path: Path, keys: Keys) -> None:
    keep(file, 1, 2)
    assert not file.is_replaced()
    other = VectorFile(tmp_path, "a model", DIM, keys.of)
    keep(other.beside(), 1, 2, value=10.0)
    other.replace_by(other.beside())
    assert file.is_replaced()

    keep(file, 1, 3)
    assert file.is_replaced()
    assert {1: 10.0, 2: 20.0, 3: 3.0} == taken(file, 1, 2, 3)
    assert not file.is_replaced()
    keep(file, 1)
    assert {1: 1.0} == taken(file, 1)


def test_two_that_keep_the_first_vectors_at_once_both_do(file: VectorFile, tmp_path: Path, keys: Keys) -> None:
    other = VectorFile(tmp_path, "a model", DIM, keys.of)
    keep(other, 1)
    keep(file, 2)
    keep(other, 3)

    assert {1: 1.0, 2: 2.0, 3: 3.0} == taken(file, 1, 2, 3)
    assert not other.is_replaced()


def test_a_file_that_is_gone_was_not_replaced_and_is_begun_again(file: VectorFile) -> None:
    keep(file, 1)
    file.path.unlink()
    assert not file.is_replaced()
    keep(file, 2)

    assert not file.is_replaced()
    assert {2: 2.0} == taken(file, 1, 2)


def test_a_torn_record_at_the_end_is_left_out(file: VectorFile) -> None:
    keep(file, 1, 2)
    file.path.write_bytes(file.path.read_bytes()[:-1])

    assert {1: 1.0} == taken(file, 1, 2)


def test_no_file_and_one_of_another_model_have_no_vectors(file: VectorFile, tmp_path: Path) -> None:
    assert {} == taken(file, 1)

    keep(file, 1)
    other = VectorFile(tmp_path, "another model", DIM, Keys().of)
    file.path.rename(other.path)

    assert {} == taken(other, 1)
