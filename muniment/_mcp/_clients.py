"""Where the common MCP clients keep their configuration, each with the page that says so."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Client:
    """
    One client: its file for all projects, its file within a project, and the key that holds the servers.

    `typed` when an entry says `"type": "stdio"`. `knows_project` when a server is started in the project's folder
    whichever file named it, so that `--scope auto` can be left to each start.
    """

    name: str
    user_file: str | None
    project_file: str | None
    key: str
    documented: str
    typed: bool = False
    knows_project: bool = False


_DESKTOP: Final = "Library/Application Support/Claude" if sys.platform == "darwin" else ".config/Claude"

CLIENTS: Final = (
    Client(
        name="claude-code", user_file=".claude.json", project_file=".mcp.json", key="mcpServers", typed=True,
        knows_project=True, documented="https://code.claude.com/docs/en/mcp",
    ),
    Client(
        name="claude-code-hook", user_file=".claude/settings.json", project_file=".claude/settings.json", key="hooks",
        knows_project=True, documented="https://code.claude.com/docs/en/hooks",
    ),
    Client(
        name="claude-desktop", user_file=f"{_DESKTOP}/claude_desktop_config.json", project_file=None,
        key="mcpServers", documented="https://modelcontextprotocol.io/quickstart/user",
    ),
    Client(
        name="cursor", user_file=".cursor/mcp.json", project_file=".cursor/mcp.json", key="mcpServers",
        documented="https://cursor.com/docs/mcp",
    ),
    Client(
        name="gemini-cli", user_file=".gemini/settings.json", project_file=".gemini/settings.json", key="mcpServers",
        documented="https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
    ),
    Client(
        name="vscode", user_file=None, project_file=".vscode/mcp.json", key="servers", typed=True,
        documented="https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
    ),
    Client(
        name="windsurf", user_file=".codeium/windsurf/mcp_config.json", project_file=None, key="mcpServers",
        documented="https://docs.windsurf.com/windsurf/cascade/mcp",
    ),
)  # fmt: skip

BY_NAME: Final = {client.name: client for client in CLIENTS}


def config_file(client: Client, *, home: Path, project: Path | None) -> Path | None:
    """Return the file to write: the project's where one is named, else the user's; None where the client has none."""
    if project is not None:
        return None if client.project_file is None else project / client.project_file
    return None if client.user_file is None else home / client.user_file
