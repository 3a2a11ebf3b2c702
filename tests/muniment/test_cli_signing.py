"""What a person signs, and how the command line makes sure that it is a person."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import muniment

from .shell import Shell, opened_shell

CALL = ("email.send", "--arg", "to=ann@example.org", "--arg-json", "n=5")
AGENT = ("--actor", "agent:planner")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return opened_shell(tmp_path)


def test_a_denied_decision_s_request_is_signed_and_then_allows_once(shell: Shell) -> None:
    denied = shell.row("decide", *CALL, *AGENT, code=1)
    shown = shell.run("confirm", str(denied["request"]), "--yes", *shell.as_ann)
    assert 'email.send(n=5, to="ann@example.org")' in shown.stderr

    allowed = shell.row("decide", *CALL, *AGENT)
    assert shown.stdout.strip() == allowed["confirmation"]
    assert not shell.row("decide", *CALL, *AGENT, code=1)["allowed"]


def test_a_statement_can_be_signed_without_the_store_and_submitted_elsewhere(shell: Shell) -> None:
    denied = shell.row("decide", *CALL, *AGENT, code=1)
    store = shell.environment.pop("MUNIMENT_STORE")
    line = shell.run("confirm", "-", "--sign-only", "--yes", *shell.as_ann, stdin=str(denied["request"])).stdout
    shell.environment["MUNIMENT_STORE"] = store

    first = shell.row("submit", "-", stdin=line)
    assert (False, True) == (first["repeated"], shell.row("submit", line.strip())["repeated"])
    assert shell.row("decide", *CALL, *AGENT)["allowed"]


@pytest.mark.parametrize(
    ("constraint", "allowed"),
    [
        (("--arg", "x=5"), False),
        (("--arg-json", "x=5"), True),
        (("--arg-range", "x=1..9"), True),
        (("--arg-range", "x=..4"), False),
        (("--arg-one-of", "x=[4, 5]"), True),
        (("--arg-free", "x"), False),
    ],
)
def test_a_confirmation_binds_its_arguments(shell: Shell, constraint: tuple[str, str], allowed: bool) -> None:
    """A free argument authorises no destructive action, and an unknown name is one."""
    shell.run("confirm", "--action", "do.it", *constraint, "--agent", "agent:planner", "--yes", *shell.as_ann)

    decided = shell.row("decide", "do.it", "--arg-json", "x=5", *AGENT, code=0 if allowed else 1)
    assert allowed is decided["allowed"]


def test_a_confirmation_can_be_revoked_by_a_prefix_of_its_id(shell: Shell) -> None:
    signed = shell.row("confirm", "--action", "do.it", "--agent", "agent:planner", "--yes", *shell.as_ann)
    shell.run("revoke", str(signed["id"])[:20], "--reason", "no", *shell.as_ann)

    assert not shell.row("decide", "do.it", *AGENT, code=1)["allowed"]


def test_a_prohibition_vetoes_until_it_is_lifted(shell: Shell) -> None:
    shell.run("confirm", "--action", "db.drop_all", "--agent", "agent:planner", "--yes", *shell.as_ann)
    shell.run("prohibit", "db.drop*", "--reason", "never", *shell.as_ann)
    assert ["prohibited"] == shell.row("decide", "db.drop_all", *AGENT, code=1)["reasons"]

    (veto,) = shell.rows("prohibit")
    shell.run("unprohibit", str(veto["id"]), "--reason", "planned", *shell.as_ann)
    assert shell.row("decide", "db.drop_all", *AGENT, "--dry-run")["allowed"]


def test_nothing_is_signed_unasked_without_a_terminal(shell: Shell) -> None:
    shell.run("confirm", "--action", "do.it", "--agent", "agent:planner", *shell.as_ann, code=2)

    assert 0 == shell.row("stats")["confirmations"]


def test_keygen_neither_overwrites_nor_puts_a_key_into_a_store(shell: Shell) -> None:
    shell.run("keygen", str(shell.key), code=2)
    shell.run("keygen", str(shell.store / "keys" / "ann.key"), code=2)

    assert 0o600 == shell.key.stat().st_mode & 0o777


# --- on a terminal ----------------------------------------------------------------------------------------------------


def _on_a_terminal(shell: Shell, *args: str, typed: str) -> tuple[int, str]:
    """Run a command on a terminal of its own, type a line once it asks, and return its exit code and what it showed."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "muniment", *args]
    environment = {**os.environ, **shell.environment}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown, answered = b"", False
    # Not select(): it cannot watch a descriptor above 1023, and a whole run of tests may have that many.
    ready = select.poll()
    ready.register(ours, select.POLLIN)
    while ready.poll(60_000):
        try:
            part = os.read(ours, 4096)
        except OSError:
            break  # the terminal's other end was closed
        shown += part
        if not answered and shown.rstrip().endswith((b":", b"]:")) and b"\n" in shown:
            os.write(ours, typed.encode() + b"\n")
            answered = True
        if not part:
            break
    os.close(ours)
    return process.wait(60), shown.decode()


