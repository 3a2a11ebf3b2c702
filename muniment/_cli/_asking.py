"""Verbs that read, and change no byte of the store; and `decide`, which records what it decides unless told not to."""

from __future__ import annotations

from typing import Final, cast

import click

from muniment._answers import Change
from muniment._recalling import Hits
from muniment._replayed import PastSession
from muniment._session import Session
from muniment.events import Kind, RankTooLow, Status
from muniment.gate import Use

from ._actions import call_options, given_action, parse_json
from ._output import emit_fields, emit_json, emit_records, emit_rows, emit_text, talk
from ._settings import CLI_ACTOR, Settings, memory_id, points, scoped

_KINDS: Final = click.Choice([kind.value for kind in Kind])
_STATUSES: Final = click.Choice([status.value for status in Status])


@click.command()
@click.argument("query")
@click.option("-k", type=int, default=8, help="At most so many.")
@click.option("--kind", "kinds", type=_KINDS, multiple=True, help="Only of this kind.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only with this tag.")
@click.option("--where", metavar="JSON", help="Only with metadata equal to this JSON object's.")
@click.option("--since", metavar="T", help="Only valid from then on.")
@click.option("--until", metavar="T", help="Only valid from before then.")
@click.option("--status", "statuses", type=_STATUSES, multiple=True, help="Of this status; active and conditional.")
@points
@scoped
@click.pass_obj
def recall(
    settings: Settings, query: str, k: int, kinds: tuple[str, ...], tags: tuple[str, ...], where: str | None,
    since: str | None, until: str | None, statuses: tuple[str, ...], valid_at: str | None, known_at: str | None,
) -> None:  # fmt: skip
    """Find memories that fit a question, best first.

    \b
    Example:
      muniment recall "when do we launch?" -k 5 --scope acme
    """
    wanted = None if where is None else parse_json(where, "--where")
    if wanted is not None and not isinstance(wanted, dict):
        raise click.BadParameter("expected a JSON object", param_hint="--where")
    with settings.reading() as session:
        hits = session.recall(
            query,
            k=k,
            kinds=kinds or None,
            tags=tags or None,
            where=cast("dict[str, object] | None", wanted),
            since=since,
            until=until,
            valid_at=valid_at,
            known_at=known_at,
            status=statuses or ("active", "conditional"),
        )
        _note(hits)
        columns = ("id", "score", "status", "origin", "valid_from", "content")
        emit_rows(hits, columns, as_json=settings.json)


def _note(hits: Hits) -> None:
    for note in hits.notes:
        talk(f"note: {note}")


@click.command()
@click.argument("query")
@click.option("--budget", "budget_tokens", type=int, default=600, help="Tokens, at four characters each.")
@points
@scoped
@click.pass_obj
def context(settings: Settings, query: str, budget_tokens: int, valid_at: str | None, known_at: str | None) -> None:
    """Print the memories that fit a question as one block for a prompt.

    \b
    Example:
      muniment context "when do we launch?" --budget 400 --scope acme
    """
    with settings.reading() as session:
        block = session.context(query, budget_tokens=budget_tokens, valid_at=valid_at, known_at=known_at)
        for note in block.notes:
            talk(f"note: {note}")
        if settings.json:
            emit_json(block)
        else:
            emit_text(block.text)


@click.command()
@click.argument("about", nargs=-1, metavar="[SUBJECT ATTRIBUTE]")
@points
@scoped
@click.pass_obj
def beliefs(settings: Settings, about: tuple[str, ...], valid_at: str | None, known_at: str | None) -> None:
    """Print the current value of a key, or of every key.

    \b
    Example:
      muniment beliefs launch date --valid-at 2026-03-01 --scope acme
    """
    if len(about) not in (0, 2):
        raise click.UsageError("expected SUBJECT ATTRIBUTE, or neither")
    with settings.reading() as session:
        found = session.beliefs((about[0], about[1]) if about else None, valid_at=valid_at, known_at=known_at)
        emit_rows(found, ("id", "about", "value", "content", "origin", "disputes"), as_json=settings.json)


@click.command()
@memory_id
@points
@scoped
@click.pass_obj
def get(settings: Settings, id: str, valid_at: str | None, known_at: str | None) -> None:  # noqa: A002
    """Print one memory; of an erased one, its stub.

    \b
    Example:
      muniment get 0661 --scope acme --json
    """
    with settings.reading() as session:
        record = session.get(id, valid_at=valid_at, known_at=known_at)
        emit_fields(record, as_json=settings.json)


@click.command("list")
@click.option("--kind", "kinds", type=_KINDS, multiple=True, help="Only of this kind.")
@click.option("--status", "statuses", type=_STATUSES, multiple=True, help="Only of this status.")
@click.option("--after", metavar="ID", help="Only what was recorded after this memory.")
@click.option("--limit", type=int, default=100, help="At most so many.")
@click.option("--known-at", metavar="T", help="As known then: a time, a sequence number, HEAD~n.")
@scoped
@click.pass_obj
def list_memories(
    settings: Settings, kinds: tuple[str, ...], statuses: tuple[str, ...], after: str | None, limit: int,
    known_at: str | None,
) -> None:  # fmt: skip
    """List memories in the order they were recorded.

    \b
    Example:
      muniment list --kind fact --limit 20 --scope acme
    """
    with settings.reading() as session:
        found = session.list(
            kinds=kinds or None, after=after, limit=limit, status=statuses or None,
            known_at=known_at,
        )  # fmt: skip
        emit_records(found, as_json=settings.json)


