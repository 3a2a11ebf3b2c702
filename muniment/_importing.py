"""Brings a transcript file into a store: streamed, one batch at a time, and as often as one likes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from muniment.events import (
    BadArgument,
    Draft,
    InvalidInput,
    Moment,
    Refused,
    ScopeClosed,
    parse_scope,
    to_datetime,
)
from muniment.gate import Batch, Existing, Handle, MemoryFields, MemoryRequest, rank_of

from ._answers import Answer
from ._engine import Engine
from ._importers import Skipped, Transcript, Turn, open_transcript
from ._user import user_handle

if TYPE_CHECKING:
    from ._store import Store

Progress = Callable[[str, int, int], None]
"""Called with `read` and bytes, then with `embed` and memories: how many are done, and of how many."""

MAX_LISTED: Final = 1_000
"""How many skipped and how many refused turns a report lists; it counts them all."""
MAX_BATCH: Final = 10_000
# A speaker of this name is a role of the format and not somebody: "user: ..." would say nothing to search.
_ROLES: Final = frozenset({"", "user", "assistant", "system", "developer", "tool"})


class ImportOptions(TypedDict, total=False):
    """What `import_file` takes beside the file and the scope."""

    format: str | None
    user: str | None
    user_role: bool
    split: bool
    only: Collection[str] | None
    dry_run: bool
    batch: int
    progress: Progress | None
    embed: bool


class SkippedTurn(Answer, frozen=True, kw_only=True):
    """A place in the file that gave no memory, and why; what was said there is not quoted."""

    where: str
    why: str


class RefusedTurn(Answer, frozen=True, kw_only=True):
    """A turn that a rule keeps out, such as a forgotten value."""

    where: str
    error: str
    message: str
    hint: str


class ImportReport(Answer, frozen=True, kw_only=True):
    """
    What became of the turns of a file.

    `read` counts the turns, and each was written, repeated, refused, or skipped as unfit for the store. `skipped_count`
    counts the places that gave no turn as well. Of what was skipped and refused the first 1,000 are listed.
    """

    format: str
    conversations: tuple[str, ...]
    read: int
    written: int
    repeated: int
    skipped_count: int
    refused_count: int
    skipped: tuple[SkippedTurn, ...]
    refused: tuple[RefusedTurn, ...]
    embedded: int = 0
    dry_run: bool = False


def import_file(
    store: Store,
    path: str | Path,
    *,
    scope: str,
    format: str | None = None,  # noqa: A002
    user: str | None = None,
    user_role: bool = False,
    split: bool = False,
    only: Collection[str] | None = None,
    dry_run: bool = False,
    batch: int = 200,
    progress: Progress | None = None,
    embed: bool = True,
) -> ImportReport:
    """
    Remember every turn of a transcript, valid from when it was said, and return what became of each.

    A batch of turns is written whole or not at all. Reading the same file again adds nothing, whatever became of its
    turns since, so an import that was killed is finished by starting it again. What is imported has the origin
    `import:FORMAT` and can justify no action. The host may say whose words are the user's: those of the speaker `user`,
    or with `user_role=True` those under the role `user`; they have the origin `user`, unsigned. With `split=True` each
    conversation has a scope of its own, `SCOPE/CONVERSATION`; `only` names the conversations to take. `dry_run=True`
    reads and judges, and writes nothing.

    Raises:
        BadArgument: there is no such file, its format is not known, or an argument cannot be used.
        ScopeClosed: the scope was forgotten as a whole.
    """
    parse_scope(scope)
    if not 1 <= batch <= MAX_BATCH:
        raise BadArgument(argument="batch", detail=f"expected 1 to {MAX_BATCH}, got {batch}")
    transcript = open_transcript(Path(path), format=format)
    speakers = _Speakers(f"import:{transcript.name}", scope, user=user, user_role=user_role, split=split)
    run = _Import(store._engine, speakers, transcript.name, dry_run=dry_run)
    turns = _turns(transcript, only, run.skip)
    while chunk := list(islice(turns, batch)):
        run.take(chunk)
        if progress is not None:
            progress("read", transcript.bytes_read, transcript.total_bytes)
    embedded = 0
    if embed and not dry_run:
        embedded = store.embed(None if progress is None else lambda done, of: progress("embed", done, of))
    return run.report(embedded)


class _Speakers:
    """The handles through which turns are written, by whom the host says that they speak for."""

    def __init__(self, origin: str, scope: str, *, user: str | None, user_role: bool, split: bool) -> None:
        self._origin, self._scope, self._split = origin, scope, split
        self._user, self._user_role = user, user_role

    def of(self, turn: Turn) -> Handle:
        """Return the handle for a turn; raises ScopeMalformed when its conversation's name cannot be a scope."""
        scope = parse_scope(f"{self._scope}/{turn.conversation}") if self._split else self._scope
        if self._is_user(turn):
            return user_handle(scope, None, signed=False)
        return Handle(scope=scope, reads=(), actor=self._origin, origin=self._origin, rank=rank_of(self._origin))

    def _is_user(self, turn: Turn) -> bool:
        # The assistant's words stay external whatever name a file gives it: rank must not come from a file.
        if turn.role == "assistant":
            return False
        if self._user is not None and turn.speaker == self._user:
            return True
        # An unnamed user is the one user there is; one with another name is somebody else.
        return turn.role == "user" and (self._user_role or (self._user is not None and turn.speaker == "user"))


