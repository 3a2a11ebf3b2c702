"""Verbs of whoever has to be convinced: verify, checkpoint, receipt."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from muniment._receipts import check_proof
from muniment.events import BadArgument

from ._output import emit_fields, emit_json, emit_text, talk
from ._settings import Settings, common


@click.command()
@click.option("--key", metavar="VKEY", help="The log's verifier key, where the anchor is a bare checkpoint.")
@common
@click.pass_context
def verify(context: click.Context, key: str | None) -> None:
    """Check every byte of the log, and name the first bad event; with --anchor also whether events are missing or the
    log was rewritten. Exit code 1: something was found.

    \b
    Example:
      muniment verify --store memory --anchor ~/elsewhere/memory.anchor
    """
    settings = context.ensure_object(Settings)
    with settings.open(read_only=True, anchored=False) as store:
        report = store.verify(settings.anchor, key=key)
    emit_fields(report, as_json=settings.json)
    context.exit(0 if report.ok else 1)


@click.command()
@common
@click.pass_obj
def checkpoint(settings: Settings) -> None:
    """Write a checkpoint of the head, advance the anchor, and print the checkpoint: keep a copy where nobody who can
    write the store can write.

    \b
    Example:
      muniment checkpoint --store memory --log-key ~/keys/memory.key --anchor ~/elsewhere/memory.anchor
    """
    with settings.open() as store:
        made = store.checkpoint()
    if settings.json:
        emit_json(made)
        return
    emit_text(made.note.removesuffix("\n"))
    talk(f"signed; the verifier key is {made.key}" if made.signed else "an unsigned head: no log key was given")


@click.command()
@click.option("--key", metavar="VKEY", help="The log's verifier key; what it did not sign is refused.")
@click.argument("args", nargs=-1, required=True, metavar="ID | verify FILE")
@common
@click.pass_obj
def receipt(settings: Settings, args: tuple[str, ...], key: str | None) -> None:
    """Print a receipt that proves an event to somebody without the log, in JSON: a memory's, a decision's, a forget's.
    With `verify FILE` check one; that needs no store, and `-` is standard input.

    \b
    Example:
      muniment receipt 0661 --store memory --log-key ~/keys/memory.key > receipt.json
      muniment receipt verify receipt.json --key VKEY
    """
    match args:
        case ("verify", name):
            emit_fields(check_proof(_read(name), key), as_json=settings.json)
        case (event,) if event != "verify":
            if key is not None:
                raise click.UsageError("--key goes with `receipt verify`; --log-key signs")
            with settings.open(read_only=True) as store:
                emit_json(store.prove(event))
        case _:
            raise click.UsageError("expected an id, or `verify FILE`")


def _read(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise BadArgument(argument="FILE", detail=f"`{name}` cannot be read: {error.strerror}") from error


COMMANDS: Final = (verify, checkpoint, receipt)