@click.command()
@memory_id
@click.option("--known-at", metavar="T", help="As known then: a time, a sequence number, HEAD~n.")
@scoped
@click.pass_obj
def history(settings: Settings, id: str, known_at: str | None) -> None:  # noqa: A002
    """Print every version of what a memory says, the oldest first.

    \b
    Example:
      muniment history 0661 --scope acme
    """
    with settings.reading() as session:
        emit_records(session.history(id, known_at=known_at), as_json=settings.json)


@click.command()
@memory_id
@click.option("--depth", type=int, default=1, help="So many hops.")
@points
@scoped
@click.pass_obj
def links(settings: Settings, id: str, depth: int, valid_at: str | None, known_at: str | None) -> None:  # noqa: A002
    """Print the links around a memory.

    \b
    Example:
      muniment links 0661 --depth 2 --scope acme
    """
    with settings.reading() as session:
        found = session.links(id, depth=depth, valid_at=valid_at, known_at=known_at)
        emit_rows(found, ("start", "type", "end", "depth", "valid_from", "valid_to"), as_json=settings.json)


@click.command()
@click.argument("id", required=False)
@click.option("--known-at", metavar="T", help="As known then: a time, a sequence number, HEAD~n.")
@scoped
@click.pass_obj
def proposals(settings: Settings, id: str | None, known_at: str | None) -> None:  # noqa: A002
    """List which memory may contradict which earlier one, as `revise` proposed; of one memory with its ID.

    A proposal changes nothing. `supersede` or `retire` the earlier one, or `link` the two, where it is right.

    \b
    Example:
      muniment proposals 0661 --scope acme
    """
    with settings.reading() as session:
        found = session.proposals(id, known_at=known_at)
        emit_rows(found, ("start", "type", "end", "score", "reason", "actor", "recorded_at"), as_json=settings.json)


@click.command()
@click.argument("since")
@click.argument("until", required=False)
@scoped
@click.pass_obj
def diff(settings: Settings, since: str, until: str | None) -> None:
    """Print what changed between two moments: added, revised, retired, forgotten.

    \b
    Example:
      muniment diff HEAD~10 --scope acme
    """
    with settings.reading() as session:
        found = session.diff(since, until)
        if settings.json:
            emit_rows(found, (), as_json=True)
        else:
            rows = [_change_row(change) for change in found]
            emit_rows(rows, ("change", "id", "about", "old", "new"), as_json=False)


def _change_row(change: Change) -> dict[str, object]:
    return {
        "change": change.change,
        "id": change.id,
        "about": change.about,
        "old": None if change.old is None else change.old.content,
        "new": None if change.new is None else change.new.content,
    }


@click.command()
@click.argument("name")
@call_options
@click.option("--evidence", metavar="ID", multiple=True, help="A memory that is to justify it.")
@click.option("--use", type=click.Choice([use.value for use in Use]), help="What it is for; only raises.")
@click.option("--actor", metavar="agent:NAME", default=CLI_ACTOR, show_default=True, help="Which agent would act.")
@click.option("--dry-run", is_flag=True, help="Neither spend a confirmation nor record the decision.")
@click.option("--command-id", metavar="ID", help="Makes a repeat of this command give the first decision.")
@scoped
@click.pass_context
def decide(
    context: click.Context, name: str, evidence: tuple[str, ...], use: str | None, actor: str, dry_run: bool,
    command_id: str | None,
) -> None:  # fmt: skip
    """Decide whether memories and signatures justify an action. Exit code 1: they do not.

    \b
    Example:
      muniment decide email.send --arg to=ann@example.org --evidence 0661 --actor agent:planner --scope acme
    """
    settings = context.ensure_object(Settings)
    if actor.startswith("user"):
        # A decision is asked for by an agent; and nobody is the user here without a signature.
        raise RankTooLow(actual="agent", verb="act as", needed="user", hint="name an agent: --actor agent:NAME")
    if not actor.startswith("agent:"):
        raise click.BadParameter(f"expected agent:NAME, got `{actor}`", param_hint="--actor")
    action = given_action(context, name)
    if dry_run or settings.past_to is not None:
        with settings.reading(actor) as reader:
            if not isinstance(reader, (Session, PastSession)):
                raise AssertionError("a reading session cannot decide")
            decision = reader.decide(action, use=use, evidence=evidence, dry_run=True)
    else:
        with settings.open() as store:
            session = store.session(scope=settings.need_scope(), actor=actor, reads=settings.read_scopes())
            decision = session.decide(action, use=use, evidence=evidence, command_id=command_id)
    emit_fields(decision, as_json=settings.json)
    context.exit(0 if decision.allowed else 1)


COMMANDS: Final = (recall, context, beliefs, get, list_memories, history, links, proposals, diff, decide)
"""All of them can be run in the past by `replay`."""
