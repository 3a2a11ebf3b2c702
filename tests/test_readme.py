"""What the README shows is what happens."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from .checkout import ROOT


def _example() -> str:
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_five_minutes_print_what_their_comments_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    promised = [line.split("# ", 1)[1] for line in _example().splitlines() if line.lstrip().startswith("print(")]
    printed = io.StringIO()

    with contextlib.redirect_stdout(printed):
        exec(compile(_example(), "README.md", "exec"), {})

    shown = printed.getvalue().splitlines()
    assert len(promised) == len(shown)
    for comment, line in zip(promised, shown, strict=True):
        assert comment.startswith(line)
