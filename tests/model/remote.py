"""A handle on the store in a process of its own, called as if it were here."""

from __future__ import annotations

import atexit
import functools
import multiprocessing
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import muniment
from muniment import KeyFile, Operator, Policy, Session, Store, UserSession
from tests.worlds import Clock

from .model import REVIEWED

_SPAWN: Final = multiprocessing.get_context("spawn")


class _Asked(NamedTuple):
    """One call: at which wall clock, on what (`store`, or how to make a handle of it), and what with."""

    now: int
    handle: tuple[str, dict[str, Any]] | None
    verb: str
    args: tuple[Any, ...]
    fields: dict[str, Any]


class Worker:
    """The process; it opens one store after another."""

    def __init__(self) -> None:
        self._here, there = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(there,), daemon=True)
        self._process.start()
        there.close()
        atexit.register(self._here.close)

    def ask(self, asked: _Asked) -> Any:
        """Return what the call returned there; raises what it raised."""
        self._here.send(asked)
        returned, error = cast("tuple[Any, Exception | None]", self._here.recv())
        if error is not None:
            raise error
        return returned


class RemoteStore:
    """Stands for a store that the worker has open; its wall clock is the one here."""

    def __init__(self, worker: Worker, path: Path, clock: Callable[[], int]) -> None:
        self._worker, self._clock = worker, clock
        self.call(None, "open", (path,), {})

    @property
    def head(self) -> object:
        """See `Store.head`."""
        return self.call(None, "head", (), {})

    def digests(self) -> object:
        """See `Store.digests`."""
        return self.call(None, "digests", (), {})

    def close(self) -> None:
        """See `Store.close`."""
        self.call(None, "close", (), {})

    def session(self, **fields: object) -> Session:
        """See `Store.session`."""
        return cast("Session", RemoteHandle(self, ("session", fields)))

    def user_session(self, *, signer: KeyFile, **fields: object) -> UserSession:
        """See `Store.user_session`; the key travels as its path."""
        return cast("UserSession", RemoteHandle(self, ("user_session", {**fields, "signer": signer.path})))

    def operator(self) -> Operator:
        """See `Store.operator`."""
        return cast("Operator", RemoteHandle(self, ("operator", {})))

    def call(
        self, handle: tuple[str, dict[str, Any]] | None, verb: str, args: tuple[Any, ...], fields: Mapping[str, Any]
    ) -> Any:
        """Carry one call over."""
        return self._worker.ask(_Asked(self._clock(), handle, verb, args, dict(fields)))


class RemoteHandle:
    """Stands for a session, or for the operator."""

    def __init__(self, store: RemoteStore, handle: tuple[str, dict[str, Any]]) -> None:
        self._store, self._handle = store, handle

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        return lambda *args, **fields: self._store.call(self._handle, verb, args, fields)


@functools.cache
def worker() -> Worker:
    """Return the worker of this process: it serves every history in turn."""
    return Worker()


def opened(worker: Worker, path: Path, clock: Callable[[], int]) -> Store:
    """Open a store in the worker."""
    return cast("Store", RemoteStore(worker, path, clock))


# --- the other side ---------------------------------------------------------------------------------------------------


def _serve(connection: Connection) -> None:
    stores: list[Store] = []
    clock = Clock()
    while True:
        try:
            asked = cast("_Asked", connection.recv())
        except EOFError:
            return
        clock.now = asked.now
        try:
            connection.send((_answer(stores, asked, clock), None))
        except Exception as error:
            connection.send((None, error))


def _answer(stores: list[Store], asked: _Asked, clock: Clock) -> object:
    if asked.verb == "open":
        stores[:] = [muniment.open(*asked.args, model="none", clock=clock, policy=Policy(review=REVIEWED))]
        return None
    if asked.handle is None:
        found = getattr(stores[0], asked.verb)
        return found(*asked.args) if callable(found) else found
    return getattr(_handle(stores[0], *asked.handle), asked.verb)(*asked.args, **asked.fields)


def _handle(store: Store, verb: str, fields: Mapping[str, Any]) -> object:
    fields = dict(fields)
    if "signer" in fields:
        fields["signer"] = KeyFile(fields["signer"])
    return getattr(store, verb)(**fields)