def _enrol(shell: Shell, typed: str) -> tuple[int, str]:
    return _on_a_terminal(shell, "enroll", "user:bob", "--key", str(shell.key), "--for", "acme", typed=typed)


def test_enrolling_on_a_terminal_takes_the_person_s_word(shell: Shell) -> None:
    code, shown = _enrol(shell, "user:bob")

    assert 0 == code, shown
    shell.remember("I am Bob.", "--key", str(shell.key), "--as", "user:bob")


def test_enrolling_stops_when_another_name_is_typed(shell: Shell) -> None:
    code, shown = _enrol(shell, "yes")

    assert (1, True) == (code, "enrol_denied" in shown)


def test_i07_a_program_cannot_enroll(shell: Shell) -> None:
    refused = shell.row("enroll", "user:eve", "--key", str(shell.key), "--for", "acme", stdin="user:eve\n", code=1)

    assert "enrol_denied" == refused["error"]


def test_a_person_is_asked_before_signing(shell: Shell) -> None:
    args = ("confirm", "--action", "do.it", "--agent", "agent:planner", *shell.as_ann)
    assert 1 == _on_a_terminal(shell, *args, typed="n")[0]
    assert 0 == shell.row("stats")["confirmations"]

    assert 0 == _on_a_terminal(shell, *args, typed="y")[0]
    assert 1 == shell.row("stats")["confirmations"]


def test_tables_are_for_terminals_and_colour_for_those_that_want_it(shell: Shell) -> None:
    shell.remember("The sky is [bold]blue[/bold].")
    shell.environment |= {"NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"}
    code, shown = _on_a_terminal(shell, "list", typed="")

    assert 0 == code
    assert "[bold]blue[/bold]" in shown
    assert "\x1b[3" not in shown


def test_a_key_is_rotated_and_a_lost_one_recovered_at_the_command_line(tmp_path: Path) -> None:
    shell = opened_shell(tmp_path)
    halves = {name: str(shell.row("keygen", str(tmp_path / name))["public_key"]) for name in ("new", "newest", "safe")}
    with muniment.open(shell.environment["MUNIMENT_STORE"], create=False, model="none") as store:
        store.enroll_by("user:ann", bytes.fromhex(halves["safe"]), scopes=("acme",), by="terminal", recovery=True)

    rotate = ("rotate", str(tmp_path / "new"), *shell.as_ann, "--command-id", "r1")
    first, again = shell.row(*rotate), shell.row(*rotate)
    assert (first["id"], True) == (again["id"], again["repeated"])
    shell.run("forget", "--text", "the old plan", "--reason", "wrong", *shell.as_ann, code=1)
    as_new, as_safe = (("--key", str(tmp_path / name), "--as", "user:ann") for name in ("new", "safe"))
    shell.run("confirm", "--action", "do.it", "--agent", "agent:planner", "--yes", *as_new)
    recover = ("recover", halves["new"], halves["newest"], *as_safe, "--command-id", "r2")
    first, again = shell.row(*recover), shell.row(*recover)
    assert (first["id"], True) == (again["id"], again["repeated"])
    other = shell.row("recover", halves["new"], halves["safe"], *as_safe, "--command-id", "r2", code=1)
    assert ("command_conflict", "r2") == (other["error"], other["command_id"])

    assert not shell.row("decide", "do.it", *AGENT, code=1)["allowed"]
    shell.run("forget", "--text", "the old plan", "--reason", "wrong", *as_new, code=1)
    as_newest = ("--key", str(tmp_path / "newest"), "--as", "user:ann")
    shell.run("forget", "--text", "the old plan", "--reason", "wrong", *as_newest)


