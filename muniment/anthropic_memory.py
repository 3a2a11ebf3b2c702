"""
Anthropic's memory tool (`memory_20250818`) over Muniment: files that are memories, with a history and a fate.

    tool = MunimentMemoryTool(store.session(scope="acme/apollo", actor="agent:claude"))
    client.beta.messages.run_tools(..., tools=[tool])

Every file is a chain of supersessions; what it looks like to Claude is in docs/anthropic-memory.md.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

from muniment.events import Conflict, InvalidInput, Refused

from ._answers import Record
from ._extras import extra_missing
from ._memory_files import MAX_FILE_BYTES, MAX_FILES, MAX_VIEW_CHARS, MemoryFiles
from ._memory_paths import FileProblem
from ._session import Session
from .aio import AsyncSession

try:
    import anyio.to_thread
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )
except ImportError as error:
    raise extra_missing("anthropic", error) from error

_LONGEST: Final = 10_000


class MunimentMemoryTool(BetaAbstractMemoryTool):
    """
    The memory tool over one session: its scope holds the files, and its origin is stamped on all that Claude writes.

    `delete="retire"` keeps deleted files in history; `"forget"` erases them with every version, and keeps their texts
    out. A refusal of the engine (a credential, a forgotten text, a file of higher rank) is a `ToolError` with its code.
    """

    def __init__(
        self,
        session: Session,
        *,
        delete: str = "retire",
        max_file_bytes: int = MAX_FILE_BYTES,
        max_view_chars: int = MAX_VIEW_CHARS,
        max_files: int = MAX_FILES,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(
            session, delete=delete, max_file_bytes=max_file_bytes, max_view_chars=max_view_chars, max_files=max_files
        )

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return a file with line numbers, or a directory two levels deep with sizes."""
        return _answer(self._files.view, command, "path", "view_range")

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Make a file, and fail if there is one."""
        return _answer(self._files.create, command, "path", "file_text")

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Put a text in the place of another that stands exactly once in the file."""
        return _answer(self._files.str_replace, command, "path", "old_str", "new_str")

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Put lines after the line of that number."""
        return _answer(self._files.insert, command, "path", "insert_line", "insert_text")

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Retire or forget a file, or all files of a directory."""
        return _answer(self._files.delete, command, "path")

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Give a file or a directory another path."""
        return _answer(self._files.rename, command, "old_path", "new_path")

    def clear_all_memory(self) -> str:
        """Delete every file of the scope, as `delete=` says."""
        return _answer(self._files.clear, None)

    def history(self, path: str) -> list[Record]:
        """Return every version that a path has had, the oldest first; for the host, not for Claude."""
        return self._files.history(path)


class AsyncMunimentMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same tool for the asynchronous client; it works in threads. See `MunimentMemoryTool`."""

    def __init__(
        self,
        session: Session | AsyncSession,
        *,
        delete: str = "retire",
        max_file_bytes: int = MAX_FILE_BYTES,
        max_view_chars: int = MAX_VIEW_CHARS,
        max_files: int = MAX_FILES,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MunimentMemoryTool(
            session.sync if isinstance(session, AsyncSession) else session,
            delete=delete,
            max_file_bytes=max_file_bytes,
            max_view_chars=max_view_chars,
            max_files=max_files,
        )

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return a file with line numbers, or a directory two levels deep with sizes."""
        return await anyio.to_thread.run_sync(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Make a file, and fail if there is one."""
        return await anyio.to_thread.run_sync(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Put a text in the place of another that stands exactly once in the file."""
        return await anyio.to_thread.run_sync(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Put lines after the line of that number."""
        return await anyio.to_thread.run_sync(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Retire or forget a file, or all files of a directory."""
        return await anyio.to_thread.run_sync(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Give a file or a directory another path."""
        return await anyio.to_thread.run_sync(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """Delete every file of the scope, as `delete=` says."""
        return await anyio.to_thread.run_sync(self._tool.clear_all_memory)

    async def history(self, path: str) -> list[Record]:
        """Return every version that a path has had, the oldest first; for the host, not for Claude."""
        return await anyio.to_thread.run_sync(functools.partial(self._tool.history, path))


def _answer(run: Callable[..., str], command: object, *names: str) -> str:
    # The SDK hands on what the model wrote without validating it: a field may be missing, or of any type.
    given = [getattr(command, name, None) for name in names]
    try:
        return run(*given)
    except FileProblem as problem:
        raise ToolError(str(problem)[:_LONGEST]) from None
    except (Refused, InvalidInput, Conflict) as error:
        raise ToolError(f"Error: {error} ({error.code})"[:_LONGEST]) from error


__all__ = ["AsyncMunimentMemoryTool", "MunimentMemoryTool"]
