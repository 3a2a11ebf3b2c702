"""Verbs of the operator: rebuild-projections, stats, export, completion."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Final

import click
from click.shell_completion import get_completion_class

from muniment._store import Store
from muniment.events import BadArgument

from ._output import emit_fields, emit_json, progress_of, talk
from ._settings import Settings, common, repeatable


@click.command("rebuild-projections")
@click.option("--projection", metavar="NAME", help="Only this one: recall, beliefs or tombstones.")
@click.option("--check", is_flag=True, help="Compare with what a fold of the log gives, and change nothing.")
@click.option("--re-embed", is_flag=True, help="Make all vectors anew; without it they are kept.")
@click.option("--no-embed", is_flag=True, help="Leave vectors that are missing for later.")
@common
@click.pass_context
def rebuild_projections(
    context: click.Context, projection: str | None, check: bool, re_embed: bool, no_embed: bool
) -> None:
    """Fold the log again beside what is in use, compare, and swap. Exit code 1: they differed.

    Others may read and write meanwhile, and one that was killed is taken up again. A progress bar on a terminal; JSON
    lines otherwise, on standard error.

    \b
    Example:
      muniment rebuild-projections --check --store memory
    """
    settings = context.ensure_object(Settings)
    with settings.open(read_only=check) as store, progress_of("rebuild") as moved:
        report = store.rebuild(projection, re_embed=re_embed, check=check, embed=not no_embed, progress=moved)
    emit_fields(report, as_json=settings.json or not sys.stdout.isatty())
    context.exit(0 if report.ok else 1)


@click.command()
@common
@click.pass_obj
def stats(settings: Settings) -> None:
    """Print counts and sizes.

    \b
    Example:
      muniment stats --store memory --json
    """
    with settings.open(read_only=True) as store:
        emit_fields(store.stats(), as_json=settings.json)


@click.command("accept-rollback")
@click.option("--reason", required=True, help="Why the older log was put back; kept in the log.")
@repeatable
@common
@click.pass_obj
def accept_rollback(settings: Settings, reason: str, command_id: str | None) -> None:
    """Go on with an older copy of the log that was put back. What was erased since stays erased, and refused.

    \b
    Example:
      muniment accept-rollback --reason "restored after the disk failed" --store memory
    """
    with settings.open() as store:
        emit_fields(store.operator().accept_rollback(reason=reason, command_id=command_id), as_json=settings.json)


@click.command()
@click.option("--out", metavar="FILE", help="Write to a new file that only its owner can read.")
@common
@click.pass_obj
def export(settings: Settings, out: str | None) -> None:
    """Write a scope's memories as JSON lines, a header first. In clear: a later forget does not reach it.

    \b
    Example:
      muniment export --scope acme --out acme.jsonl
    """
    scope = settings.need_scope()
    with settings.open(read_only=True) as store:
        if out is None:
            count = store.export(scope, sys.stdout)
        else:
            count = _export_to_new(store, scope, out)
            if settings.json:
                emit_json({"path": out, "scope": scope, "memories": count})
    talk(f"{count} memories")


def _export_to_new(store: Store, scope: str, out: str) -> int:
    try:
        handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadArgument(argument="out", detail=f"`{out}` cannot be made: {error.strerror}") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            return store.export(scope, file)
    except BaseException:
        # Half of an export is none, and would stand in the way of the next one.
        with contextlib.suppress(OSError):
            os.unlink(out)
        raise


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes a shell complete muniment's verbs and options.

    \b
    Example:
      muniment completion bash > ~/.local/share/bash-completion/completions/muniment
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(context.find_root().command, {}, "muniment", "_MUNIMENT_COMPLETE").source())


COMMANDS: Final = (accept_rollback, rebuild_projections, stats, export, completion)
