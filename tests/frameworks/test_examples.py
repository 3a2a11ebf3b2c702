"""What docs/langgraph.md and docs/opentelemetry.md show is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import ROOT


@pytest.mark.parametrize("page", ["langgraph.md", "opentelemetry.md"])
def test_the_example_prints_what_its_comments_say(page: str, tmp_path: Path) -> None:
    """In a process of its own: the global tracer provider is set once."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    promised = [line.split("  # ", 1)[1] for line in found[1].splitlines() if line.startswith("print(")]

    said = subprocess.run(
        [sys.executable, "-W", "error", "-c", found[1]],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "" == said.stderr
    assert promised == said.stdout.splitlines()
