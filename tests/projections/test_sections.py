"""Sealed sections give back what was written, or say that they cannot."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.events import ProjectionStale
from muniment.projections import PlainSections, Repairing, SealedSections, write_sections
from muniment.projections._sections import CHUNK_BYTES

_counter = itertools.count()
KEY = bytes(range(32))
pieces = st.lists(st.binary(max_size=300) | st.integers(0, CHUNK_BYTES + 5).map(bytes), max_size=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sections")


@given(written=st.dictionaries(st.text(max_size=5), pieces, max_size=4), data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_part_of_a_section_reads_as_it_was_written(
    folder: Path, written: dict[str, list[bytes]], data: st.DataObject
) -> None:
    path = folder / f"{next(_counter)}.snap"
    write_sections(path, KEY, written.items())
    sealed, plain = SealedSections(path, KEY), PlainSections(written.items())
    for name, parts in written.items():
        whole = b"".join(parts)
        start = data.draw(st.integers(0, len(whole)))
        end = data.draw(st.integers(start, len(whole) + 3))
        assert whole[start:end] == sealed.between(name, start, end) == plain.between(name, start, end)
        assert whole == sealed.array(name, np.uint8).tobytes() == plain.array(name, np.uint8).tobytes()
    assert b"" == sealed.between("there is no such section", 0, 9)


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
@settings(max_examples=80, deadline=None)
def test_any_flipped_bit_is_noticed_when_it_is_read(folder: Path, at: int, bit: int) -> None:
    path = folder / "flipped.snap"
    write_sections(path, KEY, [("one", [bytes(500)]), ("two", [b"x" * 700])])
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 1 << bit
    path.write_bytes(data)
    with pytest.raises(ProjectionStale):
        _read_all(path)


@pytest.mark.parametrize("kept", [0, 7, 24, 600, 1_000])
def test_a_truncated_file_is_noticed(folder: Path, kept: int) -> None:
    path = folder / "short.snap"
    write_sections(path, KEY, [("one", [bytes(500)]), ("two", [b"x" * 700])])
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ProjectionStale):
        _read_all(path)


def test_another_key_opens_nothing(folder: Path) -> None:
    path = folder / "other.snap"
    write_sections(path, KEY, [("one", [b"secret"])])
    with pytest.raises(ProjectionStale):
        SealedSections(path, bytes(32))


def test_a_renamed_or_removed_file_stays_readable(folder: Path) -> None:
    path = folder / "gone.snap"
    write_sections(path, KEY, [("one", [b"still here"])])
    sections = SealedSections(path, KEY)
    path.unlink()
    assert b"still here" == sections.between("one", 0, 99)


def test_a_damaged_section_is_made_again(folder: Path) -> None:
    path = folder / "repaired.snap"
    write_sections(path, KEY, [("one", [bytes(500)])])
    sections = SealedSections(path, KEY)
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    repaired = Repairing(sections, lambda: PlainSections([("one", [bytes(500)])]))
    assert bytes(500) == repaired.between("one", 0, 500)


def _read_all(path: Path) -> None:
    sections = SealedSections(path, KEY)
    for name in ("one", "two"):
        assert sections.between(name, 0, 9_999)
