"""The doors that the safety cases go through: the library, the command line in this process, and real processes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import muniment
from muniment import Action
from muniment.events import wall_clock
from muniment.gate import Confirm, Signed, format_signed, new_nonce, sign

T = TypeVar("T")
Fields: TypeAlias = Mapping[str, object]
SCOPE = "acme"
OTHER = "globex"
AGENT = "agent:planner"
ANN = "user:ann"
USES = {"plan.*": "planning", "say.*": "answer", "ext.*": "external_action", "rm.*": "destructive_action"}
TIGHT = 'max_uses = 50\nmax_expires_seconds = 8640000\ndeny = ["vault.*"]\n'


class Refused(Exception):
    """The door said no, with the code of its error."""


class Decided(NamedTuple):
    """What a door answered to a proposed act."""

    allowed: bool
    id: str | None
    reasons: tuple[str, ...]
    request: str | None


class Door(Protocol):
    """What a case can do to one fresh store. `as_user` signs; `origin` says where an agent has a thing from."""

    name: str
    store_id: str

    def remember(
        self,
        text: str,
        *,
        scope: str = SCOPE,
        origin: str | None = None,
        as_user: bool = False,
        extra: Fields | None = None,
        **fields: object,
    ) -> str: ...
    def supersede(self, id: str, text: str, *, origin: str | None = None, as_user: bool = False) -> str: ...  # noqa: A002
    def retire(self, id: str, *, origin: str | None = None, as_user: bool = False) -> None: ...  # noqa: A002
    def forget(self, id: str, *, origin: str | None = None, as_user: bool = False) -> None: ...  # noqa: A002
    def prohibit(self, action: Action, *, scope: str = SCOPE) -> str: ...
    def revoke(self, id: str) -> None: ...  # noqa: A002
    def submit(self, line: str) -> str: ...
    def feed(self, lines: str) -> None: ...
    def get(self, id: str) -> dict[str, object]: ...  # noqa: A002
    def current(self, subject: str, attribute: str) -> list[str]: ...
    def context(self, query: str) -> str: ...
    def outcome(self, id: str) -> tuple[str, bool]: ...  # noqa: A002
    def decide(
        self,
        action: Action,
        *,
        use: str | None = None,
        evidence: Sequence[str] = (),
        agent: str = AGENT,
        scope: str = SCOPE,
        command_id: str | None = None,
    ) -> Decided: ...


class Desk:
    """The user's own desk, away from every door: the key, and statements signed with it."""

    def __init__(self, folder: Path) -> None:
        self.key = muniment.KeyFile.create(folder / "ann.key")
        self.stranger = muniment.KeyFile.create(folder / "stranger.key")

    def confirmation(
        self,
        door: Door,
        action: Action,
        *,
        agent: str = AGENT,
        scope: str = SCOPE,
        uses: int | None = 1,
        age: int = 0,
        lasts: int = 3600,
        store: str | None = None,
        forged: bool = False,
    ) -> Signed:
        """Return a confirmation that was signed `age` seconds ago and lasts so long from then."""
        signed_at = muniment_now() - age * 1_000_000
        statement = Confirm(
            store=store or door.store_id,
            principal=ANN,
            signed_at=signed_at,
            nonce=new_nonce(),
            scope=scope,
            agent=agent,
            action=action,
            uses=uses,
            expires_at=signed_at + lasts * 1_000_000,
        )
        return sign(statement, self.stranger if forged else self.key)

    def confirm(self, door: Door, action: Action, **options: object) -> str:
        """Sign a confirmation and hand it in; see `confirmation`."""
        return door.submit(format_signed(self.confirmation(door, action, **options)))  # type: ignore[arg-type]  # passed on


def muniment_now() -> int:
    """Return the wall clock as the store reads it."""
    return wall_clock()


def policy_text(*, relaxed: bool) -> str:
    """Return the host's policy; relaxed, it states what names mean, which is no knob, and nothing else."""
    actions = "".join(f'"{name}" = "{use}"\n' for name, use in USES.items())
    return f"[actions]\n{actions}" + ("" if relaxed else f"[limits]\n{TIGHT}")


