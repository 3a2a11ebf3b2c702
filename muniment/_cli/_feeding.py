"""Verbs that bring data in: import a transcript, and the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from muniment._importers import FORMATS
from muniment.events import RankTooLow, parse_scope

from ._output import emit_fields, progress_of
from ._settings import Settings, common, signed, signer_for


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", type=click.Choice(sorted(FORMATS)), help="What the file is; detected unless given.")
@click.option("--user", metavar="NAME", help="The speaker whose words are the user's; needs --key and --as.")
@click.option("--user-role", is_flag=True, help="The role `user` speaks for the user; needs --key and --as.")
@click.option("--split", is_flag=True, help="Give each conversation a scope of its own, below S.")
@click.option("--branches", is_flag=True, help="Take what stands beside the current path of a conversation, too.")
@click.option("--batch", type=int, default=200, show_default=True, help="So many turns at a time.")
@click.option("--dry-run", is_flag=True, help="Read and judge, and write nothing.")
@click.option("--no-embed", is_flag=True, help="Leave vectors for later.")
@signed
@common
@click.pass_obj
def import_transcript(
    settings: Settings, file: Path, format: str | None, user: str | None, user_role: bool, split: bool,  # noqa: A002
    branches: bool, batch: int, dry_run: bool, no_embed: bool, key: str | None, principal: str | None,
) -> None:  # fmt: skip
    """Remember what a file of conversations or memories says. Reading the same file again adds nothing.

    ChatGPT's and Claude's exports (.zip or .json), sessions of Claude Code, CLAUDE.md and AGENTS.md, mem0, Midas, the
    reference MCP memory server, JSON lines of turns, LoCoMo, and what `muniment export` wrote.

    \b
    Example:
      muniment import conversation.jsonl --scope acme
    """
    scope = parse_scope(settings.need_scope())
    signer = signer_for(key, principal)
    if (user is not None or user_role) and signer is None:
        # A file can put any words under any name: only the user can say that these are theirs.
        raise RankTooLow(
            actual="agent", verb="import as", needed="user", hint="the user says so: --key FILE --as user:NAME"
        )
    with settings.open(read_only=dry_run) as store, progress_of("import") as moved:
        if signer is not None and principal is not None:
            store.user_session(scope=scope, principal=principal, signer=signer)  # raises unless the key may speak here
        report = store.import_file(
            file, scope=scope, format=format, user=user, user_role=user_role, split=split,
            branches=branches, dry_run=dry_run, batch=batch, progress=moved, embed=not no_embed,
        )  # fmt: skip
    emit_fields(report, as_json=settings.json)


@click.command()
@click.option("--data", metavar="FILE", type=click.Path(path_type=Path), help="A transcript of your own.")
@click.option("--keep", metavar="FOLDER", type=click.Path(path_type=Path), help="Leave the store in this new folder.")
@click.pass_context
def demo(context: click.Context, data: Path | None, keep: Path | None) -> None:
    """Run a tour of the engine, in a store that is made for it. Exit code 1: something came out otherwise.

    \b
    Example:
      muniment demo --data conversation.jsonl
    """
    from muniment._demo_run import run  # noqa: PLC0415  # the script and its page, which no other verb needs

    context.exit(run(data, keep=keep))


COMMANDS: Final = (import_transcript, demo)
