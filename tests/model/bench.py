"""A real store beside the model, under two handles, and what compares them: now, in a replay, and at every position."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import muniment
from muniment import PastSession, Policy, Session, Store, UserSession
from muniment.events import to_datetime
from tests.worlds import Clock

from .facts import (
    AGENT,
    EXTERNAL,
    FOREVER,
    SIGNED,
    USER,
    Speaker,
)
from .model import REVIEWED, Model
from .remote import opened, worker

T = TypeVar("T")

SCOPES: Final = ("acme", "acme/apollo", "acmex")
"""One lies below another, and one only begins like it. `user:ann` may sign in the first two."""
SPEAKERS: Final = (
    Speaker("agent:reader", "web:shop.example", EXTERNAL),
    Speaker("agent:reader", "web:shop.example/page", EXTERNAL),
    Speaker("agent:planner", "agent:planner", AGENT),
    Speaker("agent:other", "agent:other", AGENT),
    Speaker("user", "user", USER),
    Speaker("user:ann", "user:ann", SIGNED),
)
READER: Final = SPEAKERS[4]
"""Who compares: a user, who is shown also what waits for a person."""
POLICY: Final = Policy(review=REVIEWED)
TEXTS: Final = ("red", "blue", "green", "it is red", "it is blue")
HOUR: Final = 3_600_000_000
ASKED: Final = " ".join(TEXTS)
"""A query that every text answers."""


class Position(NamedTuple):
    """Where a history stood after a step: the end of its batch, and that batch's record time."""

    seq: int
    recorded: int


class Mismatch(AssertionError):
    """The store says one thing and the model another."""


