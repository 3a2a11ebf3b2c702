"""
Reports for people: one HTML file with a timeline and the evidence, to keep or to hand on.

The file asks for nothing: no script, image, font or link, and a policy in it that forbids them. Every stored text is
written as text, and what cannot be seen in it is spelled out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from muniment._answers import Decision, Record
from muniment._explaining import DecisionExplanation, MemoryExplanation
from muniment._operator import Trace
from muniment._store import Store
from muniment.events import BadArgument

from ._output import shown, talk

Cells = Sequence[object]
_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1b1b1b }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid #ddd }
td { overflow-wrap: anywhere } td:first-child { white-space: nowrap }
.quarantined, .erased, .denied, .differs { color: #a00 }
"""
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def write_report(name: str, page: str) -> None:
    """
    Write a page into a new file that only its owner reads.

    Raises:
        BadArgument: there is such a file, or it cannot be made.
    """
    try:
        with os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(page)
    except OSError as error:
        raise BadArgument(argument="--report", detail=f"`{name}` cannot be written: {error.strerror}") from error
    talk(f"written to {name}, in clear: a later forget does not reach it")


def explanation_page(store: Store, found: MemoryExplanation | DecisionExplanation) -> str:
    """Return the page of one memory's life, or of one decision."""
    if isinstance(found, DecisionExplanation):
        return _page(f"Decision {found.id}", _store_facts(store), _decision(store, found))
    timeline: list[Cells] = [
        (step.recorded_at, step.seq, step.what, step.actor, step.by, step.reason) for step in found.steps
    ]  # fmt: skip
    timeline += [
        (d.recorded_at, None, f"cited by a decision, {'allowed' if d.allowed else 'denied'}", d.actor, d.id, d.verdict)
        for d in found.decisions
    ]
    return _page(
        f"Memory {found.id}",
        _store_facts(store),
        _heading("The memory") + _records([("asked about", found.record)]),
        _heading("Timeline") + _table(("when", "event", "what", "who", "by", "why"), sorted(timeline, key=_when)),
        _heading("What came of it")
        + _records([("derived", store.operator().get(i)) for i in found.derived])
        + _records([("recalled just before", store.operator().get(i)) for i in found.recalled_before]),
        *(_decision_of(store, d.id) for d in found.decisions),
    )


def trace_page(store: Store, found: Trace) -> str:
    """Return the page of all that came of a memory."""
    start = store.operator().get(found.id)
    sorts = (
        ("the start", (start,)),
        ("derived", found.derived),
        ("recalled just before", found.recalled_before),
        ("superseded", found.superseded),
    )
    reached = sorted(((how, r) for how, records in sorts for r in records), key=lambda one: one[1].seq)
    timeline: list[Cells] = [
        (r.recorded_at, r.seq, f"remembered ({how})", r.actor, r.origin, r.id) for how, r in reached
    ]
    for identity in found.decisions:
        decision = store.explain(identity)
        if isinstance(decision, DecisionExplanation):
            recorded = decision.recorded
            what = f"decided: {'allowed' if recorded.allowed else 'denied'}"
            timeline.append((recorded.recorded_at, recorded.seq, what, decision.actor, recorded.use, decision.id))
    return _page(
        f"Trace of {found.id}",
        _store_facts(store),
        _heading("Timeline") + _table(("when", "event", "what", "who", "from", "id"), sorted(timeline, key=_when)),
        _heading("Evidence") + _records(reached),
        *(_decision_of(store, identity) for identity in found.decisions),
    )


def _decision_of(store: Store, identity: str) -> str:
    found = store.explain(identity)
    return _decision(store, found) if isinstance(found, DecisionExplanation) else ""


def _decision(store: Store, found: DecisionExplanation) -> str:
    sorts = (
        ("as recorded", found.recorded),
        ("decided again, on the state before it", found.again),
        ("now", found.now),
    )
    verdicts: list[Cells] = [
        (when, "allowed" if d.allowed else "denied", d.use, ", ".join(d.reasons), d.confirmation)
        for when, d in sorts
        if d is not None
    ]
    cited = [_cells(verdict, store.operator().get(i)) for i, verdict in _judged(found.recorded)]
    # What the agent could not see is not shown by way of its decision: what it named, and no more.
    cited += [(i.verdict, None, None, None, None, i.id) for i in found.recorded.excluded if i.verdict == "not_found"]
    return (
        _heading(f"Decision {found.id}: {found.outcome}")
        + f"<p>{_text(found.actor)} in {_text(found.scope)}: {_text(found.action)}</p>"
        + _table(("asked", "verdict", "use", "reasons", "confirmation"), verdicts)
        + _rows_of_records(cited)
    )


def _judged(decision: Decision) -> list[tuple[str, str]]:
    supporting = [(identity, "supports") for identity in decision.supporting]
    return supporting + [(item.id, item.verdict) for item in decision.excluded if item.verdict != "not_found"]


def _store_facts(store: Store) -> str:
    head = store.head
    return f"<p>Store {_text(store.id)}, up to event {head.seq}, whose chain is {_text(head.chain.hex())}.</p>"


def _records(records: Iterable[tuple[str, Record]]) -> str:
    return _rows_of_records([_cells(how, record) for how, record in records])


def _cells(how: str, record: Record) -> Cells:
    return how, record.status, record.origin, record.scope, record.content, record.id


def _rows_of_records(rows: Sequence[Cells]) -> str:
    return _table(("how", "status", "origin", "scope", "content", "id"), rows) if rows else ""


def _table(columns: Sequence[str], rows: Iterable[Cells]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = "\n".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    return f"<table>\n<tr>{head}</tr>\n{lines}\n</table>\n"


def _cell(cell: object) -> str:
    text = _text(cell)
    return f'<td class="{text}">{text}</td>' if text in _MARKED else f"<td>{text}</td>"


_MARKED: Final = frozenset({"quarantined", "erased", "denied", "differs"})


def _text(value: object) -> str:
    return escape(shown(value), quote=True)


def _heading(text: str) -> str:
    return f"<h2>{_text(text)}</h2>\n"


def _when(row: Cells) -> str:
    return shown(row[0])


def _page(title: str, *parts: str) -> str:
    return _PAGE.format(title=_text(title), style=_STYLE, body="\n".join(parts))
