"""Verbs of the investigator: replay, explain, trace, quarantine, release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from muniment._differing import differences
from muniment._explaining import DecisionExplanation, MemoryExplanation
from muniment._operator import Trace
from muniment._replayed import PastStore
from muniment._store import Store
from muniment.events import NotFound

from . import _asking
from ._output import emit_fields, emit_json, emit_receipt, emit_rows, shown
from ._reports import explanation_page, trace_page, write_report
from ._settings import Settings, common, memory_id, repeatable, scoped

_report = click.option(
    "--report", metavar="FILE", help="Also write a page for people: one HTML file, with timeline and evidence."
)
_IN_THE_PAST: Final = {str(command.name): command for command in _asking.COMMANDS}


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--to", metavar="T", required=True, help="A time, a sequence number, a decision's id, HEAD~n.")
@click.option(
    "--without", metavar="FIELD=V", multiple=True, help="Leave out: origin=web:*, actor=, id=, source=, seq=, time=."
)
@click.argument("verb", required=False)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@scoped
@click.pass_context
def replay(context: click.Context, to: str, without: tuple[str, ...], verb: str | None, args: tuple[str, ...]) -> None:
    """Run any reading verb on the store as it was. Without a verb: how far that past goes, or, with --without, what
    would differ in the scope.

    \b
    Example:
      muniment replay --to 2026-03-01T12:00:00Z recall "when do we launch?" --scope acme
      muniment replay --to HEAD --without 'origin=web:*' --scope acme
    """
    settings = context.ensure_object(Settings)
    if verb is not None:
        command = _IN_THE_PAST.get(verb)
        if command is None:
            raise click.UsageError(f"`{verb}` does not run in the past; these do: {', '.join(_IN_THE_PAST)}")
        settings.past_to, settings.without = to, without
        with command.make_context(verb, list(args), parent=context) as inner:
            command.invoke(inner)
        return
    with settings.open(read_only=True) as store:
        past = store.replay(to=to, without=without)
        if without:
            _emit_differences(settings, store.replay(to=to), past)
        else:
            emit_fields({"seq": past.seq, "digests": past.digests()}, as_json=settings.json)


def _emit_differences(settings: Settings, factual: PastStore, counterfactual: PastStore) -> None:
    found = differences(factual, counterfactual, settings.need_scope(), settings.read_scopes())
    emit_rows(found, ("what", "id", "was", "would_be", "about", "content"), as_json=settings.json)


@click.command()
@memory_id
@click.option("--audit", is_flag=True, help="All that bore on a decision, as one JSON object.")
@_report
@common
@click.pass_obj
def explain(settings: Settings, id: str, audit: bool, report: str | None) -> None:  # noqa: A002
    """Tell a memory's life, or decide a decision again on the state just before it.

    \b
    Example:
      muniment explain 0661 --store memory
      muniment explain 0661 --report memory.html --store memory
    """
    with settings.open(read_only=True) as store:
        if audit and report is not None:
            raise click.UsageError("--audit or --report, not both")
        if audit:
            emit_json(store.audit(id))
            return
        found = store.explain(id)
        if report is not None:
            write_report(report, explanation_page(store, found))
        if settings.json:
            emit_json(found)
        elif isinstance(found, MemoryExplanation):
            _tell_life(found)
        else:
            _tell_decision(found)


def _tell_life(found: MemoryExplanation) -> None:
    record = found.record
    click.echo(f"memory {found.id} in {shown(record.scope)}: {record.status}")
    click.echo(f"content: {shown(record.content)}")
    for step in found.steps:
        why = "" if step.reason is None else f": {shown(step.reason)}"
        by = "" if step.by is None else f", by {step.by}"
        click.echo(f"{shown(step.recorded_at)} {step.what} by {shown(step.actor)}, event {step.seq}{by}{why}")
    for decision in found.decisions:
        verdict = "allowed" if decision.allowed else "denied"
        click.echo(f"cited by decision {decision.id} of {shown(decision.actor)}: {decision.verdict}; {verdict}")
    for identity in found.derived:
        click.echo(f"derived: {identity}")
    for identity in found.recalled_before:
        click.echo(f"recalled before: {identity}")


def _tell_decision(found: DecisionExplanation) -> None:
    click.echo(f"decision {found.id} of {shown(found.actor)} in {shown(found.scope)}: {found.outcome}")
    click.echo(f"action: {shown(found.action)}")
    for identity in found.recorded.supporting:
        click.echo(f"cited {identity}: supports")
    for item in found.recorded.excluded:
        click.echo(f"cited {shown(item.id)}: {item.verdict}")
    for when, decision in (("recorded", found.recorded), ("again", found.again), ("now", found.now)):
        if decision is not None:
            verdict = "allowed" if decision.allowed else "denied"
            click.echo(f"{when}: {verdict} as {decision.use}: {', '.join(decision.reasons)}")
    if found.policy_changed:
        click.echo("the policy of today is another than the one it was decided under")


@click.command()
@memory_id
@_report
@common
@click.pass_obj
def trace(settings: Settings, id: str, report: str | None) -> None:  # noqa: A002
    """Print what came of a memory: what derived from it, was written just after recalling it, or was decided on it.

    \b
    Example:
      muniment trace 0661 --store memory
    """
    with settings.open(read_only=True) as store:
        found = store.operator().trace(id)
        if report is not None:
            write_report(report, trace_page(store, found))
        if settings.json:
            emit_json(found)
        else:
            emit_rows(_trace_rows(found), ("how", "id", "status", "scope", "content"), as_json=False)


def _trace_rows(found: Trace) -> list[dict[str, object]]:
    sorts = (("derived", found.derived), ("recalled_before", found.recalled_before), ("superseded", found.superseded))
    rows = [_trace_row(how, r.id, r.status, r.scope, r.content) for how, records in sorts for r in records]
    verdicts = ((d, "allowed" if d.allowed else "denied") for d in found.decided)
    return rows + [_trace_row("decision", d.id, verdict, d.scope, d.action) for d, verdict in verdicts]


def _trace_row(how: str, identity: str, status: str, scope: str, content: str | None) -> dict[str, object]:
    return {"how": how, "id": identity, "status": status, "scope": scope, "content": content}


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--from-trace", metavar="ID", help="This memory, and all that derived from it or followed its recall.")
@click.option("--origin", metavar="ORIGIN", help="Every memory that came from there, in all scopes: 'web:*'.")
@click.option("--reason", metavar="TEXT", required=True, help="Why.")
@repeatable
@common
@click.pass_obj
def quarantine(
    settings: Settings, ids: tuple[str, ...], from_trace: str | None, origin: str | None, reason: str,
    command_id: str | None,
) -> None:  # fmt: skip
    """Set memories apart in one reversible event: they are neither recalled nor able to support anything. The id that
    it prints stands for all of them: `release` takes it.

    \b
    Example:
      muniment quarantine --from-trace 0661 --reason "the page was poisoned" --store memory
    """
    if (bool(ids), from_trace is not None, origin is not None).count(True) != 1:
        raise click.UsageError("name ids, or --from-trace ID, or --origin ORIGIN")
    if command_id is not None and not ids:
        # What came of a memory, or from an origin, may be more the next time: that is another command.
        raise click.UsageError("--command-id goes with ids")
    with settings.open() as store:
        named: Sequence[str] = ids
        if from_trace is not None:
            named = _traced(store, from_trace)
        elif origin is not None:
            named = store.operator().ids_of_origin(origin)
            if not named:
                raise NotFound(id=origin, hint="nothing that is neither erased nor set apart came from there")
        receipt = store.operator().quarantine(named, reason=reason, command_id=command_id)
        emit_receipt({**receipt.to_dict(), "ids": list(named)}, as_json=settings.json)


def _traced(store: Store, start: str) -> list[str]:
    operator = store.operator()
    found = operator.trace(start)
    records = (operator.get(found.id), *found.derived, *found.recalled_before)
    return [record.id for record in records if record.status != "erased"]


@click.command()
@click.argument("ids", nargs=-1, required=True)
@click.option("--reason", metavar="TEXT", required=True, help="Why.")
@repeatable
@common
@click.pass_obj
def release(settings: Settings, ids: tuple[str, ...], reason: str, command_id: str | None) -> None:
    """Put quarantined memories back. The id of a quarantine stands for all that it set apart.

    \b
    Example:
      muniment release 0661 --reason "the page was fine" --store memory
    """
    with settings.open() as store:
        receipt = store.operator().release(ids, reason=reason, command_id=command_id)
        emit_receipt(receipt, as_json=settings.json)


COMMANDS: Final = (replay, explain, trace, quarantine, release)
