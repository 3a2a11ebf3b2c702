"""Claude Code's sessions: JSON lines, one event of a session each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ._blocks import Block, blocks_of
from ._instants import BadInstant, instant_of
from ._lines import Unusable, numbered_lines, record_of
from ._turns import Found, Role, Skipped, Turn, as_object, plain, unfit

_SAYING: Final = frozenset({"user", "assistant"})
# What the program writes in the user's place: commands typed at it, what they printed, and its own remarks.
_PROGRAM: Final = re.compile(
    r"\s*(?:<(?:command-name|command-message|command-args|local-command-\w+|bash-input|bash-stdout|bash-stderr"
    r"|system-reminder|task-notification)[\s>]|Caveat: The messages below were generated|\[Request interrupted by user)"
)
_REMARK: Final = re.compile(r"<(?:system-reminder|task-notification)[\s>]")


class ClaudeCodeTranscript:
    """
    What was said in a session, in file order: the branches of a session that was rewound are all there.

    What a tool gave is its own and nobody's words, although the file has it under the user's role. So are a sidechain's
    questions, which the agent asked, and whatever the program put into the user's words.
    """

    name = "claude-code"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stem = os.fsencode(path.stem).decode("utf-8", "replace")
        self.total_bytes = path.stat().st_size
        self.bytes_read = 0

    def turns(self) -> Iterator[Found]:
        """Yield what each line says; a broken line is `Skipped`, and the next is read."""
        self.bytes_read = 0
        calls: dict[str, str] = {}
        with self._path.open("rb") as file:
            for number, line in numbered_lines(file, self._count):
                if isinstance(line, Skipped):
                    yield line
                    continue
                try:
                    yield from _line(record_of(line), number, self._stem, calls)
                except Unusable as error:
                    yield Skipped(where=f"line {number}", why=str(error), code=error.code)

    def _count(self, size: int) -> None:
        self.bytes_read += size


def _line(record: dict[str, object], number: int, stem: str, calls: dict[str, str]) -> Iterator[Found]:
    sort = record.get("type")
    if sort == "summary" or record.get("isCompactSummary"):
        raise Unusable("it is a summary, of what is or was there in full", "summary")
    if sort not in _SAYING:
        raise Unusable(f"nothing is said in an event `{plain(sort)[:40]}`", "unsupported")
    if record.get("isMeta"):
        raise Unusable("it is hidden from the conversation", "hidden")
    message = as_object(record.get("message"))
    if message is None or not isinstance(message.get("content"), str | list):
        raise Unusable("it has no usable `message`")
    try:
        said_at = instant_of(record.get("timestamp"))
    except BadInstant as error:
        raise Unusable(f"`timestamp` {error}") from None
    session, place = plain(record.get("sessionId")) or stem, plain(record.get("uuid")) or str(number)
    told: dict[str, object] = {"sidechain": True} if record.get("isSidechain") else {}
    agent = plain(record.get("agentId"))
    gave = False
    for block in blocks_of(message["content"]):
        position = place if block.sort == "words" and not gave else f"{place}#{block.number}"
        gave = gave or block.sort == "words"
        if block.sort == "call":
            calls[block.tool] = block.name
        where = f"line {number}, {session}/{position}"
        left_out = _left_out(block, user=sort == "user")
        if left_out is not None:
            yield Skipped(where=where, why=left_out[1], code=left_out[0])
            continue
        role, via = _role(str(sort), block, told), ""
        if block.sort == "result":
            via = f"tool:{calls.pop(block.tool, '') or 'tool'}"
        speaker = "tool" if via else str(sort)
        yield unfit(where, block.text) or Turn(session, position, speaker, role, block.text, said_at, agent, via, told)


def _role(sort: str, block: Block, told: dict[str, object]) -> Role:
    if sort == "assistant":
        return "assistant"
    if block.sort != "words" or told or _REMARK.search(block.text):
        return "other"
    return "user"


def _left_out(block: Block, *, user: bool) -> tuple[str, str] | None:
    if block.sort == "reasoning":
        return "reasoning", "it is reasoning, and was not said"
    if not block.text.strip():
        return "empty", "it has no text"
    if user and block.sort == "words" and _PROGRAM.match(block.text):
        return "hidden", "it is the program's own, and nobody's words"
    return None
