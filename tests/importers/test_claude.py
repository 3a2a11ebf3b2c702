"""Claude's export: messages of blocks, branches, and what projects and memories say."""

from __future__ import annotations

import json
from pathlib import Path

from muniment._importers import Skipped, Turn
from muniment._importers._claude import ClaudeTranscript
from tests.importers.fixtures import DATA, TALK, archive


def read(path: Path, *, branches: bool = False) -> list[Turn]:
    return [one for one in ClaudeTranscript(path, branches=branches).turns() if isinstance(one, Turn)]


def test_words_tools_and_attachments_are_told_apart() -> None:
    assert [
        ("m1", "user", ""),
        ("m1#attachment1", "other", "document:plan.txt"),
        ("m2b#2", "assistant", ""),
        ("m2b#3", "other", "tool:web_search"),
        ("m2b", "assistant", ""),
        ("m4", "user", ""),
    ] == [(one.position, one.role, one.via) for one in read(DATA / "claude.json")]


def test_the_answer_that_was_replaced_comes_when_asked_for() -> None:
    found = {one.position: one for one in read(DATA / "claude.json", branches=True)}
    assert ("On 12 March.", {"branch": "other"}) == (found["m2a"].text, found["m2a"].told)
    assert {} == found["m2b"].told


def test_an_older_export_without_blocks_or_parents_is_read_by_its_text(tmp_path: Path) -> None:
    talk = json.loads((DATA / "claude.json").read_text(encoding="utf-8"))[0]
    for message in talk["chat_messages"]:
        del message["content"], message["parent_message_uuid"]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([talk]), encoding="utf-8")

    assert ["m1", "m1#attachment1", "m2a", "m2b", "m4"] == [one.position for one in read(path)]


def test_a_message_that_comes_twice_is_taken_once(tmp_path: Path) -> None:
    talk = json.loads((DATA / "claude.json").read_text(encoding="utf-8"))[0]
    talk["chat_messages"].append(talk["chat_messages"][-1])
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([talk]), encoding="utf-8")

    assert (f"{TALK}/m4", "duplicate") in [
        (one.where, one.code) for one in ClaudeTranscript(path).turns() if isinstance(one, Skipped)
    ]


def test_an_archive_gives_conversations_projects_and_memories(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "data.zip", conversations="claude.json", projects="claude-projects.json",
        memories="claude-memories.json",
    )  # fmt: skip
    found = list(ClaudeTranscript(path).turns())

    assert 6 + 3 + 4 == sum(isinstance(one, Turn) for one in found)
    assert "projects.json: record 2" in [one.where for one in found if isinstance(one, Skipped)]


def test_a_paragraph_of_memory_is_the_same_when_another_comes_before_it(tmp_path: Path) -> None:
    memories = json.loads((DATA / "claude-memories.json").read_text(encoding="utf-8"))
    path = tmp_path / "memories.json"
    memories[0]["conversations_memory"] = "Ann moved.\n\n" + memories[0]["conversations_memory"]
    path.write_text(json.dumps(memories), encoding="utf-8")

    def places(path: Path) -> set[tuple[str, str, str]]:
        return {(one.conversation, one.position, one.text) for one in read(path)}

    assert {("memories", "conversations", "Ann moved.")} == places(path) - places(DATA / "claude-memories.json")
