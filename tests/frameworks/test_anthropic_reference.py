"""
The same commands for the SDK's own memory tool over a directory, and for this one: the answers are compared.

They are equal, character for character, but for the deviations that docs/anthropic-memory.md lists:
`_without_deviations` takes those away that touch these commands, and the last test shows the others on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import cast

import anyio
import pytest
from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import (
    BetaAsyncLocalFilesystemMemoryTool,
    BetaLocalFilesystemMemoryTool,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.anthropic_memory import AsyncMunimentMemoryTool, MunimentMemoryTool
from tests.worlds import SCOPE, World

Command = Mapping[str, object]
M = "/memories"

SCENARIO: tuple[Command, ...] = (
    {"command": "view", "path": M},
    {"command": "create", "path": f"{M}/notes.md", "file_text": "one\ntwo\nthree\nfour\nfive\nsix\n"},
    {"command": "create", "path": f"{M}/notes.md", "file_text": "again"},
    {"command": "create", "path": f"{M}/a/b/c/deep.txt", "file_text": "deep"},
    {"command": "create", "path": f"{M}/a/é 日本.md", "file_text": "naïve\r\nline\u2028same line"},
    {"command": "create", "path": f"{M}/.hidden", "file_text": "x"},
    {"command": "create", "path": f"{M}/big", "file_text": "x" * 1536},
    {"command": "create", "path": f"{M}/empty", "file_text": ""},
    {"command": "create", "path": f"{M}/blank", "file_text": "\n \n"},
    {"command": "create", "path": M, "file_text": "no"},
    {"command": "create", "path": f"{M}/a", "file_text": "no"},
    {"command": "view", "path": M},
    {"command": "view", "path": f"{M}/a"},
    {"command": "view", "path": f"{M}/a/b/c"},
    {"command": "view", "path": f"{M}/notes.md"},
    {"command": "view", "path": f"{M}/notes.md", "view_range": [2, 4]},
    {"command": "view", "path": f"{M}/notes.md", "view_range": [5, -1]},
    {"command": "view", "path": f"{M}/notes.md", "view_range": [0, 2]},
    {"command": "view", "path": f"{M}/notes.md", "view_range": [4, 2]},
    {"command": "view", "path": f"{M}/notes.md", "view_range": [3, 99]},
    {"command": "view", "path": f"{M}/notes.md", "view_range": [90, 99]},
    {"command": "view", "path": f"{M}/notes.md", "view_range": [3]},
    {"command": "view", "path": f"{M}/.hidden"},
    {"command": "view", "path": f"{M}/empty"},
    {"command": "view", "path": f"{M}/blank"},
    {"command": "view", "path": f"{M}/a/é 日本.md"},
    {"command": "view", "path": f"{M}/none"},
    {"command": "view", "path": f"{M}/notes.md/below"},
    {"command": "str_replace", "path": f"{M}/notes.md", "old_str": "three", "new_str": "drei\nund mehr"},
    {"command": "str_replace", "path": f"{M}/notes.md", "old_str": "one", "new_str": ""},
    {"command": "str_replace", "path": f"{M}/notes.md", "old_str": "absent", "new_str": "x"},
    {"command": "str_replace", "path": f"{M}/notes.md", "old_str": "i", "new_str": "x"},
    {"command": "str_replace", "path": f"{M}/none", "old_str": "i", "new_str": "x"},
    {"command": "str_replace", "path": f"{M}/big", "old_str": "x" * 1536, "new_str": ""},
    {"command": "view", "path": f"{M}/big"},
    {"command": "insert", "path": f"{M}/notes.md", "insert_line": 0, "insert_text": "zero\n"},
    {"command": "insert", "path": f"{M}/notes.md", "insert_line": 8, "insert_text": "last"},
    {"command": "insert", "path": f"{M}/notes.md", "insert_line": 3, "insert_text": "\n\n"},
    {"command": "insert", "path": f"{M}/empty", "insert_line": 0, "insert_text": "first"},
    {"command": "insert", "path": f"{M}/blank", "insert_line": 2, "insert_text": "x"},
    {"command": "insert", "path": f"{M}/notes.md", "insert_line": 99, "insert_text": "no"},
    {"command": "insert", "path": f"{M}/notes.md", "insert_line": -1, "insert_text": "no"},
    {"command": "insert", "path": f"{M}/none", "insert_line": 0, "insert_text": "no"},
    {"command": "view", "path": f"{M}/notes.md"},
    {"command": "view", "path": f"{M}/blank"},
    {"command": "rename", "old_path": f"{M}/notes.md", "new_path": f"{M}/x/y.md"},
    {"command": "rename", "old_path": f"{M}/notes.md", "new_path": f"{M}/z.md"},
    {"command": "rename", "old_path": f"{M}/big", "new_path": f"{M}/x/y.md"},
    {"command": "rename", "old_path": f"{M}/big", "new_path": f"{M}/a"},
    {"command": "rename", "old_path": f"{M}/big", "new_path": f"{M}/big"},
    {"command": "rename", "old_path": f"{M}/a", "new_path": f"{M}/q"},
    {"command": "rename", "old_path": M, "new_path": f"{M}/q"},
    {"command": "view", "path": f"{M}/q"},
    {"command": "view", "path": M},
    {"command": "delete", "path": f"{M}/q"},
    {"command": "delete", "path": f"{M}/q"},
    {"command": "delete", "path": f"{M}/none"},
    {"command": "delete", "path": M},
    {"command": "create", "path": f"{M}/q/again.md", "file_text": "back"},
    {"command": "view", "path": f"{M}/q"},
    {"command": "view", "path": "/etc/passwd"},
    {"command": "view", "path": f"{M}/../x"},
)


def _reply(run: Callable[[object], object], command: Command) -> tuple[str, str]:
    try:
        return "done", cast("str", run(command))
    except ToolError as error:
        return "failed", str(error.content)


def _without_deviations(reply: tuple[str, str]) -> tuple[str, str]:
    verdict, text = reply
    if verdict == "failed":
        text = text.removeprefix("Error: ").removesuffix(" Please provide a valid path.").removesuffix(".")
        text = text.replace("should be within the range of lines of the file: [", "should be within the range [")
        return verdict, re.sub(r"(The path \S+) is not a file$", r"\1 does not exist", text)
    if not text.startswith("Here're the files"):
        return verdict, text
    heading, itself, *lines = text.replace(" and node_modules:", ":", 1).split("\n")
    sizeless = [_sizeless(line) if line.endswith("/") else line for line in lines]
    return verdict, "\n".join([heading, _sizeless(itself), *sizeless])


def _sizeless(line: str) -> str:
    return "?\t" + line.split("\t")[1]


@pytest.mark.parametrize("delete", ["retire", "forget"])
def test_each_command_is_answered_as_the_sdks_own_tool_answers_it(world: World, tmp_path: Path, delete: str) -> None:
    reference = BetaLocalFilesystemMemoryTool(str(tmp_path / "files"))
    tool = MunimentMemoryTool(world.speaker("agent:claude"), delete=delete)

    for command in SCENARIO:
        expected, found = _reply(reference.call, command), _reply(tool.call, command)
        assert _without_deviations(expected) == _without_deviations(found), command
        assert expected[0] == found[0], command


def test_the_asynchronous_tool_gives_the_same_answers(world: World, tmp_path: Path) -> None:
    reference = BetaAsyncLocalFilesystemMemoryTool(str(tmp_path / "files"))
    tool = AsyncMunimentMemoryTool(world.speaker("agent:claude"))
    plain = MunimentMemoryTool(world.speaker("agent:claude", f"{SCOPE}/other"))

    async def replies(run: Callable[[object], Awaitable[object]], command: Command) -> tuple[str, str]:
        try:
            return "done", cast("str", await run(command))
        except ToolError as error:
            return "failed", str(error.content)

    async def compare() -> None:
        for command in SCENARIO:
            expected, found = await replies(reference.call, command), await replies(tool.call, command)
            assert _without_deviations(expected) == _without_deviations(found), command
            assert _reply(plain.call, command) == found, command
        assert "All memory cleared" == await tool.clear_all_memory()
        assert ["retired"] == [version.status for version in await tool.history(f"{M}/q/again.md")]

    anyio.run(compare)


NAMES = st.sampled_from([f"{M}/a", f"{M}/b", f"{M}/d/a", f"{M}/d/b", f"{M}/d/e/a", f"{M}/d", f"{M}/d/e"])
TEXTS = st.text(alphabet="ab \né", max_size=12)
COMMANDS = st.one_of(
    st.fixed_dictionaries({"command": st.just("view"), "path": st.one_of(NAMES, st.just(M))}),
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": NAMES, "view_range": st.lists(st.integers(-1, 4), min_size=2, max_size=2)}
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": NAMES, "file_text": TEXTS}),
    st.fixed_dictionaries(
        {"command": st.just("str_replace"), "path": NAMES, "old_str": st.sampled_from("ab\n"), "new_str": TEXTS}
    ),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": NAMES, "insert_line": st.integers(-1, 4), "insert_text": TEXTS}
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": NAMES}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": NAMES, "new_path": NAMES}),
)


@settings(max_examples=25)
@given(commands=st.lists(COMMANDS, min_size=5, max_size=25))
def test_any_commands_leave_the_same_files(
    make_world: Callable[..., World], tmp_path_factory: pytest.TempPathFactory, commands: list[Command]
) -> None:
    """Directories that a command left empty are taken away from the reference: here there are none."""
    folder = tmp_path_factory.mktemp("files")
    reference = BetaLocalFilesystemMemoryTool(str(folder))
    tool = MunimentMemoryTool(make_world().speaker("agent:claude"))

    for command in commands:
        # A bare OSError is how the reference answers what its author did not think of: a file used as a directory.
        try:
            expected = _reply(reference.call, command)
        except OSError:
            expected = ("failed", "")
        found = _reply(tool.call, command)
        _drop_empty(folder / "memories")
        assert expected[0] == found[0], (command, expected, found)
        if expected[0] == "done":
            assert _without_deviations(expected) == _without_deviations(found), command


def _drop_empty(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


@pytest.mark.parametrize(
    ("command", "there", "here"),
    [
        (
            {"command": "str_replace", "path": f"{M}/d/x", "old_str": "a", "new_str": "b"},
            "No replacement was performed. Multiple occurrences of old_str `a` in lines: 1, 1, 2. "
            "Please ensure it is unique",
            "No replacement was performed. Multiple occurrences of old_str `a` in lines: 1, 2. "
            "Please ensure it is unique",
        ),
        (
            {"command": "str_replace", "path": f"{M}/d", "old_str": "a", "new_str": "b"},
            f"The path {M}/d is not a file.",
            f"Error: The path {M}/d does not exist. Please provide a valid path.",
        ),
        (
            {"command": "insert", "path": f"{M}/d", "insert_line": 0, "insert_text": "b"},
            f"The path {M}/d is not a file.",
            f"Error: The path {M}/d does not exist",
        ),
        (
            {"command": "view", "path": f"{M}/d/"},
            f"Here're the files and directories up to 2 levels deep in {M}/d/, excluding hidden items:\n"
            f"?\t{M}/d/\n4B\t{M}/d//x",
            f"Here're the files and directories up to 2 levels deep in {M}/d, excluding hidden items:\n"
            f"?\t{M}/d\n4B\t{M}/d/x",
        ),
        (
            {"command": "create", "path": f"{M}X/a", "file_text": "b"},
            f"File created successfully at: {M}X/a",
            f"Path must start with /memories, got: {M}X/a",
        ),
        (
            {"command": "create", "path": f"{M}/D/x", "file_text": "b"},
            f"File created successfully at: {M}/D/x",
            f"Error: File {M}/D/x already exists as {M}/d/x, which looks the same",
        ),
    ],
    ids=["once a line", "replace in a directory", "insert in one", "slash at the end", "no root", "twins"],
)
def test_the_deviations_are_the_listed_ones(
    world: World, tmp_path: Path, command: Command, there: str, here: str
) -> None:
    reference = BetaLocalFilesystemMemoryTool(str(tmp_path / "files"))
    tool = MunimentMemoryTool(world.speaker("agent:claude"))
    for each in (reference, tool):
        each.call({"command": "create", "path": f"{M}/d/x", "file_text": "aa\na"})

    replies = [_reply(each.call, command) for each in (reference, tool)]

    # Of a listing, the sizes of directories are left out here too.
    shown = [_without_deviations(reply)[1] if command["command"] == "view" else reply[1] for reply in replies]
    assert [there, here] == shown
