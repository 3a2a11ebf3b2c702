"""`CLAUDE.md`, `AGENTS.md` and their like: Markdown, in which a project tells its agents what to heed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ._turns import MAX_VALUE_BYTES, Found, Note, Skipped, Turn, unfit

NAMES: Final = re.compile(r"(?:CLAUDE|AGENTS)(?:\.[\w-]+)*\.md", re.IGNORECASE)
_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*")
_BULLET: Final = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+(\S.*)")
_FENCE: Final = re.compile(r"[ \t]*(```+|~~~+)")
_INCLUDE: Final = re.compile(r"@[^\s@]+")


class RulesTranscript:
    """
    A memory for each bullet, with what is indented under it, and for each paragraph, behind the headings above it.

    Its place is the file and the headings. The line is told, but is no part of the place: what others insert above must
    not make the rest of the file new.
    """

    name = "agents-md"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.fsencode(path.name).decode("utf-8", "replace")
        self.total_bytes = path.stat().st_size
        self.bytes_read = 0

    def turns(self) -> Iterator[Found]:
        """Yield the memories in file order."""
        self.bytes_read = 0
        reader = _Reader(self._file)
        for number, line in self._lines():
            yield from reader.take(line, number)
        yield from reader.end()

    def _lines(self) -> Iterator[tuple[int, str | None]]:
        with self._path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_VALUE_BYTES):
                number += 1
                self.bytes_read += len(line)
                line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                try:
                    yield number, line.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError:
                    yield number, None


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._headings: list[tuple[int, str]] = []
        self._block: list[str] = []
        self._first = 0
        self._in_bullet = False
        self._indent = 0
        self._fence = ""
        self._comment = False

    def take(self, line: str | None, number: int) -> Iterator[Found]:
        """Take the next line, and yield what it ends."""
        if line is None:
            yield from self.end()
            yield Skipped(where=f"line {number}", why="it is not UTF-8")
        elif self._fence:
            self._block.append(line)
            if line.strip().startswith(self._fence):
                self._fence = ""
        elif self._comment or line.lstrip().startswith("<!--"):
            self._comment = "-->" not in line
            yield Skipped(where=f"line {number}", why="it is a comment", code="hidden")
        elif (fence := _FENCE.match(line)) is not None:
            if not self._block:
                self._begin(number, bullet=False)
            self._fence = fence[1]
            self._block.append(line)
        else:
            yield from self._plain(line, number)

    def _plain(self, line: str, number: int) -> Iterator[Found]:
        heading, bullet = _HEADING.fullmatch(line), _BULLET.fullmatch(line)
        if heading is not None:
            yield from self.end()
            level = len(heading[1])
            self._headings = [*((n, text) for n, text in self._headings if n < level), (level, heading[2])]
        elif bullet is not None and not (self._in_bullet and len(bullet[1]) > self._indent):
            yield from self.end()
            self._begin(number, bullet=True)
            self._indent = len(bullet[1])
            self._block.append(bullet[2])
        elif not line.strip():
            if self._in_bullet and self._block:
                self._block.append("")
            else:
                yield from self.end()
        elif _INCLUDE.fullmatch(line.strip()):
            yield from self.end()
            yield Skipped(where=f"line {number}", why="it names another file, which is not read", code="unsupported")
        else:
            if self._in_bullet and self._block and not self._block[-1] and not line[:1].isspace():
                yield from self.end()  # after a blank line, what is not indented is no part of a bullet
            if not self._block:
                self._begin(number, bullet=False)
            self._block.append(line)

    def _begin(self, number: int, *, bullet: bool) -> None:
        self._first, self._in_bullet = number, bullet

    def end(self) -> Iterator[Found]:
        """Yield the block that was being read, if there is one."""
        text = "\n".join(self._block).strip()
        self._block, self._in_bullet, self._fence = [], False, ""
        if not text:
            return
        path = " > ".join(heading for _, heading in self._headings if heading)
        place = "/".join(heading.replace("/", "∕") for _, heading in self._headings if heading) or "-"
        yield unfit(f"line {self._first}", text) or Turn(
            conversation=self._file,
            position=place,
            speaker=path,
            role="other",
            text=text,
            said_at=None,
            session="",
            note=Note(metadata={"file": self._file, "line": self._first, "heading": path}),
        )
