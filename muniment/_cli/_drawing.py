"""Tables and progress bars, for terminals only. Colours stay away where NO_COLOR is set."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text


def draw_table(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """Draw a table on standard output."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=column == "id", overflow="fold")
    for line in cells:
        # Text, not str: square brackets in a memory are no markup.
        table.add_row(*(Text(cell) for cell in line))
    Console(highlight=False).print(table)


@contextmanager
def draw_progress(what: str) -> Generator[Callable[[str, int, int], None], None, None]:
    """Draw a bar on standard error, and give what moves it: the step, how many are done, and of how many."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=None)
        shown = what

        def move(step: str, done: int, total: int) -> None:
            nonlocal shown
            if step != shown:
                # How fast one step goes says nothing about the next.
                bar.reset(task, description=step, total=total)
                shown = step
            bar.update(task, description=step, completed=done, total=total)

        yield move
