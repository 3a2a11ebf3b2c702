"""The worked incident: what its page shows is what the responder gets, with the command line alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from eval.incident.setup import make

INCIDENT = Path(__file__).resolve().parents[2] / "eval" / "incident"
_VARIES = re.compile(r"[0-9a-f]{64}|[0-9a-f]{32}|\b[0-9a-f]{12}\b|\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d+\.\d{6,}\b")


def _steady(transcript: str) -> list[str]:
    """Return the lines with every id, hash, time and score named by the order in which it first came up."""
    names: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        # A verdict names memories by the first digits of their ids.
        known = next((n for said, n in names.items() if said.startswith(match[0])), None)
        return known or names.setdefault(match[0], f"<{len(names)}>")

    return _VARIES.sub(name, transcript).strip().splitlines()


def test_the_responder_finds_contains_and_proves_it_with_the_command_line_alone(tmp_path: Path) -> None:
    make(tmp_path)
    environment = {**os.environ, "MUNIMENT": f"{sys.executable} -m muniment", "PYTHONPATH": str(INCIDENT.parents[1])}

    done = subprocess.run(
        ["bash", str(INCIDENT / "respond.sh"), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    page = (INCIDENT / "README.md").read_text(encoding="utf-8")
    shown = page.partition("```console\n")[2].partition("\n```")[0]
    assert _steady(shown) == _steady(done.stdout)
    assert "globex-pay.example" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_script_types_nothing_but_muniment() -> None:
    script = (INCIDENT / "respond.sh").read_text(encoding="utf-8")
    commands = {line.split()[0] for line in script.splitlines() if line and not line.startswith((" ", "#", "}"))}

    assert commands <= {"set", "cd", "export", "say", "say()", "run", "run()"} | {
        word for word in commands if re.match(r"[A-Z]+=", word)
    }
