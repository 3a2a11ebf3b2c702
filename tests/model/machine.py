"""The state machine: hypothesis chooses who tries what, and every step ends in a comparison."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import ClassVar, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from .bench import HOUR, SCOPES, SPEAKERS, TEXTS
from .driver import Driver
from .facts import About, Speaker
from .model import Saying


class Look(NamedTuple):
    """Where to look after a step: with which reads, at which instant and how far back, and around which record."""

    scope: int
    reads: int
    hours: int
    back: int
    around: int


class Words(NamedTuple):
    """What a saying is made of; numbers point back at earlier records."""

    scope: str
    speaker: Speaker
    text: str
    about: About | None
    value: str | None
    many: bool
    since: int | None
    lasts: int | None
    conditional: bool
    source: str | None
    parent: int | None
    command: str | None


_maybe = st.sampled_from((False, False, False, True))
_scopes = st.sampled_from((SCOPES[1], SCOPES[1], *SCOPES))
_signed_scopes = st.sampled_from(SCOPES[:2])
_speakers = st.sampled_from(SPEAKERS)
_handles = st.integers(0, 1)
_numbers = st.one_of(st.integers(0, 3), st.integers(0, 40))
_hours = st.one_of(st.none(), st.integers(-6, 9))
_abouts = st.sampled_from((None, ("sky", "colour"), ("sky", "colour"), ("sea", "colour")))
_arguments = st.sampled_from(("ann", "bob"))
_forgets = st.tuples(st.booleans(), _maybe)
_looks = st.builds(Look, st.integers(0, 2), st.integers(0, 2), st.integers(-7, 10), _numbers, _numbers)
_words = st.builds(
    Words,
    scope=_scopes,
    speaker=_speakers,
    text=st.sampled_from(TEXTS),
    about=_abouts,
    value=st.sampled_from((None, None, "red", "blue")),
    many=_maybe,
    since=_hours,
    lasts=st.one_of(st.none(), st.integers(-1, 6)),
    conditional=_maybe,
    source=st.sampled_from((None, None, None, "chat/1", "chat/2")),
    parent=st.one_of(st.none(), st.none(), _numbers),
    command=st.sampled_from((None, None, None, None, "c1", "c2")),
)


class Histories(RuleBasedStateMachine):
    """Histories of every kind of event. `base` is where their stores lie; `counts` is of all steps, by verb."""

    base: ClassVar[Path | None] = None
    counts: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(dir=self.base))
        self.driver = Driver(self._folder / "store")

    def teardown(self) -> None:
        """Compare every position, also after a failure: hypothesis shows the first."""
        try:
            self.driver.check_everywhere()
        finally:
            self.driver.close()
            shutil.rmtree(self._folder)

    # --- memories -----------------------------------------------------------------------------------------------------

    @rule(words=_words, handle=_handles, look=_looks)
    def remember(self, words: Words, handle: int, look: Look) -> None:
        self.driver.say(self._saying(words), handle, self._reads(look))
        self._look("remember", look)

    @rule(words=_words, handle=_handles, look=_looks)
    def state(self, words: Words, handle: int, look: Look) -> None:
        """A plain keyed statement, of which most histories should have many."""
        saying = self._saying(words._replace(parent=None, command=None, source=None, many=False))
        self.driver.say(saying._replace(about=saying.about or ("sky", "colour")), handle, ())
        self._look("state", look)

    @rule(words=_words, old=_numbers, handle=_handles, look=_looks)
    def supersede(self, words: Words, old: int, handle: int, look: Look) -> None:
        saying = self._saying(words)
        if saying.about is None:
            saying = saying._replace(value=None)  # a value needs an `about`, its own or inherited
        self.driver.say(saying._replace(supersedes=self.driver.id_at(old)), handle, self._reads(look))
        self._look("supersede", look)

    @rule(words=st.lists(_words, min_size=2, max_size=3), handle=_handles, look=_looks)
    def batch(self, words: list[Words], handle: int, look: Look) -> None:
        plain = [w._replace(parent=None, scope=words[0].scope, speaker=words[0].speaker) for w in words]
        self.driver.say_many([self._saying(w)._replace(command=None) for w in plain], handle)
        self._look("batch", look)

    @rule(scope=_scopes, speaker=_speakers, old=_numbers, hours=_hours, handle=_handles, look=_looks)
    def retire(self, scope: str, speaker: Speaker, old: int, hours: int | None, handle: int, look: Look) -> None:
        identity = self.driver.id_at(old)
        scope = self._scope_of(identity, scope)
        self.driver.retire(scope, self.driver.fit(scope, speaker), identity, hours, handle)
        self._look("retire", look)

    # --- forgetting ---------------------------------------------------------------------------------------------------

    @rule(scope=_scopes, speaker=_speakers, old=_numbers, how=_forgets, handle=_handles, look=_looks)
    def forget(self, scope: str, speaker: Speaker, old: int, how: tuple[bool, bool], handle: int, look: Look) -> None:
        identity, (cascade, key) = self.driver.id_at(old), how
        scope = self._scope_of(identity, scope)
        self.driver.forget(scope, self.driver.fit(scope, speaker), identity, handle, cascade=cascade, key=key)
        self._look("forget", look)

    @rule(
        scope=_signed_scopes,
        signed=st.booleans(),
        text=st.sampled_from(TEXTS),
        about=_abouts,
        handle=_handles,
        look=_looks,
    )
    def forget_value(self, scope: str, signed: bool, text: str, about: About | None, handle: int, look: Look) -> None:
        self.driver.forget_value(scope, SPEAKERS[-1 if signed else -2], text, about, handle)
        self._look("forget_value", look)

    @rule(old=_numbers, handle=_handles, look=_looks)
    def operator_forget(self, old: int, handle: int, look: Look) -> None:
        self.driver.operator_forgets(self.driver.id_at(old), handle)
        self._look("operator_forget", look)

    @rule(scope=_signed_scopes, sure=st.integers(0, 3), handle=_handles, look=_looks)
    def forget_scope(self, scope: str, sure: int, handle: int, look: Look) -> None:
        if sure == 0:
            self.driver.forget_scope(scope, handle)
            self._look("forget_scope", look)

    @rule(scope=_signed_scopes, event=_numbers, handle=_handles, look=_looks)
    def lift(self, scope: str, event: int, handle: int, look: Look) -> None:
        self.driver.lift(scope, event, handle)
        self._look("lift", look)

    # --- persons, operators -------------------------------------------------------------------------------------------

    @rule(scope=_signed_scopes, old=_numbers, approve=st.booleans(), handle=_handles, look=_looks)
    def review(self, scope: str, old: int, approve: bool, handle: int, look: Look) -> None:
        self.driver.review(scope, self.driver.id_at(old), handle, approve=approve)
        self._look("review", look)

    @rule(number=_numbers, approve=st.booleans(), handle=_handles, look=_looks)
    def answer(self, number: int, approve: bool, handle: int, look: Look) -> None:
        self.driver.answer(number, handle, approve=approve)
        self._look("answer", look)

    @rule(olds=st.lists(_numbers, min_size=1, max_size=3), release=st.booleans(), handle=_handles, look=_looks)
    def set_apart(self, olds: list[int], release: bool, handle: int, look: Look) -> None:
        self.driver.set_apart([self.driver.id_at(t) for t in olds], handle, release=release)
        self._look("release" if release else "quarantine", look)

    @rule(scope=_scopes, speaker=_speakers, start=_numbers, end=_numbers, handle=_handles, look=_looks)
    def link(self, scope: str, speaker: Speaker, start: int, end: int, handle: int, look: Look) -> None:
        identity = self.driver.id_at(start)
        scope = self._scope_of(identity, scope)
        self.driver.link(scope, self.driver.fit(scope, speaker), identity, self.driver.id_at(end), handle)
        self._look("link", look)

    @rule(number=_numbers, speaker=_speakers, handle=_handles, look=_looks)
    def unlink(self, number: int, speaker: Speaker, handle: int, look: Look) -> None:
        self.driver.unlink(number, speaker, handle)
        self._look("unlink", look)

    # --- the guard ----------------------------------------------------------------------------------------------------

    @rule(scope=_signed_scopes, argument=_arguments, handle=_handles, look=_looks)
    def confirm(self, scope: str, argument: str, handle: int, look: Look) -> None:
        self.driver.confirm(scope, argument, handle)
        self._look("confirm", look)

    @rule(number=_numbers, handle=_handles, look=_looks)
    def revoke(self, number: int, handle: int, look: Look) -> None:
        self.driver.revoke(number, handle)
        self._look("revoke", look)

    @rule(scope=_signed_scopes, argument=_arguments, handle=_handles, look=_looks)
    def prohibit(self, scope: str, argument: str, handle: int, look: Look) -> None:
        self.driver.prohibit(scope, argument, handle)
        self._look("prohibit", look)

    @rule(number=_numbers, handle=_handles, look=_looks)
    def unprohibit(self, number: int, handle: int, look: Look) -> None:
        self.driver.unprohibit(number, handle)
        self._look("unprohibit", look)

    @rule(scope=_scopes, other=_maybe, argument=_arguments, cited=_numbers, handle=_handles, look=_looks)
    def decide(self, scope: str, other: bool, argument: str, cited: int, handle: int, look: Look) -> None:
        agent = "agent:other" if other else "agent:planner"
        self.driver.decide(scope, agent, argument, [self.driver.id_at(cited)], handle)
        self._look("decide", look)

    # --- time and accidents -------------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from((-18_000, -3_600, -5, 0, 1, 60, 3_600, 10_800, 31 * 86_400)), look=_looks)
    def pass_time(self, seconds: int, look: Look) -> None:
        self.driver.clock.advance(seconds)
        self._look("pass_time", look)

    @rule(how=st.sampled_from(("reopen", "rebuild", "lose", "stop")), look=_looks)
    def disturb(self, how: str, look: Look) -> None:
        self.driver.disturb(how)
        self._look(how, look)

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _saying(self, words: Words) -> Saying:
        driver = self.driver
        since = None if words.since is None else driver.start + words.since * HOUR
        until = None if words.lasts is None else (driver.now if since is None else since) + words.lasts * HOUR
        return Saying(
            scope=words.scope,
            speaker=driver.fit(words.scope, words.speaker),
            text=words.text,
            about=words.about,
            value=None if words.about is None else words.value,
            many=words.many,
            since=since,
            until=until,
            conditional=words.conditional,
            source=words.source,
            parents=() if words.parent is None else (driver.id_at(words.parent),),
            command=words.command,
        )

    def _scope_of(self, identity: str, otherwise: str) -> str:
        # Most attempts should concern something that is there.
        said = self.driver.model.said.get(identity)
        return otherwise if said is None else said.scope

    def _reads(self, look: Look) -> list[str]:
        return [SCOPES[(look.scope + n) % 3] for n in range(1, 1 + look.reads)]

    def _look(self, verb: str, look: Look) -> None:
        type(self).counts[verb] += 1
        scopes = [SCOPES[look.scope], *self._reads(look)]
        self.driver.check(scopes, look.hours, look.back, look.around)
