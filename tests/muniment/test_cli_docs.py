"""Every command says how it is used, and stands in docs/cli.md."""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from muniment._cli import cli
from tests.checkout import ROOT


def _listed() -> list[str]:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `([\w-]+)` \| ", text.split("## Verbs")[1], re.MULTILINE)


@pytest.mark.parametrize("verb", sorted(cli.commands))
def test_each_command_has_help_with_an_example_that_parses(verb: str) -> None:
    shown = CliRunner().invoke(cli, [verb, "--help"], terminal_width=200)
    example = re.search(r"Example:\n +(muniment .+)", shown.output)

    assert 0 == shown.exit_code
    assert example is not None
    assert f" {verb}" in example[1]


@pytest.mark.parametrize("verb", sorted(cli.commands))
def test_each_option_says_what_it_does(verb: str) -> None:
    silent = [
        parameter.name
        for parameter in cli.commands[verb].params
        if isinstance(parameter, click.Option) and not parameter.help
    ]

    assert not silent


def test_the_docs_list_exactly_the_commands() -> None:
    assert sorted(cli.commands) == sorted(_listed())


def test_the_docs_name_every_option_that_is_taken_everywhere() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")

    assert not [p.opts[0] for p in cli.params if p.name not in ("help", "version") and f"`{p.opts[0]}" not in text]
