"""A store under a clock that stands until it is told, everybody who speaks in it, and the histories they make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import muniment
from muniment import Action, KeyFile, Policy, Session, Store, UserSession

SCOPE: Final = "acme/apollo"
START: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
EXTERNAL, AGENT, USER, SIGNED = "web:shop.example", "agent:planner", "user", "user:ann"
LADDER: Final = (EXTERNAL, AGENT, USER, SIGNED)
"""One origin of each rank, the lowest first."""


class Clock:
    """Microseconds since the epoch, which pass only when somebody says so."""

    def __init__(self) -> None:
        self.now = int(START.timestamp()) * 1_000_000

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: int = 1) -> None:
        """Let time pass, or run back when negative."""
        self.now += seconds * 1_000_000

    @property
    def moment(self) -> datetime:
        """The present as a datetime."""
        return datetime.fromtimestamp(self.now // 1_000_000, UTC) + timedelta(microseconds=self.now % 1_000_000)


class World:
    """A store, words only, with `user:ann` enrolled for `acme` and all below."""

    def __init__(self, path: Path, *, policy: Policy | None = None) -> None:
        self.path, self.clock, self._policy = path, Clock(), policy
        self.key = KeyFile.create(path.with_name(f"{path.name}.userkey"))
        self.store = muniment.open(path, create=True, model="none", clock=self.clock, policy=policy)
        self.store.enroll("user:ann", self.key.public_key, scopes=("acme",))
        self.ids: list[str] = []
        self.forgets: list[str] = []
        self.signed: list[str] = []

    def speaker(
        self, who: str, scope: str = SCOPE, *, reads: tuple[str, ...] = (), store: Store | None = None
    ) -> Session:
        """Return the session of one of the ladder, or of any other origin."""
        store = store or self.store
        if who == SIGNED:
            return store.user_session(scope=scope, principal="user:ann", signer=self.key, reads=reads)
        if who.startswith(("agent:", "user")):
            return store.session(scope=scope, actor=who, reads=reads)
        return store.session(scope=scope, actor="agent:reader", origin=who, reads=reads)

    def ann(self, scope: str = SCOPE) -> UserSession:
        """Return the session in which the user signs."""
        return self.store.user_session(scope=scope, principal="user:ann", signer=self.key)

    def open_again(self) -> Store:
        """Return another handle on the same store."""
        return muniment.open(self.path, model="none", clock=self.clock, policy=self._policy)

    def reopen(self) -> None:
        """Close the store and open it again."""
        self.store.close()
        self.store = self.open_again()


# --- histories --------------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One thing that somebody tries; what it means depends on the verb, and numbers wrap around."""

    verb: str
    who: str
    text: str
    target: int
    key: int | None
    hours: int | None


def perform(world: World, step: Step) -> None:
    """Let a second pass, and try the step. A history is made of attempts: what is refused belongs to it too."""
    world.clock.advance()
    try:
        _VERBS[step.verb](world, step)
    except (muniment.Refused, muniment.InvalidInput):
        return


def _target(world: World, step: Step) -> str:
    return world.ids[step.target % len(world.ids)] if world.ids else "00"


def _fields(world: World, step: Step) -> dict[str, object]:
    fields: dict[str, object] = {}
    if step.key is not None:
        fields["about"] = ("launch", f"part {step.key}")
    if step.hours is not None:
        fields["valid_from"] = world.clock.moment + timedelta(hours=step.hours)
    return fields


def _remember(world: World, step: Step) -> None:
    items: list[dict[str, object]] = [{"content": step.text, **_fields(world, step)}]
    world.ids += [receipt.id for receipt in world.speaker(step.who).remember_many(items)]


def _remember_two(world: World, step: Step) -> None:
    items: list[dict[str, object]] = [
        {"content": step.text, **_fields(world, step)},
        {"content": f"{step.text} and more"},
    ]
    world.ids += [receipt.id for receipt in world.speaker(step.who).remember_many(items)]


def _derive(world: World, step: Step) -> None:
    receipt = world.speaker(step.who).remember(f"from it: {step.text}", derived_from=[_target(world, step)])
    world.ids.append(receipt.id)


def _supersede(world: World, step: Step) -> None:
    world.ids.append(world.speaker(step.who).supersede(_target(world, step), step.text).id)


def _retire(world: World, step: Step) -> None:
    until = None if step.hours is None else world.clock.moment + timedelta(hours=step.hours)
    world.speaker(step.who).retire(_target(world, step), reason="over", valid_to=until)


