"""The hook: what Claude Code is told about the very call that it is about to make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner, Result

import muniment
from muniment import Action, KeyFile, Pattern
from muniment._cli import cli
from muniment._mcp._projects import project_scope

from .serving import SCOPE, Row

BUCKET = {"command": "aws s3 rb s3://staging"}
POLICY = """
[actions]
"Read" = "answer"
"mcp__muniment__*" = "answer"
"Bash" = "external_action"

[limits]
deny = ["WebFetch"]
"""


class Host:
    """A store with a user who signs, and Claude Code asking about its calls."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store, self.key = folder, folder / "store", KeyFile.create(folder / "ann.key")
        (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
        with muniment.open(self.store, create=True, model="none") as opened:
            opened.enroll("user:ann", self.key.public_key, scopes=(SCOPE, "project"))

    def confirm(self, name: str, arguments: Row, *, agent: str = "agent:claude-code") -> None:
        with muniment.open(self.store, model="none") as opened:
            user = opened.user_session(scope=SCOPE, principal="user:ann", signer=self.key)
            user.confirm(Action(name, cast("dict[str, str]", arguments)), agent=agent, uses=1, expires_in="1h")

    def prohibit(self, name: str, scope: str = SCOPE) -> None:
        with muniment.open(self.store, model="none") as opened:
            user = opened.user_session(scope=scope, principal="user:ann", signer=self.key)
            user.prohibit(Action(Pattern(name)), reason="never here")

    def decisions(self) -> int:
        with muniment.open(self.store, model="none", read_only=True) as opened:
            return cast("int", opened.stats()["decisions"])

    def run(self, event: str, *options: str, scope: str = SCOPE, **environment: str) -> Result:
        args = ["hook", "claude-code", "--store", str(self.store), "--scope", scope]
        args += ["--policy", str(self.folder / "policy.toml"), *options]
        return CliRunner().invoke(cli, args, input=event, env={"CLAUDE_PROJECT_DIR": None, **environment})

    def ask(self, tool: str, arguments: Row, call: str = "toolu_01", **given: str) -> tuple[str, str]:
        """Return the verdict and its reason; two empty texts when the hook has no opinion."""
        event = {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": arguments, "tool_use_id": call}
        result = self.run(json.dumps(event), **given)
        assert 0 == result.exit_code, result.output
        if not result.stdout:
            return "", ""
        output = cast("Row", json.loads(result.stdout)["hookSpecificOutput"])
        assert "PreToolUse" == output["hookEventName"]
        return str(output["permissionDecision"]), str(output["permissionDecisionReason"])


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_an_unsigned_call_is_denied_and_says_what_the_user_can_sign(host: Host) -> None:
    verdict, reason = host.ask("Bash", dict(BUCKET))

    assert "deny" == verdict
    assert "no_confirmation" in reason
    assert "muniment confirm 'muniment-request-v1:" in reason


def test_a_signed_call_is_allowed_once(host: Host) -> None:
    host.confirm("Bash", dict(BUCKET))

    assert "allow" == host.ask("Bash", dict(BUCKET))[0]
    verdict, reason = host.ask("Bash", dict(BUCKET), call="toolu_02")
    assert ("deny", True) == (verdict, "confirmation_spent" in reason)


def test_two_hooks_of_one_call_spend_one_confirmation(host: Host) -> None:
    host.confirm("Bash", dict(BUCKET))

    assert ["allow", "allow"] == [host.ask("Bash", dict(BUCKET))[0] for _ in range(2)]
    assert 1 == host.decisions()


def test_the_id_of_an_allowed_call_does_not_allow_another(host: Host) -> None:
    host.confirm("Bash", dict(BUCKET))
    host.ask("Bash", dict(BUCKET))
    other = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "toolu_01",
             "tool_input": {"command": "aws s3 rb s3://production"}}  # fmt: skip
    result = host.run(json.dumps(other))

    assert (2, "") == (result.exit_code, result.stdout)


@pytest.mark.parametrize("command", ["aws s3 rb s3://production", "aws s3 rb s3://staging --force", ""])
def test_another_call_than_the_signed_one_is_denied(host: Host, command: str) -> None:
    host.confirm("Bash", dict(BUCKET))

    assert "deny" == host.ask("Bash", {"command": command})[0]


def test_a_tool_that_the_policy_does_not_name_is_destructive(host: Host) -> None:
    verdict, reason = host.ask("mcp__mail__send", {"to": "ann@example.org"})

    assert ("deny", True) == (verdict, "destructive_action" in reason)


def test_a_reading_tool_is_left_to_claude_code(host: Host) -> None:
    """Neither allowed nor denied: its user is asked as without this hook. Nothing is recorded."""
    assert ("", "") == host.ask("Read", {"file_path": "notes.md"})
    assert ("", "") == host.ask("mcp__muniment__memory_recall", {"query": "launch"})
    assert 0 == host.decisions()


def test_a_prohibition_vetoes_reading_tools_and_signed_calls(host: Host) -> None:
    host.confirm("Bash", dict(BUCKET))
    host.prohibit("Bash")
    host.prohibit("Read")

    assert ("deny", "muniment: prohibited") == host.ask("Read", {"file_path": "notes.md"})
    assert "deny" == host.ask("Bash", dict(BUCKET))[0]


def test_what_the_policy_rules_out_is_denied(host: Host) -> None:
    host.confirm("WebFetch", {"url": "https://example.org"})

    verdict, reason = host.ask("WebFetch", {"url": "https://example.org"})
    assert ("deny", True) == (verdict, "policy_denies" in reason)


@pytest.mark.parametrize(
    "event",
    [
        "",
        "not json",
        "[]",
        "null",
        "[" * 100_000,
        "{}",
        '{"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {}}',
        '{"hook_event_name": "PreToolUse", "tool_input": {}}',
        '{"hook_event_name": "PreToolUse", "tool_name": "", "tool_input": {}}',
        '{"hook_event_name": "PreToolUse", "tool_name": "Bash"}',
        '{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": "ls"}',
        '{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {}, "tool_use_id": 5}',
        '{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"n": NaN}}',
        '{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"n": "\\ud800"}}',
    ],
)
def test_what_cannot_be_decided_is_refused_with_a_message(host: Host, event: str) -> None:
    """Exit code 2: Claude Code takes every other failure for permission."""
    result = host.run(event)

    assert (2, "") == (result.exit_code, result.stdout)
    assert "muniment: the call is refused" in result.stderr


@pytest.mark.parametrize("options", [("--store", "nowhere"), ("--policy", "nowhere.toml"), ("--no-such-option",)])
def test_a_hook_that_is_set_up_wrongly_refuses(host: Host, options: tuple[str, ...]) -> None:
    event = json.dumps({"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {}})

    assert 2 == host.run(event, *options).exit_code


def test_the_automatic_scope_is_the_hosts_project_and_not_where_the_agent_went(host: Host, tmp_path: Path) -> None:
    project = tmp_path / "apollo"
    (project / ".git").mkdir(parents=True)
    host.prohibit("Read", scope=project_scope(project))

    assert "deny" == host.ask("Read", {}, scope="auto", CLAUDE_PROJECT_DIR=str(project))[0]
    event = json.dumps({"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {}, "cwd": str(tmp_path)})
    unknown = host.run(event, scope="auto")
    assert (2, "") == (unknown.exit_code, unknown.stdout)
