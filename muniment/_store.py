"""A store: opened by host code, which makes the handles of everybody who may speak in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Unpack, cast

from muniment.events import (
    BadArgument,
    BadValue,
    Head,
    NotFound,
    StoreMissing,
    check_path,
    check_text,
    create_store,
    find_store,
    parse_scope,
    wall_clock,
)
from muniment.events._log import SEGMENT_BYTES
from muniment.gate import (
    Handle,
    Policy,
    Signed,
    Signer,
    check_actor,
    check_flag,
    parse_signed,
    rank_of,
)
from muniment.replay import Progress

from ._answers import Decision, RebuildReport, Receipt, Verification
from ._auditing import Audit, audit_decision
from ._closing import closing
from ._engine import Engine
from ._explaining import DecisionExplanation, MemoryExplanation, explain_decision, explain_memory
from ._exporting import export_scope
from ._finding import find_id
from ._folding import Folded
from ._import_run import ImportReport
from ._importing import ImportOptions, import_file
from ._keys import Enrolment, enroll_key
from ._opening import options_of
from ._operator import Operator
from ._points import KnownAt, Point
from ._reach import Reads, check_reads
from ._rebuilding import Asked, rebuilt
from ._receipts import prove
from ._replayed import PastStore
from ._replaying import replayed
from ._session import Session
from ._sql import Table, run_sql
from ._stats import stats_of
from ._submit import Submitter, replace_key
from ._user import UserSession, check_principal, check_user, user_handle
from ._verifying import verify_store
from ._version import VERSION
from ._witness import Checkpoint

UNNAMED: Final = "agent:unnamed"
"""Who speaks through a handle that names nobody."""


def open_store(
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
    segment_bytes: int = SEGMENT_BYTES,
    clock: Callable[[], int] = wall_clock,
) -> Store:
    """
    Open the store in a directory, or create one.

    `model` is a path to a sentence-embedding ONNX file, or a folder with one, its tokenizer and settings beside it
    (docs/recall.md), `"none"` for words only, or None for the packaged one. `policy` is a Policy or a TOML file.
    `secrets` is `refuse` or `mask`. `clock` gives microseconds since the epoch, and is for tests and simulations; so is
    `segment_bytes`.

    `anchor` is a file elsewhere that holds the newest checkpoint: made when it is missing, advanced at each checkpoint,
    and a log that does not extend it is refused. `log_key` signs checkpoints: a KeyFile, its path, or any Signer.

    `graph` is for a process that goes on asking: in a scope of 50,000 memories and more, an hnswlib graph of their
    vectors is built beside, which takes minutes and about as much memory again as the vectors, and is not saved. Then
    the nearest vectors are found sooner; a few in a hundred are others than a replay of the same moment finds.

    Raises:
        BadArgument: one of these is not what its name says; nothing was made. So where the clock gives no instant.
        StoreMissing: there is none, and `create` was not asked for. StoreNewer: a newer program wrote it.
        LogCorrupt: the log is damaged; `read_only=True` still reads up to the damage.
        AnchorMismatch: the log was cut, put back or rewritten since the checkpoint in the anchor.
    """
    options = options_of(
        read_only=read_only, policy=policy, model=model, secrets=secrets, exempt_secrets=exempt_secrets, anchor=anchor,
        log_key=log_key, graph=graph, segment_bytes=segment_bytes, clock=clock,
    )  # fmt: skip
    check_flag(create, "create")
    # Whoever changes the working directory afterwards still has the same store.
    where = check_path(path, "path").absolute()
    try:
        files, created = find_store(where), False
    except StoreMissing:
        if not create:
            raise
        files, created = create_store(where, options.disk, options.clock()), True
    return Store(Engine(files, options, VERSION), created=created)


class Store:
    """An open store. A context manager; closing it saves the projections."""

    def __init__(self, engine: Engine, *, created: bool) -> None:
        self._engine, self._created = engine, created

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with closing(error):
            self._engine.close()

    def close(self) -> None:
        """Save the projections and release the files, these also where there is no room to save: that is DiskFull."""
        with closing():
            self._engine.close()

    @property
    def path(self) -> Path:
        """The store's directory."""
        return self._engine.files.path

    @property
    def id(self) -> str:
        """The store's id."""
        return self._engine.files.store_id.hex()

    @property
    def folding(self) -> Folded | None:
        """
        How far the log is folded beside, or None when all of it is: then nothing waits.

        A long log without a snapshot that fits is folded so after opening. Sessions read memories as they are
        meanwhile; what writes, decides or asks of the past waits.
        """
        return self._engine.folded

    @property
    def warning(self) -> str | None:
        """What the file system under the store cannot promise, or None."""
        return self._engine.files.warning

    @property
    def head(self) -> Head:
        """The last event that this process has applied."""
        return self._engine.head

    # --- handles ------------------------------------------------------------------------------------------------------

    def session(self, *, scope: str, actor: str | None = None, origin: str | None = None, reads: Reads = ()) -> Session:
        """
        Return a session for one speaker. `origin="user"` is for the host's transcripts of the user's own words.

        Whoever is not named is `agent:unnamed`, or `user` where the origin says so: leaving a name out gives no
        authority. `actor="user"` alone, or `"user:NAME"`, speaks as the user too, unsigned.

        Raises:
            ScopeMalformed, BadArgument: scope, actor or origin cannot be used. SecretFound: one holds a credential.
        """
        checked = parse_scope(scope)
        if actor is None:
            actor = "user" if origin == "user" else UNNAMED
        check_actor(actor)
        if origin is not None:
            check_text(origin, what="origin")
        if origin is not None and origin.startswith("user") and origin != "user":
            raise BadArgument(argument="origin", detail="a named user speaks through `user_session`")
        for name, what in ((checked, "scope"), (actor, "actor"), (origin or actor, "origin")):
            self._engine.preparer.name(name, what)
        said_by = origin or actor
        if said_by == "user" or (origin is None and actor.startswith("user:")):
            principal = actor if actor.startswith("user:") else None
            return UserSession(self._engine, user_handle(checked, principal, signed=False), check_reads(reads), None)
        handle = Handle(scope=checked, reads=(), actor=actor, origin=said_by, rank=rank_of(said_by))
        return Session(self._engine, handle, check_reads(reads))

    def user_session(
        self, *, scope: str, principal: str, signer: Signer | None = None, reads: Reads = ()
    ) -> UserSession:
        """
        Return a session in which a person speaks; with a signer that is enrolled for the scope, by signature.

        Raises:
            ScopeDenied: the signer's key is not enrolled for the principal in this scope.
        """
        checked = parse_scope(scope)
        check_user(principal)
        if signer is not None:
            self._engine.refresh()
            check_principal(self._engine, principal, checked, signer)
        handle = user_handle(checked, principal, signed=signer is not None)
        return UserSession(self._engine, handle, check_reads(reads), signer)

    def operator(self) -> Operator:
        """Return the operator's handle: every scope to read, quarantine and erase in, and nothing to assert."""
        return Operator(self._engine)

    # --- principals ---------------------------------------------------------------------------------------------------

    def enroll(
        self, principal: str, public_key: bytes, *, scopes: Sequence[str], recovery: bool = False,
        command_id: str | None = None,
    ) -> Receipt:  # fmt: skip
        """
        Let a key speak for a principal in some scopes and those below. Only the handle that created the store may.

        A `recovery` key, to be kept away from every machine, signs nothing but the replacement of a lost one.

        Raises:
            EnrolDenied: this handle opened an existing store, and `command_id` names nothing that was done before.
            CommandConflict: the command id was used for another key, other scopes, or another purpose.
        """
        return self.enroll_by(
            principal, public_key, scopes=scopes, by="creator", recovery=recovery, command_id=command_id
        )

    def enroll_by(
        self, principal: str, public_key: bytes, *, scopes: Sequence[str], by: str, recovery: bool = False,
        command_id: str | None = None,
    ) -> Receipt:  # fmt: skip
        """Enroll on behalf of a person at a terminal; for `muniment enroll`, which has asked that person."""
        check_user(principal)
        wanted = Enrolment(principal, public_key, scopes, by, recovery, command_id)
        return enroll_key(self._engine, wanted, created=self._created)

    def recover(
        self,
        principal: str,
        *,
        lost: bytes,
        public_key: bytes,
        signer: Signer,
        scopes: Sequence[str] | None = None,
        command_id: str | None = None,
    ) -> Receipt:
        """
        Put a new key in the place of one that was lost or stolen, signed by the principal's recovery key.

        Everything that was confirmed before is void: whoever had the lost key may have signed it.

        Raises:
            SignatureInvalid: the signer is no recovery key of this principal, or the new key would gain scopes.
            NotFound: the lost key does not speak for the principal.
        """
        return replace_key(
            self._engine, principal, signer, public_key, scopes=scopes, replaces=lost, command_id=command_id
        )

    def submit(self, signed: Signed | str) -> Receipt:
        """Take in a statement that a user signed elsewhere; see `UserSession.sign_request` and `muniment confirm`."""
        if not isinstance(cast("object", signed), (str, Signed)):
            raise BadArgument(argument="signed", detail="expected the signed line, or what `sign_request` gave")
        if isinstance(signed, str):
            try:
                signed = parse_signed(signed.strip())
            except BadValue as error:
                raise BadArgument(argument="signed", detail=str(error.facts["detail"])) from error
        return Submitter(self._engine).submit(signed)

    # --- transcripts --------------------------------------------------------------------------------------------------

    def import_file(self, path: str | Path, *, scope: str, **options: Unpack[ImportOptions]) -> ImportReport:
        """Remember every turn of a transcript file, and return what became of each; see `muniment.import_file`."""
        return import_file(self, path, scope=scope, **options)

    # --- time travel --------------------------------------------------------------------------------------------------

    def replay(self, *, to: KnownAt, without: Sequence[str] = ()) -> PastStore:
        """
        Return the store as it was: at an instant, a sequence number, a decision's id, or `HEAD~n` events ago.

        `without` leaves out what it names: `origin=web:*`, `actor=agent:x`, `id=...`, `seq=10..20`, `source=...`.

        Raises:
            BadTime, BadArgument, NotFound: `to` or `without` names nothing of this log.
        """
        return replayed(self._engine, to, without)

    def sql(self, query: str, *, to: KnownAt | None = None) -> Table:
        """
        Return (columns, rows) of one SELECT over every scope, now or as it was; see `Session.sql`.

        It is the operator's view: what an agent may ask goes through its session.
        """
        if to is not None:
            return self.replay(to=to).sql(query)
        engine = self._engine
        return run_sql(engine, engine.mutex, query, lambda: (Point(engine.now(), engine.head.seq), None))

    # --- forensics ----------------------------------------------------------------------------------------------------

    def explain(self, id: str) -> MemoryExplanation | DecisionExplanation:  # noqa: A002
        """
        Return a memory's life, or a decision asked again on the state just before it and now.

        Any scope's, as for the operator: it is for whoever investigates, and never for an agent.

        Raises:
            NotFound: neither a memory nor a decision has that id. BadArgument: several begin so.
        """
        with self._engine.mutex:
            self._engine.refresh()
            sort, full = find_id(self._engine.state, id, ("memory", "decision"), None)
            register, identity = self._engine.state.register, bytes.fromhex(full)
            if sort == "memory":
                return explain_memory(self._engine, register.memories[identity])
            return explain_decision(self._engine, register.decisions[identity], lambda: self.replay(to=full).source)

    def audit(self, decision: str | Decision) -> Audit:
        """
        Return everything that bore on a recorded decision in one artefact, and what of it could not be shown.

        Raises:
            NotFound: no such decision; a dry run is none. BadArgument: several ids begin so.
        """
        wanted = decision.id if isinstance(decision, Decision) else decision
        if wanted is None:
            raise NotFound(id="a dry run")
        with self._engine.mutex:
            self._engine.refresh()
            full = find_id(self._engine.state, wanted, ("decision",), None)[1]
            record = self._engine.state.register.decisions[bytes.fromhex(full)]
            explained = explain_decision(self._engine, record, lambda: self.replay(to=full).source)
            return audit_decision(self._engine, record, explained)

    def export(self, scope: str, file: IO[str]) -> int:
        """
        Write the memories of a scope that were not erased as JSON lines, a header first; return how many.

        In clear: whoever reads the file reads the memories, and a later forget does not reach it.

        Raises:
            ScopeUnknown: the scope was never used.
        """
        with self._engine.mutex:
            self._engine.refresh()
            return export_scope(self._engine, scope, file)

    # --- maintenance --------------------------------------------------------------------------------------------------

    def verify(self, anchor: str | Path | None = None, *, key: str | None = None) -> Verification:
        """
        Check every byte of the log, every seal that has a key, and whether the log extends an anchor. Changes nothing.

        `anchor` is an anchor file or a checkpoint's note, by default the one that the store was opened with; `key` is
        the log's verifier key, where the file does not hold it.
        """
        return verify_store(self._engine, None if anchor is None else check_path(anchor, "anchor").expanduser(), key)

    def checkpoint(self) -> Checkpoint:
        """Write a checkpoint of the head into the store, advance the anchor, and return it."""
        return self._engine.checkpoint()

    def prove(self, event: str) -> dict[str, object]:
        """
        Return a receipt that an event is in the log, as JSON-ready data: for somebody who has not got the log.

        Any event's id will do, or a unique prefix: a memory's, a decision's, a forget's. See `muniment.check_proof`.
        """
        return prove(self._engine, event)

    @property
    def origin(self) -> str:
        """The name under which the log's checkpoints are known: `muniment/` and the store's id."""
        return self._engine.witness.origin

    def rebuild(
        self,
        projection: str | None = None,
        *,
        re_embed: bool = False,
        check: bool = False,
        embed: bool = True,
        progress: Progress | None = None,
    ) -> RebuildReport:
        """
        Build the projections anew from the log, beside those in use, compare the two, and put the new in their place.

        Others read and write meanwhile, in this process and in others. What was interrupted is resumed by the next
        call. `projection` is `recall`, `beliefs` or `tombstones`, by default all. Vectors are kept, and missing ones
        made unless `embed=False`; `re_embed` makes them all anew. `check` compares only, and writes nothing.
        `progress` is called with a step, how much of it is done, and of how much.

        Raises:
            RebuildRunning: another one has not ended. BadArgument: there is no such projection.
        """
        return rebuilt(self._engine, Asked(projection, re_embed, check, embed, progress))

    def embed(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Make every missing vector now, and return how many were made."""
        with self._engine.mutex:
            self._engine.refresh()
        return self._engine.dense.embed_all(progress)

    def digests(self) -> dict[str, str]:
        """Return a digest of each projection; equal for live and rebuilt ones of the same log."""
        with self._engine.mutex:
            self._engine.refresh()
            return self._engine.state.digests()

    def stats(self, *, wait: bool = True) -> dict[str, object]:
        """
        Return counts and sizes. Erased memories are counted apart.

        With `wait=False` what is not known while the log is folded beside is None, and `folding` says how far that is.
        """
        return stats_of(self._engine, wait=wait)
