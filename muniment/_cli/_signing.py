"""Verbs of the person: confirmations, prohibitions, review, tombstones."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final, cast

import click

from muniment._answers import Record
from muniment._deciding import parse_request
from muniment._durations import parse_duration
from muniment._keys import nonce_of
from muniment._session import Session
from muniment._store import Store
from muniment._submit import submit_command
from muniment._user import UserSession
from muniment.events import BadArgument, SignatureInvalid, covers, parse_scope, wall_clock
from muniment.gate import (
    Confirm,
    describe_statement,
    format_signed,
    parse_action,
    sign,
    visible,
)

from ._actions import constraint_options, given_action, like_option
from ._output import emit_receipt, emit_rows, talk
from ._settings import CLI_ACTOR, Settings, common, repeatable, scoped, signed, signer_for


@click.command()
@click.argument("request", required=False)
@click.option("--action", metavar="NAME", help="Sign for this action instead of a request.")
@constraint_options
@click.option("--agent", metavar="agent:NAME", help="Which agent may take it.")
@click.option("--uses", type=int, default=1, show_default=True, help="How many times.")
@click.option("--any-uses", is_flag=True, help="Any number of times until it expires.")
@click.option("--expires-in", metavar="D", default="1h", show_default=True, help="Until when: 30m, 1h, 7d.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--sign-only", is_flag=True, help="Print the signed line for `submit`, and write nothing.")
@repeatable
@signed
@common
@click.pass_context
def confirm(
    context: click.Context, request: str | None, action: str | None, agent: str | None, uses: int, any_uses: bool,
    expires_in: str, yes: bool, sign_only: bool, command_id: str | None, key: str | None, principal: str | None,
) -> None:  # fmt: skip
    """Sign that an agent may take an action: what a denied decision's REQUEST asks for (`-`: standard input), or
    --action. Shows what will be signed, and asks.

    \b
    Example:
      muniment confirm --action email.send --arg to=ann@example.org --agent agent:planner --key k --as user:ann
    """
    settings = context.ensure_object(Settings)
    if (request is None) == (action is None):
        raise click.UsageError("give a REQUEST or --action")
    if request is not None and command_id is not None:
        raise click.UsageError("a REQUEST is answered once by itself: --command-id goes with --action")
    signer = signer_for(key, principal)
    if signer is None or principal is None:
        raise SignatureInvalid(detail="a confirmation is signed by the user", hint="add --key FILE --as user:NAME")
    count, seconds = None if any_uses else uses, parse_duration(expires_in)
    if request is not None:
        line = sys.stdin.readline() if request == "-" else request
        asked = parse_request(line)
        now = wall_clock()
        statement = Confirm(
            store=asked.store, principal=principal, signed_at=now, nonce=asked.nonce, scope=asked.scope,
            agent=asked.agent, action=parse_action(asked.action), uses=count, expires_at=now + seconds,
        )  # fmt: skip
    else:
        if agent is None:
            raise click.UsageError("--action needs --agent agent:NAME")
        with settings.open(read_only=True) as store:
            now, scope = wall_clock(), parse_scope(settings.need_scope())
            store._engine.preparer.command_id(command_id)
            statement = Confirm(
                store=store.id, principal=principal, signed_at=now,
                nonce=nonce_of(store._engine, scope, principal, command_id), scope=scope, agent=agent,
                action=given_action(context, action or ""), uses=count, expires_at=now + seconds,
            )  # fmt: skip
    _ask(describe_statement(statement), yes=yes)
    said = sign(statement, signer)
    if sign_only:
        click.echo(format_signed(said))
        return
    with settings.open() as store:
        emit_receipt(submit_command(store._engine, said, command_id), as_json=settings.json)


@click.command()
@click.argument("signed_line", metavar="SIGNED")
@common
@click.pass_obj
def submit(settings: Settings, signed_line: str) -> None:
    """Take in a statement that was signed elsewhere (`-`: standard input).

    \b
    Example:
      muniment confirm "$REQUEST" --sign-only --key k --as user:ann | muniment submit - --store memory
    """
    line = sys.stdin.readline() if signed_line == "-" else signed_line
    with settings.open() as store:
        emit_receipt(store.submit(line), as_json=settings.json)


@click.command()
@click.argument("id")
@click.option("--reason", metavar="TEXT", required=True, help="Why.")
@repeatable
@signed
@scoped
@click.pass_obj
def revoke(
    settings: Settings, id: str, reason: str, command_id: str | None, key: str | None, principal: str | None,  # noqa: A002
) -> None:  # fmt: skip
    """Take a confirmation back.

    \b
    Example:
      muniment revoke 0661 --reason "sent by hand" --key k --as user:ann --scope acme
    """
    with settings.as_user(key, principal) as (store, user):
        receipt = user.revoke(_full(store, user, id, "confirmation"), reason=reason, command_id=command_id)
        emit_receipt(receipt, as_json=settings.json)


@click.command()
@click.argument("name", required=False)
@constraint_options
@like_option
@click.option("--reason", metavar="TEXT", help="Why.")
@repeatable
@signed
@scoped
@click.pass_context
def prohibit(
    context: click.Context, name: str | None, reason: str | None, command_id: str | None, key: str | None,
    principal: str | None,
) -> None:  # fmt: skip
    """Forbid an action in the scope and below, whoever confirms it; `*` and `?` in NAME stand for others. Without NAME
    list what is forbidden.

    \b
    Example:
      muniment prohibit 'db.drop*' --reason "never" --key k --as user:ann --scope acme
    """
    settings = context.ensure_object(Settings)
    if name is None:
        _list_prohibitions(settings)
        return
    if reason is None:
        raise click.UsageError("no reason: give --reason TEXT")
    action = given_action(context, name, pattern=True)
    with settings.as_user(key, principal) as (_, user):
        emit_receipt(user.prohibit(action, reason=reason, command_id=command_id), as_json=settings.json)


def _list_prohibitions(settings: Settings) -> None:
    with settings.open(read_only=True) as store:
        rows = store.operator().prohibitions(settings.need_scope())
        emit_rows(rows, ("id", "scope", "by", "action"), as_json=settings.json)


@click.command()
@click.argument("id")
@click.option("--reason", metavar="TEXT", required=True, help="Why.")
@repeatable
@signed
@scoped
@click.pass_obj
def unprohibit(
    settings: Settings, id: str, reason: str, command_id: str | None, key: str | None, principal: str | None,  # noqa: A002
) -> None:  # fmt: skip
    """Sign that a prohibition no longer holds.

    \b
    Example:
      muniment unprohibit 0661 --reason "the migration is planned" --key k --as user:ann --scope acme
    """
    with settings.as_user(key, principal) as (store, user):
        receipt = user.unprohibit(_full(store, user, id, "prohibition"), reason=reason, command_id=command_id)
        emit_receipt(receipt, as_json=settings.json)


@click.command()
@click.argument("id", required=False)
@click.option("--approve/--reject", default=None, help="The verdict.")
@click.option("--edit", metavar="TEXT", help="Approve with this text in its place, as the user's own.")
@click.option("--reason", metavar="TEXT", help="Why.")
@repeatable
@signed
@scoped
@click.pass_obj
def review(
    settings: Settings, id: str | None, approve: bool | None, edit: str | None, reason: str | None,  # noqa: A002
    command_id: str | None, key: str | None, principal: str | None,
) -> None:  # fmt: skip
    """List what waits for a person, or sign a verdict on it.

    \b
    Example:
      muniment review 0661 --approve --reason "it is so" --key k --as user:ann --scope acme
    """
    if id is None:
        _list_waiting(settings)
        return
    if edit is not None and approve is None:
        approve = True
    if approve is None or reason is None:
        raise click.UsageError("a verdict needs --approve or --reject, and --reason TEXT")
    with settings.as_user(key, principal) as (store, user):
        full = _full(store, user, id, "memory", "request")
        receipt = user.review(full, approve=approve, reason=reason, edit=edit, command_id=command_id)
        emit_receipt(receipt, as_json=settings.json)


def _list_waiting(settings: Settings) -> None:
    with settings.open(read_only=True) as store:
        session = store.session(scope=settings.need_scope(), actor=CLI_ACTOR)
        rows: list[dict[str, object]] = []
        for record in session.list(status=("pending", "disputed")):
            rows.append({"waits": record.status, **record.to_dict(), **_would_change(session, record)})
        for request in store.operator().requests():
            if request["scope"] == session.scope:
                rows.append({"waits": "request", **request, **_would_erase(session, request)})
        emit_rows(rows, ("waits", "id", "origin", "by", "content", "now", "targets"), as_json=settings.json)


def _would_change(session: Session, record: Record) -> dict[str, object]:
    """Return what is shown beside a proposal: its text with nothing left unseen, and what it would replace."""
    now = [] if record.about is None else [belief.content for belief in session.beliefs(about=record.about)]
    if record.supersedes is not None:
        now.append(session.get(record.supersedes).content)
    said = [visible(text) for text in dict.fromkeys(now) if text is not None]
    return {"shown": visible(record.content or ""), "by": record.actor, "now": said}


def _would_erase(session: Session, request: Mapping[str, object]) -> dict[str, object]:
    targets = [session.get(identity) for identity in cast("list[str]", request["targets"])]
    return {"shown": [visible(target.content or "") for target in targets]}


@click.command()
@common
@click.pass_obj
def tombstones(settings: Settings) -> None:
    """List what is refused and why, never what it was; with --scope, what binds that scope.

    \b
    Example:
      muniment tombstones --scope acme
    """
    with settings.open(read_only=True) as store:
        found = store.operator().tombstones()
        if settings.scope:
            scope = parse_scope(settings.scope)
            found = [t for t in found if covers(t.scope, scope)]
        emit_rows(found, ("id", "scope", "domain", "how", "since", "by", "reason", "lifted"), as_json=settings.json)


@click.command()
@click.argument("id")
@click.option("--reason", metavar="TEXT", required=True, help="Why.")
@repeatable
@signed
@scoped
@click.pass_obj
def lift(
    settings: Settings, id: str, reason: str, command_id: str | None, key: str | None, principal: str | None,  # noqa: A002
) -> None:  # fmt: skip
    """Sign that a forgotten value may be stated again; nothing comes back.

    \b
    Example:
      muniment lift 0661 --reason "it was the other Ann" --key k --as user:ann --scope acme
    """
    with settings.as_user(key, principal) as (store, user):
        receipt = user.lift(_full(store, user, id, "tombstone"), reason=reason, command_id=command_id)
        emit_receipt(receipt, as_json=settings.json)


def _full(store: Store, user: UserSession, prefix: str, *sorts: str) -> str:
    return store.operator().full_id(prefix, sorts=sorts, scope=user.scope)


def _ask(description: str, *, yes: bool) -> None:
    talk(description)
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadArgument(
            argument="yes", detail="there is no terminal to ask on", hint="read the request, then add --yes"
        )
    if not click.confirm("Sign this?", err=True):
        raise SignatureInvalid(detail="the user did not sign")


COMMANDS: Final = (confirm, submit, revoke, prohibit, unprohibit, review, tombstones, lift)
