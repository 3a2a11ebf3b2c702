"""What would be otherwise if some events had said nothing: memories, beliefs, decisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from muniment.events import ActionBody, format_id
from muniment.gate import Question, Use, Verdict, describe_action, parse_action
from muniment.projections import DecisionRecord

from ._answers import About, Answer, BeliefView
from ._reach import Reads, expand_reads
from ._replayed import Past, PastStore


class Difference(Answer, frozen=True, kw_only=True):
    """
    One thing that would be otherwise. `what` is memory, belief or decision.

    Of a memory `was` and `would_be` are statuses; of a belief, its contents; of a decision, the verdict with that on
    each cited memory. What would not be there is `absent`.
    """

    what: str
    id: str
    was: str
    would_be: str
    scope: str
    about: About | None
    content: str | None


def differences(factual: PastStore, counterfactual: PastStore, scope: str, reads: Reads) -> list[Difference]:
    """Return what differs in a scope, and those that are read beside it, between a past and one that lacks events."""
    one = factual.session(scope=scope, reads=reads)
    other = counterfactual.session(scope=scope, reads=reads)
    would = {record.id: record for record in other.list(limit=10_000)}
    found = [
        Difference(
            what="memory", id=record.id, was=record.status,
            would_be=would[record.id].status if record.id in would else "absent",
            scope=record.scope, about=record.about, content=record.content,
        )
        for record in one.list(limit=10_000)
        if record.id not in would or would[record.id].status != record.status
    ]  # fmt: skip
    found += _of_beliefs(one.beliefs(), other.beliefs())
    return found + list(
        _of_decisions(
            factual.source,
            counterfactual.source,
            {scope, *expand_reads(scope, reads, factual.source.state.register.scopes)},
        )
    )


def _of_beliefs(was: list[BeliefView], would: list[BeliefView]) -> list[Difference]:
    # A key of many values has one belief each: those compare by what they say.
    after = {_key(belief): belief for belief in would}
    before = {_key(belief): belief for belief in was}
    found: list[Difference] = []
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if old is not None and new is not None and old.id == new.id:
            continue
        shown = cast("BeliefView", old or new)
        found.append(
            Difference(
                what="belief", id=shown.id, was=_said(old), would_be=_said(new), scope=shown.scope, about=shown.about,
                content=None,
            )
        )  # fmt: skip
    return found


def _key(belief: BeliefView) -> tuple[str, About | None, str | None]:
    return belief.scope, belief.about, belief.id if belief.many else None


def _said(belief: BeliefView | None) -> str:
    return "absent" if belief is None else belief.content or ""


def _of_decisions(factual: Past, counterfactual: Past, scopes: set[str]) -> Iterable[Difference]:
    for record in factual.state.register.decisions.values():
        if record.scope not in scopes or record.erasure is not None:
            continue
        body = cast("ActionBody | None", factual.state.read_body(record.place))
        if body is None:
            continue
        # Both are asked under today's policy, so that a difference is the events' alone.
        was, would = (past.guard.decide(_question(record, body, factual)) for past in (factual, counterfactual))
        if _verdict(was) != _verdict(would):
            yield Difference(
                what="decision", id=format_id(record.id), was=_verdict(was), would_be=_verdict(would),
                scope=record.scope, about=None, content=describe_action(parse_action(body.action)),
            )  # fmt: skip


def _question(record: DecisionRecord, body: ActionBody, factual: Past) -> Question:
    memories = factual.state.register.memories
    seen = [memories[i].scope for i, verdict in record.evidence if i in memories and verdict != "not_found"]
    return Question(
        scope=record.scope, reads=tuple(dict.fromkeys(s for s in seen if s != record.scope)), agent=record.actor,
        action=parse_action(body.action), asked=Use(record.use), evidence=tuple(i for i, _ in record.evidence),
        decided_at=record.decided_at, known=record.seq - 1,
    )  # fmt: skip


def _verdict(verdict: Verdict) -> str:
    judged = [f"{format_id(item.id)[:12]} {item.verdict}" for item in verdict.evidence]
    said = f"{'allowed' if verdict.allowed else 'denied'}: {', '.join(verdict.reasons)}"
    return "; ".join((said, *judged))
