"""Bringing data in from a shell: an import is external, whatever a file says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .shell import Shell, opened_shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return opened_shell(tmp_path)


@pytest.fixture
def transcript(tmp_path: Path) -> str:
    turns = [("user", "I like tea."), ("assistant", "Noted."), ("user", "And cake.")]
    path = tmp_path / "turns.jsonl"
    lines = [
        json.dumps({"role": role, "content": text, "time": f"2026-01-01T00:0{minute}:00Z"})
        for minute, (role, text) in enumerate(turns)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def test_importing_twice_adds_nothing(shell: Shell, transcript: str) -> None:
    assert 3 == shell.row("import", transcript)["written"]
    assert (0, 3) == tuple(shell.row("import", transcript)[name] for name in ("written", "repeated"))
    assert {"import:jsonl"} == {row["origin"] for row in shell.rows("list")}


@pytest.mark.parametrize("claim", [("--user", "Ann"), ("--user-role",)])
def test_i07_only_the_user_says_which_words_are_theirs(shell: Shell, transcript: str, claim: tuple[str, ...]) -> None:
    assert "rank_too_low" == shell.row("import", transcript, *claim, code=1)["error"]
    assert [] == shell.rows("list")

    shell.run("import", transcript, "--user-role", *shell.as_ann)
    assert ["user", "import:jsonl", "user"] == [row["origin"] for row in shell.rows("list")]


def test_a_dry_run_of_an_import_writes_nothing(shell: Shell, transcript: str) -> None:
    assert 3 == shell.row("import", transcript, "--dry-run")["written"]
    assert [] == shell.rows("list")


def test_i06_an_import_cannot_bring_a_forgotten_value_back(shell: Shell, transcript: str) -> None:
    shell.run("forget", shell.remember("I like tea."), "--reason", "asked")

    assert (2, 1) == tuple(shell.row("import", transcript)[name] for name in ("written", "refused_count"))
