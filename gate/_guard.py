"""
The guard: may the cited evidence and the user's signature justify this action?

    use                  supported by                            floor
    planning             any visible evidence                    in scope; not erased, quarantined, pending, rejected
    answer               action, observation, user_confirmation  and current at the decision, not disputed
    external_action      a live confirmation                     signed; this scope, agent, action; each argument bound
    destructive_action   a live confirmation                     the same, and no argument free

A decision is a function of the request and of the state at a position: asked again on that state it comes out the same.
Deny is what happens when nothing else does; a prohibition beats a confirmation; a rule that errors denies. Text never
authorises: what evidence *says* is looked at only to name arguments that stand nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, cast

import msgspec

from muniment.events import MunimentError, Provenance, Rank, Status, covers, format_id
from muniment.projections import Confirmation, Memory, Projections, admitted_seq

from ._actions import Action, free_arguments
from ._matching import matches_confirmation, matches_prohibition
from ._policy import Policy, Use
from ._rulebook import Rulebook

SUPPORTS: Final = "supports"
RECOVERY: Final = "recovery"
"""Who vouches for a key that replaces a lost one."""
_ANSWERING: Final = frozenset({Provenance.ACTION, Provenance.OBSERVATION, Provenance.USER_CONFIRMATION})
_NEVER: Final = {
    Status.ERASED: "erased",
    Status.QUARANTINED: "quarantined",
    Status.PENDING: "pending",
    Status.REJECTED: "rejected",
}
_MAX_SCANNED: Final = 1 << 20


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: may this agent, in this scope, take this action for this use, citing this evidence?"""

    scope: str
    reads: tuple[str, ...]
    agent: str
    action: Action
    asked: Use | None
    evidence: tuple[bytes, ...]
    decided_at: int
    known: int


class Judged(msgspec.Struct, frozen=True):
    """One item of evidence and what the guard made of it: `supports`, or why it was dropped."""

    id: bytes
    verdict: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The guard's answer. `reasons` are stable codes; `needed` says in words what would have been enough."""

    allowed: bool
    use: Use
    reasons: tuple[str, ...]
    evidence: tuple[Judged, ...]
    needed: tuple[str, ...]
    confirmation: bytes | None
    prohibition: bytes | None
    policy: str
    at_seq: int
    decided_at: int


