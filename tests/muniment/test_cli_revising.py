"""What a memory may contradict, and links, at the command line."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from .shell import Row, Shell, opened_shell
from .test_revising import NEW, OLD, OTHER


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = opened_shell(tmp_path)
    # With vectors: without them nothing is compared.
    del shell.environment["MUNIMENT_MODEL"]
    return shell


def test_a_revision_prints_the_id_alone_and_talks_of_what_it_may_contradict(shell: Shell) -> None:
    old, _ = shell.remember(OLD), shell.remember(OTHER)
    before = str(shell.row("stats")["events"])

    done = shell.run("revise", NEW, "--kind", "fact")

    new = done.stdout.strip()
    assert (NEW, "fact") == (shell.row("get", new)["content"], shell.row("get", new)["kind"])
    assert f"may contradict {old}: " in done.stderr
    assert "another number or date" in done.stderr
    [proposal] = shell.rows("proposals")
    assert (new, old, "contradicts", "agent:cli") == tuple(proposal[n] for n in ("start", "end", "type", "actor"))
    assert [proposal] == shell.rows("proposals", old[:16])
    assert "active" == shell.row("get", old)["status"]
    assert [] == shell.rows("proposals", "--known-at", before)


def test_in_json_a_revision_is_the_librarys(shell: Shell) -> None:
    old = shell.remember(OLD)

    revision = shell.row("revise", "-", "--act", "supersede", "--command-id", "c1", stdin=NEW)
    again = shell.row("revise", NEW, "--act", "supersede", "--command-id", "c1")

    assert {"receipt", "contradicts", "notes"} == set(revision)
    [found] = cast("list[Row]", revision["contradicts"])
    assert (old, True, True) == (found["id"], found["linked"], found["superseded"])
    assert "superseded" == shell.row("get", old)["status"]
    receipt, repeat = cast("Row", revision["receipt"]), cast("Row", again["receipt"])
    assert (receipt["id"], True) == (repeat["id"], repeat["repeated"])


def test_off_and_a_bound_compare_less(shell: Shell) -> None:
    shell.remember(OLD)

    assert [] == shell.row("revise", NEW, "--act", "off")["contradicts"]
    assert [] == shell.row("revise", f"{NEW} Bring the card.", "--least", "1")["contradicts"]
    shell.run("revise", NEW, "--act", "delete", code=2)


def test_without_vectors_a_revision_says_that_nothing_was_compared(shell: Shell) -> None:
    shell.remember(OLD)

    done = shell.run("revise", NEW, "--model", "none")

    assert "there are no vectors" in done.stderr


def test_i07_a_revision_speaks_with_its_origin(shell: Shell) -> None:
    old = shell.remember(OLD, *shell.as_ann)

    revision = shell.row("revise", NEW, "--act", "supersede", "--origin", "web:https://x.example")

    assert [False] == [found["superseded"] for found in cast("list[Row]", revision["contradicts"])]
    assert "active" == shell.row("get", old)["status"]


def test_a_link_is_made_once_for_a_command_and_ended(tmp_path: Path) -> None:
    shell = opened_shell(tmp_path)
    old, new = shell.remember(OLD), shell.remember(NEW)

    first = shell.row("link", new, "contradicts", old, "--command-id", "c1")
    again = shell.row("link", new, "contradicts", old, "--command-id", "c1")
    assert (first["id"], True) == (again["id"], again["repeated"])
    assert [(new, "contradicts", old)] == [(r["start"], r["type"], r["end"]) for r in shell.rows("links", old)]

    shell.run("unlink", new, "contradicts", old)
    assert [] == shell.rows("links", old)
    shell.run("link", new, "resembles", old, code=2)
