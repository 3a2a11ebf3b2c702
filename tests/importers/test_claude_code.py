"""Claude Code's sessions: what has the user's role there is often not the user's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import muniment
from muniment._importers import Skipped, Turn
from muniment._importers._claude_code import ClaudeCodeTranscript
from tests.importers.fixtures import DATA


def read(tmp_path: Path, *records: object) -> list[Turn | Skipped]:
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return [one for one in ClaudeCodeTranscript(path).turns() if isinstance(one, Turn | Skipped)]


def line(content: object, sort: str = "user", **more: object) -> dict[str, object]:
    return {"type": sort, "sessionId": "s", "uuid": "u", "message": {"role": sort, "content": content}, **more}


def test_i07_only_what_the_user_typed_can_be_the_users(tmp_path: Path) -> None:
    """A tool's result, a sidechain's question and the program's remarks all stand under the role `user`."""
    with muniment.open(tmp_path / "store", create=True, model="none") as store:
        store.import_file(DATA / "claude-code.jsonl", scope="acme", user_role=True)
        records = store.session(scope="acme", actor="agent:x").list()

    assert ["Fix the login, bitte. ログイン", "[image]\nThe login is fixed now."] == [
        record.content for record in records if record.rank == "user"
    ]
    assert {"import:claude-code/tool:Read"} == {
        record.origin for record in records if record.content is not None and "delete everything" in record.content
    }


def test_a_call_and_its_result_name_the_tool(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        line([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}], "assistant"),
        line([{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a.py"}]}]),
        line([{"type": "tool_result", "tool_use_id": "t2", "content": "who asked?"}]),
    )
    assert [
        ("assistant", "", 'Bash {"command":"ls"}'),
        ("other", "tool:Bash", "a.py"),
        ("other", "tool:tool", "who asked?"),
    ] == [(one.role, one.via, one.text) for one in found if isinstance(one, Turn)]  # fmt: skip


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({"type": "summary", "summary": "x", "leafUuid": "u"}, "summary"),
        (line("all of it, shorter", isCompactSummary=True), "summary"),
        ({"type": "system", "subtype": "compact_boundary", "sessionId": "s"}, "unsupported"),
        ({"type": "queue-operation", "operation": "enqueue", "sessionId": "s"}, "unsupported"),
        (line("<local-command-stdout>ok</local-command-stdout>"), "hidden"),
        (line("[Request interrupted by user for tool use]"), "hidden"),
        (line([{"type": "thinking", "thinking": "hm"}], "assistant"), "reasoning"),
        (line("  "), "empty"),
        (line("a\0b"), "unfit"),
        (line("x", timestamp="soon"), "damaged"),
        ({"type": "user", "sessionId": "s", "message": "x"}, "damaged"),
        (["user"], "damaged"),
    ],
)
def test_what_nobody_said_is_left_out_by_name(tmp_path: Path, record: object, code: str) -> None:
    (found,) = read(tmp_path, record)
    assert isinstance(found, Skipped)
    assert code == found.code


def test_a_record_without_names_is_told_by_file_and_line(tmp_path: Path) -> None:
    record = line("hello")
    del record["sessionId"], record["uuid"]
    (found,) = read(tmp_path, record)
    assert isinstance(found, Turn)
    assert ("session", "1") == (found.conversation, found.position)
