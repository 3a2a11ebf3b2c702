"""What Claude's memory files are made of: versions, origins, tombstones; and paths that lead nowhere else."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import cast

import anthropic
import anyio
import httpx2
import pytest
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

import muniment
from muniment.aio import AsyncSession
from muniment.anthropic_memory import AsyncMunimentMemoryTool, MunimentMemoryTool
from tests.worlds import SCOPE, World

M = "/memories"
CLAUDE = "agent:claude"


def _tool(world: World, who: str = CLAUDE, scope: str = SCOPE, **options: object) -> MunimentMemoryTool:
    return MunimentMemoryTool(world.speaker(who, scope), **options)  # type: ignore[arg-type]  # options of the tool


def _do(tool: MunimentMemoryTool, command: str, path: object = None, **fields: object) -> str:
    given = {"command": command, **fields} if path is None else {"command": command, "path": path, **fields}
    return cast("str", tool.call(given))


def _fails(tool: MunimentMemoryTool, command: str, path: object = None, **fields: object) -> str:
    with pytest.raises(ToolError) as failed:
        _do(tool, command, path, **fields)
    return str(failed.value.content)


def test_it_is_the_sdks_memory_tool(world: World) -> None:
    tool = _tool(world, cache_control={"type": "ephemeral"})

    assert isinstance(tool, BetaAbstractMemoryTool)
    assert isinstance(AsyncMunimentMemoryTool(world.speaker(CLAUDE)), BetaAsyncAbstractMemoryTool)
    expected = {"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}}
    assert expected == tool.to_dict()


# --- the words of the documentation -----------------------------------------------------------------------------------


def test_answers_and_errors_have_the_words_of_the_documentation(world: World) -> None:
    tool = _tool(world)
    none = f"{M}/none"

    assert f"File created successfully at: {M}/a" == _do(tool, "create", f"{M}/a", file_text="x\ny\nx")
    assert f"Error: File {M}/a already exists" == _fails(tool, "create", f"{M}/a", file_text="x")
    missing = f"The path {none} does not exist. Please provide a valid path."
    assert missing == _fails(tool, "view", none)
    assert f"Error: {missing}" == _fails(tool, "str_replace", none, old_str="a", new_str="b")
    assert f"Error: The path {none} does not exist" == _fails(tool, "insert", none, insert_line=0, insert_text="a")
    assert f"Error: The path {none} does not exist" == _fails(tool, "delete", none)
    assert f"Error: The path {none} does not exist" == _fails(tool, "rename", old_path=none, new_path=f"{M}/b")
    assert f"Error: The destination {M}/a already exists" == _fails(
        tool, "rename", old_path=f"{M}/a", new_path=f"{M}/a"
    )
    assert (
        f"No replacement was performed, old_str `z` did not appear verbatim in {M}/a."
        == _fails(tool, "str_replace", f"{M}/a", old_str="z", new_str="b")
    )  # fmt: skip
    assert (
        "No replacement was performed. Multiple occurrences of old_str `x` in lines: 1, 3. Please ensure it is unique"
        == _fails(tool, "str_replace", f"{M}/a", old_str="x", new_str="b")
    )
    assert (
        "Error: Invalid `insert_line` parameter: 9. It should be within the range of lines of the file: [0, 3]"
        == _fails(tool, "insert", f"{M}/a", insert_line=9, insert_text="b")
    )


def test_a_listing_is_two_levels_deep_with_sizes_and_without_what_is_hidden(world: World) -> None:
    tool = _tool(world)
    for path, size in {"a.md": 1536, "d/x": 2, "d/e/y": 1024, ".git/z": 1, "node_modules/m": 1}.items():
        _do(tool, "create", f"{M}/{path}", file_text=chr(ord("a") + size % 7) * size)

    expected = [
        f"Here're the files and directories up to 2 levels deep in {M}, excluding hidden items and node_modules:",
        f"2.5K\t{M}",
        f"1.5K\t{M}/a.md",
        f"1.0K\t{M}/d/",
        f"1K\t{M}/d/e/",
        f"2B\t{M}/d/x",
    ]
    assert expected == _do(tool, "view", f"{M}/").split("\n")


# --- paths ------------------------------------------------------------------------------------------------------------

ESCAPES = [
    "", "/", "/etc/passwd", "memories/a", "/memoriesevil/a", "/Memories/a", f"{M}/..", f"{M}/../a", f"{M}/a/../../b",
    f"{M}/./a", f"{M}//a", f"{M}/a//b", f"{M}/...", f"{M}/%2e%2e/a", f"{M}/%2E%2E%2Fa", f"{M}/..%2fa", f"{M}/%252e/a",
    f"{M}/a%00", f"{M}/a\0b", f"{M}\\..\\a", f"{M}/..\\a", f"{M}/a\\b", f"{M}/C:/a", f"{M}/c:a", "C:\\memories\\a",
    f"{M}/．．/a", f"{M}/‥/a", f"{M}/․․/a", f"{M}/…", f"{M}／a", f"{M}/a／b", f"{M}/a∕b", f"{M}/a⁄b", f"{M}/..⧵a",
    f"{M}/a\u200bb", f"{M}/a\u202eb", f"{M}/a\nb", f"{M}/a\tb", f"{M}/ａ", f"{M}/e\u0301", f"{M}/ a", f"{M}/a ",
    f"{M}/a\u00a0b", f"{M}/\ud800", f"{M}/" + "x" * 129, f"{M}/" + "x/" * 17 + "x",
    f"{M}/" + f"{'x' * 99}/" * 6 + "x",
    None, 7, ["/memories/a"], {"path": 1}, True,
]  # fmt: skip


@pytest.mark.parametrize("path", ESCAPES, ids=ascii)
def test_no_path_leads_out_of_the_root_or_poses_as_another(world: World, path: object) -> None:
    tool = _tool(world)
    _do(tool, "create", f"{M}/a", file_text="safe")

    for refused in (
        _fails(tool, "view", path),
        _fails(tool, "create", path, file_text="x"),
        _fails(tool, "delete", path),
        _fails(tool, "rename", old_path=f"{M}/a", new_path=path),
        _fails(tool, "rename", old_path=path, new_path=f"{M}/b"),
    ):
        # What is shown of it is short, and nothing in it that cannot be seen.
        assert refused.isprintable()
        assert len(refused) < 400
    assert ["/memories", "/memories/a"] == [row.split("\t")[1] for row in _do(tool, "view", M).split("\n")[1:]]


@pytest.mark.parametrize("name", ["Notes.md", "notes.MD", "nоtes.md", "notes.md."])
def test_a_name_that_only_looks_like_another_is_taken(world: World, name: str) -> None:
    """A poisoned twin cannot stand beside the file that a person means; reading takes the exact name."""
    tool = _tool(world)
    _do(tool, "create", f"{M}/notes.md", file_text="the real one")
    _do(tool, "create", f"{M}/b.md", file_text="another")

    taken = f"{M}/{name} already exists as {M}/notes.md, which looks the same"
    assert f"Error: File {taken}" == _fails(tool, "create", f"{M}/{name}", file_text="a twin")
    assert f"Error: The destination {taken}" == _fails(tool, "rename", old_path=f"{M}/b.md", new_path=f"{M}/{name}")
    assert "does not exist" in _fails(tool, "view", f"{M}/{name}")
    assert f"Successfully renamed {M}/notes.md to {M}/{name}" == _do(
        tool, "rename", old_path=f"{M}/notes.md", new_path=f"{M}/{name}"
    )
    assert "the real one" in _do(tool, "view", f"{M}/{name}")


@pytest.mark.parametrize(
    "command",
    [
        {"command": "create", "path": f"{M}/b"},
        {"command": "create", "path": f"{M}/b", "file_text": 7},
        {"command": "create", "path": f"{M}/b", "file_text": "half \ud800"},
        {"command": "create", "path": f"{M}/b", "file_text": "nul \0"},
        {"command": "str_replace", "path": f"{M}/a", "old_str": None, "new_str": "x"},
        {"command": "str_replace", "path": f"{M}/a", "old_str": "safe"},
        {"command": "str_replace", "path": f"{M}/a", "old_str": "", "new_str": "x"},
        {"command": "insert", "path": f"{M}/a", "insert_line": "one", "insert_text": "x"},
        {"command": "insert", "path": f"{M}/a", "insert_line": None, "insert_text": "x"},
        {"command": "insert", "path": f"{M}/a", "insert_line": 0},
        {"command": "view", "path": f"{M}/a", "view_range": ["1", None]},
        {"command": "rename", "old_path": f"{M}/a"},
        {"command": "rename", "old_path": f"{M}/d", "new_path": f"{M}/d/e/f"},
        {"command": "create", "path": f"{M}/a/b", "file_text": "x"},
        {"command": "rename", "old_path": f"{M}/d", "new_path": f"{M}/a/d"},
    ],
    ids=ascii,
)
def test_a_command_that_makes_no_sense_is_answered_and_changes_nothing(
    world: World, command: Mapping[str, object]
) -> None:
    tool = _tool(world)
    _do(tool, "create", f"{M}/a", file_text="safe")
    _do(tool, "create", f"{M}/d/x", file_text="too")
    before = world.store.head

    with pytest.raises(ToolError):
        tool.call(dict(command))

    assert before == world.store.head


# --- versions, origins, tombstones ------------------------------------------------------------------------------------


def test_each_version_of_a_file_is_a_memory_in_one_chain_across_renames(world: World) -> None:
    tool = _tool(world)
    _do(tool, "create", f"{M}/draft", file_text="one\n")
    _do(tool, "str_replace", f"{M}/draft", old_str="one", new_str="two")
    _do(tool, "rename", old_path=f"{M}/draft", new_path=f"{M}/d/final")
    _do(tool, "insert", f"{M}/d/final", insert_line=1, insert_text="three")
    _do(tool, "delete", f"{M}/d")

    versions = tool.history(f"{M}/d/final")

    assert ["one\n", "two\n", "two\n", "two\nthree\n"] == [version.content for version in versions]
    assert ["superseded"] * 3 + ["retired"] == [version.status for version in versions]
    assert [f"{M}/draft"] * 2 + [f"{M}/d/final"] * 2 == [(version.about or ("",))[0] for version in versions]
    assert {CLAUDE} == {version.origin for version in versions}
    assert [] == tool.history(f"{M}/never")


def test_i04_a_file_is_shown_as_it_was(world: World) -> None:
    tool = _tool(world)
    _do(tool, "create", f"{M}/a", file_text="old")
    then = world.store.head.seq
    _do(tool, "str_replace", f"{M}/a", old_str="old", new_str="new")

    past = world.store.replay(to=then).session(scope=SCOPE)

    assert ["old"] == [belief.content for belief in past.beliefs()]


def test_a_renamed_directory_moves_in_one_batch(world: World) -> None:
    tool = _tool(world)
    for name in ("x", "e/y"):
        _do(tool, "create", f"{M}/d/{name}", file_text=name)
    _do(tool, "rename", old_path=f"{M}/d", new_path=f"{M}/n/m")

    moved = [tool.history(f"{M}/n/m/{name}")[-1] for name in ("x", "e/y")]
    assert 1 == len({record.recorded_at for record in moved})
    assert ["x", "e/y"] == [record.content for record in moved]


def test_i06_a_deleted_file_can_be_forgotten_with_all_its_versions_and_no_other(world: World) -> None:
    tool = _tool(world, delete="forget")
    _do(tool, "create", f"{M}/a", file_text="first secret plan")
    _do(tool, "str_replace", f"{M}/a", old_str="first", new_str="second")
    _do(tool, "rename", old_path=f"{M}/a", new_path=f"{M}/b")
    _do(tool, "create", f"{M}/a", file_text="unrelated")
    ids = [version.id for version in tool.history(f"{M}/b") if "plan" in (version.content or "")]
    _do(tool, "delete", f"{M}/b")

    mem = world.speaker(CLAUDE)
    assert ["erased"] * 3 == [mem.get(identity).status for identity in ids]
    assert "unrelated" in _do(tool, "view", f"{M}/a")
    refused = _fails(tool, "create", f"{M}/c", file_text="First  SECRET plan")
    assert refused.startswith("Error: ")
    assert refused.endswith("(tombstoned)")
    assert "plan" not in refused


@pytest.mark.parametrize("text", ["", "\n\n", "deleted", "the file was deleted"])
def test_whatever_a_file_holds_it_can_be_forgotten(world: World, text: str) -> None:
    tool = _tool(world, delete="forget")
    _do(tool, "create", f"{M}/a", file_text=text)
    _do(tool, "delete", f"{M}/a")

    assert "does not exist" in _fails(tool, "view", f"{M}/a")
    if not text.strip():
        # Nothing was said, so nothing is kept out.
        assert "created" in _do(tool, "create", f"{M}/a", file_text=text)


def test_i07_a_file_that_the_user_wrote_is_not_claudes_to_change(world: World) -> None:
    _do(_tool(world, "user"), "create", f"{M}/rules", file_text="never write to Eve")
    tool = _tool(world)

    for command in (
        {"command": "str_replace", "path": f"{M}/rules", "old_str": "never", "new_str": "always"},
        {"command": "insert", "path": f"{M}/rules", "insert_line": 0, "insert_text": "ignore this:"},
        {"command": "rename", "old_path": f"{M}/rules", "new_path": f"{M}/old"},
        {"command": "delete", "path": f"{M}/rules"},
    ):
        with pytest.raises(ToolError) as failed:
            tool.call(command)
        assert str(failed.value.content).endswith("(rank_too_low)")
    assert _fails(_tool(world, delete="forget"), "delete", f"{M}/rules").endswith("(needs_grant)")
    assert "     1\tnever write to Eve" in _do(tool, "view", f"{M}/rules")


def test_what_the_user_corrects_in_a_file_is_what_claude_reads(world: World) -> None:
    """By any door: a file is a belief like others."""
    tool = _tool(world)
    _do(tool, "create", f"{M}/a", file_text="the launch is on 12 March")
    world.ann().supersede(tool.history(f"{M}/a")[0].id, "the launch is on 2 April")
    world.ann().remember("never write to Eve", about=(f"{M}/rules", "memory file"))

    assert "     1\tthe launch is on 2 April" in _do(tool, "view", f"{M}/a")
    assert [f"{M}/a", f"{M}/rules"] == [row.split("\t")[1] for row in _do(tool, "view", M).split("\n")[2:]]


def test_i08_files_of_another_scope_are_not_there(world: World) -> None:
    _do(_tool(world, scope="acme/zeus"), "create", f"{M}/a", file_text="theirs")
    reader = MunimentMemoryTool(world.speaker(CLAUDE, reads=("acme/zeus",)))

    assert "does not exist" in _fails(reader, "view", f"{M}/a")
    assert f"0B\t{M}" == _do(reader, "view", M).split("\n")[1]
    _do(reader, "create", f"{M}/a", file_text="ours")
    assert "All memory cleared" == reader.clear_all_memory()
    assert "theirs" in _do(_tool(world, scope="acme/zeus"), "view", f"{M}/a")


def test_beliefs_that_are_no_files_are_left_alone(world: World) -> None:
    mem = world.speaker(CLAUDE)
    launch = mem.remember("on 12 March", about=("launch", "date"))
    tool = _tool(world)
    _do(tool, "create", f"{M}/a", file_text="x")
    tool.clear_all_memory()

    assert "active" == mem.get(launch.id).status


def test_a_credential_is_refused_with_its_code(world: World) -> None:
    refused = _fails(
        _tool(world),
        "create",
        f"{M}/a",
        file_text="-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    )
    assert refused.endswith("(secret_found)")
    assert "MIIE" not in refused


# --- limits, and several at once --------------------------------------------------------------------------------------


def test_files_views_and_their_number_have_limits(world: World) -> None:
    tool = _tool(world, max_file_bytes=10, max_view_chars=80, max_files=2)
    _do(tool, "create", f"{M}/a", file_text="é" * 5)

    assert "at most 10 bytes" in _fails(tool, "create", f"{M}/b", file_text="é" * 6)
    assert "at most 10 bytes" in _fails(tool, "insert", f"{M}/a", insert_line=0, insert_text="x")
    assert "at most 10 bytes" in _fails(tool, "str_replace", f"{M}/a", old_str="é" * 5, new_str="x" * 11)
    _do(tool, "create", f"{M}/b", file_text="\n" * 9)
    assert "there are 2 files already" in _fails(tool, "create", f"{M}/c", file_text="x")
    cut = _do(tool, "view", f"{M}/b")
    assert cut.endswith(" more characters: view fewer lines]")
    assert "     9\t" in _do(tool, "view", f"{M}/b", view_range=[9, 9])


def test_too_many_lines_are_refused(world: World) -> None:
    assert "999,999 lines" in _fails(_tool(world), "create", f"{M}/a", file_text="\n" * 999_999)


def test_two_who_edit_one_version_do_not_overwrite_each_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    other = world.open_again()
    tool, theirs = _tool(world), MunimentMemoryTool(world.speaker(CLAUDE, store=other))
    _do(tool, "create", f"{M}/a", file_text="one two")
    read = tool._files._find

    def read_then_be_overtaken(path: str) -> object:
        found = read(path)
        monkeypatch.undo()
        _do(theirs, "str_replace", f"{M}/a", old_str="one", new_str="eins")
        return found

    monkeypatch.setattr(tool._files, "_find", read_then_be_overtaken)
    assert "was changed by another meanwhile" in _fails(tool, "str_replace", f"{M}/a", old_str="two", new_str="zwei")
    _do(tool, "str_replace", f"{M}/a", old_str="two", new_str="zwei")
    assert "     1\teins zwei" in _do(tool, "view", f"{M}/a")
    other.close()


def test_of_many_who_create_one_file_one_does(world: World) -> None:
    stores = [world.open_again() for _ in range(3)]
    tools = [MunimentMemoryTool(world.speaker(CLAUDE, store=store)) for store in stores]
    start, made = threading.Barrier(len(tools)), []

    def create(tool: MunimentMemoryTool, text: str) -> None:
        start.wait()
        try:
            made.append(_do(tool, "create", f"{M}/a", file_text=text))
        except ToolError:
            return

    threads = [threading.Thread(target=create, args=(tool, f"text {n}")) for n, tool in enumerate(tools)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()

    assert 1 == len(made)
    assert 1 == len(_tool(world).history(f"{M}/a"))


def test_the_asynchronous_tool_takes_either_session_and_leaves_the_loop_free(world: World) -> None:
    tool = AsyncMunimentMemoryTool(AsyncSession(world.speaker(CLAUDE)))
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with world.store._engine.mutex:
            held.set()
            free.wait()

    async def scenario() -> object:
        holder = threading.Thread(target=hold)
        holder.start()
        held.wait()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tool.call, {"command": "create", "path": f"{M}/a", "file_text": "x"})
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            free.set()
        holder.join()
        return await tool.call({"command": "view", "path": f"{M}/a"})

    assert "     1\tx" in cast("str", anyio.run(scenario))


# --- the SDK's own loop -----------------------------------------------------------------------------------------------


def test_the_sdks_runner_lets_claude_use_the_files(world: World) -> None:
    """The API is a function that answers as it does; the client, its runner and their errors are the real ones."""
    turns: list[dict[str, str] | None] = [
        {"command": "create", "path": f"{M}/a", "file_text": "likes tea"},
        {"command": "create", "path": f"{M}/a", "file_text": "likes tea"},
        {"command": "view", "path": f"{M}/../a"},
        {"command": "view", "path": f"{M}/a"},
        None,
    ]
    results: list[tuple[object, object]] = []

    def api(request: httpx2.Request) -> httpx2.Response:
        last = json.loads(request.content)["messages"][-1]["content"]
        results.extend((part["content"], part.get("is_error")) for part in last if isinstance(part, dict))
        turn = turns.pop(0)
        content = [{"type": "text", "text": "Done."}] if turn is None else []
        if turn is not None:
            content.append({"type": "tool_use", "id": f"toolu_{len(turns)}", "name": "memory", "input": turn})  # type: ignore[dict-item]
        reason = "end_turn" if turn is None else "tool_use"
        body = {"id": "msg", "type": "message", "role": "assistant", "model": "claude", "content": content}
        usage = {"input_tokens": 1, "output_tokens": 1}
        return httpx2.Response(200, json={**body, "stop_reason": reason, "stop_sequence": None, "usage": usage})

    with httpx2.Client(transport=httpx2.MockTransport(api)) as http:
        client = anthropic.Anthropic(api_key="none", http_client=http)
        runner = client.beta.messages.tool_runner(
            model="a-model",
            max_tokens=100,
            messages=[{"role": "user", "content": "I like tea"}],
            tools=[_tool(world)],
        )
        runner.until_done()

    assert [
        (f"File created successfully at: {M}/a", None),
        (f"Error: File {M}/a already exists", True),
        (f"Path {M}/../a would escape /memories directory", True),
        (f"Here's the content of {M}/a with line numbers:\n     1\tlikes tea", None),
    ] == results
    assert ["likes tea"] == [hit.content for hit in world.speaker(CLAUDE).recall("tea")]


@pytest.mark.parametrize("delete", ["drop", ""])
def test_what_no_tool_can_be_made_of_is_refused_at_once(world: World, delete: str) -> None:
    with pytest.raises(muniment.InvalidInput):
        _tool(world, delete=delete)
