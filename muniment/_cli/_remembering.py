"""Verbs that write memories and links: init, remember, revise, supersede, link, unlink, retire, forget."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Final, TypedDict, TypeVar, cast

import click

from muniment._answers import ErasureReceipt, Revision
from muniment._revising import ACTS
from muniment._session import Session
from muniment._store import open_store
from muniment._user import UserSession
from muniment.events import MAX_TEXT_BYTES, BadArgument, BadText, Kind, LinkType, Provenance, RankTooLow
from muniment.gate import Value

from ._actions import parse_json
from ._output import emit_fields, emit_json, emit_receipt, talk
from ._settings import Settings, common, full_id, memory_id, open_key, repeatable, scoped, signed

_LEAST_PREFIX: Final = 4
_LINKS: Final = click.Choice([kind.value for kind in LinkType])

Decorated = TypeVar("Decorated", bound=Callable[..., object])


class MemoryFields(TypedDict, total=False):
    """What `remember`, `revise` and `supersede` take beside the text."""

    kind: str
    about: tuple[str, str] | None
    value: Value
    many: bool
    provenance: str
    importance: float | None
    applies_when: str | None
    valid_from: str | None
    valid_to: str | None
    source: str | None
    derived_from: list[str]
    links: list[tuple[str, str]]
    metadata: Mapping[str, object] | None
    tags: list[str]
    command_id: str | None


def memory_options(command: Decorated) -> Decorated:
    """Give a command every field of a memory."""
    kinds, provenances = [kind.value for kind in Kind], [sort.value for sort in Provenance]
    for option in reversed((
        click.option("--kind", type=click.Choice(kinds), help="What sort of thing it is."),
        click.option("--about", nargs=2, metavar="SUBJECT ATTRIBUTE", help="The key whose value it states."),
        click.option("--value", metavar="TEXT", help="The value, as text."),
        click.option("--value-json", metavar="JSON", help="The value: a JSON number, boolean or text."),
        click.option("--many", is_flag=True, help="The key has many values: this one supersedes none."),
        click.option("--provenance", type=click.Choice(provenances), help="What sort of evidence it is."),
        click.option("--importance", type=float, help="From 0 to 1."),
        click.option("--applies-when", metavar="TEXT", help="A condition: shown, never evaluated."),
        click.option("--valid-from", metavar="T", help="Since when it holds; now unless said."),
        click.option("--valid-to", metavar="T", help="Until when it holds."),
        click.option("--source", metavar="TEXT", help="Where it was said, position included: slack:C1/42."),
        click.option("--derived-from", metavar="ID", multiple=True, help="A memory that it was made from."),
        click.option("--link", "links", nargs=2, metavar="TYPE ID", multiple=True, help=_link_help()),
        click.option("--metadata", metavar="JSON", help="A JSON object."),
        click.option("--tag", "tags", metavar="TAG", multiple=True, help="A tag."),
        repeatable,
        click.option("--origin", metavar="O", help="Where it came from, such as web:https://...; only lowers."),
    )):  # fmt: skip
        command = option(command)
    return command


def _link_help() -> str:
    return f"A link; TYPE is one of {', '.join(kind.value for kind in LinkType)}."


@click.command()
@click.argument("path", required=False)
@click.option("--enroll", "principal", metavar="user:NAME", help="Let a key speak for a user from the start.")
@click.option("--key", metavar="FILE", help="The key file of that user.")
@click.option("--for", "scopes", metavar="S", multiple=True, help="A scope the user speaks for, and all below it.")
@common
@click.pass_obj
def init(settings: Settings, path: str | None, principal: str | None, key: str | None, scopes: tuple[str, ...]) -> None:
    """Create a store.

    \b
    Example:
      muniment init memory --enroll user:ann --key ann.key --for acme
    """
    if path is not None:
        settings.store = path
    where = settings.path()
    if (where / "muniment.toml").exists():
        raise click.UsageError(f"there is a store at `{where}`")
    named = [option is not None for option in (principal, key)]
    if any(named) != all(named) or (principal is not None and not scopes):
        raise click.UsageError("--enroll, --key and --for go together")
    signer = None if key is None else open_key(key)
    with open_store(where, create=True, policy=settings.policy, model=settings.model) as store:
        if principal is not None and signer is not None:
            store.enroll(principal, signer.public_key, scopes=scopes)
        if store.warning:
            talk(f"warning: {store.warning}")
        made: dict[str, object] = {"path": str(store.path), "id": store.id}
        if settings.json:
            emit_json(made)
        else:
            talk(f"store {store.id} at {store.path}")


@click.command()
@click.argument("text")
@memory_options
@signed
@scoped
@click.pass_obj
def remember(
    settings: Settings, /, text: str, key: str | None, principal: str | None, origin: str | None, **fields: object
) -> None:
    """Record a memory. TEXT may be `-`: standard input. Prints the memory's id.

    \b
    Example:
      muniment remember "The launch is on 12 March." --about launch date --value "12 March" --scope acme
    """
    content = _text(text)
    with settings.speaking(key, principal, origin) as (_, session):
        receipt = session.remember(content, **_memory_fields(session, fields))
        emit_receipt(receipt, as_json=settings.json)


@click.command()
@click.argument("text")
@click.option("--act", type=click.Choice(ACTS), default="propose", show_default=True, help="What is done about it.")
@click.option("--least", type=float, metavar="SCORE", help="From which score a pair counts, from 0 to 1.")
@memory_options
@signed
@scoped
@click.pass_obj
def revise(
    settings: Settings, /, text: str, act: str, least: float | None, key: str | None, principal: str | None,
    origin: str | None, **fields: object,
) -> None:  # fmt: skip
    """Record a memory, and what it may contradict of what the scope holds. Prints the memory's id.

    TEXT may be `-`: standard input. `--act propose` writes that down, `link` makes a `contradicts` link too, and
    `supersede` puts it in the place of the likeliest one that the speaker may change. Rules judge, and err.

    \b
    Example:
      muniment revise "The launch was moved to 2 April." --scope acme
    """
    content = _text(text)
    with settings.speaking(key, principal, origin) as (_, session):
        revision = session.revise(content, act=act, least=least, **_memory_fields(session, fields))
        _emit_revision(settings, revision)


def _emit_revision(settings: Settings, revision: Revision) -> None:
    if settings.json:
        emit_json(revision)
        return
    emit_receipt(revision.receipt, as_json=False)
    for found in revision.contradicts:
        done = "superseded" if found.superseded else "linked" if found.linked else "proposed"
        talk(f"may contradict {found.id}: {found.score}, {'; '.join(found.reasons)} [{done}]")
    for note in revision.notes:
        talk(f"note: {note}")


@click.command()
@click.argument("id")
@click.argument("text")
@click.option("--reason", metavar="TEXT", help="Why.")
@memory_options
@signed
@scoped
@click.pass_obj
def supersede(
    settings: Settings, /, id: str, text: str, reason: str | None, key: str | None, principal: str | None,  # noqa: A002
    origin: str | None, **fields: object,
) -> None:  # fmt: skip
    """Record a memory in the place of another. TEXT may be `-`: standard input. Prints the new id.

    \b
    Example:
      muniment supersede 0661 "The launch is on 2 April." --reason moved --scope acme
    """
    content = _text(text)
    with settings.speaking(key, principal, origin) as (_, session):
        receipt = session.supersede(id, content, reason=reason, **_memory_fields(session, fields))
        emit_receipt(receipt, as_json=settings.json)


def link_options(command: Decorated) -> Decorated:
    """Give a command the two ends of a link, and who speaks of it."""
    for option in reversed((
        click.argument("start"),
        click.argument("type", type=_LINKS),
        click.argument("end"),
        repeatable,
    )):  # fmt: skip
        command = option(command)
    return command


@click.command()
@link_options
@signed
@scoped
@click.pass_obj
def link(
    settings: Settings, start: str, type: str, end: str, command_id: str | None, key: str | None,  # noqa: A002
    principal: str | None,
) -> None:  # fmt: skip
    """Link one of the scope's memories to another that can be seen, as `proposals` may have it.

    \b
    Example:
      muniment link 0661 contradicts 0712 --scope acme
    """
    with settings.speaking(key, principal) as (_, session):
        emit_receipt(session.link(start, type, end, command_id=command_id), as_json=settings.json)


@click.command()
@link_options
@signed
@scoped
@click.pass_obj
def unlink(
    settings: Settings, start: str, type: str, end: str, command_id: str | None, key: str | None,  # noqa: A002
    principal: str | None,
) -> None:  # fmt: skip
    """End a link; it stays in history.

    \b
    Example:
      muniment unlink 0661 contradicts 0712 --scope acme
    """
    with settings.speaking(key, principal) as (_, session):
        emit_receipt(session.unlink(start, type, end, command_id=command_id), as_json=settings.json)


@click.command()
@memory_id
@click.option("--reason", metavar="TEXT", required=True, help="Why.")
@click.option("--valid-to", metavar="T", help="Until when it still holds; now unless said.")
@repeatable
@click.option("--origin", metavar="O", help="Where the wish came from; only lowers.")
@signed
@scoped
@click.pass_obj
def retire(
    settings: Settings, id: str, reason: str, valid_to: str | None, command_id: str | None, origin: str | None,  # noqa: A002
    key: str | None, principal: str | None,
) -> None:  # fmt: skip
    """End a memory's validity; it stays in history.

    \b
    Example:
      muniment retire 0661 --reason "project cancelled" --scope acme
    """
    with settings.speaking(key, principal, origin) as (_, session):
        receipt = session.retire(id, reason=reason, valid_to=valid_to, command_id=command_id)
        emit_receipt(receipt, as_json=settings.json)


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--reason", metavar="TEXT", required=True, help="Why, without the value itself.")
@click.option("--dry-run", is_flag=True, help="List what would be erased, and erase nothing.")
@click.option("--no-cascade", is_flag=True, help="Refuse if other memories derive from these.")
@click.option("--block", type=click.Choice(["value", "key"]), default="value", help="What is refused from now on.")
@click.option("--text", metavar="TEXT", help="Erase every memory that says this (user only).")
@click.option("--about", nargs=2, metavar="SUBJECT ATTRIBUTE", help="With --text: every memory with this value too.")
@click.option("--whole-scope", is_flag=True, help="Erase and close the scope (user only).")
@click.option("--operator", is_flag=True, help="As the operator: any one scope's, and refused to everyone.")
@repeatable
@signed
@scoped
@click.pass_obj
def forget(
    settings: Settings, ids: tuple[str, ...], reason: str, dry_run: bool, no_cascade: bool, block: str,
    text: str | None, about: tuple[str, str] | None, whole_scope: bool, operator: bool, command_id: str | None,
    key: str | None, principal: str | None,
) -> None:  # fmt: skip
    """Erase memories, what has the same value and what derives from them, and keep them out.

    \b
    Example:
      muniment forget 0661 --reason "asked by the user" --scope acme
    """
    if sum((bool(ids), text is not None, whole_scope)) != 1:
        raise click.UsageError("name ids, or --text, or --whole-scope")
    _refuse_short(ids, dry_run=dry_run)
    if operator:
        if not ids:
            raise click.UsageError("the operator forgets by id")
        with settings.open(read_only=dry_run) as store:
            _emit_erasure(settings, store.operator().forget(*ids, reason=reason, dry_run=dry_run))
        return
    with settings.speaking(key, principal, read_only=dry_run) as (_, session):
        if ids:
            receipt = session.forget(
                *ids, reason=reason, cascade=not no_cascade, dry_run=dry_run, block=block, command_id=command_id
            )
        elif not isinstance(session, UserSession):
            raise RankTooLow(
                actual="agent",
                verb="forget by value or scope",
                needed="user",
                hint="sign it: --key FILE --as user:NAME",
            )
        elif text is not None:
            receipt = session.forget_value(_text(text), reason=reason, about=about, dry_run=dry_run)
        else:
            receipt = session.forget_scope(reason=reason, dry_run=dry_run)
        _emit_erasure(settings, receipt)


def _refuse_short(ids: tuple[str, ...], *, dry_run: bool) -> None:
    # Nothing brings an erased memory back, and in a small store one slip of a finger is a unique prefix.
    for prefix in ids:
        if len(prefix) < _LEAST_PREFIX and not dry_run:
            raise BadArgument(
                argument="id",
                detail=f"`{prefix}` is too short to erase by: type {_LEAST_PREFIX} characters of the id",
                hint="`--dry-run` lists what would go",
            )


def _emit_erasure(settings: Settings, receipt: ErasureReceipt) -> None:
    emit_fields(receipt, as_json=settings.json)
    if receipt.elsewhere:
        talk(f"{len(receipt.elsewhere)} memories in other scopes derive from these, and were left")


def _text(given: str) -> str:
    if given != "-":
        return given
    # Bytes, since text mode would make every line break one of ours; only the one that `echo` adds is not the text's.
    # What is too long is not read to its end, which it may not have.
    data = sys.stdin.buffer.read(MAX_TEXT_BYTES + 2)
    if len(data) > MAX_TEXT_BYTES + 1:
        raise BadText(what="content", detail=f"at most {MAX_TEXT_BYTES} bytes of UTF-8, got more than {MAX_TEXT_BYTES}")
    try:
        return data.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise BadText(what="content", detail="it is not UTF-8") from error


def _memory_fields(session: Session, given: Mapping[str, object]) -> MemoryFields:
    fields = {name: value for name, value in given.items() if value not in (None, (), False)}
    if "value_json" in fields:
        if "value" in fields:
            raise click.UsageError("--value and --value-json exclude each other")
        fields["value"] = parse_json(cast("str", fields.pop("value_json")), "--value-json")
    if "metadata" in fields:
        metadata = parse_json(cast("str", fields["metadata"]), "--metadata")
        if not isinstance(metadata, dict):
            raise click.BadParameter("expected a JSON object", param_hint="--metadata")
        fields["metadata"] = metadata
    if "derived_from" in fields:
        fields["derived_from"] = [full_id(session, i) for i in cast("tuple[str, ...]", fields["derived_from"])]
    if "links" in fields:
        links = cast("tuple[tuple[str, str], ...]", fields["links"])
        fields["links"] = [(kind, full_id(session, end)) for kind, end in links]
    return cast("MemoryFields", fields)


COMMANDS: Final = (init, remember, revise, supersede, link, unlink, retire, forget)