def _forget(world: World, step: Step) -> None:
    receipt = world.speaker(step.who).forget(_target(world, step), reason="asked to")
    world.forgets.append(receipt.id or "")


def _lift(world: World, step: Step) -> None:
    if world.forgets:
        world.ann().lift(world.forgets[step.target % len(world.forgets)], reason="changed my mind")


def _link(world: World, step: Step) -> None:
    if world.ids:
        world.speaker(step.who).link(_target(world, step), "relates", world.ids[-1])


def _unlink(world: World, step: Step) -> None:
    if world.ids:
        world.speaker(step.who).unlink(_target(world, step), "relates", world.ids[-1])


def _quarantine(world: World, step: Step) -> None:
    world.store.operator().quarantine([_target(world, step)], reason="looks poisoned")


def _release(world: World, step: Step) -> None:
    world.store.operator().release([_target(world, step)], reason="was sound")


def _approve(world: World, step: Step) -> None:
    world.ann().review(_target(world, step), approve=True, reason="fine")


def _reject(world: World, step: Step) -> None:
    world.ann().review(_target(world, step), approve=False, reason="wrong")


def _confirm(world: World, step: Step) -> None:
    world.signed.append(world.ann().confirm(_mail(step), agent=AGENT, uses=2).id)


def _revoke(world: World, step: Step) -> None:
    if world.signed:
        world.ann().revoke(world.signed[step.target % len(world.signed)], reason="no")


def _prohibit(world: World, step: Step) -> None:
    world.signed.append(world.ann().prohibit(_mail(step), reason="never").id)


def _unprohibit(world: World, step: Step) -> None:
    if world.signed:
        world.ann().unprohibit(world.signed[step.target % len(world.signed)], reason="well then")


def _decide(world: World, step: Step) -> None:
    evidence = [_target(world, step)] if world.ids else []
    world.speaker(AGENT).decide(_mail(step), evidence=evidence)


def _mail(step: Step) -> Action:
    return Action("email.send", {"to": step.text})


_VERBS: Final[Mapping[str, Callable[[World, Step], None]]] = {
    "remember": _remember,
    "remember two": _remember_two,
    "derive": _derive,
    "supersede": _supersede,
    "retire": _retire,
    "forget": _forget,
    "lift": _lift,
    "link": _link,
    "unlink": _unlink,
    "quarantine": _quarantine,
    "release": _release,
    "approve": _approve,
    "reject": _reject,
    "confirm": _confirm,
    "revoke": _revoke,
    "prohibit": _prohibit,
    "unprohibit": _unprohibit,
    "decide": _decide,
}
VERBS: Final = tuple(_VERBS)


def one_of_each() -> Iterator[Step]:
    """Yield a history that holds every kind of event, each of them admitted."""
    yield Step("remember", AGENT, "the launch is on monday", 0, 1, None)
    yield Step("remember two", USER, "the launch is on tuesday", 0, 1, -5)
    yield Step("derive", AGENT, "so book the hall", 0, None, None)
    yield Step("supersede", SIGNED, "the launch is on friday", 1, None, None)
    yield Step("remember", EXTERNAL, "the launch is on sunday", 0, 1, None)
    yield Step("remember", AGENT, "colours are red", 0, None, None)
    yield Step("link", AGENT, "", 0, None, None)
    yield Step("unlink", AGENT, "", 0, None, None)
    yield Step("quarantine", AGENT, "", 6, None, None)
    yield Step("release", AGENT, "", 6, None, None)
    yield Step("approve", SIGNED, "", 5, None, None)
    yield Step("reject", SIGNED, "", 5, None, None)
    yield Step("retire", USER, "", 2, None, 7)
    yield Step("retire", AGENT, "", 3, None, None)
    yield Step("forget", AGENT, "", 1, None, None)
    yield Step("forget", USER, "", 6, None, None)
    yield Step("remember", AGENT, "colours are red", 0, None, None)
    yield Step("lift", SIGNED, "", 0, None, None)
    yield Step("confirm", SIGNED, "ann", 0, None, None)
    yield Step("decide", AGENT, "ann", 0, None, None)
    yield Step("revoke", SIGNED, "", 0, None, None)
    yield Step("prohibit", SIGNED, "bob", 0, None, None)
    yield Step("decide", AGENT, "bob", 0, None, None)
    yield Step("unprohibit", SIGNED, "", 1, None, None)
    yield Step("remember", USER, "colours are blue", 0, None, None)
