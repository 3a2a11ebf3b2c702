"""Tells which format a file is in from its beginning, or says what was seen instead."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from muniment.events._errors import BadArgument

from . import _claude
from ._chatgpt import ChatGptTranscript
from ._claude import ClaudeTranscript
from ._claude_code import ClaudeCodeTranscript
from ._graph_memory import GraphMemoryTranscript
from ._jsonl import JsonlTranscript
from ._locomo import LocomoTranscript
from ._mem0 import LISTS, Mem0Transcript
from ._midas import MidasTranscript
from ._own import MunimentTranscript
from ._rules import NAMES, RulesTranscript
from ._shape import keys_by_depth
from ._sources import is_archive, sources_of
from ._turns import Transcript, as_object

FORMATS: Final[dict[str, Callable[[Path, bool], Transcript]]] = {
    "locomo": lambda path, _: LocomoTranscript(path),
    "jsonl": lambda path, _: JsonlTranscript(path),
    "chatgpt": lambda path, branches: ChatGptTranscript(path, branches=branches),
    "claude": lambda path, branches: ClaudeTranscript(path, branches=branches),
    "claude-code": lambda path, _: ClaudeCodeTranscript(path),
    "agents-md": lambda path, _: RulesTranscript(path),
    "mem0": lambda path, _: Mem0Transcript(path),
    "midas": lambda path, _: MidasTranscript(path),
    "mcp-memory": lambda path, _: GraphMemoryTranscript(path),
    "muniment": lambda path, _: MunimentTranscript(path),
}
"""How each format's reader is made, given the file and whether branches beside the current one are wanted."""

_HEAD_BYTES = 64 * 1024
_LOCOMO_KEYS = frozenset({"qa", "conversation", "event_summary", "observation", "session_summary", "sample_id"})
_LOCOMO_MARKS = re.compile(r'"dia_id"\s*:|"session_\d+(?:_date_time)?"\s*:|"conversation"\s*:\s*\{\s*"speaker_a"')
_JSONL_KEYS = frozenset({"role", "content", "time"})
_FIRST_KEY = re.compile(r'\s*(\[?)\s*\{\s*"((?:[^"\\]|\\.){1,100})"\s*:')
_VERSION = re.compile(r'"(midas|muniment)_export"\s*:\s*([^,}\s]{1,20})')
_CHATGPT_KEYS = frozenset({"title", "create_time", "update_time", "current_node", "conversation_id"})
_CLAUDE_KEYS = frozenset({"chat_messages", "conversations_memory", "project_memories", "prompt_template", "docs"})
_SESSION_KEYS = frozenset({"sessionId", "parentUuid", "leafUuid", "isSnapshotUpdate"})
_MEM0_KEYS = frozenset({"hash", "user_id", "agent_id", "app_id", "run_id", "created_at", "updated_at", "categories"})


def detect_format(path: Path) -> str:
    """Return the name of the file's format; `BadArgument` says what was seen when it is none that is known."""
    _must_be_file(path)
    if is_archive(path):
        return _of_archive(path)
    head = _read_head(path)
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    found = _of_text(text)
    if found is None and NAMES.fullmatch(path.name) and b"\0" not in head and text.lstrip()[:1] not in {"", "{", "["}:
        found = "agents-md"  # Markdown has no mark of its own
    if found is None:
        raise _unknown(path, f"saw {_describe(head, text)}")
    version = _VERSION.search(text)
    if version is not None and version[1] == found and version[2] != "1":
        detail = f"`{path.name}` is version {version[2]} of what {found} exports; known is 1"
        raise BadArgument(argument="format", detail=detail)
    return found


def open_transcript(path: Path, *, format: str | None = None, branches: bool = False) -> Transcript:  # noqa: A002
    """Return the file's transcript, its format detected unless it is given. Nothing is read before `turns`."""
    if format is not None and format not in FORMATS:
        raise BadArgument(argument="format", detail=f"`{format}` is not known; known are {_known()}")
    _must_be_file(path)
    return FORMATS[detect_format(path) if format is None else format](path, branches)


