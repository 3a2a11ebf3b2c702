"""The demo passes, fits a page, and says which expectation differed when one does."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

import muniment
from muniment._demo_page import Page, clip
from muniment._demo_run import run
from muniment._demo_script import SHIPPED
from muniment.events import BadArgument, parse_instant

SECTIONS = ("IMPORT", "RECALL", "CORRECTION", "TIME", "GUARD", "FORGET", "REBUILD", "VERIFY")


def facts_with(tmp_path: Path, old: str, new: str) -> Path:
    """Return a copy of the shipped facts with one text changed."""
    text = (SHIPPED / "facts.toml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "facts.toml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


def test_the_demo_passes_on_one_page() -> None:
    lines: list[str] = []
    assert 0 == run(out=lines.append), "\n".join(lines)

    assert 45 <= len(lines) <= 60
    assert not [line for line in lines if columns(line) > 100 or "\x1b" in line]
    assert list(SECTIONS) == [line.split()[1] for line in lines if line[:1].isdigit() and line[1:2] == " "]
    assert lines[-1].startswith("29 checks passed, 0 differed")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        pytest.param('answer = "hazelnuts"', 'answer = "walnuts"', "walnuts", id="an answer that nobody gave"),
        pytest.param("IS 07700 900461", "IS 07700 900462", "accepted", id="a spelling that is another value"),
        pytest.param('old_value = "14 March', 'old_value = "April', "section 3", id="a value that is not gone"),
        pytest.param("juniper-photos-archive", "juniper-photos-staging", "section 5", id="the confirmed act"),
    ],
)
def test_an_expectation_that_differs_is_named_and_fails_the_demo(
    tmp_path: Path, old: str, new: str, named: str
) -> None:
    lines: list[str] = []
    assert 1 == run(facts=facts_with(tmp_path, old, new), out=lines.append)

    assert [line for line in lines if line.startswith("differed: ") and named in line], "\n".join(lines)


def test_before_the_conversations_dates_the_demo_moves_its_present() -> None:
    lines: list[str] = []
    assert 0 == run(out=lines.append, clock=lambda: parse_instant("2026-01-01")), "\n".join(lines)


def test_the_demo_runs_on_a_transcript_of_the_users_own(tmp_path: Path) -> None:
    turns = [
        {"speaker": ("Ann", "Bob")[n % 2], "dia_id": f"D1:{n}", "text": f"I saw {n} herons by the river, I think."}
        for n in range(1, 9)
    ]
    asked = [{"question": "How many herons did Ann see first?", "answer": "2", "evidence": ["D1:2"], "category": 1}]
    sample = {
        "qa": asked,
        "conversation": {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"},
        "sample_id": "conv-1",
    }
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([sample]), encoding="utf-8")
    lines: list[str] = []

    assert 0 == run(path, out=lines.append), "\n".join(lines)
    assert [line for line in lines if "evidence D1:2: hit" in line]


def test_the_store_is_kept_where_the_user_asks_for_it(tmp_path: Path) -> None:
    assert 0 == run(keep=tmp_path / "kept", out=lambda line: None)

    with muniment.open(tmp_path / "kept" / "store", read_only=True, model="none") as store:
        assert store.verify().ok
    with pytest.raises(BadArgument, match="keep"):
        run(keep=tmp_path / "kept", out=lambda line: None)


def test_a_file_that_is_no_transcript_is_the_callers_mistake(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("just words", encoding="utf-8")

    with pytest.raises(BadArgument, match="format"):
        run(path, out=lambda line: None)


def test_a_clipped_line_counts_wide_characters_twice() -> None:
    assert "short" == clip("short", 10)
    assert "誕生日ケ…" == clip("誕生日ケーキを予約", 10)
    assert "a b" == clip("a\nb\x1b", 10)


def test_colour_is_only_there_when_it_is_asked_for() -> None:
    plain: list[str] = []
    coloured: list[str] = []
    for lines, colour in ((plain, False), (coloured, True)):
        page = Page(lines.append, colour=colour)
        page.check("it holds", expected=1, actual=1)
        page.check("it does not", expected=1, actual=2)
        assert (1, ["section 0: it does not: expected 1, got 2"]) == (page.checks, page.differed)

    assert "\x1b" not in "".join(plain)
    assert all("\x1b" in line for line in coloured)
