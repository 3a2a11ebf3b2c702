"""The `muniment` command as a door of the safety cases: in this process, or a process for each command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from click.testing import CliRunner

from muniment import Action
from muniment._cli import cli
from muniment.gate import format_action
from muniment.gate._actions import action_to_wire

from ._safety_doors import AGENT, ANN, OTHER, SCOPE, Decided, Desk, Fields, Refused, policy_text


class CommandLine:
    """The `muniment` command: in this process, or (`real`) a process for each command."""

    def __init__(self, folder: Path, desk: Desk, *, relaxed: bool, real: bool = False) -> None:
        self.name = "process" if real else "cli"
        self._real, self._relaxed = real, relaxed
        policy = folder / "policy.toml"
        policy.write_text(policy_text(relaxed=relaxed), encoding="utf-8")
        self._environment = {
            "MUNIMENT_STORE": str(folder / "store"),
            "MUNIMENT_SCOPE": SCOPE,
            "MUNIMENT_MODEL": "none",
            "MUNIMENT_POLICY": str(policy),
        }
        self._key = ("--key", str(desk.key.path), "--as", ANN)
        self.store_id = str(self._run("init", "--enroll", ANN, *self._key[:2], "--for", SCOPE, "--for", OTHER)["id"])

    def close(self) -> None:
        """Every command closed the store."""

    def _lines(self, *words: str, stdin: str | None = None) -> list[dict[str, object]]:
        words = (*words, "--json")
        if self._real:
            done = subprocess.run(
                [sys.executable, "-m", "muniment", *words],
                env=dict(os.environ) | self._environment,
                input=stdin,
                capture_output=True,
                text=True,
                check=False,
            )
            code, output, talk = done.returncode, done.stdout, done.stderr
        else:
            result = CliRunner().invoke(cli, words, input=stdin, env=self._environment)
            code, output, talk = result.exit_code, result.stdout, result.stderr
        found = [cast("dict[str, object]", json.loads(line)) for line in output.split("\n") if line]
        if code and found and "error" in found[0]:
            if found[0].get("argument") == "command line" and "Invalid value" not in talk:
                # A command that nobody could have given proves nothing.
                raise AssertionError(f"{words}: {talk}")
            raise Refused(str(found[0]["error"]))
        if code == 2:
            raise AssertionError(f"{words}: {talk}")
        return found

    def _run(self, *words: str, stdin: str | None = None) -> dict[str, object]:
        return self._lines(*words, stdin=stdin)[0]

    def _by(self, origin: str | None, *, as_user: bool) -> tuple[str, ...]:
        return (*(self._key if as_user else ()), *(() if origin is None else ("--origin", origin)))

    def _reads(self) -> tuple[str, ...]:
        return ("--reads-below", SCOPE, "--reads-below", OTHER) if self._relaxed else ()

    def remember(
        self,
        text: str,
        *,
        scope: str = SCOPE,
        origin: str | None = None,
        as_user: bool = False,
        extra: Fields | None = None,
        **fields: object,
    ) -> str:
        """Remember a text and return its id."""
        options: list[str] = []
        for name, value in {**fields, **(extra or {})}.items():
            flag = "--" + name.replace("_", "-")
            if name == "about":
                options += [flag, *cast("tuple[str, str]", value)]
            elif name in ("tags", "derived_from"):
                flag = "--tag" if name == "tags" else flag
                options += [word for item in cast("Sequence[str]", value) for word in (flag, item)]
            else:
                options += [flag, json.dumps(value) if name == "metadata" else str(value)]
        words = ("--scope", scope, *self._by(origin, as_user=as_user), *options)
        return str(self._run("remember", *words, "-", stdin=text)["id"])

    def supersede(self, id: str, text: str, *, origin: str | None = None, as_user: bool = False) -> str:  # noqa: A002
        """Put a text in the place of a memory."""
        by = self._by(origin, as_user=as_user)
        return str(self._run("supersede", id, "-", "--reason", "correction", *by, stdin=text)["id"])

    def retire(self, id: str, *, origin: str | None = None, as_user: bool = False) -> None:  # noqa: A002
        """Retire a memory."""
        self._run("retire", id, "--reason", "over", *self._by(origin, as_user=as_user))

    def forget(self, id: str, *, origin: str | None = None, as_user: bool = False) -> None:  # noqa: A002
        """Forget a memory; an origin cannot be named here, so the agent asks as itself."""
        del origin
        self._run("forget", id, "--reason", "asked", *self._by(None, as_user=as_user))

    def prohibit(self, action: Action, *, scope: str = SCOPE) -> str:
        """Forbid an action as the user."""
        name = action.name if isinstance(action.name, str) else action.name.text
        words = ("prohibit", name, *_arguments(action), "--reason", "never", "--scope", scope, *self._key)
        return str(self._run(*words)["id"])

    def revoke(self, id: str) -> None:  # noqa: A002
        """Revoke a confirmation as the user."""
        self._run("revoke", id, "--reason", "changed my mind", *self._key)

    def submit(self, line: str) -> str:
        """Hand in a signed line."""
        return str(self._run("submit", "-", stdin=line + "\n")["id"])

    def feed(self, lines: str) -> None:
        """Import a transcript."""
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write(lines)
            file.flush()
            self._run("import", file.name, "--no-embed")

    def get(self, id: str) -> dict[str, object]:  # noqa: A002
        """Return a memory."""
        return self._run("get", id)

    def current(self, subject: str, attribute: str) -> list[str]:
        """Return what is current under a key."""
        return [str(row["content"]) for row in self._lines("beliefs", subject, attribute)]

    def context(self, query: str) -> str:
        """Return the block for a prompt."""
        return str(self._run("context", query)["text"])

    def outcome(self, id: str) -> tuple[str, bool]:  # noqa: A002
        """Return how a decision comes out when it is asked again at its own position."""
        found = self._run("explain", id)
        again = cast("dict[str, object] | None", found["again"])
        return str(found["outcome"]), again is not None and bool(again["allowed"])

    def decide(
        self,
        action: Action,
        *,
        use: str | None = None,
        evidence: Sequence[str] = (),
        agent: str = AGENT,
        scope: str = SCOPE,
        command_id: str | None = None,
    ) -> Decided:
        """Ask the guard, for good."""
        words = [*_arguments(action), "--actor", agent, "--scope", scope, *self._reads()]
        words += [word for item in evidence for word in ("--evidence", item)]
        words += ["--use", use] if use else []
        words += ["--command-id", command_id] if command_id else []
        found = self._run("decide", cast("str", action.name), *words)
        identity, request = cast("str | None", found["id"]), cast("str | None", found["request"])
        return Decided(bool(found["allowed"]), identity, tuple(cast("list[str]", found["reasons"])), request)


def _arguments(action: Action) -> list[str]:
    wire = cast("dict[str, list[object]]", action_to_wire(action)["args"])
    words: list[str] = []
    for name, (sort, *values) in wire.items():
        if sort == "=":
            value = json.loads(format_action(Action("a", {"x": action.args[name]})))["args"]["x"][1]
            words += ["--arg-json", f"{name}={json.dumps(value)}"]
        elif sort == "under":
            words += ["--arg-under", f"{name}={values[0]}"]
        elif sort == "like":
            words += ["--arg-like", f"{name}={values[0]}"]
        elif sort == "free":
            words += ["--arg-free", name]
        else:
            raise Refused(f"the command line has no `{sort}` here")
    return words
