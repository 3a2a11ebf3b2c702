"""Tries each verb on the store and on the model, and expects the same outcome of both."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict, cast

import muniment
from muniment import Action, UserSession
from muniment.events import to_datetime

from .bench import HOUR, SCOPES, Bench, attempt, micros
from .facts import (
    FOREVER,
    NEVER,
    SIGNED,
    About,
    Happening,
    Linking,
    Never,
    Said,
    Speaker,
    Yes,
    outranks,
)
from .model import Saying


class Driver(Bench):
    """One history, made of attempts: what is refused belongs to it too."""

    # --- attempts -----------------------------------------------------------------------------------------------------

    def say(self, saying: Saying, handle: int, reads: Sequence[str]) -> None:
        """Remember or supersede, and expect what the model expects."""
        reads = tuple(r for r in reads if r != saying.scope)
        expected = self.model.expect_saying(saying, reads, self.next_instant())
        session = self.session(saying.scope, saying.speaker, handle, reads)
        fields = _fields(saying)
        if saying.supersedes is None:
            outcome, receipt = attempt(lambda: session.remember(saying.text, **fields))
        else:
            target = saying.supersedes
            outcome, receipt = attempt(lambda: session.supersede(target, saying.text, **fields))
        self._took(saying, receipt, outcome, expected)

    def say_many(self, sayings: Sequence[Saying], handle: int) -> None:
        """Remember several in one batch, leaving out what is refused; each counts for those after it."""
        first = sayings[0]
        items = [{"content": s.text, **_fields(s._replace(command=None))} for s in sayings]
        session = self.session(first.scope, first.speaker, handle)
        outcome, receipts = attempt(lambda: session.remember_many(items, on_refusal="skip"))
        if receipts is None:
            # Some problems are the caller's mistake and refuse the whole batch; the model must see one of them too.
            codes = {self.model.expect_saying(s, (), self.next_instant())[0] for s in sayings}
            self.same("batch", outcome in codes, True)
            return
        refused = {r.index: r.error for r in receipts.refused}
        written = iter(receipts)
        now = self.stores[handle].head.recorded_at if any(not r.repeated for r in receipts) else self.next_instant()
        for index, saying in enumerate(sayings):
            expected = self.model.expect_saying(saying, (), now)
            receipt = None if index in refused else next(written)
            self._took(saying, receipt, refused.get(index, "ok"), expected)

    def _took(self, saying: Saying, receipt: muniment.Receipt | None, outcome: str, expected: tuple[str, str]) -> None:
        if receipt is None:
            self.same(f"outcome of {saying}", outcome, expected[0])
            return
        actual = ("repeated", receipt.id) if receipt.repeated else ("ok", "")
        self.same(f"outcome of {saying}", actual, expected)
        if not receipt.repeated:
            recorded = micros(receipt.recorded_at)
            self.model.say(saying, receipt.id, receipt.seq, recorded)
            self.ids.append(receipt.id)

    def retire(self, scope: str, speaker: Speaker, target: str, hours: int | None, handle: int) -> None:
        """Retire a record, now or at an hour."""
        until = self.instant(hours)
        bound = None if until is None else micros(until)
        expected = self.model.expect_retire(scope, speaker, target, bound, self.next_instant())
        if scope in self.model.closed and expected != "not_found":
            expected = "scope_closed"
        session = self.session(scope, speaker, handle)
        outcome, receipt = attempt(lambda: session.retire(target, reason="over", valid_to=until))
        self.same("retire", outcome, expected)
        if receipt is not None:
            self.events.append(receipt.id)
            self.model.retire(speaker, target, bound, (receipt.id, receipt.seq, micros(receipt.recorded_at)))

    def forget(self, scope: str, speaker: Speaker, target: str, handle: int, *, cascade: bool, key: bool) -> None:
        """Forget a record, its equals and what derives from it; what is above the speaker becomes a request."""
        session, block = self.session(scope, speaker, handle), "key" if key else "value"
        outcome, receipt = attempt(lambda: session.forget(target, reason="asked to", cascade=cascade, block=block))
        found = self.model.said.get(target)
        if found is None or found.scope != scope:
            self.same("forget", outcome, "not_found")
            return
        asked, derived = self.model.taken_by([target], scope, speaker)
        if found.erased:
            self.same("forget", outcome, "already_done")
            return
        if derived and not cascade:
            self.same("forget", outcome, "derived_records")
            return
        named = self.model.said[target]
        keys = [
            ("key", said.about)
            for said in self.model.in_scope(scope)
            if key and said.about is not None and not said.erased and self.model.is_same_value(said, named)
        ]
        if key and not keys:
            self.same("forget", outcome, "bad_argument")
            return
        self._forgotten(outcome, receipt, scope, speaker, [*asked, *derived], keys)

    def forget_value(self, scope: str, speaker: Speaker, text: str, about: tuple[str, str] | None, handle: int) -> None:
        """Forget a value by naming it, and keep it out."""
        asked, derived = self.model.taken_by_value(scope, text, about, speaker)
        session = cast("UserSession", self.session(scope, speaker, handle))
        if scope in self.model.closed:
            return
        extra: list[tuple[object, ...]] = [("text", text)]
        if about is not None:
            extra.append(("value", about, text))
        outcome, receipt = attempt(lambda: session.forget_value(text, reason="asked to", about=about))
        self._forgotten(outcome, receipt, scope, speaker, [*asked, *derived], extra)

    def _forgotten(
        self,
        outcome: str,
        receipt: muniment.ErasureReceipt | None,
        scope: str,
        speaker: Speaker,
        said: Sequence[Said],
        extra: Sequence[tuple[object, ...]] = (),
    ) -> None:
        allowed = self.model.may_forget(speaker, said)
        self.same("forget", outcome, "ok" if allowed else "needs_grant")
        if not allowed:
            # Once, however often: what waits already is not filed again.
            wanted = (scope, speaker.actor, [s.id for s in said])
            waiting = self.stores[0].operator().requests()
            found = [r for r in waiting if (r["scope"], r["by"], r["targets"]) == wanted]
            self.same("asked for", len(found), 1)
            request = found[0]
            self.model.asked[str(request["id"])] = (scope, tuple(s.id for s in said))
        if receipt is None or receipt.id is None or receipt.seq is None:
            return
        self.same("erased", sorted(receipt.erased), sorted(s.id for s in said))
        self.events.append(receipt.id)
        self.model.forget(said, scope, speaker.rank, (receipt.id, receipt.seq), extra)
        self.digests.clear()

    def operator_forgets(self, target: str, handle: int) -> None:
        """Let the operator erase, in every scope that derives from it."""
        found = self.model.said.get(target)
        operator = self.stores[handle].operator()
        outcome, receipt = attempt(lambda: operator.forget(target, reason="asked to"))
        if found is None or found.erased:
            self.same("operator forget", outcome, "not_found" if found is None else "already_done")
            return
        asked, derived = self.model.taken_by([target], None)
        self.same("operator forget", outcome, "ok")
        if receipt is not None and receipt.id is not None and receipt.seq is not None:
            self.events.append(receipt.id)
            self.model.forget([*asked, *derived], found.scope, SIGNED, (receipt.id, receipt.seq))
            self.digests.clear()

    def forget_scope(self, scope: str, handle: int) -> None:
        """Let the user end a whole scope."""
        if not self.model.in_scope(scope):
            return
        outcome, receipt = attempt(lambda: self.ann(scope, handle).forget_scope(reason="all of it"))
        self.same("forget scope", outcome, "already_done" if scope in self.model.closed else "ok")
        if receipt is not None and receipt.id is not None:
            self.model.forget_scope(scope, receipt.id)
            self.events.append(receipt.id)
            self.digests.clear()

    def lift(self, scope: str, number: int, handle: int) -> None:
        """Lift what some earlier event refuses."""
        event = self.events[-1 - number % len(self.events)] if self.events else "0" * 32
        expected = self.model.expect_lift(scope, event)
        outcome, _ = attempt(lambda: self.ann(scope, handle).lift(event, reason="changed my mind"))
        self.same("lift", outcome, expected)
        if outcome == "ok":
            self.model.lift(event)

    def review(self, scope: str, target: str, handle: int, *, approve: bool) -> None:
        """Sign a verdict on a record."""
        found = self.model.said.get(target)
        if scope in self.model.closed:
            return
        expected = "not_found" if found is None or found.scope != scope else "ok"
        if found is not None and expected == "ok":
            status, _ = self.model.status(found, self.now, FOREVER)
            waits = approve and found.admitted(FOREVER) > FOREVER
            late = waits and status == "retired"
            expected = "already_done" if late or status in ("rejected", "erased") else "ok"
            if waits and expected == "ok":
                expected = self.model.expect_approval(found)
        outcome, receipt = attempt(lambda: self.ann(scope, handle).review(target, approve=approve, reason="read it"))
        self.same("review", outcome, expected)
        if receipt is not None:
            self.events.append(receipt.id)
            self.model.review(target, receipt.id, receipt.seq, approve=approve)

    def answer(self, number: int, handle: int, *, approve: bool) -> None:
        """Let the user grant or refuse what an agent asked to have forgotten."""
        if not self.model.asked:
            return
        request = list(self.model.asked)[-1 - number % len(self.model.asked)]
        scope, targets = self.model.asked[request]
        if scope == SCOPES[2] or scope in self.model.closed:
            return
        left = [t for t in targets if t in self.model.said and not self.model.said[t].erased]
        expected = "already_done" if request in self.model.granted or (approve and not left) else "ok"
        outcome, receipt = attempt(lambda: self.ann(scope, handle).review(request, approve=approve, reason="read it"))
        self.same("answer to a request", outcome, expected)
        if receipt is None:
            return
        self.model.granted.add(request)
        if approve:
            asked, derived = self.model.taken_by(left, scope)
            event = self.stores[0].operator().tombstones()[-1].id
            self.events.append(event)
            self.model.forget([*asked, *derived], scope, SIGNED, (event, receipt.seq + 1))
            self.digests.clear()

    def set_apart(self, targets: Sequence[str], handle: int, *, release: bool) -> None:
        """Quarantine records of any scope in one event, or release them."""
        operator = self.stores[handle].operator()
        verb = operator.release if release else operator.quarantine
        outcome, receipt = attempt(lambda: verb(targets, reason="looks poisoned"))
        said = [self.model.said.get(target) for target in targets]
        moves = any(one is not None and not one.erased and one.is_apart == release for one in said)
        self.same("quarantine", outcome, "not_found" if None in said else "ok" if moves else "already_done")
        if receipt is not None:
            for target in dict.fromkeys(targets):
                what = "released" if release else "quarantined"
                self.model.said[target].happenings.append(Happening(receipt.seq, what))

    def link(self, scope: str, speaker: Speaker, start: str, end: str, handle: int) -> None:
        """Link a record of the scope to one that the session sees."""
        seen = {i for i, s in self.model.said.items() if s.scope in SCOPES[:2]}
        session = self.session(scope, speaker, handle, [s for s in SCOPES[:2] if s != scope])
        outcome, receipt = attempt(lambda: session.link(start, "supports", end))
        own = start in self.model.said and self.model.said[start].scope == scope
        expected = (
            "ok" if own and (end in seen or self.model.said.get(end) in self.model.in_scope(scope)) else "not_found"
        )
        if expected == "ok" and scope in self.model.closed:
            expected = "scope_closed"
        self.same("link", outcome, expected)
        if receipt is not None:
            self.model.links.append(Linking(scope, start, end, "supports", receipt.seq, micros(receipt.recorded_at)))

    def unlink(self, number: int, speaker: Speaker, handle: int) -> None:
        """End one of the links."""
        if not self.model.links:
            return
        link = self.model.links[-1 - number % len(self.model.links)]
        speaker = self.fit(link.scope, speaker)
        session = self.session(link.scope, speaker, handle, [s for s in SCOPES[:2] if s != link.scope])
        outcome, receipt = attempt(lambda: session.unlink(link.start, link.type, link.end))
        start = self.model.said[link.start]
        if link.end not in self.model.said:
            return
        same = [k for k in self.model.links if (k.start, k.end) == (link.start, link.end) and k.ended == NEVER]
        allowed = outranks(speaker.origin, speaker.rank, start)
        self.same("unlink", outcome, "rank_too_low" if not allowed else "ok" if same else "not_found")
        if receipt is not None:
            for one in same:
                one.ended = receipt.seq

    def confirm(self, scope: str, argument: str, handle: int) -> None:
        """Sign for two uses of an action within an hour."""
        if scope in self.model.closed:
            return
        signed_at = self.clock.now
        receipt = self.ann(scope, handle).confirm(_mail(argument), agent="agent:planner", uses=2)
        self.model.yes.append(Yes(receipt.id, scope, "agent:planner", argument, 2, signed_at, signed_at + HOUR))

    def revoke(self, number: int, handle: int) -> None:
        """Take a confirmation back."""
        if self.model.yes:
            yes = self.model.yes[-1 - number % len(self.model.yes)]
            outcome, _ = attempt(lambda: self.ann(yes.scope, handle).revoke(yes.id, reason="no"))
            self.same("revoke", outcome, "already_done" if yes.revoked else "ok")
            yes.revoked = True

    def prohibit(self, scope: str, argument: str, handle: int) -> None:
        """Veto an action in a scope and below."""
        if scope not in self.model.closed:
            receipt = self.ann(scope, handle).prohibit(_mail(argument), reason="never")
            self.model.never.append(Never(receipt.id, scope, argument))

    def unprohibit(self, number: int, handle: int) -> None:
        """Lift a veto."""
        if self.model.never:
            never = self.model.never[-1 - number % len(self.model.never)]
            outcome, _ = attempt(lambda: self.ann(never.scope, handle).unprohibit(never.id, reason="well then"))
            self.same("unprohibit", outcome, "already_done" if never.ended else "ok")
            never.ended = True

    def decide(self, scope: str, agent: str, argument: str, evidence: Sequence[str], handle: int) -> None:
        """Ask the guard; an allowed action spends its confirmation."""
        if scope in self.model.closed:
            return
        session = self.stores[handle].session(scope=scope, actor=agent)
        known_at = max(store.head.recorded_at for store in self.stores)
        decision = session.decide(_mail(argument), evidence=evidence)
        clock = micros(decision.decided_at)
        yes = self.model.allows(scope, agent, argument, max(clock, known_at), clock)
        self.same("allowed", decision.allowed, yes is not None)
        if yes is not None:
            self.same("spent", decision.confirmation, yes.id)
            yes.spent += 1


class _Fields(TypedDict, total=False):
    about: About | None
    value: str | None
    many: bool
    valid_from: datetime | None
    valid_to: datetime | None
    applies_when: str | None
    source: str | None
    derived_from: tuple[str, ...]
    command_id: str | None


def _fields(saying: Saying) -> _Fields:
    return _Fields(
        about=saying.about,
        value=saying.value,
        many=saying.many,
        valid_from=None if saying.since is None else to_datetime(saying.since),
        valid_to=None if saying.until is None else to_datetime(saying.until),
        applies_when="it rains" if saying.conditional else None,
        source=saying.source,
        derived_from=saying.parents,
        command_id=saying.command,
    )


def _mail(argument: str) -> Action:
    return Action("email.send", {"to": argument})
