"""The model of a store: what each attempt leads to, and what is answered at any position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .current import Current
from .facts import (
    AGENT,
    FOREVER,
    SIGNED,
    USER,
    About,
    Happening,
    Linking,
    Never,
    Refused,
    Said,
    Speaker,
    Yes,
    lies_in,
    outranks,
)

REVIEWED = ("web:shop.example/page",)
"""Origins whose words wait for a person, by the host's policy."""
_LIVE = ("active", "conditional")
_GONE = ("erased", "superseded", "retired", "rejected")


class Saying(NamedTuple):
    """What somebody asks to have remembered; `since` and `until` are None where the caller says nothing."""

    scope: str
    speaker: Speaker
    text: str
    about: About | None = None
    value: str | None = None
    many: bool = False
    since: int | None = None
    until: int | None = None
    conditional: bool = False
    source: str | None = None
    parents: tuple[str, ...] = ()
    supersedes: str | None = None
    command: str | None = None

    @property
    def means(self) -> str | None:
        """The value that is stated of the key: the text, unless a value was given."""
        return None if self.about is None else self.value or self.text


class Model:
    """Every record, by id, and everything else that bears on an answer."""

    def __init__(self) -> None:
        self.said: dict[str, Said] = {}
        self.refused: list[Refused] = []
        self.links: list[Linking] = []
        self.yes: list[Yes] = []
        self.never: list[Never] = []
        self.asked: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.granted: set[str] = set()
        self.closed: dict[str, str] = {}
        self.closings: dict[str, str] = {}
        self.commands: dict[tuple[str, str, str], tuple[Saying, str]] = {}

    # --- answers ------------------------------------------------------------------------------------------------------

    def in_scope(self, scope: str) -> list[Said]:
        """Return the records of a scope in sequence order."""
        return sorted((s for s in self.said.values() if s.scope == scope), key=lambda said: said.seq)

    def status(self, said: Said, valid: int, known: int) -> tuple[str, bool]:
        """Return (status, holds) of a record at a point."""
        return Current(self.in_scope(said.scope)).status(said, valid, known)

    def answers(self, scopes: Sequence[str], valid: int, known: int) -> dict[str, object]:
        """Return what a session that reads some scopes is told: listed statuses, beliefs, and what recall may offer."""
        listed: list[tuple[int, str, str]] = []
        beliefs: list[tuple[int, str, list[str], list[str]]] = []
        offered: list[str] = []
        for scope in scopes:
            current = Current(self.in_scope(scope))
            records = [s for s in self.in_scope(scope) if s.seq <= known]
            for said in records:
                status, holds = current.status(said, valid, known)
                if status != "erased":
                    listed.append((said.seq, said.id, status))
                if holds and status in _LIVE:
                    offered.append(said.id)
                    if said.about is not None and said.many:
                        beliefs.append((said.seq, said.id, [], []))
            for about in {s.about for s in records if s.about is not None}:
                key = current.key(about, valid, known)
                if key.value is not None:
                    beside = ([d.id for d in key.disputes], [c.id for c in key.conflicts])
                    beliefs.append((key.value.seq, key.value.id, *beside))
        return {"list": sorted(listed), "beliefs": sorted(beliefs), "offered": sorted(offered)}

    def links_around(self, start: str, scopes: Sequence[str], valid: int, known: int, depth: int) -> list[list[str]]:
        """Return the links within some hops, as sorted (start, end, type)."""
        edges = [(k.start, k.end, k.type) for k in self.links if k.seq <= known < k.ended and k.since <= valid]
        for said in self.said.values():
            if said.seq <= known:
                edges += [(said.id, parent, "derives-from") for parent in said.parents]
                edges += [(said.id, old, "supersedes") for old in (said.supersedes,) if old is not None]
        found: set[tuple[str, str, str]] = set()
        seen = {start}
        for _ in range(depth):
            near = set(seen)
            for edge in edges:
                ends = (edge[0], edge[1])
                if seen.intersection(ends) and all(self._is_seen(i, scopes, known) for i in ends):
                    found.add(edge)
                    near.update(ends)
            seen = near
        return sorted(list(edge) for edge in found)

    def _is_seen(self, identity: str, scopes: Sequence[str], known: int) -> bool:
        said = self.said.get(identity)
        return said is not None and said.scope in scopes and said.seq <= known

    # --- what a write leads to ----------------------------------------------------------------------------------------

    def expect_saying(self, saying: Saying, reads: Sequence[str], now: int) -> tuple[str, str]:
        """Return ("ok", ""), ("repeated", first id), or (the refusal's code, "")."""
        if saying.supersedes is not None and self._visible(saying.supersedes, (saying.scope, *reads)) is None:
            return "not_found", ""
        if saying.since is not None and saying.until is not None and saying.until <= saying.since:
            return "bad_time", ""
        if saying.scope in self.closed:
            return "scope_closed", ""
        if saying.command is not None:
            first = self.commands.get((saying.scope, saying.speaker.actor, saying.command))
            if first is not None:
                if first[0] != saying:
                    return "command_conflict", ""
                return ("tombstoned", "") if self.said[first[1]].erased else ("repeated", first[1])
        problem = self._problem_of_parents(saying, reads) or self._problem_of_target(saying, now)
        if problem:
            return problem, ""
        if saying.until is not None and saying.until <= (now if saying.since is None else saying.since):
            return "bad_time", ""
        problem = self._why_refused(self.inherit(saying))
        if problem:
            return problem, ""
        repeat = self._repeat(saying, now) if saying.supersedes is None else None
        return ("ok", "") if repeat is None else ("repeated", repeat.id)

    def inherit(self, saying: Saying) -> Saying:
        """Return a superseding saying with the key of what it supersedes, unless it has its own."""
        if saying.supersedes is None or saying.about is not None:
            return saying
        target = self.said[saying.supersedes]
        return saying if target.about is None else saying._replace(about=target.about, many=target.many)

    def rank_of(self, saying: Saying) -> int:
        """Return the rank of what is said: the least among the speaker's and all that it derives from."""
        return min([saying.speaker.rank, *(self.said[p].rank for p in saying.parents)])

    def say(self, saying: Saying, identity: str, seq: int, recorded: int) -> None:
        """Take in a record that was admitted."""
        if saying.command is not None:
            self.commands[saying.scope, saying.speaker.actor, saying.command] = (saying, identity)
        whole = self.inherit(saying)
        self.said[identity] = Said(
            identity, seq, whole.scope, whole.speaker, self.rank_of(whole), whole.text, whole.about, whole.means,
            whole.many, recorded if whole.since is None else whole.since,
            FOREVER if whole.until is None else whole.until, whole.conditional, whole.source, whole.parents,
            whole.supersedes, whole.speaker.origin in REVIEWED, recorded,
        )  # fmt: skip
        if whole.supersedes is not None:
            self.said[whole.supersedes].happenings.append(Happening(seq, "superseded", by=identity))

    def _problem_of_parents(self, saying: Saying, reads: Sequence[str]) -> str:
        for parent in saying.parents:
            found = self._visible(parent, (saying.scope, *reads))
            if found is None:
                return "not_found"
            if found.erased:
                return "already_done"
        return ""

    def _problem_of_target(self, saying: Saying, now: int) -> str:
        if saying.supersedes is None:
            return ""
        target = self._visible(saying.supersedes, (saying.scope,))
        if target is None:
            return "not_found"
        if self.status(target, now, FOREVER)[0] in _GONE:
            return "already_done"
        return "" if outranks(saying.speaker.origin, self.rank_of(saying), target) else "rank_too_low"

    def _why_refused(self, saying: Saying) -> str:
        return self._refusal(saying.text, saying.about, saying.means, saying.scope, self.rank_of(saying))

    def expect_approval(self, said: Said) -> str:
        """Return "ok" or why a record that waits may not be let in, by the rank of who approves."""
        return self._refusal(said.text, said.about, said.value, said.scope, SIGNED) or "ok"

    def _refusal(self, text: str, about: tuple[str, str] | None, means: str | None, scope: str, rank: int) -> str:
        values: list[tuple[object, ...]] = [("text", text)]
        if about is not None:
            values += [("value", about, means), ("key", about)]
        for value in values:
            for refused in self.refused:
                if refused.stops(value, scope, rank):
                    return "tombstoned" if refused.forgotten else "retired_value"
        return ""

    def _repeat(self, saying: Saying, now: int) -> Said | None:
        # Live, and saying it again would say nothing new: its interval holds the new one, and its condition.
        since = now if saying.since is None else saying.since
        until = FOREVER if saying.until is None else saying.until
        for said in self.in_scope(saying.scope):
            same = (said.text, said.about, said.value, said.speaker.origin, said.source, said.many) == (
                saying.text, saying.about, saying.means, saying.speaker.origin, saying.source, saying.many,
            )  # fmt: skip
            standing = self.status(said, now, FOREVER)[0] in (*_LIVE, "disputed", "quarantined", "pending")
            ends = min([said.until, *(h.until for h in said.happenings if h.what == "retired")])
            covered = said.since <= since and until <= ends and (saying.conditional or not said.conditional)
            if same and standing and covered:
                return said
        return None

    def _visible(self, identity: str, scopes: Iterable[str]) -> Said | None:
        found = self.said.get(identity)
        return found if found is not None and found.scope in scopes else None

    # --- retiring, reviewing, forgetting ------------------------------------------------------------------------------

    def expect_retire(self, scope: str, speaker: Speaker, identity: str, until: int | None, now: int) -> str:
        """Return "ok" or the refusal's code."""
        target = self._visible(identity, (scope,))
        if target is None:
            return "not_found"
        if self.status(target, now, FOREVER)[0] in ("erased", "retired", "rejected"):
            return "already_done"
        if not outranks(speaker.origin, speaker.rank, target):
            return "rank_too_low"
        if until is None:
            return "ok"
        if until <= target.since:
            return "bad_time"
        ended = min([target.until, *(h.until for h in target.happenings if h.what == "retired")])
        return "already_done" if ended <= until else "ok"

    def retire(self, speaker: Speaker, identity: str, until: int | None, at: tuple[str, int, int]) -> None:
        """Take in a retirement; `at` is (event id, sequence number, record time)."""
        event, seq, recorded = at
        target = self.said[identity]
        target.happenings.append(Happening(seq, "retired", until=recorded if until is None else until))
        if until is None:
            self._refuse([target], target.scope, event, forgotten=False, everyone=False, rank=speaker.rank)

    def review(self, identity: str, event: str, seq: int, *, approve: bool) -> None:
        """Take in a signed verdict on a record."""
        target = self.said[identity]
        target.happenings.append(Happening(seq, "approved" if approve else "rejected"))
        if not approve:
            self._refuse([target], target.scope, event, forgotten=False, everyone=False, rank=SIGNED)

    def taken_by(
        self, identities: Iterable[str], scope: str | None, speaker: Speaker | None = None
    ) -> tuple[list[Said], list[Said]]:
        """Return (same values, what derives from them) that a forget takes; a scope limits it to itself and below."""
        asked: dict[str, Said] = {}
        for identity in identities:
            one = self.said[identity]
            if not one.erased:
                asked |= {s.id: s for s in self.in_scope(one.scope) if not s.erased and self.is_same_value(s, one)}
        return self._with_derived(asked, scope, speaker)

    def taken_by_value(
        self, scope: str, text: str, about: About | None, speaker: Speaker | None = None
    ) -> tuple[list[Said], list[Said]]:
        """Return the same for a value that is named rather than pointed at."""
        asked = {
            s.id: s
            for s in self.in_scope(scope)
            if not s.erased
            and (s.text == text or (s.about is not None and s.value == text and about in (None, s.about)))
        }
        return self._with_derived(asked, scope, speaker)

    def _with_derived(
        self, asked: dict[str, Said], scope: str | None, speaker: Speaker | None
    ) -> tuple[list[Said], list[Said]]:
        while more := self._equals(asked):
            asked |= more
        reached, derived = set(asked), dict[str, Said]()
        while True:
            more = {s.id: s for s in self.said.values() if s.id not in reached and reached.intersection(s.parents)}
            here = {i: s for i, s in more.items() if not s.erased and (scope is None or lies_in(s.scope, scope))}
            derived |= here
            equals = {
                i: s
                for i, s in self._equals(asked | derived).items()
                if speaker is None or self.may_forget(speaker, [s])
            }
            asked |= equals
            if not more and not equals:
                break
            reached |= {*more, *equals}
        first, then = (sorted(taken.values(), key=lambda said: said.seq) for taken in (asked, derived))
        return first, then

    @staticmethod
    def is_same_value(one: Said, other: Said) -> bool:
        """Tell whether two records give the same text, or the same value of one key."""
        return one.text == other.text or (
            one.about is not None and (one.about, one.value) == (other.about, other.value)
        )

    def _equals(self, taken: dict[str, Said]) -> dict[str, Said]:
        """Return what says the same as any of these, where it stands, and is not among them."""
        return {
            s.id: s
            for one in taken.values()
            for s in self.in_scope(one.scope)
            if not s.erased and s.id not in taken and self.is_same_value(s, one)
        }

    def may_forget(self, speaker: Speaker, taken: Iterable[Said]) -> bool:
        """Tell whether a speaker has authority over all of it: an agent over its own and external records."""
        return all(
            outranks(speaker.origin, speaker.rank, s)
            and not (speaker.rank == s.rank == AGENT and s.speaker.actor != speaker.actor)
            for s in taken
        )

    def forget(
        self,
        taken: Sequence[Said],
        scope: str,
        rank: int,
        at: tuple[str, int],
        extra: Sequence[tuple[object, ...]] = (),
    ) -> None:
        """Take in a forget of rank `rank`; `at` is (event id, sequence number)."""
        event, seq = at
        for said in taken:
            said.erased, said.erased_seq = True, seq
        self._refuse(taken, scope, event, forgotten=True, everyone=rank >= USER, rank=rank)
        self.refused += [Refused(what, scope, True, rank >= USER, rank, event) for what in extra]

    def forget_scope(self, scope: str, event: str) -> None:
        """Take in the end of a scope: nothing of it is left to know."""
        self.said = {i: s for i, s in self.said.items() if s.scope != scope}
        self.refused = [r for r in self.refused if r.scope != scope]
        self.links = [k for k in self.links if k.scope != scope]
        self.yes = [y for y in self.yes if y.scope != scope]
        self.never = [n for n in self.never if n.scope != scope]
        self.asked = {i: request for i, request in self.asked.items() if request[0] != scope}
        self.commands = {k: c for k, c in self.commands.items() if k[0] != scope}
        self.closed[scope] = event
        self.closings[event] = scope

    def expect_lift(self, scope: str, event: str) -> str:
        """Return "ok" or the refusal's code."""
        found = [r for r in self.refused if r.event == event and r.scope == scope]
        if not found and self.closings.get(event) != scope:
            return "not_found"
        return "already_done" if found and all(r.lifted for r in found) else "ok"

    def lift(self, event: str) -> None:
        """Take in a lift."""
        for refused in self.refused:
            refused.lifted = refused.lifted or refused.event == event
        self.closed = {scope: by for scope, by in self.closed.items() if by != event}

    def _refuse(
        self, taken: Iterable[Said], scope: str, event: str, *, forgotten: bool, everyone: bool, rank: int
    ) -> None:
        for said in taken:
            values: list[tuple[object, ...]] = [("text", said.text)]
            if said.about is not None:
                values.append(("value", said.about, said.value))
            self.refused += [Refused(value, scope, forgotten, everyone, rank, event) for value in values]

    # --- the guard ----------------------------------------------------------------------------------------------------

    def allows(self, scope: str, agent: str, argument: str, now: int, clock: int) -> Yes | None:
        """Return the confirmation that allows an action, or None: it is live, for here, and no veto stands above."""
        if any(n.argument == argument and not n.ended and lies_in(scope, n.scope) for n in self.never):
            return None
        for yes in self.yes:
            fits = (yes.scope, yes.agent, yes.argument) == (scope, agent, argument)
            # A clock that stands before the signing could make any confirmation last.
            in_time = yes.signed <= clock and now < yes.expires
            if fits and not yes.revoked and yes.spent < yes.uses and in_time:
                return yes
        return None
