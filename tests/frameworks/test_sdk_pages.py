"""What the pages of the frameworks show is what happens; and nothing of them is loaded by those who do not ask."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import muniment
from tests.checkout import ROOT


def _example(page: str) -> str:
    found = re.search(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("page", ["openai-agents.md", "anthropic-memory.md"])
def test_the_example_prints_what_its_comments_say(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    promised = [line.split("  # ", 1)[1] for line in _example(page).splitlines() if re.match(r"\s+print\(", line)]
    printed = io.StringIO()

    with contextlib.redirect_stdout(printed):
        exec(compile(_example(page), page, "exec"), {"__name__": "example"})

    # The loop's one comment stands for its three lines.
    assert ", ".join(promised) == ", ".join(printed.getvalue().splitlines())


def test_importing_muniment_loads_no_framework() -> None:
    program = (
        "import sys, muniment, muniment.aio; muniment.Store; "
        "print([m for m in ('agents', 'anthropic', 'openai', 'pydantic') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)

    assert "[]" == shown.stdout.strip()


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [("muniment.openai_agents", "agents", "openai-agents"), ("muniment.anthropic_memory", "anthropic", "anthropic")],
)
def test_without_the_package_the_extra_is_named(
    module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, module, raising=False)

    with pytest.raises(muniment.Unavailable) as missing:
        importlib.import_module(module)

    assert "extra_missing" == missing.value.code
    assert f"pip install 'muniment[{extra}]'" == missing.value.hint
