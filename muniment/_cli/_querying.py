"""SQL over the store, for whoever investigates it."""

from __future__ import annotations

import csv
import io
from typing import Final

import click

from muniment.events import BadArgument

from ._output import emit_rows, emit_text
from ._settings import Settings, common


@click.command()
@click.argument("query")
@click.option("--to", metavar="T", help="Ask the store as it was: a time, a sequence number, a decision's id, HEAD~n.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values, with a header.")
@common
@click.pass_obj
def sql(settings: Settings, query: str, to: str | None, as_csv: bool) -> None:  # how click hands on a flag
    """Run one SELECT over the views memories, beliefs, links, events, decisions and tombstones, of every scope: the
    operator's view, not an agent's. See docs/sql.md.

    \b
    Example:
      muniment sql "select origin, count(*) from memories group by all" --store memory
      muniment sql "select id, status from memories" --to 2026-03-01 --csv --store memory
    """
    if as_csv and settings.json:
        raise click.UsageError("--csv or --json, not both")
    with settings.open(read_only=True) as store:
        columns, rows = store.sql(query, to=to)
    if as_csv:
        page = io.StringIO()
        csv.writer(page, lineterminator="\n").writerows([columns, *rows])
        emit_text(page.getvalue().removesuffix("\n"))
        return
    if len(set(columns)) < len(columns):
        raise BadArgument(argument="QUERY", detail="two columns have one name: name them with AS, or ask for --csv")
    emit_rows([dict(zip(columns, row, strict=True)) for row in rows], columns, as_json=settings.json)


COMMANDS: Final = (sql,)
