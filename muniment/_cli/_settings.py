"""What every command knows: which store, which scope, who speaks, and how to answer."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import click

from muniment._reach import Reads, Subtree
from muniment._reading import Reading
from muniment._session import Session
from muniment._store import Store, open_store
from muniment._user import UserSession
from muniment.events import BadArgument, SignatureInvalid, StoreMissing
from muniment.gate import KeyFile

from ._output import printable

Decorated = TypeVar("Decorated", bound=Callable[..., object])
CLI_ACTOR: Final = "agent:cli"


class Settings:
    """The options that are taken before and after the verb; the later one counts."""

    def __init__(self) -> None:
        self.store: str | None = None
        self.scope: str | None = None
        self.json = False
        self.model: str | None = None
        self.policy: str | None = None
        self.anchor: str | None = None
        self.log_key: str | None = None
        self.reads: tuple[str, ...] = ()
        self.reads_below: tuple[str, ...] = ()
        self.past_to: str | None = None
        self.without: tuple[str, ...] = ()

    def path(self) -> Path:
        """Return the store's directory."""
        if not self.store:
            raise click.UsageError("no store: give --store PATH, or set MUNIMENT_STORE")
        return Path(self.store)

    def need_scope(self) -> str:
        """Return the scope; there is no default, so that nothing is written where nobody meant it."""
        if not self.scope:
            raise click.UsageError("no scope: give --scope S, or set MUNIMENT_SCOPE")
        return self.scope

    def read_scopes(self) -> Reads:
        """Return the scopes to read beside the session's own."""
        return (*self.reads, *(Subtree(scope) for scope in self.reads_below))

    @contextmanager
    def open(
        self, *, read_only: bool = False, create: bool = False, anchored: bool = True
    ) -> Generator[Store, None, None]:
        """Open the store for one command; `anchored=False` looks at one that the anchor would refuse."""
        if self.past_to is not None and not read_only:
            raise click.UsageError("a past cannot be written to")
        try:
            store = open_store(
                self.path(), create=create, read_only=read_only, policy=self.policy, model=self.model,
                anchor=self.anchor if anchored else None,
                log_key=None if self.log_key is None else open_key(self.log_key),
            )  # fmt: skip
        except StoreMissing as error:
            if self.store == os.environ.get("MUNIMENT_STORE"):
                raise StoreMissing(hint=f"MUNIMENT_STORE says so; {error.hint}", **error.facts) from error
            raise
        with store:
            yield store

    @contextmanager
    def reading(self, actor: str = CLI_ACTOR) -> Generator[Reading, None, None]:
        """Open the store so that nothing of it can change, and read one scope, now or in the past of `replay --to`."""
        scope = self.need_scope()
        with self.open(read_only=True) as store:
            if self.past_to is None:
                yield store.session(scope=scope, actor=actor, reads=self.read_scopes())
            else:
                past = store.replay(to=self.past_to, without=self.without)
                yield past.session(scope=scope, actor=actor, reads=self.read_scopes())

    @contextmanager
    def speaking(
        self, key: str | None, principal: str | None, origin: str | None = None, *, read_only: bool = False
    ) -> Generator[tuple[Store, Session], None, None]:
        """Open the store for writing as `agent:cli`, or as a user by their key; `origin` lowers that."""
        scope = self.need_scope()
        signer = signer_for(key, principal)
        with self.open(read_only=read_only) as store:
            if signer is None or principal is None:
                session = store.session(scope=scope, actor=CLI_ACTOR, reads=self.read_scopes())
            else:
                session = store.user_session(scope=scope, principal=principal, signer=signer, reads=self.read_scopes())
            yield store, session if origin is None else session.via(origin)

    @contextmanager
    def as_user(self, key: str | None, principal: str | None) -> Generator[tuple[Store, UserSession], None, None]:
        """Open the store for what only a person may do, by signature."""
        if key is None and principal is None:
            raise SignatureInvalid(detail="only a user's signature does this", hint="add --key FILE --as user:NAME")
        with self.speaking(key, principal) as (store, session):
            if not isinstance(session, UserSession):
                raise AssertionError("a key gave no user's session")
            yield store, session


def signer_for(key: str | None, principal: str | None) -> KeyFile | None:
    """Return the key that speaks for the principal; None when neither is named."""
    if key is None and principal is None:
        return None
    if key is None:
        # Whoever can type `--as user` can be anybody: here only a signature makes a user.
        raise SignatureInvalid(detail=f"`{principal}` speaks here only by signature", hint="add --key FILE")
    if principal is None:
        raise click.UsageError("--key needs --as user:NAME: whom the key speaks for")
    return open_key(key)


