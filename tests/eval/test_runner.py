"""The runner finds evaluations by name, skips what lacks data, and writes what ran."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eval.__main__ import main, registry

EVALUATION = '''"""Measures nothing much.

More words.
"""
from eval._harness import need

def add_arguments(parser):
    parser.add_argument("--k", type=int, default=5)

def run(args):
    return {"k": args.k, "text": need(args, "set.txt").read_text(), "ok": args.k < 100}
'''

Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    folder = tmp_path / "evaluations_of_a_test"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "_private.py").touch()
    (folder / "small_talk.py").write_text(EVALUATION, encoding="utf-8")
    (folder / "broken.py").write_text('"""Cannot be imported."""\nimport no_such_module', encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "data").mkdir()
    yield lambda *words: main(words, folder=folder)
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


def options(tmp_path: Path) -> list[str]:
    return ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")]


def test_the_list_shows_each_name_with_what_it_measures_and_imports_none(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("list") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-2:] == ["broken      Cannot be imported.", "small-talk  Measures nothing much."]


def test_a_hyphen_in_a_name_is_an_underscore_in_its_module(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data" / "set.txt").write_text("hello", encoding="utf-8")
    assert run("small-talk", "--k", "7", *options(tmp_path)) == 0
    document = json.loads((tmp_path / "out" / "small-talk.json").read_text(encoding="utf-8"))
    assert document["result"] == {"k": 7, "text": "hello", "ok": True}
    assert "text  hello" in capsys.readouterr().out


def test_an_evaluation_whose_data_is_absent_is_skipped_and_writes_nothing(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("small-talk", *options(tmp_path)) == 0
    assert "small-talk: skipped, `set.txt` is not in" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_a_result_that_is_not_ok_is_a_finding(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data" / "set.txt").write_text("hello", encoding="utf-8")
    assert run("small-talk", "--k", "100", *options(tmp_path)) == 1


def test_an_unknown_name_could_not_run_and_says_what_is_known(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("nothing") == 2
    assert "no evaluation `nothing`; known are broken, small-talk" in capsys.readouterr().err


def test_an_evaluation_that_breaks_could_not_run_which_is_no_finding(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("broken", *options(tmp_path)) == 2
    assert "no_such_module" in capsys.readouterr().err


def test_every_evaluation_here_says_what_it_measures() -> None:
    for path in registry().values():
        assert path.read_text(encoding="utf-8").startswith('"""')


def test_a_package_that_can_run_is_an_evaluation_and_another_is_none(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "evaluations_of_a_test"
    for name, text in (("side_by_side", '"""Beside."""\ndef run(args):\n    return None\n'), ("helpers", "")):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(text, encoding="utf-8")

    assert ["broken", "side-by-side", "small-talk"] == list(registry(folder))
    assert 0 == run("side-by-side", *options(tmp_path))
    # It returned None: it measured nothing, and nothing is written.
    assert not (tmp_path / "out").exists()