def test_nothing_is_erased_by_a_prefix_of_one_letter(shell: Shell) -> None:
    receipt = shell.row("remember", "The launch is on 12 March.")
    refused = shell.run("forget", str(receipt["id"])[:1], "--reason", "a slip", code=2)
    assert "too short" in refused.stderr
    assert [receipt["id"]] == shell.row("forget", str(receipt["id"])[:1], "--reason", "a slip", "--dry-run")["asked"]
    assert "active" == shell.row("get", str(receipt["id"]))["status"]
    shell.run("forget", str(receipt["id"])[:4], "--reason", "meant")


def _confirmed(shell: Shell) -> str:
    return str(shell.row("confirm", "--action", "email.send", "--agent", "agent:planner", "--yes", *shell.as_ann)["id"])


def _forbidden(shell: Shell) -> str:
    return str(shell.row("prohibit", "db.drop", "--reason", "never", *shell.as_ann)["id"])


def _forgotten(shell: Shell) -> str:
    identity = shell.remember("the code is 1234")
    return str(shell.row("forget", identity, "--reason", "asked", *shell.as_ann)["id"])


def _set_apart(shell: Shell) -> str:
    return str(shell.row("quarantine", shell.remember("a note"), "--reason", "odd")["id"])


DEEDS: dict[str, tuple[Callable[[Shell], str], tuple[str, ...]]] = {
    "confirm": (lambda _: "", ("confirm", "--action", "email.send", "--yes", "--agent", "agent:REASON")),
    "prohibit": (lambda _: "", ("prohibit", "db.drop", "--reason", "REASON")),
    "revoke": (_confirmed, ("revoke", "ID", "--reason", "REASON")),
    "unprohibit": (_forbidden, ("unprohibit", "ID", "--reason", "REASON")),
    "review": (lambda shell: shell.remember("a note"), ("review", "ID", "--reject", "--reason", "REASON")),
    "lift": (_forgotten, ("lift", "ID", "--reason", "REASON")),
    "quarantine": (lambda shell: shell.remember("a note"), ("quarantine", "ID", "--reason", "REASON")),
    "release": (_set_apart, ("release", "ID", "--reason", "REASON")),
}


@pytest.mark.parametrize("verb", DEEDS)
def test_a_deed_is_done_once_for_a_command_id(shell: Shell, verb: str) -> None:
    prepare, words = DEEDS[verb]
    target = prepare(shell)

    def args(reason: str) -> list[str]:
        said = [target if word == "ID" else word.replace("REASON", reason) for word in words]
        return [*said, "--command-id", "c1", *(() if verb in ("quarantine", "release") else shell.as_ann)]

    first, again = shell.row(*args("one")), shell.row(*args("one"))

    assert (False, True, first["id"]) == (first["repeated"], again["repeated"], again["id"])
    other = shell.row(*args("two"), code=1)
    assert ("command_conflict", "c1") == (other["error"], other["command_id"])


def test_a_command_id_goes_with_what_it_can_name(shell: Shell) -> None:
    denied = shell.row("decide", *CALL, *AGENT, code=1)
    page = shell.remember("The moon is cheese.", "--origin", "web:https://x.example")

    shell.run("confirm", str(denied["request"]), "--command-id", "c1", "--yes", *shell.as_ann, code=2)
    shell.run("quarantine", "--from-trace", page, "--reason", "odd", "--command-id", "c1", code=2)
    shell.run("quarantine", "--origin", "web:*", "--reason", "odd", "--command-id", "c1", code=2)
