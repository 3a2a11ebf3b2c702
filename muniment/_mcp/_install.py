"""
Writes an MCP client's configuration: one entry of ours, and everything else as it was.

A file that is not plain JSON (comments, a trailing comma, a key twice) is left alone: written back it would lose what
its owner put there.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias, cast

from muniment.events import BadArgument

from ._clients import Client
from ._hook import EVENT

Config: TypeAlias = dict[str, object]
HOOK_CLIENT: Final = "claude-code-hook"
_HOOK_SECONDS: Final = 30


@dataclass(frozen=True, kw_only=True)
class Edit:
    """What would be written: the whole file before and after; None where there is none."""

    path: Path
    before: str | None
    after: str | None

    @property
    def changes(self) -> bool:
        """Tell whether there is anything to write."""
        return self.before != self.after


def plan_edit(client: Client, path: Path, name: str, command: Sequence[str], *, remove: bool) -> Edit:
    """
    Return the edit that puts our entry into a client's file, or takes it out.

    Raises:
        BadArgument: the file is not plain JSON, or has an entry of that name that is not ours.
    """
    # Where the file is a link to one kept elsewhere, that one is written, and the link stays.
    path = Path(os.path.realpath(path))
    before = path.read_text(encoding="utf-8") if path.exists() else None
    config = {} if before is None or not before.strip() else _parse(path, before)
    unchanged = json.dumps(config)
    if client.name == HOOK_CLIENT:
        _edit_hook(path, config, command, remove=remove)
    else:
        _edit_server(client, path, config, name, command, remove=remove)
    if json.dumps(config) == unchanged and (before is not None or remove):
        return Edit(path=path, before=before, after=before)
    return Edit(path=path, before=before, after=json.dumps(config, indent=2, ensure_ascii=False) + "\n")


def write_edit(edit: Edit, now: datetime) -> Path | None:
    """Write the file, whole or not at all, and return the copy that was made of the one before."""
    edit.path.parent.mkdir(parents=True, exist_ok=True)
    backup = None if edit.before is None else _back_up(edit.path, now)
    handle, temporary = tempfile.mkstemp(dir=edit.path.parent, prefix=f".{edit.path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(edit.after or "")
            file.flush()
            os.fsync(file.fileno())
        if edit.before is not None:
            shutil.copymode(edit.path, temporary)
        os.replace(temporary, edit.path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return backup


def _back_up(path: Path, now: datetime) -> Path:
    stem = f"{path.name}.{now:%Y%m%dT%H%M%SZ}"
    for count in range(1_000):
        backup = path.with_name(f"{stem}.bak" if count == 0 else f"{stem}-{count}.bak")
        try:
            # Made by exclusive creation, so that an earlier copy of this second is never written over.
            os.close(os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            continue
        shutil.copy2(path, backup)
        return backup
    raise BadArgument(argument="config", detail=f"a thousand copies of `{path}` were made in this second")


# --- servers ----------------------------------------------------------------------------------------------------------


def _edit_server(
    client: Client, path: Path, config: Config, name: str, command: Sequence[str], *, remove: bool
) -> None:
    servers = _table(path, config, client.key, make=not remove)
    present = servers.get(name)
    if present is not None and not _is_ours(present):
        raise BadArgument(
            argument="name", detail=f"`{path}` has another server named `{name}`", hint="give --name another name"
        )
    if remove:
        servers.pop(name, None)
        return
    entry: Config = {"type": "stdio"} if client.typed else {}
    servers[name] = {**entry, "command": command[0], "args": list(command[1:])}


def _is_ours(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    fields = cast("Config", entry)
    command, arguments = fields.get("command"), fields.get("args")
    words = cast("list[object]", arguments) if isinstance(arguments, list) else []
    program = Path(command).name if isinstance(command, str) else ""
    return "mcp" in words and "muniment" in (program, *words)


# --- the hook ---------------------------------------------------------------------------------------------------------


def _edit_hook(path: Path, config: Config, command: Sequence[str], *, remove: bool) -> None:
    hooks = _table(path, config, "hooks", make=not remove)
    groups = hooks.get(EVENT, [])
    if not isinstance(groups, list):
        raise BadArgument(argument="config", detail=f"`{EVENT}` in `{path}` is not a list")
    kept = [group for group in cast("list[object]", groups) if not _is_our_hook(group)]
    if not remove:
        # A hook that cannot run would be passed over; `onFailure` makes that a refusal too.
        handler: Config = {
            "type": "command", "command": shlex.join(command), "timeout": _HOOK_SECONDS, "onFailure": "block",
        }  # fmt: skip
        kept.append({"hooks": [handler]})
    if kept or EVENT in hooks:
        hooks[EVENT] = kept


def _is_our_hook(group: object) -> bool:
    handlers = cast("Config", group).get("hooks") if isinstance(group, dict) else None
    if not isinstance(handlers, list) or len(cast("list[object]", handlers)) != 1:
        return False
    (handler,) = cast("list[object]", handlers)
    command = cast("Config", handler).get("command") if isinstance(handler, dict) else None
    return isinstance(command, str) and "muniment hook claude-code" in command


# --- JSON -------------------------------------------------------------------------------------------------------------


def _parse(path: Path, text: str) -> Config:
    try:
        found = cast("object", json.loads(text, object_pairs_hook=_once))
    except (ValueError, RecursionError) as error:
        raise BadArgument(
            argument="config",
            detail=f"`{path}` is not plain JSON: {error}",
            hint="add the entry by hand: `--dry-run --config /dev/null` prints it",
        ) from error
    if not isinstance(found, dict):
        raise BadArgument(argument="config", detail=f"`{path}` is not a JSON object")
    return cast("Config", found)


def _once(pairs: list[tuple[str, object]]) -> Config:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands in it twice")
    return found


def _table(path: Path, config: Config, key: str, *, make: bool) -> Config:
    table = config.get(key)
    if table is None:
        table = {}
        if make:
            config[key] = table
    if not isinstance(table, dict):
        raise BadArgument(argument="config", detail=f"`{key}` in `{path}` is not an object")
    return cast("Config", table)
