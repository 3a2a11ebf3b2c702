"""Where a transcript's bytes are: a file, or members of an archive, read as they are unpacked."""

from __future__ import annotations

import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, ClassVar, NamedTuple, cast

from muniment.events._errors import BadArgument

from ._cursor import JsonCursor, Malformed
from ._turns import Found, Skipped

ReadOne = Callable[[JsonCursor, str], Iterator[Found]]
"""Takes exactly one value from the cursor, and yields what it gave; it is told which one it is, for reports."""


class Source(NamedTuple):
    """A stream of bytes that can be opened again. `label` tells members of an archive apart in reports."""

    path: Path
    member: str | None
    size: int

    @property
    def label(self) -> str:
        """What stands before a place in reports: nothing for a file of its own."""
        return "" if self.member is None else f"{self.member}: "

    @contextmanager
    def open(self) -> Generator[BinaryIO, None, None]:
        """Open it for reading; raises BadArgument when an archive cannot be unpacked."""
        if self.member is None:
            with self.path.open("rb") as file:
                yield file
            return
        with zipfile.ZipFile(self.path) as archive:
            try:
                opened = archive.open(self.member)
            except (RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
                # RuntimeError is an encrypted member, NotImplementedError an unknown way of packing.
                detail = f"`{self.member}` in `{self.path}` cannot be unpacked: {error}"
                raise BadArgument(argument="path", detail=detail) from error
            with opened as member:
                yield cast("BinaryIO", member)


def sources_of(path: Path, wanted: re.Pattern[str]) -> list[Source]:
    """Return the file itself, or the members of an archive whose names are wanted, in the order of their names."""
    if not is_archive(path):
        return [Source(path, None, path.stat().st_size)]
    with zipfile.ZipFile(path) as archive:
        members = [one for one in archive.infolist() if not one.is_dir() and wanted.fullmatch(one.filename)]
    return [Source(path, one.filename, one.file_size) for one in sorted(members, key=lambda one: one.filename)]


def is_archive(path: Path) -> bool:
    """Tell whether the file is a .zip, by its contents."""
    try:
        with zipfile.ZipFile(path):
            return True
    except (zipfile.BadZipFile, OSError, NotImplementedError):
        return False


def each_record(source: Source, on_read: Callable[[int], None], read_one: ReadOne, what: str) -> Iterator[Found]:
    """
    Yield what each element of a JSON array gives; a file that is one object counts as one.

    What is cut short, or no JSON, ends there, and is reported; what was read before is kept.
    """
    with source.open() as file:
        cursor = JsonCursor(file, on_read)
        try:
            if cursor.peek() == "{":
                yield from read_one(cursor, f"{source.label}{what} 1")
            else:
                for index in cursor.elements():
                    yield from read_one(cursor, f"{source.label}{what} {index + 1}")
            if cursor.peek():
                yield Skipped(where=f"{source.label}end of file", why="something follows the end of the JSON")
        except Malformed as error:
            yield stopped(source, error)


def stopped(source: Source, error: Malformed) -> Skipped:
    """Return where a file could not be read any further, and why."""
    where = f"{source.label}character {error.position}"
    return Skipped(where=where, why=f"reading stopped here: {error.why}")


class ExportedLists(ABC):
    """An export of JSON lists, in a file or in the members of an archive; its records are read one after another."""

    members: ClassVar[re.Pattern[str]]
    """The names of those members of an archive."""
    noun: ClassVar[str] = "record"
    """What a record is called in reports."""

    def __init__(self, path: Path, *, branches: bool = False) -> None:
        self._sources, self._branches = sources_of(path, self.members), branches
        self.total_bytes = sum(source.size for source in self._sources)
        self.bytes_read = 0

    def turns(self) -> Iterator[Found]:
        """Yield what the records say, in file order."""
        self.bytes_read = 0
        for source in self._sources:
            yield from each_record(source, self._count, self._record, self.noun)

    def _count(self, size: int) -> None:
        self.bytes_read += size

    @abstractmethod
    def _record(self, cursor: JsonCursor, where: str) -> Iterator[Found]:
        """Take one record from the cursor, and yield what it says."""
