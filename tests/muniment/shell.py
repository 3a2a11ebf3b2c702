"""A shell for tests: runs `muniment` in this process on one store, words only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from click.testing import CliRunner, Result

from muniment._cli import cli

Row = dict[str, object]


class Shell:
    """Runs verbs on one store and scope, as a person or a script would."""

    def __init__(self, folder: Path, *, scope: str = "acme") -> None:
        self.folder, self.store, self.key = folder, folder / "store", folder / "ann.key"
        self.environment = {"MUNIMENT_STORE": str(self.store), "MUNIMENT_SCOPE": scope, "MUNIMENT_MODEL": "none"}
        self.as_ann = ("--key", str(self.key), "--as", "user:ann")

    def run(self, *args: str, stdin: str | None = None, code: int = 0) -> Result:
        """Run a command line and check its exit code."""
        result = CliRunner().invoke(cli, args, input=stdin, env=self.environment)
        assert code == result.exit_code, f"{args}: {result.output}"
        return result

    def rows(self, *args: str, stdin: str | None = None, code: int = 0) -> list[Row]:
        """Run a command line with `--json` and return the objects that it printed."""
        output = self.run(*args, "--json", stdin=stdin, code=code).stdout
        return [cast("Row", json.loads(line)) for line in output.splitlines()]

    def row(self, *args: str, stdin: str | None = None, code: int = 0) -> Row:
        """Run a command line with `--json` and return the one object that it printed."""
        (found,) = self.rows(*args, stdin=stdin, code=code)
        return found

    def remember(self, text: str, *options: str) -> str:
        """Remember a text and return its id."""
        return str(self.row("remember", text, *options)["id"])


def opened_shell(folder: Path) -> Shell:
    """Return a shell on a new store, in which user:ann may sign for acme."""
    shell = Shell(folder)
    shell.run("keygen", str(shell.key))
    shell.run("init", "--enroll", "user:ann", "--key", str(shell.key), "--for", "acme")
    return shell