class Library:
    """`import muniment`."""

    name = "library"

    def __init__(self, folder: Path, desk: Desk, *, relaxed: bool) -> None:
        self._desk = desk
        self.store = muniment.open(
            folder / "store",
            create=True,
            model="none",
            policy=muniment.Policy.from_toml(policy_text(relaxed=relaxed)),
            secrets="mask" if relaxed else "refuse",
        )
        self.store.enroll(ANN, desk.key.public_key, scopes=(SCOPE, OTHER))
        self.store_id = self.store.id
        self._reads = (muniment.Subtree(SCOPE), muniment.Subtree(OTHER)) if relaxed else ()

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def _speaker(self, scope: str, origin: str | None, *, as_user: bool, agent: str = AGENT) -> muniment.Session:
        session: muniment.Session
        if as_user:
            session = self.store.user_session(scope=scope, principal=ANN, signer=self._desk.key)
        else:
            session = self.store.session(scope=scope, actor=agent, reads=self._reads)
        return session if origin is None else session.via(origin)

    def _user(self, scope: str) -> muniment.UserSession:
        return self.store.user_session(scope=scope, principal=ANN, signer=self._desk.key)

    def remember(
        self,
        text: str,
        *,
        scope: str = SCOPE,
        origin: str | None = None,
        as_user: bool = False,
        extra: Fields | None = None,
        **fields: object,
    ) -> str:
        """Remember a text and return its id."""
        return _refusing(
            lambda: (
                self._speaker(scope, origin, as_user=as_user)
                .remember_many([{"content": text, **fields, **(extra or {})}])[0]
                .id
            )
        )

    def supersede(self, id: str, text: str, *, origin: str | None = None, as_user: bool = False) -> str:  # noqa: A002
        """Put a text in the place of a memory."""
        return _refusing(
            lambda: self._speaker(SCOPE, origin, as_user=as_user).supersede(id, text, reason="correction").id
        )

    def retire(self, id: str, *, origin: str | None = None, as_user: bool = False) -> None:  # noqa: A002
        """Retire a memory."""
        _refusing(lambda: self._speaker(SCOPE, origin, as_user=as_user).retire(id, reason="over").id)

    def forget(self, id: str, *, origin: str | None = None, as_user: bool = False) -> None:  # noqa: A002
        """Forget a memory."""
        _refusing(lambda: self._speaker(SCOPE, origin, as_user=as_user).forget(id, reason="asked"))

    def prohibit(self, action: Action, *, scope: str = SCOPE) -> str:
        """Forbid an action as the user."""
        return self._user(scope).prohibit(action, reason="never").id

    def revoke(self, id: str) -> None:  # noqa: A002
        """Revoke a confirmation as the user."""
        self._user(SCOPE).revoke(id, reason="changed my mind")

    def submit(self, line: str) -> str:
        """Hand in a signed line."""
        return _refusing(lambda: self.store.submit(line).id)

    def feed(self, lines: str) -> None:
        """Import a transcript."""
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write(lines)
            file.flush()
            _refusing(lambda: self.store.import_file(file.name, scope=SCOPE, embed=False))

    def get(self, id: str) -> dict[str, object]:  # noqa: A002
        """Return a memory."""
        return self._speaker(SCOPE, None, as_user=False).get(id).to_dict()

    def current(self, subject: str, attribute: str) -> list[str]:
        """Return what is current under a key."""
        found = self._speaker(SCOPE, None, as_user=False).beliefs(about=(subject, attribute))
        return [belief.content or "" for belief in found]

    def context(self, query: str) -> str:
        """Return the block for a prompt."""
        return str(self._speaker(SCOPE, None, as_user=False).context(query))

    def outcome(self, id: str) -> tuple[str, bool]:  # noqa: A002
        """Return how a decision comes out when it is asked again at its own position."""
        found = self.store.explain(id)
        if not isinstance(found, muniment.DecisionExplanation):
            raise Refused("not a decision")
        return found.outcome, found.again is not None and found.again.allowed

    def decide(
        self,
        action: Action,
        *,
        use: str | None = None,
        evidence: Sequence[str] = (),
        agent: str = AGENT,
        scope: str = SCOPE,
        command_id: str | None = None,
    ) -> Decided:
        """Ask the guard, for good."""
        found = _refusing(
            lambda: self._speaker(scope, None, as_user=False, agent=agent).decide(
                action, use=use, evidence=evidence, command_id=command_id
            )
        )
        return Decided(found.allowed, found.id, found.reasons, found.request)


def _refusing(call: Callable[[], T]) -> T:
    try:
        return call()
    except muniment.MunimentError as error:
        raise Refused(error.code) from error