class _Item(NamedTuple):
    where: str
    request: MemoryRequest
    spoken: bytes
    """The key of what was said, without the speaker's name."""


class _Judged:
    """What became of one batch; judged anew when another writer comes first."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.written = self.repeated = 0
        self.refused: list[tuple[str, Refused]] = []


class _Import:
    """One run over one file: judges and writes chunk by chunk, and counts."""

    def __init__(self, engine: Engine, speakers: _Speakers, name: str, *, dry_run: bool) -> None:
        self._engine, self._speakers, self._name, self._dry_run = engine, speakers, name, dry_run
        self._conversations: dict[str, None] = {}
        self._read = self._written = self._repeated = self._skips = self._refusals = 0
        self._skipped: list[SkippedTurn] = []
        self._refused: list[RefusedTurn] = []

    def skip(self, where: str, why: str) -> None:
        """Count a place that gives no memory."""
        self._skips += 1
        if len(self._skipped) < MAX_LISTED:
            self._skipped.append(SkippedTurn(where=where, why=why))

    def take(self, chunk: Sequence[Turn]) -> None:
        """Write the turns of a chunk that are new, in the file's order and in one batch."""
        engine = self._engine
        items = [item for turn in chunk if (item := self._prepare(turn)) is not None]
        judged = _Judged()
        if self._dry_run:
            with engine.mutex:
                engine.refresh()
                self._admit(items, Moment(engine.now(), engine.head.seq + 1, engine.keys.epoch + 1), judged)
        else:
            engine.append(lambda at: self._admit(items, at, judged))
        self._written += judged.written
        self._repeated += judged.repeated
        for where, error in judged.refused:
            self._refuse(where, error)

    def report(self, embedded: int) -> ImportReport:
        """Return the counts."""
        return ImportReport(
            format=self._name,
            conversations=tuple(self._conversations),
            read=self._read,
            written=self._written,
            repeated=self._repeated,
            skipped_count=self._skips,
            refused_count=self._refusals,
            skipped=tuple(self._skipped),
            refused=tuple(self._refused),
            embedded=embedded,
            dry_run=self._dry_run,
        )

    def _prepare(self, turn: Turn) -> _Item | None:
        self._read += 1
        self._conversations.setdefault(turn.conversation)
        preparer, where = self._engine.preparer, f"{turn.conversation}/{turn.position}"
        try:
            request = preparer.memory(self._speakers.of(turn), content_of(turn), **_fields(turn, self._name))
        except Refused as error:
            self._refuse(where, error)
        except InvalidInput as error:
            self.skip(where, str(error))
        else:
            return _Item(where, request, self._engine.values.text_key(turn.text))
        return None

    def _admit(self, items: Sequence[_Item], at: Moment, judged: _Judged) -> list[Draft]:
        admission, batch = self._engine.admission, Batch(at)
        judged.clear()
        for where, request, spoken in items:
            if self._was_imported(request):
                judged.repeated += 1
                continue
            try:
                # What was forgotten must not come back behind its speaker's name.
                admission.check_text(spoken, request.handle)
                outcome = admission.admit_memory(request, at, batch)
            except ScopeClosed:
                raise
            except Refused as error:
                judged.refused.append((where, error))
                counted = admission.refusal(request.handle, "import", error, at)
                if counted is not None:
                    batch.add(counted)
                continue
            if isinstance(outcome, Existing):
                judged.repeated += 1
            else:
                judged.written += 1
                batch.add(outcome)
        return batch.drafts

    def _was_imported(self, request: MemoryRequest) -> bool:
        # Whatever became of it since: a record that was corrected, retired or quarantined must not come back as new
        # because its file is read again. Only an erased one is left to the tombstones, which somebody may have lifted.
        said = self._engine.state.register.texts.get((request.handle.scope, request.text_key), ())
        return any(
            memory.envelope.source_key == request.source_key
            and memory.envelope.origin == request.handle.origin
            and memory.erasure is None
            for memory in said
        )

    def _refuse(self, where: str, error: Refused) -> None:
        self._refusals += 1
        if len(self._refused) < MAX_LISTED:
            self._refused.append(RefusedTurn(where=where, error=error.code, message=str(error), hint=error.hint))


def _turns(transcript: Transcript, only: Collection[str] | None, skip: Callable[[str, str], None]) -> Iterator[Turn]:
    for found in transcript.turns():
        if isinstance(found, Skipped):
            skip(found.where, found.why)
        elif only is None or found.conversation in only:
            yield found


def content_of(turn: Turn) -> str:
    """Return what is remembered of a turn: its words, after the speaker's name where there is one."""
    # Who spoke is half of what a question asks about, and search reads the content.
    return turn.text if turn.speaker in _ROLES else f"{turn.speaker}: {turn.text}"


def _fields(turn: Turn, name: str) -> MemoryFields:
    told = {
        "speaker": turn.speaker, "role": turn.role, "session": turn.session, "conversation": turn.conversation,
    }  # fmt: skip
    return {
        "kind": "chat",
        "source": f"{name}:{turn.conversation}/{turn.position}",
        "valid_from": None if turn.said_at is None else to_datetime(turn.said_at),
        "metadata": {key: said for key, said in told.items() if said},
    }
