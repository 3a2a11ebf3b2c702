"""What goes to standard output, for programs and for people. All talk goes to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final, TypeAlias, cast

import click
import msgspec

from muniment._answers import Answer, Record, jsonable
from muniment.gate._text import is_invisible

Row: TypeAlias = "Answer | Mapping[str, object]"
_RECORD_COLUMNS: Final = ("id", "status", "kind", "origin", "valid_from", "about", "content")


def talk(text: str) -> None:
    """Say something to whoever watches; never part of the answer."""
    click.echo(text, err=True)


def emit_json(row: Row) -> None:
    """Print one JSON object on one line."""
    fields = row.to_dict() if isinstance(row, Answer) else jsonable(dict(row))
    try:
        line = msgspec.json.encode(fields).decode()
    except UnicodeEncodeError:
        # A file's name can be any bytes, and its path then holds lone surrogates, which JSON in UTF-8 cannot.
        line = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace").decode()
    click.echo(line)


def emit_fields(row: Row, *, as_json: bool) -> None:
    """Print one answer: as an object, or a line for each field that says something."""
    if as_json:
        emit_json(row)
        return
    for name, value in _fields(row).items():
        if value not in (None, (), {}, []):
            click.echo(f"{name}: {shown(value)}")


def emit_receipt(row: Row, *, as_json: bool) -> None:
    """Print what was written: its id alone for people, so that a shell can keep it; the rest is talk."""
    if as_json:
        emit_json(row)
        return
    fields = _fields(row)
    click.echo(shown(fields.get("id") or ""))
    repeated = ", was there before" if fields.get("repeated") else ""
    talk(f"{shown(fields.get('status'))}{repeated}, event {shown(fields.get('seq'))}")


def emit_records(records: Iterable[Record], *, as_json: bool) -> None:
    """Print memories, one a line."""
    emit_rows(records, _RECORD_COLUMNS, as_json=as_json)


def emit_rows(rows: Iterable[Row], columns: Sequence[str], *, as_json: bool) -> None:
    """Print a list: an object a line; a table on a terminal; else a line each, its fields between tabs."""
    if as_json:
        for row in rows:
            emit_json(row)
        return
    cells = [[shown(_fields(row).get(column)) for column in columns] for row in rows]
    if sys.stdout.isatty():
        from ._drawing import draw_table  # noqa: PLC0415  # rich is slow to load, and most commands draw nothing

        draw_table(columns, cells)
        return
    for line in cells:
        click.echo("\t".join(line))


def emit_text(text: str) -> None:
    """Print a text exactly when a program reads it, and harmlessly when a terminal does."""
    if sys.stdout.isatty():
        text = "\n".join(printable(line) for line in text.split("\n"))
    click.echo(text)


def shown(value: object) -> str:
    """Return a value as people read it, on one line."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return cast("str", jsonable(value))
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Answer):
        return printable(msgspec.json.encode(value.to_dict()).decode())
    if isinstance(value, (tuple, list)):
        return ", ".join(shown(item) for item in cast("Sequence[object]", value))
    return printable(msgspec.json.encode(jsonable(value)).decode())


def printable(text: str) -> str:
    """Return the text on one line, harmless to a terminal: what cannot be seen is written as `\\u{1b}`."""
    # A stored text must neither move the cursor nor reorder what stands beside it.
    return "".join(f"\\u{{{ord(char):x}}}" if char != " " and is_invisible(char) else char for char in text)


@contextmanager
def progress_of(what: str) -> Generator[Callable[[str, int, int], None], None, None]:
    """Give what shows how far a long command is: a bar on a terminal, else JSON lines, on standard error."""
    if not sys.stderr.isatty():
        yield lambda step, done, total: talk(msgspec.json.encode({"step": step, "done": done, "of": total}).decode())
        return
    from ._drawing import draw_progress  # noqa: PLC0415  # rich is slow to load, and cron draws nothing

    with draw_progress(what) as moved:
        yield moved


def _fields(row: Row) -> Mapping[str, object]:
    return cast("Mapping[str, object]", msgspec.structs.asdict(row)) if isinstance(row, Answer) else row
