"""The command line's standard streams, as whoever starts it may leave them: in any locale, closed, full, endless."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import environment

from .shell import Shell

TEXT = "he said déjà vu 车是红色的"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = Shell(tmp_path)
    made.run("init")
    made.remember(TEXT)
    return made


def _run(shell: Shell, line: str, stdin: bytes | None = None, **extra: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of sh in which `muniment` is this checkout's."""
    known = f'muniment() {{ "{sys.executable}" -m muniment "$@"; }}; {line}'
    env = environment({**shell.environment, **extra})
    return subprocess.run(["sh", "-c", known], input=stdin, env=env, capture_output=True, check=False, timeout=60)


@pytest.mark.parametrize("verb", ["list", "list --json", "get --json $ID", "context said", "export", "recall said"])
def test_what_a_program_reads_is_utf8_in_every_locale(shell: Shell, verb: str) -> None:
    verb = verb.replace("$ID", str(shell.rows("list")[0]["id"]))
    answers = {_run(shell, f"muniment {verb}", PYTHONIOENCODING=name).stdout for name in ("utf-8", "latin-1", "ascii")}

    (answer,) = answers
    assert TEXT in answer.decode("utf-8")


def test_a_text_on_standard_input_is_utf8_in_every_locale(shell: Shell) -> None:
    _run(shell, "muniment remember -", "naïve 茶".encode(), PYTHONIOENCODING="latin-1")

    assert "naïve 茶" == shell.rows("list")[-1]["content"]


@pytest.mark.parametrize("verb", ["list", "list --json", "stats", "verify", "export", "remember more", "--help"])
def test_a_closed_output_is_an_error_and_no_finding(shell: Shell, verb: str) -> None:
    done = _run(shell, f"muniment {verb} >&-")

    assert 2 == done.returncode
    assert b"error: standard output cannot be written: Bad file descriptor" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["list", "list --json", "remember more", "--help"])
def test_a_full_output_is_not_taken_for_the_disk_of_the_store(shell: Shell, verb: str) -> None:
    done = _run(shell, f"muniment {verb} >/dev/full")

    assert 2 == done.returncode
    assert b"error: standard output cannot be written: No space left on device" in done.stderr
    assert b"error: [Errno" not in done.stderr


def test_closed_input_and_talk_change_no_answer(shell: Shell) -> None:
    assert TEXT in _run(shell, "muniment list 2>&- <&-").stdout.decode()
    assert 2 == _run(shell, "muniment remember - <&-").returncode


def test_an_input_without_end_is_refused_for_its_length(shell: Shell) -> None:
    """/dev/zero has no end: reading all of it takes the machine's memory."""
    done = _run(shell, "ulimit -v 4000000; muniment remember - --json < /dev/zero")

    assert 2 == done.returncode
    assert "bad_text" == json.loads(done.stdout)["error"]
    assert b"at most 4194304 bytes" in done.stderr


def test_a_path_that_is_not_utf8_can_be_told(shell: Shell) -> None:
    path = os.fsdecode(os.fsencode(shell.folder) + b"/caf\xe9")
    made = _run(shell, 'muniment init --json --store "$WHERE"', WHERE=path)
    again = _run(shell, 'muniment stats --json --store "$WHERE"', WHERE=path)
    missing = _run(shell, 'muniment stats --json --store "$WHERE"/not', WHERE=path)

    assert (0, 0, 2) == (made.returncode, again.returncode, missing.returncode)
    assert f"{shell.folder}/caf\\udce9" == json.loads(made.stdout)["path"].replace("\udce9", "\\udce9")
    assert made.stdout.split(b",")[0] == again.stdout.split(b",")[0]
    assert "store_missing" == json.loads(missing.stdout)["error"]


_STOPPED_WHILE_LOADING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in what runs in the background
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == "muniment._cli._asking":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Stop())
from muniment._cli import main
main()
"""


def test_an_interrupt_while_modules_are_loaded_prints_no_trace(shell: Shell) -> None:
    """For `hook`, another exit code than 2 would let the call through."""
    done = subprocess.run(
        [sys.executable, "-c", _STOPPED_WHILE_LOADING, "list"],
        env=environment(shell.environment),
        capture_output=True,
        check=False,
    )

    assert (2, b"stopped\n") == (done.returncode, done.stderr)
