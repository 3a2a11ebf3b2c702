"""The command line: options on both sides of the verb, one object a line, three exit codes, no borrowed voice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import muniment
from muniment._cli import cli
from muniment._cli._output import printable

from .shell import Shell, opened_shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return opened_shell(tmp_path)


def test_options_are_taken_before_and_after_the_verb(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    runner = CliRunner()
    runner.invoke(cli, ["init", store])
    before = runner.invoke(cli, ["--store", store, "--scope", "acme", "--json", "--model", "none", "remember", "one"])
    after = runner.invoke(cli, ["list", "--store", store, "--scope", "acme", "--json", "--model", "none"])

    assert (0, 0) == (before.exit_code, after.exit_code)
    assert json.loads(before.stdout)["id"] == json.loads(after.stdout)["id"]


def test_the_option_after_the_verb_counts(shell: Shell) -> None:
    shell.run("--scope", "acme", "remember", "elsewhere", "--scope", "acme/apollo")

    assert [] == shell.rows("list")
    assert ["elsewhere"] == [row["content"] for row in shell.rows("list", "--scope", "acme/apollo")]


def test_without_a_key_what_is_written_has_origin_agent_cli(shell: Shell) -> None:
    record = shell.row("get", shell.remember("The sky is blue."))

    assert ("agent:cli", "agent:cli", "agent") == (record["origin"], record["actor"], record["rank"])


@pytest.mark.parametrize("claim", [("--as", "user"), ("--as", "user:ann"), ("--origin", "user")])
def test_i07_without_a_key_the_command_line_is_never_the_user(shell: Shell, claim: tuple[str, str]) -> None:
    shell.run("remember", "The user likes this.", *claim, code=1)

    assert [] == shell.rows("list")


def test_i07_no_verb_of_the_person_works_without_a_key(shell: Shell) -> None:
    written = shell.remember("The sky is blue.")
    for verb in (
        ("prohibit", "db.drop*", "--reason", "never"),
        ("review", written, "--approve", "--reason", "so it is"),
        ("revoke", written, "--reason", "no"),
        ("unprohibit", written, "--reason", "no"),
        ("lift", written, "--reason", "no"),
        ("confirm", "--action", "email.send", "--agent", "agent:p", "--yes"),
        ("forget", "--text", "The sky is blue.", "--reason", "no"),
        ("forget", "--whole-scope", "--reason", "no"),
        ("decide", "email.send", "--actor", "user:ann"),
    ):
        wanted = "rank_too_low" if verb[0] in ("forget", "decide") else "signature_invalid"
        assert wanted == shell.row(*verb, code=1)["error"]


def test_a_key_makes_a_signed_user_and_an_origin_lowers_it(shell: Shell) -> None:
    signed = shell.row("get", shell.remember("I like tea.", *shell.as_ann))
    lowered = shell.row("get", shell.remember("Tea is on sale.", *shell.as_ann, "--origin", "web:https://tea.example"))

    assert ("user:ann", "signed") == (signed["origin"], signed["rank"])
    assert ("web:https://tea.example", "external") == (lowered["origin"], lowered["rank"])


def test_every_field_of_a_memory_can_be_given(shell: Shell) -> None:
    parent = shell.remember("First.")
    written = shell.remember(
        "The launch is on 12 March.", "--kind", "fact", "--about", "launch", "date", "--value-json", "12", "--many",
        "--provenance", "action", "--importance", "0.5", "--applies-when", "it rains", "--valid-from", "2026-01-01",
        "--valid-to", "2027-01-01", "--source", "slack:C1/42", "--derived-from", parent[:20], "--link", "relates",
        parent[:20], "--metadata", '{"a": [1, 2.5, null]}', "--tag", "x", "--tag", "y", "--command-id", "c1",
    )  # fmt: skip
    record = shell.row("get", written[:24])

    expected: dict[str, object] = {
        "content": "The launch is on 12 March.", "kind": "fact", "about": ["launch", "date"], "value": 12,
        "many": True, "provenance": "action", "importance": 0.5, "applies_when": "it rains",
        "valid_from": "2026-01-01T00:00:00Z", "valid_to": "2027-01-01T00:00:00Z", "source": "slack:C1/42",
        "derived_from": [parent], "metadata": {"a": [1, 2.5, None]}, "tags": ["x", "y"],
    }  # fmt: skip
    assert expected == {name: record[name] for name in expected}
    assert {"relates", "derives-from"} == {row["type"] for row in shell.rows("links", written)}


def test_a_text_may_come_from_standard_input(shell: Shell) -> None:
    shell.run("remember", "-", stdin="two\r\nlines\n")

    assert ["two\r\nlines"] == [row["content"] for row in shell.rows("list")]


def test_people_get_the_id_alone_on_standard_output(shell: Shell) -> None:
    result = shell.run("remember", "The sky is blue.")

    assert [shell.rows("list")[0]["id"]] == result.stdout.split()
    assert "active" in result.stderr


def test_json_uses_the_library_s_field_names(shell: Shell) -> None:
    written = shell.row("remember", "The sky is blue.")
    hit = shell.row("recall", "blue sky")

    assert set(muniment.Receipt.__struct_fields__) == set(written)
    assert set(muniment.Hit.__struct_fields__) == set(hit)


def test_supersede_retire_and_forget(shell: Shell) -> None:
    first = shell.remember("The launch is on 12 March.")
    second = str(shell.row("supersede", first[:20], "The launch is on 2 April.", "--reason", "moved")["id"])
    assert [first, second] == [row["id"] for row in shell.rows("history", second)]

    shell.run("retire", second, "--reason", "cancelled")
    assert "retired" == shell.row("get", second)["status"]

    dry = shell.row("forget", first, "--reason", "asked", "--dry-run")
    assert (True, [first]) == (dry["dry_run"], dry["asked"])
    assert "erased" == shell.row("forget", first, "--reason", "asked")["status"]
    assert None is shell.row("get", first)["content"]


def test_a_forget_of_several_tells_those_that_were_erased_before(shell: Shell) -> None:
    gone, live = shell.remember("The code is 1234."), shell.remember("The door is green.")
    shell.run("forget", gone, "--reason", "asked")

    assert [gone] == shell.row("forget", gone, live, "--reason", "asked", "--dry-run")["already"]
    assert f"already: {gone}\n" in shell.run("forget", gone, live, "--reason", "asked").stdout


def test_i06_the_command_line_cannot_bring_a_forgotten_value_back(shell: Shell) -> None:
    shell.run("forget", shell.remember("The code is 1234."), "--reason", "asked")

    assert "tombstoned" == shell.row("remember", "the code is  1234", code=1)["error"]


def test_what_an_agent_may_not_forget_becomes_a_request_for_review(shell: Shell) -> None:
    mine = shell.remember("I like tea.", *shell.as_ann)
    assert "needs_grant" == shell.row("forget", mine, "--reason", "asked", code=1)["error"]

    (waiting,) = shell.rows("review")
    shell.run("review", str(waiting["id"])[:20], "--approve", "--reason", "yes", *shell.as_ann)
    assert ("erased", []) == (shell.row("get", mine)["status"], shell.rows("review"))


def test_the_operator_erases_what_an_agent_may_not(shell: Shell) -> None:
    mine = shell.remember("I like tea.", *shell.as_ann)

    assert "erased" == shell.row("forget", mine, "--reason", "retention", "--operator")["status"]


def test_the_user_forgets_by_value_and_by_scope(shell: Shell) -> None:
    shell.remember("The code is 1234.")
    assert 1 == len(list(shell.row("forget", "--text", "The code is 1234.", "--reason", "x", *shell.as_ann)["asked"]))  # type: ignore[call-overload]  # a list

    closing = shell.row("forget", "--whole-scope", "--reason", "over", *shell.as_ann)
    assert "scope_closed" == shell.row("remember", "again", code=1)["error"]
    shell.run("lift", str(closing["id"])[:24], "--reason", "back", *shell.as_ann)
    shell.remember("again")


# --- exit codes and errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "error", "args"),
    [
        (1, "rank_too_low", ("remember", "x", "--origin", "agent:other")),
        (1, "secret_found", ("remember", "key AKIAIOSFODNN7EXAMPLE and ghp_0123456789abcdefghijABCDEFGHIJ012345")),
        (2, "blank_content", ("remember", " ")),
        (2, "not_found", ("get", "ffff")),
        (2, "bad_time", ("list", "--known-at", "yesterday")),
        (2, "bad_argument", ("recall", "x", "--limit", "3")),
        (2, "bad_argument", ("nonsense",)),
        (2, "bad_argument", ("remember", "x", "--metadata", "{")),
        (2, "bad_argument", ("decide", "x", "--arg", "no-equals-sign")),
        (2, "store_missing", ("list", "--store", "nowhere")),
        (2, "scope_unknown", ("export", "--scope", "never/used")),
    ],
)  # fmt: skip
def test_i12_errors_have_a_code_on_both_streams(shell: Shell, code: int, error: str, args: tuple[str, ...]) -> None:
    result = shell.run(*args, "--json", code=code)

    assert error == json.loads(result.stdout)["error"]
    assert result.stderr


def test_an_export_that_fails_leaves_no_file_in_the_way_of_the_next(shell: Shell) -> None:
    shell.remember("The sky is blue.")
    out = shell.folder / "out.jsonl"

    shell.run("export", "--scope", "never/used", "--out", str(out), code=2)

    assert not out.exists()
    shell.run("export", "--out", str(out))
    assert "blue" in out.read_text()
    shell.run("export", "--scope", "never/used", "--out", str(out), code=2)
    assert "blue" in out.read_text()


def test_a_missing_store_is_named_with_where_the_path_came_from(shell: Shell) -> None:
    shell.environment["MUNIMENT_STORE"] = str(shell.folder / "nowhere")
    result = shell.run("list", code=2)

    assert str(shell.folder / "nowhere") in result.stderr
    assert "MUNIMENT_STORE" in result.stderr


@pytest.mark.parametrize("missing", ["MUNIMENT_STORE", "MUNIMENT_SCOPE"])
def test_i08_there_is_no_default_store_and_no_default_scope(shell: Shell, missing: str) -> None:
    del shell.environment[missing]

    assert missing in shell.run("remember", "x", code=2).stderr


def test_command_conflicts_exit_with_1(shell: Shell) -> None:
    shell.run("remember", "one", "--command-id", "c")

    assert shell.row("remember", "one", "--command-id", "c")["repeated"]
    assert "command_conflict" == shell.row("remember", "two", "--command-id", "c", code=1)["error"]


def test_verify_exits_with_1_and_names_the_damage(shell: Shell) -> None:
    shell.remember("The sky is blue.")
    assert shell.row("verify")["ok"]

    segment = next((shell.store / "log").glob("*.seg"))
    data = bytearray(segment.read_bytes())
    data[-40] ^= 1
    segment.write_bytes(data)

    assert not shell.row("verify", code=1)["ok"]


def test_init_does_not_open_a_store_that_is_there(shell: Shell) -> None:
    assert "there is a store" in shell.run("init", code=2).stderr


# --- output -----------------------------------------------------------------------------------------------------------


def test_a_memory_cannot_move_the_cursor_or_begin_a_line(shell: Shell) -> None:
    shell.remember("a\x1b[2Jb\nfake\t\u202eline")
    (line,) = shell.run("list").stdout.splitlines()

    assert line.endswith("a\\u{1b}[2Jb\\u{a}fake\\u{9}\\u{202e}line")
    assert "a b" == printable("a b")


def test_nothing_is_coloured_when_piped(shell: Shell) -> None:
    shell.remember("The sky is blue.")
    for verb in ("list", "stats", "verify", "beliefs"):
        assert "\x1b" not in shell.run(verb).output


def test_only_the_answer_is_on_standard_output(shell: Shell) -> None:
    shell.remember("The sky is blue.")

    assert all(line.startswith("{") for line in shell.run("recall", "sky", "--json").stdout.splitlines())
    assert shell.run("context", "sky").stdout.startswith("<memory")


# --- the process ------------------------------------------------------------------------------------------------------


def test_help_loads_neither_the_model_runtime_nor_the_database() -> None:
    program = (
        "import sys\n"
        "try:\n    import muniment._cli; sys.argv = ['muniment', '--help']; muniment._cli.main()\n"
        "finally:\n    print(*sorted({'onnxruntime', 'duckdb', 'hnswlib', 'rich', 'tokenizers'} & set(sys.modules)),"
        " file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "" == done.stderr.strip()


def test_the_module_runs_as_a_program_with_the_same_exit_codes(shell: Shell) -> None:
    command = [sys.executable, "-m", "muniment", "get", "ffff", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=shell.environment)

    assert (2, "not_found") == (done.returncode, json.loads(done.stdout)["error"])


@pytest.mark.parametrize("args", [("export",), ("get", "ffff", "--json")])
def test_a_reader_that_went_away_gets_no_traceback(shell: Shell, args: tuple[str, ...]) -> None:
    shell.remember("The sky is blue.")
    command = [sys.executable, "-m", "muniment", *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=shell.environment)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()

    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    assert 2 == process.wait()


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_knows_the_verbs(name: str) -> None:
    script = CliRunner().invoke(cli, ["completion", name])
    words = CliRunner().invoke(
        cli,
        [],
        prog_name="muniment",
        env={"_MUNIMENT_COMPLETE": "zsh_complete", "COMP_WORDS": "muniment rem", "COMP_CWORD": "1"},
    )

    assert "_MUNIMENT_COMPLETE" in script.stdout
    assert "remember" in words.stdout


def test_an_output_that_takes_nothing_is_not_a_finding(shell: Shell) -> None:
    """Exit code 1 would say that something was found, or refused."""
    shell.remember("a note")
    environment = os.environ | shell.environment

    def ended(verb: str, sink: int) -> tuple[int, bool]:
        command = [sys.executable, "-m", "muniment", verb, "--json"]
        done = subprocess.run(command, env=environment, stdout=sink, stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode, "Traceback" in done.stderr

    full = os.open("/dev/full", os.O_WRONLY)
    reading, closed = os.pipe()
    os.close(reading)
    try:
        assert (2, False) == ended("list", full)
        assert (2, False) == ended("list", closed)
        assert (2, False) == ended("nonsense", full)
    finally:
        os.close(full)
        os.close(closed)
