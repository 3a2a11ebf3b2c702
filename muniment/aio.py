"""
The same engine for asyncio: every method of a store and of its sessions, awaited.

Calls run in threads. Cancelling an `await` abandons the answer and never splits an append: what was begun is finished.

    async with muniment.aio.open("memory/", create=True) as store:
        mem = store.session(scope="acme/apollo", actor="agent:planner")
        await mem.remember("The launch is on 12 March.")
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Awaitable, Callable, Generator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Concatenate, Generic, ParamSpec, TypeVar

from muniment.events import Head
from muniment.gate import Policy, Signer

from ._closing import closing
from ._folding import Folded
from ._operator import Operator
from ._points import KnownAt
from ._reach import Reads
from ._replayed import PastSession, PastStore
from ._session import Session
from ._store import Store, open_store
from ._user import UserSession

P = ParamSpec("P")
R = TypeVar("R")
_Session = TypeVar("_Session", bound=Session)
Inner = TypeVar("Inner")
Inner_co = TypeVar("Inner_co", covariant=True)


class _Mirror(Generic[Inner_co]):
    """Something synchronous, and the threads in which it is asked."""

    def __init__(self, inner: Inner_co) -> None:
        self._inner = inner

    @property
    def sync(self) -> Inner_co:
        """The synchronous object behind this one; both may be used at once."""
        return self._inner


def _mirror(
    method: Callable[Concatenate[Inner, P], R],
) -> Callable[Concatenate[_Mirror[Inner], P], Awaitable[R]]:
    async def awaited(self: _Mirror[Inner], /, *args: P.args, **kwargs: P.kwargs) -> R:
        # With the caller's context, so that a span in the thread is a child of the caller's.
        context = contextvars.copy_context()
        call = functools.partial(method, self.sync, *args, **kwargs)
        work = asyncio.get_running_loop().run_in_executor(None, lambda: context.run(call))
        # Shielded: a cancelled caller must not leave half of an append behind, nor one that nobody waits to finish.
        return await asyncio.shield(work)

    functools.update_wrapper(awaited, method)
    return awaited


class _Speaking(_Mirror[_Session]):
    """What the sessions have that is not awaited."""

    @property
    def scope(self) -> str:
        """The scope that this session writes to and reads."""
        return self.sync.scope

    @property
    def actor(self) -> str:
        """Who speaks."""
        return self.sync.actor

    @property
    def origin(self) -> str:
        """Where what it says comes from."""
        return self.sync.origin

    def via(self, origin: str) -> AsyncSession:
        """Return the same session for something that reached it from elsewhere."""
        return AsyncSession(self.sync.via(origin))


class AsyncSession(_Speaking[Session]):
    """A session whose methods are awaited; see `Session`."""

    recall = _mirror(Session.recall)
    context = _mirror(Session.context)
    beliefs = _mirror(Session.beliefs)
    get = _mirror(Session.get)
    history = _mirror(Session.history)
    list = _mirror(Session.list)
    links = _mirror(Session.links)
    proposals = _mirror(Session.proposals)
    diff = _mirror(Session.diff)
    sql = _mirror(Session.sql)
    briefing = _mirror(Session.briefing)
    remember = _mirror(Session.remember)
    remember_many = _mirror(Session.remember_many)
    supersede = _mirror(Session.supersede)
    revise = _mirror(Session.revise)
    retire = _mirror(Session.retire)
    link = _mirror(Session.link)
    unlink = _mirror(Session.unlink)
    forget = _mirror(Session.forget)
    decide = _mirror(Session.decide)


class AsyncUserSession(_Speaking[UserSession]):
    """A user's session whose methods are awaited; see `UserSession`."""

    confirm = _mirror(UserSession.confirm)
    confirm_request = _mirror(UserSession.confirm_request)
    sign_request = _mirror(UserSession.sign_request)
    prohibit = _mirror(UserSession.prohibit)
    revoke = _mirror(UserSession.revoke)
    unprohibit = _mirror(UserSession.unprohibit)
    review = _mirror(UserSession.review)
    lift = _mirror(UserSession.lift)
    rotate = _mirror(UserSession.rotate)
    pending = _mirror(UserSession.pending)
    forget_value = _mirror(UserSession.forget_value)
    forget_scope = _mirror(UserSession.forget_scope)
    recall = _mirror(UserSession.recall)
    context = _mirror(UserSession.context)
    beliefs = _mirror(UserSession.beliefs)
    get = _mirror(UserSession.get)
    history = _mirror(UserSession.history)
    list = _mirror(UserSession.list)
    links = _mirror(UserSession.links)
    proposals = _mirror(UserSession.proposals)
    diff = _mirror(UserSession.diff)
    sql = _mirror(UserSession.sql)
    briefing = _mirror(UserSession.briefing)
    remember = _mirror(UserSession.remember)
    remember_many = _mirror(UserSession.remember_many)
    supersede = _mirror(UserSession.supersede)
    revise = _mirror(UserSession.revise)
    retire = _mirror(UserSession.retire)
    link = _mirror(UserSession.link)
    unlink = _mirror(UserSession.unlink)
    forget = _mirror(UserSession.forget)
    decide = _mirror(UserSession.decide)


class AsyncOperator(_Mirror[Operator]):
    """The operator's handle, awaited; see `Operator`."""

    quarantine = _mirror(Operator.quarantine)
    release = _mirror(Operator.release)
    ids_of_origin = _mirror(Operator.ids_of_origin)
    get = _mirror(Operator.get)
    trace = _mirror(Operator.trace)
    forget = _mirror(Operator.forget)
    forget_scope = _mirror(Operator.forget_scope)
    forget_value = _mirror(Operator.forget_value)
    full_id = _mirror(Operator.full_id)
    prohibitions = _mirror(Operator.prohibitions)
    accept_rollback = _mirror(Operator.accept_rollback)
    tombstones = _mirror(Operator.tombstones)
    requests = _mirror(Operator.requests)


