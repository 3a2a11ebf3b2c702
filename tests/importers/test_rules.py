"""CLAUDE.md and AGENTS.md: bullets and paragraphs under their headings."""

from __future__ import annotations

from pathlib import Path

import pytest

import muniment
from muniment._importers import Skipped, Turn
from muniment._importers._rules import RulesTranscript


def read(tmp_path: Path, text: str) -> list[Turn | Skipped]:
    path = tmp_path / "AGENTS.md"
    path.write_text(text, encoding="utf-8")
    return [one for one in RulesTranscript(path).turns() if isinstance(one, Turn | Skipped)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a\n- b\n", [("", "a"), ("", "b")]),
        ("1. a\n2) b\n", [("", "a"), ("", "b")]),
        ("- a\n  - b\n\n  c\n- d\n", [("", "a\n  - b\n\n  c"), ("", "d")]),
        ("- a\n\nb\nc\n\nd\n", [("", "a"), ("", "b\nc"), ("", "d")]),
        ("# A\n## B ##\na\n# C\nb", [("A > B", "a"), ("C", "b")]),
        ("a\n```\n# no heading\n- no bullet\n```\n", [("", "a\n```\n# no heading\n- no bullet\n```")]),
        ("```\nopen to the end\n- a", [("", "```\nopen to the end\n- a")]),
        ("\ufeff# A\r\n- a\r\n", [("A", "a")]),
        ("  - a\n- b\n", [("", "a"), ("", "b")]),
        ("# A/B\n- a\n", [("A/B", "a")]),
    ],
)
def test_a_bullet_is_a_memory_and_so_is_a_paragraph(tmp_path: Path, text: str, expected: list[tuple[str, str]]) -> None:
    assert expected == [(one.speaker, one.text) for one in read(tmp_path, text) if isinstance(one, Turn)]


def test_comments_and_includes_are_reported_and_not_read(tmp_path: Path) -> None:
    found = read(tmp_path, "<!-- a\nb -->\n@~/more.md\n- a\n")
    assert ["hidden", "hidden", "unsupported"] == [one.code for one in found if isinstance(one, Skipped)]
    assert ["a"] == [one.text for one in found if isinstance(one, Turn)]


def test_what_moved_is_the_same_memory_and_what_was_edited_another(tmp_path: Path) -> None:
    path = tmp_path / "CLAUDE.md"
    with muniment.open(tmp_path / "store", create=True, model="none") as store:
        path.write_text("# Style\n- Use tabs.\n- Be brief.\n", encoding="utf-8")
        store.import_file(path, scope="acme")
        path.write_text("Read this first.\n\n# Style\n- Be brief.\n- Use spaces.\n", encoding="utf-8")
        report = store.import_file(path, scope="acme")
        records = store.session(scope="acme", actor="agent:x").list()

    assert (2, 1) == (report.written, report.repeated)
    assert [("Style: Use tabs.", 2), ("Style: Be brief.", 3), ("Read this first.", 1), ("Style: Use spaces.", 5)] == [
        (record.content, record.metadata["line"]) for record in records
    ]


def test_a_line_that_is_no_utf_8_costs_itself(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_bytes(b"- a\n- b\xff\n- c\n")
    found = list(RulesTranscript(path).turns())
    assert [("line 2", "damaged")] == [(one.where, one.code) for one in found if isinstance(one, Skipped)]
    assert ["a", "c"] == [one.text for one in found if isinstance(one, Turn)]
