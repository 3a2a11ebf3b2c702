"""Messages made of typed blocks, as Claude's exports and Claude Code's sessions have them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from ._turns import as_list, as_object, plain

REASONING: Final = frozenset({"thinking", "redacted_thinking"})
_SHOWN: Final = {"image": "[image]", "document": "[document]", "file": "[file]"}


class Block(NamedTuple):
    """One part of a message: words, a call of a tool, or what a tool gave. `number` counts the blocks from 1."""

    number: int
    sort: Literal["words", "call", "result", "reasoning"]
    text: str
    tool: str
    """The id of the call that a call or a result belongs to."""
    name: str
    """The tool's name, where the block gives it."""


def blocks_of(content: object) -> Iterator[Block]:
    """Yield the blocks of a message; words that follow each other are one. A message may also be plain text."""
    if isinstance(content, str):
        yield Block(1, "words", content, "", "")
        return
    words: list[str] = []
    first = 1
    for number, item in enumerate(as_list(content), start=1):
        block = as_object(item) or {}
        text = _words(block)
        if text is not None:
            first = first if words else number
            words += [text] if text else []
            continue
        if words:
            yield Block(first, "words", "\n".join(words), "", "")
            words = []
        other = _other(block, number)
        if other is not None:
            yield other
    if words:
        yield Block(first, "words", "\n".join(words), "", "")


def _words(block: dict[str, object]) -> str | None:
    sort = block.get("type")
    if sort == "text":
        text = block.get("text")
        return text if isinstance(text, str) else ""
    return _SHOWN.get(sort) if isinstance(sort, str) else None


def _other(block: dict[str, object], number: int) -> Block | None:
    match block.get("type"):
        case "tool_use" | "server_tool_use":
            name = plain(block.get("name")) or "tool"
            asked = json.dumps(block.get("input"), ensure_ascii=False, separators=(",", ":"))
            return Block(number, "call", f"{name} {asked}", plain(block.get("id")), name)
        case "tool_result" | "web_search_tool_result":
            called = plain(block.get("tool_use_id"))
            return Block(number, "result", result_text(block.get("content")), called, plain(block.get("name")))
        case str(sort) if sort in REASONING:
            return Block(number, "reasoning", "", "", "")
        case _:
            return None


def result_text(content: object) -> str:
    """Return what a tool gave as text: plain, or the words of its blocks."""
    if isinstance(content, str):
        return content
    words = (_words(as_object(item) or {}) for item in as_list(content))
    return "\n".join(text for text in words if text)
