"""LoCoMo files become turns, in order, with the times of their sessions."""

import calendar
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment._importers import Skipped, Turn
from muniment._importers._locomo import LocomoTranscript, parse_session_time

NOON = 1_683_547_200_000_000  # 12:00 on 8 May 2023, UTC


def said(position: str, text: object = "hello", **more: object) -> dict[str, object]:
    return {"speaker": "Mia", "dia_id": position, "text": text, **more}


def conversation(name: object, *sessions: list[object], time: str = "12:00 pm on 8 May, 2023") -> dict[str, object]:
    body: dict[str, object] = {"speaker_a": "Mia", "speaker_b": "Leo"}
    for number, turns in enumerate(sessions, start=1):
        body[f"session_{number}_date_time"] = time
        body[f"session_{number}"] = turns
    return {"qa": [{"question": "?", "evidence": ["D1:1"]}], "conversation": body, "sample_id": name}


def read(path: Path, value: object) -> list[Turn | Skipped]:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return list(LocomoTranscript(path).turns())


def turns_of(found: list[Turn | Skipped]) -> list[tuple[str, str]]:
    return [(one.conversation, one.position) for one in found if isinstance(one, Turn)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "locomo.json"


def test_turns_follow_each_other_by_a_second_from_the_time_of_the_session(path: Path) -> None:
    found = read(path, [conversation("c-1", [said("D1:1"), said("D1:2", "bye")])])
    assert [
        Turn("c-1", "D1:1", "Mia", "other", "hello", NOON, "session_1"),
        Turn("c-1", "D1:2", "Mia", "other", "bye", NOON + 1_000_000, "session_1"),
    ] == found


def test_the_name_after_the_turns_is_their_conversation(path: Path) -> None:
    found = read(path, [conversation("a", [said("D1:1")]), conversation("b", [said("D1:1")])])
    assert turns_of(found) == [("a", "D1:1"), ("b", "D1:1")]


def test_a_conversation_without_a_name_is_named_by_its_place(path: Path) -> None:
    found = read(path, [{"conversation": {"session_1": [said("D1:1")]}}])
    assert [Turn("conversation-1", "D1:1", "Mia", "other", "hello", None, "session_1")] == found


def test_a_file_that_is_one_conversation_is_read(path: Path) -> None:
    assert turns_of(read(path, conversation("a", [said("D1:1")]))) == [("a", "D1:1")]


def test_the_time_may_stand_after_the_session(path: Path) -> None:
    body = {"session_1": [said("D1:1")], "session_1_date_time": "12:00 pm on 8 May, 2023"}
    found = read(path, [{"sample_id": "a", "conversation": body}])
    assert [one.said_at for one in found if isinstance(one, Turn)] == [NOON]


def test_an_image_is_its_caption(path: Path) -> None:
    found = read(
        path, [conversation("a", [said("D1:1", "look!", blip_caption="a dog"), said("D1:2", "", blip_caption="a cat")])]
    )
    assert [one.text for one in found if isinstance(one, Turn)] == ["look! [image: a dog]", "[image: a cat]"]


def test_a_position_used_twice_is_skipped_within_a_conversation_even_one_in_two_parts(path: Path) -> None:
    found = read(
        path,
        [conversation("a", [said("D1:1"), said("D1:1", "again")]), conversation("a", [said("D1:1"), said("D1:2")])],
    )
    assert turns_of(found) == [("a", "D1:1"), ("a", "D1:2")]
    assert [one.where for one in found if isinstance(one, Skipped)] == ["a/D1:1", "a/D1:1"]


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (said("D1:1", ""), "no visible character"),
        (said("D1:1", " \u200b\n"), "no visible character"),
        (said("D1:1", "a\ud800b"), "lone surrogate"),
        (said("D1:1", "a\0b"), "NUL"),
        (said("D1:1", 7), "not text"),
        (said("", "x"), "dia_id"),
        ({"text": "x"}, "dia_id"),
        ("x", "not a JSON object"),
    ],
)
def test_an_unusable_turn_is_skipped_and_the_next_is_read(path: Path, turn: object, why: str) -> None:
    found = read(path, [conversation("a", [turn, said("D1:9")])])
    assert isinstance(found[0], Skipped)
    assert why in found[0].why
    assert turns_of(found) == [("a", "D1:9")]


def test_a_session_whose_time_cannot_be_read_is_skipped_rather_than_dated_today(path: Path) -> None:
    found = read(path, [conversation("a", [said("D1:1")], time="some day in May")])
    assert [Skipped(where="a/D1:1", why="the time of session_1 cannot be read")] == found


def test_a_conversation_that_is_cut_short_is_left_out_whole_and_reported(path: Path) -> None:
    text = json.dumps([conversation("a", [said("D1:1")]), conversation("b", [said("D1:1"), said("D1:2")])])
    for cut in range(len(text)):
        found = read(path, text[:cut])
        assert turns_of(found) in ([], [("a", "D1:1")], [("a", "D1:1"), ("b", "D1:1"), ("b", "D1:2")])
        assert isinstance(found[-1], Skipped)


def test_what_is_no_conversation_is_skipped_in_its_place(path: Path) -> None:
    found = read(
        path,
        [
            1,
            {"sample_id": "x"},
            {"conversation": {"session_1": 5}, "sample_id": "y"},
            conversation("a", [said("D1:1")]),
        ],
    )
    assert [one.where for one in found if isinstance(one, Skipped)] == [
        "conversation 1",
        "conversation 2",
        "y/session_1",
    ]
    assert turns_of(found) == [("a", "D1:1")]


def test_the_same_file_gives_the_same_turns_again_and_ends_at_its_total(path: Path) -> None:
    first = read(path, [conversation("a", [said("D1:1"), said("D1:2")])])
    transcript = LocomoTranscript(path)
    assert first == list(transcript.turns()) == list(transcript.turns())
    assert transcript.total_bytes == transcript.bytes_read


@given(st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1)))
def test_every_session_time_is_read_to_the_minute(moment: datetime) -> None:
    moment = moment.replace(second=0, microsecond=0, tzinfo=UTC)
    month = calendar.month_name[moment.month]
    half = "am" if moment.hour < 12 else "pm"
    text = f"{(moment.hour - 1) % 12 + 1}:{moment.minute:02} {half} on {moment.day} {month}, {moment.year}"
    assert int(moment.timestamp()) * 1_000_000 == parse_session_time(text)


@pytest.mark.parametrize(
    "text", ["", "13:00 pm on 8 May, 2023", "1:56 pm on 31 June, 2023", "1:56 pm on 8 Foo, 2023", "8 May 2023"]
)
def test_what_is_no_session_time_is_none(text: str) -> None:
    assert parse_session_time(text) is None