def _of_archive(path: Path) -> str:
    sources = sources_of(path, _claude.MEMBERS)  # ChatGPT's conversations have the same name
    for source in sources:
        with source.open() as file:
            try:
                found = _of_text(file.read(_HEAD_BYTES).decode("utf-8", "replace").removeprefix("\ufeff"))
            except Exception as error:
                detail = f"`{source.member}` in `{path}` cannot be unpacked: {error}"
                raise BadArgument(argument="path", detail=detail) from error
        if found in {"chatgpt", "claude"}:
            return found
    seen = "an archive whose conversations are in no known form" if sources else "an archive without conversations.json"
    raise _unknown(path, f"saw {seen}")


def _of_text(text: str) -> str | None:
    first = _FIRST_KEY.match(text)
    is_list = text.lstrip().startswith("[")
    if not is_list:
        named = next(_of_lines(text), None)
        if named is not None:
            return named
    depths = keys_by_depth(text)
    found = _of_keys(depths[1] if is_list else depths[0])
    if found is not None and first is not None:
        return found
    if first and not is_list and set(LISTS) & depths[0].keys() and _is_mem0(depths[2]):
        return "mem0"
    if first and (first[2] in _LOCOMO_KEYS or _LOCOMO_MARKS.search(text)):
        return "locomo"
    if first and not is_list and first[2] in _JSONL_KEYS and "\n" not in text:
        return "jsonl"  # one line longer than the part that is read
    return None


def _of_keys(keys: dict[str, int]) -> str | None:
    if "midas_export" in keys:
        return "midas"
    if "mapping" in keys and _CHATGPT_KEYS & keys.keys():
        return "chatgpt"
    if "chat_messages" in keys or {"conversations_memory", "project_memories"} & keys.keys():
        return "claude"
    if "uuid" in keys and _CLAUDE_KEYS & keys.keys():
        return "claude"
    if _is_mem0(keys):
        return "mem0"
    if "type" in keys and _SESSION_KEYS & keys.keys():
        return "claude-code"  # its first line is longer than the part that is read
    if {"type", "name", "entityType", "observations"} <= keys.keys():
        return "mcp-memory"
    return None


def _is_mem0(keys: dict[str, int]) -> bool:
    return {"id", "memory"} <= keys.keys() and bool(_MEM0_KEYS & keys.keys())


def _of_lines(text: str) -> Iterator[str]:
    """Yield what each line is that tells: the first may be broken, and the last cut by the end of what was read."""
    for line in text.split("\n"):
        if not line.lstrip().startswith("{"):
            continue
        try:
            record = as_object(json.loads(line))
        except (ValueError, RecursionError):
            continue
        named = None if record is None else _of_record(record)
        if named is not None:
            yield named


def _of_record(record: dict[str, object]) -> str | None:
    keys = record.keys()
    if "muniment_export" in keys:
        return "muniment"
    if record.get("type") == "entity" and {"name", "entityType", "observations"} <= keys:
        return "mcp-memory"
    if record.get("type") == "relation" and {"from", "to", "relationType"} <= keys:
        return "mcp-memory"
    if isinstance(record.get("type"), str) and _SESSION_KEYS & keys:
        return "claude-code"
    return "jsonl" if {"role", "content"} <= keys else None


def _read_head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError as error:
        raise BadArgument(argument="path", detail=f"`{path}` cannot be read: {error.strerror}") from error


def _must_be_file(path: Path) -> None:
    if not os.path.isfile(path):  # `path.is_file()` raises for a name that is too long
        what = "is not a file" if os.path.exists(path) else "does not exist"
        raise BadArgument(argument="path", detail=f"`{path}` {what}")


def _unknown(path: Path, seen: str) -> BadArgument:
    return BadArgument(
        argument="format",
        detail=f"the format of `{path.name}` is not known: {seen}; known are {_known()}",
        hint="name it with `format=` if it is one of those",
    )


def _known() -> str:
    return ", ".join(f"`{name}`" for name in FORMATS)


def _describe(head: bytes, text: str) -> str:
    first = _FIRST_KEY.match(text)
    if not text.strip():
        return "nothing but white space" if text else "an empty file"
    if head.startswith((b"\x1f\x8b", b"PK\x03\x04", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd")):
        return "a compressed file"
    if b"\0" in head:
        return "a binary file, or UTF-16"
    if first:
        return f"a JSON {'array of objects' if first[1] else 'object'} whose first key is `{first[2]}`"
    if text.lstrip()[0] in "[{":
        return "JSON without a conversation in it"
    return "text that is not JSON"