def open_key(path: str) -> KeyFile:
    """Open a key file, asking on a terminal for the passphrase that it may need."""
    try:
        return KeyFile(path)
    except BadArgument as error:
        if error.facts.get("argument") != "passphrase" or not sys.stdin.isatty():
            raise
    return KeyFile(path, passphrase=click.prompt("Passphrase", hide_input=True, err=True))


def full_id(reading: Reading, prefix: str) -> str:
    """Return the whole id of a memory that the session sees."""
    return reading.get(prefix).id


# --- options ----------------------------------------------------------------------------------------------------------


def _keep(context: click.Context, param: click.Parameter, value: object) -> object:
    settings = context.ensure_object(Settings)
    if param.name and value not in (None, False, ()):
        setattr(settings, param.name, value)
    return value


def common(command: Decorated) -> Decorated:
    """Give a command the options that are taken before and after the verb."""
    for option in (
        click.option(
            "--log-key", metavar="FILE", expose_value=False, callback=_keep,
            help="The key that signs checkpoints [MUNIMENT_LOG_KEY].",
        ),
        click.option(
            "--anchor", metavar="FILE", expose_value=False, callback=_keep,
            help="The newest checkpoint, kept elsewhere; a log that does not extend it is refused [MUNIMENT_ANCHOR].",
        ),
        click.option("--policy", metavar="FILE", expose_value=False, callback=_keep, help="The host's policy (TOML)."),
        click.option(
            "--model", metavar="PATH", expose_value=False, callback=_keep, help="Embedding model; `none`: words only."
        ),
        click.option("--json", is_flag=True, expose_value=False, callback=_keep, help="Answer in JSON."),
        click.option("--scope", metavar="S", expose_value=False, callback=_keep, help="The scope [MUNIMENT_SCOPE]."),
        click.option("--store", metavar="PATH", expose_value=False, callback=_keep, help="The store [MUNIMENT_STORE]."),
    ):  # fmt: skip
        command = option(command)
    return command


def from_environment(settings: Settings) -> None:
    """Fill in what the environment says where no option did."""
    environment = os.environ
    settings.store = settings.store or environment.get("MUNIMENT_STORE")
    settings.scope = settings.scope or environment.get("MUNIMENT_SCOPE")
    settings.model = settings.model or environment.get("MUNIMENT_MODEL")
    settings.policy = settings.policy or environment.get("MUNIMENT_POLICY")
    settings.anchor = settings.anchor or environment.get("MUNIMENT_ANCHOR")
    settings.log_key = settings.log_key or environment.get("MUNIMENT_LOG_KEY")


def scoped(command: Decorated) -> Decorated:
    """Give a command the common options and those that add scopes to read."""
    for option in (
        click.option(
            "--reads-below", metavar="S", multiple=True, expose_value=False, callback=_keep,
            help="Read this scope too, and all below it.",
        ),
        click.option(
            "--reads", metavar="S", multiple=True, expose_value=False, callback=_keep,
            help="Read exactly this scope too.",
        ),
    ):  # fmt: skip
        command = option(command)
    return common(command)


def signed(command: Decorated) -> Decorated:
    """Give a command `--key` and `--as`."""
    command = click.option("--as", "principal", metavar="user:NAME", help="Whom the key speaks for.")(command)
    return click.option("--key", metavar="FILE", help="Speak as a user, by this key.")(command)


def repeatable(command: Decorated) -> Decorated:
    """Give a command `--command-id`."""
    help_ = "Makes a repeat of this command give the first receipt."
    return click.option("--command-id", metavar="ID", help=help_)(command)


def memory_id(command: Decorated) -> Decorated:
    """Give a command the id of one memory; where a key is typed instead, the error says how to come by the id."""
    return click.argument("id", nargs=-1, required=True, metavar="ID", callback=_one_id)(command)


def _one_id(context: click.Context, param: click.Parameter, words: tuple[str, ...]) -> str:  # noqa: ARG001  # click's
    if len(words) == 1:
        return words[0]
    hint = ""
    if len(words) == 2:
        asked = printable(shlex.join(("muniment", "beliefs", *words)))
        hint = f"; for a key, `{asked}` prints the id of what holds"
    raise click.UsageError(f"expected one ID, got {len(words)} words{hint}", context)


def points(command: Decorated) -> Decorated:
    """Give a command both times."""
    command = click.option("--known-at", metavar="T", help="As known then: a time, a sequence number, HEAD~n.")(command)
    return click.option("--valid-at", metavar="T", help="As it held then.")(command)