class AsyncPastSession(_Mirror[PastSession]):
    """A session of the past, awaited; see `PastSession`."""

    recall = _mirror(PastSession.recall)
    context = _mirror(PastSession.context)
    beliefs = _mirror(PastSession.beliefs)
    get = _mirror(PastSession.get)
    history = _mirror(PastSession.history)
    list = _mirror(PastSession.list)
    links = _mirror(PastSession.links)
    proposals = _mirror(PastSession.proposals)
    diff = _mirror(PastSession.diff)
    sql = _mirror(PastSession.sql)
    briefing = _mirror(PastSession.briefing)
    decide = _mirror(PastSession.decide)

    @property
    def scope(self) -> str:
        """The scope that this session reads."""
        return self.sync.scope


class AsyncPastStore(_Mirror[PastStore]):
    """A store as it was, awaited; see `PastStore`."""

    @property
    def seq(self) -> int:
        """The last event that is part of this past."""
        return self.sync.seq

    digests = _mirror(PastStore.digests)
    sql = _mirror(PastStore.sql)

    def session(self, *, scope: str, actor: str = "agent:replay", reads: Reads = ()) -> AsyncPastSession:
        """Return a session that reads the scope as it was."""
        return AsyncPastSession(self.sync.session(scope=scope, actor=actor, reads=reads))


class AsyncStore(_Mirror[Store]):
    """A store whose methods are awaited; see `Store`."""

    enroll = _mirror(Store.enroll)
    recover = _mirror(Store.recover)
    submit = _mirror(Store.submit)
    audit = _mirror(Store.audit)
    verify = _mirror(Store.verify)
    checkpoint = _mirror(Store.checkpoint)
    prove = _mirror(Store.prove)
    rebuild = _mirror(Store.rebuild)
    embed = _mirror(Store.embed)
    digests = _mirror(Store.digests)
    sql = _mirror(Store.sql)
    stats = _mirror(Store.stats)
    close = _mirror(Store.close)
    explain = _mirror(Store.explain)
    export = _mirror(Store.export)
    import_file = _mirror(Store.import_file)

    @property
    def path(self) -> Path:
        """The store's directory."""
        return self.sync.path

    @property
    def id(self) -> str:
        """The store's id."""
        return self.sync.id

    @property
    def origin(self) -> str:
        """The name under which the log's checkpoints are known."""
        return self.sync.origin

    @property
    def warning(self) -> str | None:
        """What the file system under the store cannot promise, or None."""
        return self.sync.warning

    @property
    def head(self) -> Head:
        """The last event that this process has applied."""
        return self.sync.head

    @property
    def folding(self) -> Folded | None:
        """How far the log is folded beside, or None when all of it is; see `Store.folding`."""
        return self.sync.folding

    async def __aenter__(self) -> AsyncStore:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with closing(error):
            await self.close()

    def session(
        self, *, scope: str, actor: str | None = None, origin: str | None = None, reads: Reads = ()
    ) -> AsyncSession | AsyncUserSession:
        """Return a session for one speaker, the user's where the user speaks; see `Store.session`."""
        made = self.sync.session(scope=scope, actor=actor, origin=origin, reads=reads)
        return AsyncUserSession(made) if isinstance(made, UserSession) else AsyncSession(made)

    def user_session(
        self, *, scope: str, principal: str, signer: Signer | None = None, reads: Reads = ()
    ) -> AsyncUserSession:
        """Return a session in which a person speaks."""
        return AsyncUserSession(self.sync.user_session(scope=scope, principal=principal, signer=signer, reads=reads))

    def operator(self) -> AsyncOperator:
        """Return the operator's handle."""
        return AsyncOperator(self.sync.operator())

    async def replay(self, *, to: KnownAt, without: Sequence[str] = ()) -> AsyncPastStore:
        """Return the store as it was."""
        past = await asyncio.shield(
            asyncio.get_running_loop().run_in_executor(
                None, functools.partial(self.sync.replay, to=to, without=without)
            )
        )
        return AsyncPastStore(past)


class Opening:
    """A store that is being opened: `await` it, or enter it with `async with`, which closes it."""

    def __init__(self, work: Callable[[], Store]) -> None:
        self._work = work
        self._store: AsyncStore | None = None

    def __await__(self) -> Generator[object, None, AsyncStore]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncStore:
        self._store = await self._open()
        return self._store

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._store is not None:
            await self._store.__aexit__(kind, error, trace)

    async def _open(self) -> AsyncStore:
        return AsyncStore(await asyncio.get_running_loop().run_in_executor(None, self._work))


def open(  # noqa: A001  # the same name as `muniment.open`
    path: str | Path,
    *,
    create: bool = False,
    read_only: bool = False,
    policy: Policy | str | Path | None = None,
    model: str | Path | None = None,
    secrets: str = "refuse",
    exempt_secrets: Sequence[str] = (),
    anchor: str | Path | None = None,
    log_key: Signer | str | Path | None = None,
    graph: bool = False,
) -> Opening:
    """Open a store, with `await` or `async with`; see `muniment.open`."""
    work = functools.partial(
        open_store, path, create=create, read_only=read_only, policy=policy, model=model, secrets=secrets,
        exempt_secrets=exempt_secrets, anchor=anchor, log_key=log_key, graph=graph,
    )  # fmt: skip
    return Opening(work)


__all__ = [
    "AsyncOperator",
    "AsyncPastSession",
    "AsyncPastStore",
    "AsyncSession",
    "AsyncStore",
    "AsyncUserSession",
    "Opening",
    "open",
]
