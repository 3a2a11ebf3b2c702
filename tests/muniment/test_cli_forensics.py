"""What the investigator's verbs add up to: SQL, containment by origin, what would be otherwise, pages to keep."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser
from pathlib import Path

import pytest

from .shell import Shell, opened_shell

HOSTILE = "</td><script>alert(1)</script><img src='https://evil.example/x.png'>\u202e&amp;"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return opened_shell(tmp_path)


# --- sql --------------------------------------------------------------------------------------------------------------


def test_sql_answers_in_json_in_columns_and_in_the_past(shell: Shell) -> None:
    first = shell.remember("The launch is on 12 March.", "--about", "launch", "date")
    seq = str(shell.row("stats")["events"])
    second = shell.remember('It "moved", to 2 April.', "--about", "launch", "date")
    query = "select id, status, content from memories order by seq"

    rows = shell.rows("sql", query)
    assert [(first, "superseded"), (second, "active")] == [(row["id"], row["status"]) for row in rows]
    assert [{"id": first, "status": "active", "content": "The launch is on 12 March."}] == shell.rows(
        "sql", query, "--to", seq
    )
    printed = list(csv.reader(io.StringIO(shell.run("sql", query, "--csv").stdout)))
    assert [["id", "status", "content"], [second, "active", 'It "moved", to 2 April.']] == [printed[0], printed[2]]
    assert f"{second}\tactive" in shell.run("sql", query).stdout


@pytest.mark.parametrize(
    "args",
    [
        ("delete from memories",),
        ("select 1", "--csv", "--json"),
        ("select 1 as a, 2 as a",),
        ("select 1", "--to", "-1"),
    ],
)
def test_sql_that_cannot_be_answered_is_an_error(shell: Shell, args: tuple[str, ...]) -> None:
    shell.run("sql", *args, code=2)


# --- quarantine by origin ---------------------------------------------------------------------------------------------


def test_quarantine_by_origin_is_one_event_and_one_release_undoes_it(shell: Shell) -> None:
    pages = [shell.remember(f"page {n}", "--origin", f"web:https://x.example/{n}") for n in range(2)]
    elsewhere = shell.remember("other page", "--origin", "web:https://x.example/2", "--scope", "globex")
    kept = shell.remember("my own note")

    receipt = shell.row("quarantine", "--origin", "web:https://x.example/*", "--reason", "poisoned")
    assert [*pages, elsewhere] == receipt["ids"]
    statuses = "select id from memories where status = 'quarantined' order by seq"
    assert [*pages, elsewhere] == [row["id"] for row in shell.rows("sql", statuses)]
    assert [kept] == [row["id"] for row in shell.rows("recall", "page note")]

    shell.run("release", str(receipt["id"]), "--reason", "it was fine")
    assert [] == shell.rows("sql", statuses)


def test_quarantine_of_an_origin_that_nothing_came_from_is_an_error(shell: Shell) -> None:
    shell.remember("my own note")
    shell.run("quarantine", "--origin", "web:*", "--reason", "x", code=2)
    shell.run("quarantine", "--origin", "web:*", "--from-trace", "0", "--reason", "x", code=2)


# --- what would be otherwise ------------------------------------------------------------------------------------------


def test_without_some_events_other_beliefs_and_decisions_would_stand(shell: Shell) -> None:
    page = shell.remember("Invoices go to mallory.", "--about", "invoices", "to", "--origin", "web:https://x.example")
    note = shell.remember("Send them to mallory.", "--derived-from", page)
    decision = shell.row("decide", "notes.read", "--evidence", page, "--evidence", note, code=1)

    rows = shell.rows("replay", "--to", "HEAD", "--without", "origin=web:*")

    found = {(row["what"], row["id"]): row["would_be"] for row in rows}
    assert "absent" == found["memory", page]
    assert "absent" == found["belief", page]
    assert f"{page[:12]} not_found" in str(found["decision", decision["id"]])
    assert ("memory", note) not in found


def test_what_was_recorded_in_a_time_can_be_left_out(shell: Shell) -> None:
    identity = shell.remember("one")
    recorded_at = str(shell.row("get", identity)["recorded_at"])

    rows = shell.rows("replay", "--to", "HEAD", "--without", f"time={recorded_at}..{recorded_at}")
    assert [identity] == [row["id"] for row in rows]
    assert [] == shell.rows("replay", "--to", "HEAD", "--without", "time=2001-01-01..2001-12-31")


# --- reports ----------------------------------------------------------------------------------------------------------


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("verb", ["explain", "trace", "explain a decision"])
def test_a_report_is_one_page_that_asks_for_nothing_and_runs_nothing(shell: Shell, verb: str, tmp_path: Path) -> None:
    page = shell.remember(HOSTILE, "--origin", "web:https://x.example")
    shell.remember("a note of it", "--derived-from", page)
    decision = str(shell.row("decide", "email.send", "--arg", f"to={HOSTILE}", "--evidence", page, code=1)["id"])
    report = tmp_path / "report.html"

    identity = decision if "decision" in verb else page
    shell.run(verb.split(maxsplit=1)[0], identity, "--report", str(report))

    read = _Tags()
    read.feed(report.read_text(encoding="utf-8"))
    assert read.tags <= {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "table", "tr", "th", "td"}
    assert not read.attributes & {"src", "href", "onload", "onerror", "action"}
    assert "alert(1)</script><img" in read.text
    assert "\\u{202e}&amp;" in read.text
    assert 0o600 == report.stat().st_mode & 0o777


def test_a_report_does_not_overwrite(shell: Shell, tmp_path: Path) -> None:
    identity = shell.remember("one")
    (tmp_path / "kept.html").write_text("mine", encoding="utf-8")

    shell.run("explain", identity, "--report", str(tmp_path / "kept.html"), code=2)

    assert "mine" == (tmp_path / "kept.html").read_text(encoding="utf-8")


def test_a_report_of_something_erased_shows_the_stub(shell: Shell, tmp_path: Path) -> None:
    identity = shell.remember("the code word is beetroot")
    shell.run("forget", identity, "--reason", "asked to")

    shell.run("explain", identity, "--report", str(tmp_path / "stub.html"))

    page = (tmp_path / "stub.html").read_text(encoding="utf-8")
    assert "beetroot" not in page
    assert "erased" in page
    assert "asked to" in page
