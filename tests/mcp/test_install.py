"""The installer: one entry of ours in a client's file, and all else as its owner left it."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment._cli import cli
from muniment._mcp._clients import CLIENTS, Client, config_file
from muniment._mcp._install import plan_edit, write_edit
from muniment._mcp._projects import project_scope
from muniment.events import BadArgument
from tests.checkout import ROOT

from .serving import Row

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
COMMAND = ("python", "-P", "-m", "muniment", "mcp", "--store", "/srv/memory", "--scope", "acme")
HOOK = ("python", "-P", "-m", "muniment", "hook", "claude-code", "--store", "/srv/memory", "--scope", "auto")
SERVERS = tuple(client for client in CLIENTS if client.key != "hooks")
CURSOR = next(client for client in CLIENTS if client.name == "cursor")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def command_of(client: Client) -> tuple[str, ...]:
    return HOOK if client.key == "hooks" else COMMAND


def install(client: Client, path: Path, *, remove: bool = False) -> Path | None:
    edit = plan_edit(client, path, "muniment", command_of(client), remove=remove)
    return write_edit(edit, NOW) if edit.changes else None


def read(path: Path) -> Row:
    return cast("Row", json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("client", SERVERS, ids=lambda client: client.name)
def test_a_new_file_has_the_entry_as_the_client_documents_it(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "config.json"
    install(client, path)
    kind = {"type": "stdio"} if client.typed else {}

    assert {client.key: {"muniment": {**kind, "command": "python", "args": list(COMMAND[1:])}}} == read(path)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
@pytest.mark.parametrize("remove", [False, True])
def test_a_second_time_changes_nothing_and_leaves_no_copy(client: Client, tmp_path: Path, remove: bool) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"theme": "dark"}', encoding="utf-8")
    install(client, path)
    if remove:
        install(client, path, remove=True)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    assert install(client, path, remove=remove) is None
    assert before == {file.name: file.read_bytes() for file in tmp_path.iterdir()}


@settings(deadline=None)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
@given(others=st.dictionaries(st.text(max_size=5), JSON, max_size=3), servers=st.dictionaries(st.text(), JSON))
def test_everything_else_stays_through_install_and_uninstall(
    client: Client, others: Row, servers: Row, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("client") / "config.json"
    kept = {**others, client.key: servers}
    if client.key == "hooks":
        servers.pop("PreToolUse", None)
        servers["PreToolUse"] = [{"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"}]}]
    else:
        servers.pop("muniment", None)
    path.write_text(json.dumps(kept), encoding="utf-8")
    install(client, path)
    installed = read(path)
    install(client, path, remove=True)

    assert kept == read(path)
    assert list(kept) == list(installed)
    assert {name: value for name, value in kept.items() if name != client.key} == {
        name: value for name, value in installed.items() if name != client.key
    }


def test_a_changed_file_is_copied_first_under_its_time(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"a":1}', encoding="utf-8")
    path.chmod(0o600)
    first = install(CURSOR, path)
    second = install(CURSOR, path, remove=True)

    assert tmp_path / "mcp.json.20260301T120000Z.bak" == first
    assert tmp_path / "mcp.json.20260301T120000Z-1.bak" == second
    assert first is not None
    assert second is not None
    assert '{"a":1}' == first.read_text(encoding="utf-8")
    assert {0o600} == {stat.S_IMODE(file.stat().st_mode) for file in (path, first, second)}


def test_a_new_command_takes_the_place_of_our_old_one(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    install(CURSOR, path)
    write_edit(plan_edit(CURSOR, path, "muniment", (*COMMAND, "--reads", "global"), remove=False), NOW)

    entry = cast("Row", cast("Row", read(path)["mcpServers"])["muniment"])
    assert [*COMMAND[1:], "--reads", "global"] == entry["args"]


@pytest.mark.parametrize("remove", [False, True])
def test_another_server_of_that_name_is_not_touched(tmp_path: Path, remove: bool) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"muniment": {"command": "other"}}}', encoding="utf-8")

    with pytest.raises(BadArgument, match="another server named `muniment`"):
        install(CURSOR, path, remove=remove)


@pytest.mark.parametrize(
    "text",
    ['{"mcpServers": {}} // mine', '{"a": 1,}', '{"a": 1, "a": 2}', "[]", '{"mcpServers": []}', "{", "[" * 100_000],
)
def test_a_file_that_would_not_survive_being_written_back_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(BadArgument, match=r"JSON|not an object"):
        install(CURSOR, path)
    assert text == path.read_text(encoding="utf-8")
    assert [path] == list(tmp_path.iterdir())


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles.json").write_text("{}", encoding="utf-8")
    (tmp_path / "mcp.json").symlink_to("dotfiles.json")
    install(CURSOR, tmp_path / "mcp.json")

    assert (tmp_path / "mcp.json").is_symlink()
    assert "mcpServers" in read(tmp_path / "dotfiles.json")


def test_uninstalling_where_nothing_is_writes_nothing(tmp_path: Path) -> None:
    assert install(CURSOR, tmp_path / "mcp.json", remove=True) is None
    assert [] == list(tmp_path.iterdir())


# --- the verb ---------------------------------------------------------------------------------------------------------


def run(home: Path, *args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(
        cli, ["install", *args, "--store", str(home / "store"), "--json"], env={"HOME": str(home), "MUNIMENT_SCOPE": ""}
    )
    assert code == result.exit_code, result.output
    return result


def test_a_dry_run_prints_the_file_and_writes_nothing(tmp_path: Path) -> None:
    printed = run(tmp_path, "claude-code", "--scope", "auto", "--dry-run").stdout

    assert "auto" in json.loads(printed)["mcpServers"]["muniment"]["args"]
    assert [] == list(tmp_path.iterdir())


def test_a_scope_of_a_project_is_written_out_where_the_client_starts_elsewhere(tmp_path: Path) -> None:
    run(tmp_path, "cursor", "--scope", "auto", "--project", str(tmp_path))
    entry = cast("Row", cast("Row", read(tmp_path / ".cursor" / "mcp.json")["mcpServers"])["muniment"])

    assert project_scope(tmp_path) in cast("list[str]", entry["args"])


def test_an_automatic_scope_without_a_project_is_refused_where_it_would_be_any_folder(tmp_path: Path) -> None:
    assert "--project DIR" in run(tmp_path, "claude-desktop", "--scope", "auto", code=2).output


def test_the_hook_is_installed_to_refuse_when_it_cannot_run(tmp_path: Path) -> None:
    run(tmp_path, "claude-code-hook", "--scope", "auto")
    hooks = cast("Row", read(tmp_path / ".claude" / "settings.json")["hooks"])

    assert '"onFailure": "block"' in json.dumps(hooks)
    assert "muniment hook claude-code --store" in json.dumps(hooks)


def test_install_and_uninstall_by_the_verb(tmp_path: Path) -> None:
    first = cast("Row", json.loads(run(tmp_path, "windsurf", "--scope", "acme").stdout))
    again = cast("Row", json.loads(run(tmp_path, "windsurf", "--scope", "acme").stdout))
    gone = cast("Row", json.loads(run(tmp_path, "windsurf", "--uninstall").stdout))

    assert ["installed", "unchanged", "removed"] == [first["status"], again["status"], gone["status"]]
    assert Path(str(gone["backup"])).exists()


# --- docs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_the_docs_have_each_client_with_its_files_and_the_page_that_says_so(client: Client) -> None:
    text = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")

    assert f"### `{client.name}`" in text
    assert client.documented in text
    for file in (client.user_file, client.project_file):
        assert file is None or file.rsplit("/", 1)[-1] in text


def test_a_client_without_such_a_file_has_none() -> None:
    files = {
        (client.name, bool(project)): config_file(client, home=Path("/h"), project=Path("/p") if project else None)
        for client in CLIENTS
        for project in (False, True)
    }

    assert files["vscode", False] is None
    assert files["windsurf", True] is None
    assert Path("/p/.cursor/mcp.json") == files["cursor", True]
