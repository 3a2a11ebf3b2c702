"""The table of tools: what clients are shown, and what it says of the engine behind it."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from typing import cast

import pytest

from muniment import Kind, Provenance, Session, Status, Use
from muniment._mcp._service import _VERBS
from muniment._mcp._tools import KINDS, PROVENANCES, STATUSES, TOOLS, USES, Tool
from tests.checkout import ROOT

PERSONS = ("confirm", "prohibit", "unprohibit", "review", "lift", "enroll", "release", "quarantine", "submit")


def _schemas(schema: object) -> Iterator[dict[str, object]]:
    if isinstance(schema, dict):
        found = cast("dict[str, object]", schema)
        yield found
        for part in found.values():
            yield from _schemas(part)
    elif isinstance(schema, list):
        for part in cast("list[object]", schema):
            yield from _schemas(part)


def test_there_are_eight_to_ten_tools_of_one_prefix() -> None:
    assert 8 <= len(TOOLS) <= 10
    assert not [tool.name for tool in TOOLS if not tool.name.startswith("memory_")]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_array_says_what_it_holds(tool: Tool) -> None:
    assert not [schema for schema in _schemas(tool.schema()) if schema.get("type") == "array" and "items" not in schema]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_argument_is_described_and_no_other_is_taken(tool: Tool) -> None:
    schema = tool.schema()

    assert schema["additionalProperties"] is False
    assert not [param.name for param in tool.params if not param.help]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_is_annotated(tool: Tool) -> None:
    hints = cast("dict[str, object]", tool.wire()["annotations"])

    assert {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} <= set(hints)
    assert not (hints["readOnlyHint"] and hints["destructiveHint"])


def test_only_retiring_and_forgetting_are_called_destructive() -> None:
    assert ["memory_retire", "memory_forget"] == [tool.name for tool in TOOLS if tool.destroys]


def test_no_tool_does_what_only_a_person_may() -> None:
    assert not [tool.name for tool in TOOLS if any(verb in tool.name for verb in PERSONS)]


def test_no_argument_names_a_scope_an_actor_or_an_origin() -> None:
    names = {param.name for tool in TOOLS for param in tool.params}

    assert not names & {"scope", "reads", "actor", "origin", "agent", "rank", "principal", "signer", "block"}


def test_the_words_are_the_engines() -> None:
    assert list(KINDS) == [kind.value for kind in Kind]
    assert list(STATUSES) == [status.value for status in Status if status is not Status.ERASED]
    assert list(USES) == [use.value for use in Use]
    assert set(PROVENANCES) == {sort.value for sort in Provenance} - {"user_confirmation"}


def test_every_tool_has_a_verb_that_takes_its_arguments() -> None:
    assert set(_VERBS) == {tool.name for tool in TOOLS}
    for tool in TOOLS:
        method = getattr(Session, {"memory_check_action": "decide"}.get(tool.name, tool.name.removeprefix("memory_")))
        taken = {*inspect.signature(method).parameters, "seen_in", "limit", "name", "args", "propose_contradictions"}
        assert not {param.name for param in tool.params} - taken, tool.name


def test_the_docs_list_exactly_the_tools_and_their_hints() -> None:
    text = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(memory_\w+)` \| [^|]+ \| (\w*) ?\|$", text, re.MULTILINE)

    assert [(t.name, "reads" if t.reads else "destructive" if t.destroys else "") for t in TOOLS] == listed


def test_the_range_of_the_sdk_is_one() -> None:
    """The extra, the group that tests it, the target that tests its other end, and the docs."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    (extra,) = project["project"]["optional-dependencies"]["mcp"]

    assert "mcp>=2.0,<3" == extra
    assert extra in project["dependency-groups"]["test"]
    assert "mcp==2.0.0" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "(2.0 up to 3;" in (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
