"""I2: each event's hash covers its exact bytes and the hash before it; `verify` names the first that does not fit."""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import muniment
from muniment import Verification
from tests.worlds import AGENT, World

SEGMENT_HEADER = 128
FRAME_HEADER = struct.Struct(">4sIQIQI")
TRAILER = 32


class Sealed(NamedTuple):
    """A log of single-event frames, and where each of them lies."""

    path: Path
    segment: Path
    frames: list[tuple[int, int]]
    data: bytes


@pytest.fixture
def sealed(world: World) -> Sealed:
    agent = world.speaker(AGENT)
    agent.remember_many([{"content": "one of two"}, {"content": "two of two"}])
    for n in range(8):
        agent.remember(f"memory number {n}")
    world.store.close()
    shutil.rmtree(world.path / "projections")  # a snapshot would spare the next opening from reading all of the log
    (segment,) = (world.path / "log").glob("*.seg")
    data = segment.read_bytes()
    frames: list[tuple[int, int]] = []
    at = SEGMENT_HEADER
    while at < len(data):
        end = at + FRAME_HEADER.size + FRAME_HEADER.unpack_from(data, at)[1] + TRAILER
        frames.append((at, end))
        at = end
    return Sealed(world.path, segment, frames, data)


def _first_seq(sealed: Sealed, number: int) -> int:
    return int(FRAME_HEADER.unpack_from(sealed.data, sealed.frames[number][0])[2])


def _verify(sealed: Sealed, data: bytes) -> Verification:
    sealed.segment.write_bytes(data)
    with muniment.open(sealed.path, model="none", read_only=True) as store:
        return store.verify()


def _joined(sealed: Sealed, numbers: Sequence[int]) -> bytes:
    frames = [sealed.data[slice(*sealed.frames[n])] for n in numbers]
    return sealed.data[:SEGMENT_HEADER] + b"".join(frames)


def _named(report: Verification) -> list[int]:
    return [int(n) for finding in report.findings for n in re.findall(r"event (\d+)", finding)]


def test_i02_an_untouched_log_verifies_and_says_what_it_cannot_tell(sealed: Sealed) -> None:
    report = _verify(sealed, sealed.data)

    assert report.ok
    assert () == report.findings
    assert any("missing at the end" in line for line in report.unchecked)


def test_i02_a_flipped_bit_anywhere_is_found_at_its_event(sealed: Sealed) -> None:
    """At every fifth byte of the log, in a bit that moves on with it."""
    for number, (start, end) in enumerate(sealed.frames):
        first = _first_seq(sealed, number)
        count = FRAME_HEADER.unpack_from(sealed.data, start)[3]
        for at in range(start, end, 5):
            data = bytearray(sealed.data)
            data[at] ^= 1 << (at % 8)

            report = _verify(sealed, bytes(data))

            assert not report.ok, f"byte {at} of frame {number}"
            assert first <= _named(report)[0] < first + count, f"byte {at} of frame {number}: {report.findings}"


def test_i02_a_flipped_bit_of_the_segment_header_is_found(sealed: Sealed) -> None:
    for at in range(SEGMENT_HEADER):
        data = bytearray(sealed.data)
        data[at] ^= 1 << (at % 8)

        report = _verify(sealed, bytes(data))

        assert 1 == _named(report)[0], f"byte {at} of the segment header"


def test_i02_a_dropped_frame_is_found_where_it_is_missing(sealed: Sealed) -> None:
    everything = range(len(sealed.frames))
    for gone in everything[:-1]:
        report = _verify(sealed, _joined(sealed, [n for n in everything if n != gone]))

        assert not report.ok
        assert _first_seq(sealed, gone) == _named(report)[0]


def test_i02_a_repeated_frame_is_found(sealed: Sealed) -> None:
    everything = list(range(len(sealed.frames)))
    for twice in everything:
        report = _verify(sealed, _joined(sealed, sorted([*everything, twice])))

        assert not report.ok


def test_i02_reordered_frames_are_found_at_the_first_of_them(sealed: Sealed) -> None:
    everything = list(range(len(sealed.frames)))
    for first in everything[:-1]:
        order = [*everything[:first], first + 1, first, *everything[first + 2 :]]

        report = _verify(sealed, _joined(sealed, order))

        assert not report.ok
        assert _first_seq(sealed, first) == _named(report)[0]


def test_i02_a_frame_of_another_store_is_not_taken_for_one_of_ours(sealed: Sealed, tmp_path: Path) -> None:
    other = World(tmp_path / "other")
    for n in range(9):
        other.speaker(AGENT).remember(f"foreign number {n}")
    other.store.close()
    (segment,) = (other.path / "log").glob("*.seg")
    foreign = segment.read_bytes()[SEGMENT_HEADER:]

    assert not _verify(sealed, sealed.data + foreign).ok
    assert not _verify(sealed, sealed.data[:SEGMENT_HEADER] + foreign).ok


def test_i02_a_cut_tail_is_not_denied_but_said_to_be_unknowable(sealed: Sealed) -> None:
    """A shorter log is a log: without a checkpoint, what verify may not do is to vouch for its end."""
    for note in (sealed.path / "checkpoints").iterdir():
        note.unlink()
    for frames in range(1, len(sealed.frames)):
        report = _verify(sealed, _joined(sealed, range(frames)))

        assert report.ok
        assert any("missing at the end" in line for line in report.unchecked)


def test_i02_verify_changes_no_byte_of_a_damaged_store(sealed: Sealed, tmp_path: Path) -> None:
    data = bytearray(sealed.data)
    data[len(data) // 2] ^= 1
    sealed.segment.write_bytes(data)
    before = {p: p.read_bytes() for p in sealed.path.rglob("*") if p.is_file()}

    with muniment.open(sealed.path, model="none", read_only=True) as store:
        store.verify()

    assert before == {p: p.read_bytes() for p in sealed.path.rglob("*") if p.is_file()}
    shutil.copytree(sealed.path, tmp_path / "copy")
    with pytest.raises(muniment.Corrupt, match="log damaged at event"):
        muniment.open(tmp_path / "copy", model="none")
    assert sealed.segment.read_bytes() == (tmp_path / "copy" / "log" / sealed.segment.name).read_bytes()


def test_i02_what_lies_before_the_damage_can_still_be_read(sealed: Sealed) -> None:
    at, _ = sealed.frames[-2]
    data = bytearray(sealed.data)
    data[at + 100] ^= 1
    sealed.segment.write_bytes(data)

    with muniment.open(sealed.path, model="none", read_only=True) as store:
        shown = [record.content for record in store.session(scope="acme/apollo", actor=AGENT).list()]

    assert ["one of two", "two of two", *(f"memory number {n}" for n in range(6))] == shown
