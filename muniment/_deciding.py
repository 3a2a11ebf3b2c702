"""The guard's verdicts as events and as answers, and the request that a user can sign after a denial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, cast

import msgspec

from muniment.events import ActionBody, BadArgument, Decided, Draft, Moment, check_text, format_id, new_id, to_datetime
from muniment.gate import (
    SUPPORTS,
    Action,
    Handle,
    Judged,
    Question,
    Use,
    Verdict,
    check_list,
    format_action,
    new_nonce,
    parse_action,
)
from muniment.projections import DecisionRecord, Projections

from ._answers import Decision, EvidenceView

_REQUEST_DOMAIN: Final = "muniment-request-v1:"


class ConfirmationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a denied agent asks the user to sign. It authorises nothing by itself."""

    store: str
    scope: str
    agent: str
    action: bytes
    nonce: str


def format_request(request: ConfirmationRequest) -> str:
    """Return the request as one line: a domain word, then JSON with sorted keys."""
    return _REQUEST_DOMAIN + msgspec.json.encode(request, order="deterministic").decode()


def parse_request(line: str) -> ConfirmationRequest:
    """Return the request that a line spells; raises BadArgument for anything but the one spelling."""
    text = line.strip()
    if not text.startswith(_REQUEST_DOMAIN):
        raise BadArgument(argument="request", detail=f"it does not begin with `{_REQUEST_DOMAIN}`")
    try:
        request = msgspec.json.decode(text[len(_REQUEST_DOMAIN) :], type=ConfirmationRequest)
    except msgspec.MsgspecError as error:
        raise BadArgument(argument="request", detail=str(error)) from error
    if format_request(request) != text:
        raise BadArgument(argument="request", detail="it is not in canonical form")
    return request


def check_cited(evidence: Sequence[str]) -> tuple[str, ...]:
    """Return what a decision cites, checked to be texts: what is no memory's id is for the guard to judge."""
    cited = tuple(check_list(evidence, "evidence"))
    for one in cited:
        check_text(one, what="evidence", limit=64)
    return cited


def question_of(
    handle: Handle, action: Action, asked: Use | None, evidence: tuple[bytes, ...], now: int, known: int
) -> Question:
    """Return what the guard is asked."""
    return Question(
        scope=handle.scope,
        reads=handle.reads,
        agent=handle.actor,
        action=action,
        asked=asked,
        evidence=evidence,
        decided_at=now,
        known=known,
    )


class Said(NamedTuple):
    """What was asked, as it may be recorded: the action, whether secrets in it were masked, and what is no id."""

    action: Action
    masked: bool
    unknown: tuple[str, ...]


def decided_draft(
    verdict: Verdict, handle: Handle, at: Moment, said: Said, command_id: str | None, payload_key: bytes
) -> Draft:
    """Return the event that records a verdict, and spends the confirmation that allowed it."""
    envelope = Decided(
        scope=handle.scope,
        actor=handle.actor,
        origin=handle.origin,
        rank=handle.rank,
        command_id=command_id,
        payload_key=payload_key if command_id is not None else None,
        principal=handle.principal,
        use=verdict.use.value,
        allowed=verdict.allowed,
        reasons=verdict.reasons,
        evidence=tuple((item.id, item.verdict) for item in verdict.evidence),
        confirmation=verdict.confirmation,
        prohibition=verdict.prohibition,
        policy=verdict.policy,
        at_seq=verdict.at_seq,
        decided_at=verdict.decided_at,
    )
    body = ActionBody(
        action=format_action(said.action), needed=verdict.needed, masked=said.masked, unknown=said.unknown
    )
    return Draft(id=new_id(at.recorded_at), envelope=envelope, body=body)


def decision_of(
    verdict: Verdict, question: Question | None, store_id: bytes, record: DecisionRecord | None
) -> Decision:
    """Return a verdict as an answer; `record` when it is in the log."""
    asks = verdict.use in (Use.EXTERNAL_ACTION, Use.DESTRUCTIVE_ACTION) and not verdict.allowed
    request = None
    if asks and question is not None and question.action.is_literal and verdict.prohibition is None:
        request = format_request(
            ConfirmationRequest(
                store=store_id.hex(),
                scope=question.scope,
                agent=question.agent,
                action=format_action(question.action),
                # One denial is one request, however often it is shown: it can be signed once.
                nonce=new_nonce() if record is None else format_id(record.id),
            )
        )
    return Decision(
        allowed=verdict.allowed,
        use=verdict.use.value,
        reasons=verdict.reasons,
        supporting=tuple(format_id(item.id) for item in verdict.evidence if item.verdict == SUPPORTS),
        excluded=tuple(
            EvidenceView(id=format_id(item.id), verdict=item.verdict)
            for item in verdict.evidence
            if item.verdict != SUPPORTS
        ),
        needed=verdict.needed,
        request=request,
        id=None if record is None else format_id(record.id),
        seq=None if record is None else record.seq,
        recorded_at=None if record is None else to_datetime(record.recorded_at),
        confirmation=None if verdict.confirmation is None else format_id(verdict.confirmation),
        prohibition=None if verdict.prohibition is None else format_id(verdict.prohibition),
        policy=verdict.policy,
        at_seq=verdict.at_seq,
        decided_at=to_datetime(verdict.decided_at),
    )


def name_unknown(decision: Decision, unknown: Sequence[str]) -> Decision:
    """Return a decision that also names, among what was dropped, what was cited that is no id: as it was typed."""
    # The guard knows ids alone: made into one, it would be the name of something else.
    views = tuple(EvidenceView(id=one, verdict="not_found") for one in dict.fromkeys(unknown))
    return msgspec.structs.replace(decision, excluded=decision.excluded + views)


def recorded_decision(
    state: Projections,
    record: DecisionRecord,
    question: Question | None,
    store_id: bytes,
    unknown: Sequence[str] | None = None,
) -> Decision:
    """
    Return a decision as it stands in the log, with the words that are still there.

    `unknown` is what was cited and is no id, for whoever typed it just now; else it is what was recorded of that.
    """
    body = None if record.erasure is not None else cast("ActionBody | None", state.read_body(record.place))
    # A masked action is not the one that was denied: nobody should be asked to sign it.
    if question is None and body is not None and not body.masked:
        question = Question(
            scope=record.scope,
            reads=(),
            agent=record.actor,
            action=parse_action(body.action),
            asked=None,
            evidence=(),
            decided_at=record.decided_at,
            known=record.at_seq,
        )
    verdict = Verdict(
        allowed=record.allowed,
        use=Use(record.use),
        reasons=record.reasons,
        evidence=tuple(Judged(identity, verdict) for identity, verdict in record.evidence),
        needed=() if body is None else body.needed,
        confirmation=record.confirmation,
        prohibition=record.prohibition,
        policy=record.policy,
        at_seq=record.at_seq,
        decided_at=record.decided_at,
    )
    if unknown is None:
        unknown = () if body is None else body.unknown
    return name_unknown(decision_of(verdict, question, store_id, record), unknown)