class Bench:
    """
    One history on one log, written and read through two handles, of which the second is another process.

    The first handle is closed, opened and rebuilt again and again; the second is left alone and only follows the log.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.clock, self.model = path, Clock(), Model()
        self.start = self.clock.now
        self.key = muniment.KeyFile.create(path.with_name(f"{path.name}.key"))
        first = muniment.open(path, create=True, model="none", clock=self.clock, policy=POLICY)
        first.enroll("user:ann", self.key.public_key, scopes=("acme",))
        self.stores = [first, opened(worker(), path, self.clock)]
        self.ids: list[str] = []
        self.events: list[str] = []
        self.positions: list[Position] = []
        self.digests: dict[int, dict[str, str]] = {}
        self.stopped: tuple[Path, int, dict[str, dict[str, object]]] | None = None

    def open(self) -> Store:
        """Return another handle on the store."""
        return muniment.open(self.path, model="none", clock=self.clock, policy=POLICY)

    def close(self) -> None:
        """Close every handle."""
        for store in self.stores:
            store.close()

    @property
    def now(self) -> int:
        """The present, as reads see it."""
        return max(self.clock.now, self.stores[1].head.recorded_at)

    def instant(self, hours: int | None) -> datetime | None:
        """Return an instant some hours from the start of the history; ties are wanted."""
        return None if hours is None else to_datetime(self.start + hours * HOUR)

    def session(self, scope: str, speaker: Speaker, handle: int = 0, reads: Sequence[str] = ()) -> Session:
        """Return a session of one of the speakers on one of the handles."""
        store, reads = self.stores[handle], tuple(reads)
        if speaker.rank == SIGNED:
            return store.user_session(scope=scope, principal="user:ann", signer=self.key, reads=reads)
        origin = speaker.origin if speaker.rank == EXTERNAL else None
        return store.session(scope=scope, actor=speaker.actor, origin=origin, reads=reads)

    def ann(self, scope: str, handle: int = 0) -> UserSession:
        """Return the session in which the user signs."""
        return self.stores[handle].user_session(scope=scope, principal="user:ann", signer=self.key)

    def fit(self, scope: str, speaker: Speaker) -> Speaker:
        """Return the speaker, unsigned where nobody may sign."""
        return SPEAKERS[-2] if speaker.rank == SIGNED and scope == SCOPES[2] else speaker

    def id_at(self, number: int) -> str:
        """Return one of the ids so far, the newest for 0; numbers wrap around."""
        return self.ids[-1 - number % len(self.ids)] if self.ids else "0" * 32

    def disturb(self, how: str) -> None:
        """Close and open the first handle, rebuild it, open it without its snapshots, or stop a copy of the store."""
        if how == "rebuild":
            self.same("rebuild", self.stores[0].rebuild(embed=False).ok, True)
            return
        if how == "stop":
            self._stop_a_copy()
            return
        self.stores[0].close()
        if how == "lose":
            shutil.rmtree(self.path / "projections")
        self.stores[0] = self.open()

    def _stop_a_copy(self) -> None:
        if self.stopped is None:
            path = self.path.with_name("stopped")
            shutil.copytree(self.path, path)
            answers = {scope: self.model.answers((scope,), self.now, FOREVER) for scope in SCOPES}
            self.stopped = (path, self.now, answers)

    # --- comparing ----------------------------------------------------------------------------------------------------

    def check(self, scopes: Sequence[str], valid_hours: int, back: int, start: int) -> None:
        """Compare the two handles, a replay and the model: at the present, and at a point of the past."""
        for store in self.stores:
            store.digests()  # both follow the log before they are asked where they stand
        head = self.stores[1].head
        if not self.positions or self.positions[-1].seq != head.seq:
            self.positions.append(Position(head.seq, head.recorded_at))
        live = self.stores[0].digests()
        self.same("digests of two handles", self.stores[1].digests(), live)
        self.same("digests of a replay", self.stores[0].replay(to="HEAD").digests(), live)
        self.digests[head.seq] = live
        around = self.id_at(start)
        now, present = self.now, None
        for handle in (0, 1):
            session = self.session(scopes[0], READER, handle, scopes[1:])
            self._compare(f"handle {handle} now", session, scopes, around, (present, present), (now, FOREVER))
        position = self.positions[-1 - back % len(self.positions)]
        self.check_past(position, scopes, valid_hours, around)

    def check_past(self, position: Position, scopes: Sequence[str], valid_hours: int, around: str) -> None:
        """Compare known_at, by position and by time, with a replay and the model, at one position."""
        live = self.session(scopes[0], READER, 0, scopes[1:])
        replayed = self.stores[0].replay(to=position.seq)
        if position.seq in self.digests:
            self.same(f"digests at {position.seq}", replayed.digests(), self.digests[position.seq])
        past = replayed.session(scope=scopes[0], reads=scopes[1:])
        then = to_datetime(position.recorded)
        for valid in (None, self.instant(valid_hours)):
            at = (position.recorded if valid is None else micros(valid), position.seq)
            for name, session, known in (("live", live, position.seq), ("by time", live, then), ("replay", past, None)):
                self._compare(f"{name} at {position.seq}", session, scopes, around, (valid, known), at)

    def check_everywhere(self) -> None:
        """Compare every position of the history, and the digests that a store had when it stood there."""
        for number, position in enumerate(self.positions):
            scopes = [SCOPES[number % 3], SCOPES[(number + 1) % 3]][: 1 + number % 2]
            self.check_past(position, scopes, number % 12 - 6, self.id_at(number))
        if self.stopped is not None:
            self._check_stopped(*self.stopped)

    def _check_stopped(self, path: Path, now: int, answers: dict[str, dict[str, object]]) -> None:
        # What it says is what the live store said then; that the live store still says so of then, all positions tell.
        with muniment.open(path, model="none", clock=lambda: now) as store:
            for scope, expected in answers.items():
                for name, answer in self._answers(store.session(scope=scope, actor="user"), None, None).items():
                    self.same(f"stopped, {name}", answer, expected[name])

    def _compare(
        self,
        where: str,
        session: Session | PastSession,
        scopes: Sequence[str],
        around: str,
        asked: tuple[datetime | None, datetime | int | None],
        at: tuple[int, int],
    ) -> None:
        valid, known = asked
        expected = self.model.answers(scopes, *at)
        for name, answer in self._answers(session, valid, known).items():
            self.same(f"{where}, {name}", answer, expected[name])
        outcome, links = attempt(lambda: session.links(around, depth=2, valid_at=valid, known_at=known))
        if links is None:
            said = self.model.said.get(around)
            self.same(f"{where}, {around}", outcome, "not_found")
            self.same(f"{where}, {around}", said is None or said.scope not in scopes or said.seq > at[1], True)
            return
        edges = sorted([link.start, link.end, link.type] for link in links)
        self.same(f"{where}, links", edges, self.model.links_around(around, scopes, *at, 2))

    def _answers(
        self, session: Session | PastSession, valid: datetime | None, known: datetime | int | None
    ) -> dict[str, object]:
        found: dict[str, object] = {
            "beliefs": [
                (b.seq, b.id, [d.id for d in b.disputes], [c.id for c in b.conflicts])
                for b in session.beliefs(valid_at=valid, known_at=known)
            ],
            "offered": sorted(h.id for h in session.recall(ASKED, k=1000, valid_at=valid, known_at=known)),
        }
        if valid is None:
            found["list"] = [(r.seq, r.id, r.status) for r in session.list(limit=1000, known_at=known)]
        return found

    def next_instant(self) -> int:
        """Return the record time that the next batch will have."""
        return max(self.clock.now, self.stores[1].head.recorded_at + 1)

    def same(self, what: str, actual: object, expected: object) -> None:
        """Raise Mismatch unless the store and the model agree."""
        if actual != expected:
            raise Mismatch(f"{what}: the store says {actual}, the model {expected}")


def attempt(call: Callable[[], T]) -> tuple[str, T | None]:
    """Return ("ok", what was returned), or (the error's code, None)."""
    try:
        return "ok", call()
    except muniment.MunimentError as error:
        return error.code, None


def micros(moment: datetime) -> int:
    """Return an instant in microseconds, as the model counts."""
    return (moment - to_datetime(0)) // timedelta(microseconds=1)