class Guard:
    """Decides over the projections of one process, under one policy."""

    def __init__(self, state: Projections, policy: Policy) -> None:
        self._state, self._policy = state, policy
        self._rules = Rulebook(state.register)
        self._fingerprint = policy.fingerprint

    def decide(self, question: Question) -> Verdict:
        """Return the verdict. Never raises for a bad request: it denies, and says why."""
        try:
            return self._decide(question)
        except MunimentError as error:
            # A rule that errors denies and is named. To skip it would let a broken prohibition allow.
            return self._verdict(question, Use.DESTRUCTIVE_ACTION, (), (f"error:{error.code}",), ())

    def _decide(self, question: Question) -> Verdict:
        action = question.action
        name = action.name if isinstance(action.name, str) else ""
        use = self._policy.use_of(name, question.asked)
        evidence = tuple(self._judge(identity, question, use) for identity in dict.fromkeys(question.evidence))
        if not action.is_literal:
            # A pattern taken as an action would match signatures by its text.
            return self._verdict(question, use, evidence, ("action_not_literal",), ("name the exact action",))
        if self._policy.denies(name):
            return self._verdict(question, use, evidence, ("policy_denies",), ("another policy of the host",))
        prohibition = self._prohibition(question)
        if prohibition is not None:
            return self._verdict(
                question, use, evidence, ("prohibited",), ("the user lifts the prohibition",), prohibition=prohibition
            )
        supported = any(item.verdict == SUPPORTS for item in evidence)
        if use in (Use.PLANNING, Use.ANSWER):
            if supported:
                return self._verdict(question, use, evidence, ("supported",), (), allowed=True)
            return self._verdict(question, use, evidence, ("no_support",), (_needed_evidence(use),))
        if self._policy.require_evidence and not supported:
            return self._verdict(question, use, evidence, ("no_support",), (_needed_evidence(use),))
        return self._by_confirmation(question, name, use, evidence)

    def _by_confirmation(self, question: Question, name: str, use: Use, evidence: tuple[Judged, ...]) -> Verdict:
        reasons: set[str] = set()
        for confirmation in self._rules.confirmations(question.scope, name):
            problem = self._problem(confirmation, question, use)
            if problem is None:
                return self._verdict(
                    question, use, evidence, ("confirmed",), (), allowed=True, confirmation=confirmation.id
                )
            if problem:
                reasons.add(problem)
        weak = self._weak_arguments(question)
        found = ("no_confirmation", *sorted(reasons), *(f"argument_only_in_weak_evidence:{name}" for name in weak))
        needed = f"a live confirmation of this exact action for {question.agent}, signed for scope {question.scope}"
        return self._verdict(question, use, evidence, found, (needed,))

    def _problem(self, confirmation: Confirmation, question: Question, use: Use) -> str | None:
        # None: it may be used. "": it does not exist here. Otherwise a near miss, whose code helps the user.
        signed = self._rules.action(confirmation)
        if signed is None or confirmation.scope != question.scope or confirmation.seq > question.known:
            return ""
        if confirmation.agent != question.agent:
            return "confirmed_for_another_agent"
        if not matches_confirmation(signed, question.action)[0]:
            return "arguments_differ_from_confirmation"
        if use is Use.DESTRUCTIVE_ACTION and free_arguments(signed):
            return "free_argument_in_destructive_action"
        return self._lifetime_problem(confirmation, question)

    def _lifetime_problem(self, confirmation: Confirmation, question: Question) -> str | None:
        if confirmation.revoked_seq <= question.known:
            return "confirmation_revoked"
        # The wall clock as it was read: setting it back must not give a confirmation time that it never had.
        if question.decided_at < confirmation.signed_at:
            return "clock_before_signing"
        now = self._now(question)
        limit = self._policy.max_expires_seconds
        longest = confirmation.expires_at if limit is None else confirmation.signed_at + limit * 1_000_000
        if now >= min(confirmation.expires_at, longest):
            return "confirmation_expired"
        if not confirmation.is_live(known=question.known, now=now):
            return "confirmation_spent"
        spent = sum(seq <= question.known for seq, _ in confirmation.spent)
        if self._policy.max_uses is not None and spent >= self._policy.max_uses:
            return "confirmation_spent"
        if not self._still_enrolled(confirmation, question):
            return "signer_not_enrolled"
        return None

    def _now(self, question: Question) -> int:
        # Never before the last event that is known, so that a clock set back revives nothing that has expired.
        return max(question.decided_at, self._state.register.recorded_at_seq(question.known))

    def _still_enrolled(self, confirmation: Confirmation, question: Question) -> bool:
        speaks = False
        for enrolment in self._state.register.enrolments:
            if enrolment.principal != confirmation.principal or enrolment.seq > question.known:
                continue
            # A recovery says that a key was lost: nothing that was signed before it is to be trusted.
            if enrolment.by == RECOVERY and enrolment.seq > confirmation.seq:
                return False
            covering = any(covers(outer, confirmation.scope) for outer in enrolment.scopes)
            live = question.known < enrolment.replaced_seq and not enrolment.recovery
            speaks = speaks or (covering and live)
        return speaks

    def _prohibition(self, question: Question) -> bytes | None:
        # Whether anyone recalled it does not matter: every live veto of the scope that knows the name is asked.
        for prohibition in self._rules.prohibitions(question.action):
            if not prohibition.seq <= question.known < prohibition.ended_seq:
                continue
            if not covers(prohibition.scope, question.scope):
                continue
            forbidden = self._rules.action(prohibition)
            if forbidden is None or matches_prohibition(forbidden, question.action):
                return prohibition.id
        return None

    def _judge(self, identity: bytes, question: Question, use: Use) -> Judged:
        memory = self._state.register.memories.get(identity)
        if memory is None or memory.seq > question.known or memory.scope not in (question.scope, *question.reads):
            return Judged(identity, "not_found")
        standing = self._state.standing(memory, valid_at=self._now(question), known=question.known)
        if standing.status in _NEVER:
            return Judged(identity, _NEVER[standing.status])
        if admitted_seq(memory, question.known) > question.known:
            # Superseded, retired or lapsed while it waited: nobody has approved it, and nothing of that does.
            return Judged(identity, _NEVER[Status.PENDING])
        if use is Use.PLANNING:
            return Judged(identity, SUPPORTS)
        if standing.status is Status.CONDITIONAL and use is not Use.ANSWER:
            return Judged(identity, "conditional")
        if standing.status not in (Status.ACTIVE, Status.CONDITIONAL):
            return Judged(identity, standing.status.value)
        if not standing.holds:
            return Judged(identity, "not_current")
        if memory.envelope.provenance not in _ANSWERING:
            return Judged(identity, "provenance_too_weak")
        return Judged(identity, SUPPORTS)

    def _weak_arguments(self, question: Question) -> list[str]:
        # An address that stands only in a web page is how an injected instruction shows itself.
        texts = list(self._texts(question))
        if not texts:
            return []
        weak: list[str] = []
        for name, argument in question.action.args.items():
            found = ([rank for rank, text in texts if stands_in(text)] for stands_in in _sought(argument))
            if any(ranks and max(ranks) == Rank.EXTERNAL for ranks in found):
                weak.append(name)
        return sorted(weak)

    def _texts(self, question: Question) -> Iterator[tuple[int, str]]:
        for identity in question.evidence:
            memory = self._visible(identity, question)
            if memory is None or memory.erasure is not None:
                continue
            body = self._state.read_memory(memory.place)
            if body is not None:
                yield memory.envelope.rank, body.content[:_MAX_SCANNED]

    def _visible(self, identity: bytes, question: Question) -> Memory | None:
        memory = self._state.register.memories.get(identity)
        return memory if memory is not None and memory.scope in (question.scope, *question.reads) else None

    def _verdict(
        self,
        question: Question,
        use: Use,
        evidence: Sequence[Judged],
        reasons: tuple[str, ...],
        needed: tuple[str, ...],
        *,
        allowed: bool = False,
        confirmation: bytes | None = None,
        prohibition: bytes | None = None,
    ) -> Verdict:
        return Verdict(
            allowed=allowed,
            use=use,
            reasons=reasons,
            evidence=tuple(evidence),
            needed=needed,
            confirmation=confirmation,
            prohibition=prohibition,
            policy=self._fingerprint,
            at_seq=question.known,
            decided_at=question.decided_at,
        )


def _needed_evidence(use: Use) -> str:
    if use is Use.PLANNING:
        return "at least one visible memory as evidence"
    return "at least one current memory as evidence, observed, done or confirmed"


def describe_verdict(verdict: Verdict) -> list[str]:
    """Return the verdict in lines that a person can read, ids included."""
    lines = [f"{'allowed' if verdict.allowed else 'denied'} as {verdict.use.value}: {', '.join(verdict.reasons)}"]
    lines += [f"evidence {format_id(item.id)}: {item.verdict}" for item in verdict.evidence]
    lines += [f"needed: {text}" for text in verdict.needed]
    return lines


def _sought(value: object) -> Iterator[Callable[[str], bool]]:
    # Whether a text holds it, for each text and number of an argument, those in lists and objects too.
    if isinstance(value, str) and value:
        yield lambda text: value in text
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        # As a number of its own: 13 is not what a page means by 2013.
        yield lambda text: re.search(rf"(?<![\w.]){re.escape(str(value))}(?!\w|\.\d)", text) is not None
    elif isinstance(value, (list, tuple)):
        for item in cast("Sequence[object]", value):
            yield from _sought(item)
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, object]", value).values():
            yield from _sought(item)
