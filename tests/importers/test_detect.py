"""A file's format is detected, or refused with what was seen; nothing is guessed."""

import json
from pathlib import Path

import pytest

from muniment._importers import detect_format, open_transcript
from muniment.events._errors import BadArgument

TURN = {"role": "user", "content": "hello"}
LOCOMO = [{"qa": [], "conversation": {"session_1": []}, "sample_id": "c-1"}]


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "given.file"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (json.dumps(TURN).encode(), "jsonl"),
        (b'\xef\xbb\xbf\n\n{"broken\n' + json.dumps(TURN).encode() + b"\n", "jsonl"),
        (json.dumps({**TURN, "content": "a" * 100_000}).encode(), "jsonl"),
        (json.dumps(LOCOMO).encode(), "locomo"),
        (json.dumps(LOCOMO, indent=2).encode(), "locomo"),
        (json.dumps(LOCOMO[0]).encode(), "locomo"),
        (json.dumps([{"note": 1, **LOCOMO[0]}]).encode(), "locomo"),
    ],
)
def test_a_known_format_is_named_whatever_the_file_is_called(tmp_path: Path, data: bytes, expected: str) -> None:
    path = write(tmp_path, data)
    assert detect_format(path) == expected
    assert open_transcript(path).name == expected


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        (b"", "an empty file"),
        (b" \n", "nothing but white space"),
        (b"\x1f\x8b\x08junk", "a compressed file"),
        (b"a\0b", "a binary file"),
        (b"Dear diary", "text that is not JSON"),
        (b"[1, 2]", "JSON without a conversation"),
        (json.dumps([{"title": "x", "pages": {}}]).encode(), "a JSON array of objects whose first key is `title`"),
        (json.dumps([TURN]).encode(), "a JSON array of objects whose first key is `role`"),
        (json.dumps({"messages": []}).encode(), "a JSON object whose first key is `messages`"),
    ],
)
def test_an_unknown_format_is_refused_with_what_was_seen_and_what_is_known(
    tmp_path: Path, data: bytes, seen: str
) -> None:
    with pytest.raises(BadArgument) as caught:
        detect_format(write(tmp_path, data))
    assert seen in str(caught.value)
    assert "`locomo`, `jsonl`" in str(caught.value)


def test_a_format_that_is_named_is_taken_and_a_wrong_name_refused(tmp_path: Path) -> None:
    path = write(tmp_path, b"")
    assert open_transcript(path, format="jsonl").name == "jsonl"
    with pytest.raises(BadArgument, match="`csv` is not known; known are `locomo`, `jsonl`"):
        open_transcript(path, format="csv")


@pytest.mark.parametrize("format_name", [None, "jsonl"])
def test_a_path_that_is_no_file_is_refused(tmp_path: Path, format_name: str | None) -> None:
    with pytest.raises(BadArgument, match="is not a file"):
        open_transcript(tmp_path, format=format_name)
    with pytest.raises(BadArgument, match="does not exist"):
        open_transcript(tmp_path / "none", format=format_name)
