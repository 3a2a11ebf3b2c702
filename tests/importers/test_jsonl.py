"""JSON lines become turns; a broken line is reported and never the end."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment._importers import Skipped, Turn, _lines
from muniment._importers._jsonl import JsonlTranscript

MORNING = 1_779_265_782_000_000  # 2026-05-20T08:29:42Z


def read(path: Path, *lines: object) -> list[Turn | Skipped]:
    encoded = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"\n".join(encoded))
    return list(JsonlTranscript(path).turns())


def said(content: object = "hello", **more: object) -> dict[str, object]:
    return {"role": "user", "content": content, **more}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ann.jsonl"


def test_a_line_is_a_turn_at_its_line_number_and_blank_lines_count(path: Path) -> None:
    found = read(path, said(), b"", b"  \r", {"role": "assistant", "content": "Hi", "name": "Sage", "session": "s1"})
    assert found == [
        Turn("ann", "1", "user", "user", "hello", None, ""),
        Turn("ann", "4", "Sage", "assistant", "Hi", None, "s1"),
    ]


@pytest.mark.parametrize(
    "time",
    [
        "2026-05-20T08:29:42",
        "2026-05-20T08:29:42Z",
        "2026-05-20T10:29:42+02:00",
        1_779_265_782,
        1_779_265_782_000,
        1_779_265_782.0,
        "@1779265782",
    ],
)
def test_every_way_to_write_an_instant_is_the_same_instant(path: Path, time: object) -> None:
    assert [one.said_at for one in read(path, said(time=time)) if isinstance(one, Turn)] == [MORNING]


def test_a_float_of_seconds_keeps_its_microseconds(path: Path) -> None:
    found = read(path, said(time=1767600000.1234567))
    assert [one.said_at for one in found if isinstance(one, Turn)] == [1_767_600_000_123_457]


@pytest.mark.parametrize("time", ["soon", "1779265782", "", True, [], 1e300, float("nan"), 10**40, "2026-13-01"])
def test_a_time_that_cannot_be_read_skips_the_line_rather_than_dating_it_today(path: Path, time: object) -> None:
    found = read(path, said(time=time), said())
    assert isinstance(found[0], Skipped)
    assert "time" in found[0].why
    assert isinstance(found[1], Turn)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"role": "user", "content": "cut sho', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"role": "user", "content": ' + b"1" * 5000 + b"}", "not JSON"),
        (b'{"role": "user", "content": "\xff"}', "not UTF-8"),
        (b'{"role": "user", "content": "\xed\xa0\x80"}', "not UTF-8"),
        (b'{"role": "user", "content": "\\ud800"}', "lone surrogate"),
        (b'{"role": "user", "content": "\\u0000"}', "NUL"),
        (said(""), "no visible character"),
        (said("\u200b \u00a0"), "no visible character"),
        (said(["part"]), "not text"),
        ({"role": "user"}, "missing"),
        ({"content": "x"}, "missing"),
        (b"17", "not a JSON object"),
        (said(name=7), "`name`"),
    ],
)
def test_a_line_that_is_no_turn_is_skipped_and_the_next_is_read(path: Path, line: object, why: str) -> None:
    found = read(path, line, said("after"))
    assert isinstance(found[0], Skipped)
    assert (found[0].where, why in found[0].why) == ("line 1", True)
    assert found[1] == Turn("ann", "2", "user", "user", "after", None, "")


@pytest.mark.parametrize("role", ["User", "USER", "user ", "human", "system", "tool"])
def test_only_the_exact_role_is_the_user(path: Path, role: str) -> None:
    found = read(path, {"role": role, "content": "x"})
    assert [one.role for one in found if isinstance(one, Turn)] == ["other"]


def test_a_mark_of_byte_order_is_no_part_of_the_first_line(path: Path) -> None:
    assert read(path, b"\xef\xbb\xbf" + json.dumps(said()).encode())[0] == Turn(
        "ann", "1", "user", "user", "hello", None, ""
    )


def test_a_line_too_long_is_passed_over_and_keeps_its_number(path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lines, "MAX_VALUE_BYTES", 64)
        found = read(path, said("a" * 500), said(), b"x" * 64)
    assert [one.where for one in found if isinstance(one, Skipped)] == ["line 1", "line 3"]
    assert [one.position for one in found if isinstance(one, Turn)] == ["2"]


def test_the_same_file_gives_the_same_turns_again_and_ends_at_its_total(path: Path) -> None:
    first = read(path, said("a"), said("b"))
    transcript = JsonlTranscript(path)
    assert first == list(transcript.turns()) == list(transcript.turns())
    assert transcript.bytes_read == transcript.total_bytes


@given(lines=st.lists(st.binary(max_size=60)))
def test_any_bytes_are_read_to_the_end_with_positions_that_are_unique(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    found = read(path, *[line.replace(b"\n", b"") for line in lines], said("last"))
    turns = [one.position for one in found if isinstance(one, Turn)]
    assert turns[-1] == str(len(lines) + 1)
    assert len(turns) == len(set(turns))
