"""Verbs for agents' hosts: the MCP server, the hook, and the installer of both."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from muniment._mcp import _hook, _install
from muniment._mcp._clients import BY_NAME, Client, config_file
from muniment._mcp._command import mcp
from muniment._mcp._projects import project_scope, scope_named
from muniment._store import open_store
from muniment.events import BadArgument, parse_scope

from ._output import emit_fields, emit_text, talk
from ._settings import Settings, common, scoped

_BLOCKS: Final = 2
"""Claude Code takes 2 for a refusal, and any other failure for permission."""


@click.command()
@click.argument("host", type=click.Choice(["claude-code"]))
@scoped
@click.pass_context
def hook(context: click.Context, host: str) -> None:  # noqa: ARG001  # there is one so far
    """Decide on the tool call that a host is about to make; its event is on standard input.

    Whatever goes wrong refuses the call.

    \b
    Example:
      muniment hook claude-code --store memory --scope auto --policy policy.toml
    """
    settings = context.ensure_object(Settings)
    try:
        answer = _decided(settings, sys.stdin.read())
        if answer:
            emit_text(answer)
        sys.stdout.flush()
    except BaseException as error:
        talk(f"muniment: the call is refused, because it could not be decided: {error}")
        context.exit(_BLOCKS)


def _decided(settings: Settings, event: str) -> str:
    call = _hook.parse_event(event)
    scope = settings.need_scope()
    if scope == "auto":
        # The folder that an agent works in is its own choice: by `cd` it would choose its prohibitions.
        project = os.environ.get("CLAUDE_PROJECT_DIR")
        if not project:
            raise BadArgument(argument="--scope", detail="`auto` needs CLAUDE_PROJECT_DIR; name the scope instead")
        scope = project_scope(Path(project))
    with open_store(settings.path(), policy=settings.policy, model="none") as store:
        session = store.session(scope=scope, actor=_hook.ACTOR, reads=settings.read_scopes())
        return _hook.format_answer(_hook.decide_call(session, call))


@click.command()
@click.argument("client", type=click.Choice(sorted(BY_NAME)))
@click.option("--project", metavar="DIR", type=click.Path(exists=True, file_okay=False), help="Only in this project.")
@click.option("--config", metavar="FILE", help="The client's file, if it is elsewhere.")
@click.option("--name", default="muniment", show_default=True, help="What the client calls the server.")
@click.option("--uninstall", is_flag=True, help="Take the entry out again.")
@click.option("--dry-run", is_flag=True, help="Print the file as it would be; write nothing.")
@common
@click.pass_obj
def install(
    settings: Settings, client: str, project: str | None, config: str | None, name: str, uninstall: bool, dry_run: bool
) -> None:
    """Put this server into an MCP client's configuration, or take it out. All else in it stays.

    \b
    Example:
      muniment install claude-code --store memory --scope auto
      muniment install cursor --project . --store memory --scope auto --dry-run
    """
    chosen = BY_NAME[client]
    folder = None if project is None else Path(project).absolute()
    path = Path(config) if config is not None else config_file(chosen, home=Path.home(), project=folder)
    if path is None:
        option = "--project DIR" if project is None else "no --project"
        raise click.UsageError(f"{client} has no such file: give {option}, or --config FILE")
    command = () if uninstall else _command(settings, chosen, folder)
    edit = _install.plan_edit(chosen, path, name, command, remove=uninstall)
    if dry_run:
        talk(f"{edit.path} {'would be written' if edit.changes else 'is so already'}")
        emit_text(edit.after or "")
        return
    backup = _install.write_edit(edit, datetime.now(UTC)) if edit.changes else None
    if not uninstall and client != _install.HOOK_CLIENT and find_spec("mcp") is None:
        talk("note: the server needs the SDK: pip install 'muniment[mcp]'")
    done = ("removed" if uninstall else "installed") if edit.changes else "unchanged"
    row: dict[str, object] = {"status": done, "client": client, "path": str(edit.path)}
    emit_fields({**row, "backup": None if backup is None else str(backup)}, as_json=settings.json)


def _command(settings: Settings, client: Client, project: Path | None) -> tuple[str, ...]:
    store, given = settings.path().absolute(), settings.need_scope()
    if given == "auto" and project is None and not client.knows_project:
        raise click.UsageError(f"{client.name} starts servers in no project's folder: give --project DIR or --scope S")
    scope = "auto" if given == "auto" and client.knows_project else parse_scope(scope_named(given, project or Path()))
    verb = ("hook", "claude-code") if client.name == _install.HOOK_CLIENT else ("mcp",)
    # Without -P, Python would look for every module in the folder it is started in, which the agent can write to.
    command = [sys.executable, "-P", "-m", "muniment", *verb, "--store", str(store), "--scope", scope]
    if settings.policy:
        command += ["--policy", str(Path(settings.policy).absolute())]
    if settings.model and verb == ("mcp",):
        command += ["--model", settings.model]
    return tuple(command)


COMMANDS: Final = (mcp, hook, install)
