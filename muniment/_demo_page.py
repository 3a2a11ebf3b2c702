"""The page that the demo writes: sections, lines, and checks that are counted."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Callable

Out = Callable[[str], object]

WIDTH = 100
_GREEN, _RED, _BOLD, _DIM, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[1m", "\x1b[2m", "\x1b[0m"


class Page:
    """Writes lines of at most 100 columns to `out`, and keeps what differed from what was expected."""

    def __init__(self, out: Out, *, colour: bool) -> None:
        self._out, self._colour = out, colour
        self._section = 0
        self.checks = 0
        self.differed: list[str] = []

    def title(self, text: str) -> None:
        """Write the first line."""
        self._out(self._painted(_BOLD, clip(text)))

    def section(self, name: str, text: str) -> None:
        """Begin a section."""
        self._section += 1
        head = f"{self._section} {name}"
        self._out(self._painted(_BOLD, head) + self._painted(_DIM, clip(f"  {text}", WIDTH - len(head))))

    def say(self, text: str) -> None:
        """Write a line that is shown and not checked."""
        self._out(f"    {clip(text, WIDTH - 4)}")

    def check(self, text: str, *, expected: object, actual: object) -> None:
        """Write a line with a tick when what came out is what was expected, and both of them when it is not."""
        if expected == actual:
            self.checks += 1
            self._out(f"  {self._painted(_GREEN, '✓')} {clip(text, WIDTH - 4)}")
        else:
            self.fail(f"{text}: expected {expected!r}, got {actual!r}")

    def fail(self, text: str) -> None:
        """Write, in full, an expectation that did not hold."""
        self.differed.append(f"section {self._section}: {text}")
        self._out(f"  {self._painted(_RED, '✗')} {text}")

    def _painted(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_PLAIN}" if self._colour else text


def may_colour() -> bool:
    """Tell whether standard output is a terminal whose user has not asked for plain text."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def clip(text: str, width: int = WIDTH) -> str:
    """Return the text on one line of at most so many columns; characters of East Asian scripts take two."""
    line = "".join(c if c.isprintable() else " " if c.isspace() else "" for c in text)
    columns = 0
    for index, character in enumerate(line):
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if columns > width:
            return _fitted(line[:index], width - 1) + "…"
    return line


def _fitted(line: str, width: int) -> str:
    while sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) > width:
        line = line[:-1]
    return line.rstrip()
