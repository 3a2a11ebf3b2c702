"""One run over one file: what is found in it is judged and written batch by batch, and counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from muniment.events import (
    AlreadyDone,
    Draft,
    Id,
    InvalidInput,
    Moment,
    Refused,
    ScopeClosed,
    is_id_prefix,
    parse_id,
    parse_scope,
)
from muniment.gate import Batch, Existing, Handle, MemoryRequest, rank_of

from ._answers import Answer
from ._engine import Engine
from ._import_ends import Ends
from ._import_fields import Item, content_of, fields_of
from ._importers import Ending, Found, Linking, Skipped, Turn
from ._user import user_handle

_MOST_HELD: Final = 16 * 1024 * 1024
MAX_LISTED: Final = 1_000
"""How many skipped and how many refused turns a report lists; it counts them all."""


class SkippedTurn(Answer, frozen=True, kw_only=True):
    """A place in the file that gave no memory, and why; what was said there is not quoted. `code` is stable."""

    where: str
    why: str
    code: str


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
    counts the places that gave no turn as well, and `skipped_codes` how many there were of each sort. Of what was
    skipped and refused the first 1,000 are listed. `masked` were written without a secret that was in them; `retired`
    and `linked` count what the file says became of its memories.
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
    skipped_codes: dict[str, int]
    masked: int = 0
    retired: int = 0
    linked: int = 0
    embedded: int = 0
    dry_run: bool = False


class Speakers:
    """The handles through which turns are written, by whom the host says that they speak for."""

    def __init__(self, origin: str, scope: str, *, user: str | None, user_role: bool, split: bool) -> None:
        self._origin, self._scope, self._split = origin, scope, split
        self._user, self._user_role = user, user_role

    def of(self, turn: Turn) -> Handle:
        """Return the handle for a turn; raises InvalidInput when its conversation or its tool cannot be named."""
        scope = parse_scope(f"{self._scope}/{turn.conversation}") if self._split else self._scope
        if self._is_user(turn):
            return user_handle(scope, None, signed=False)
        # Below the import's own name, so that a file cannot speak as a tool that the host has, nor change what it said.
        origin = f"{self._origin}/{turn.via}" if turn.via else self._origin
        return Handle(scope=scope, reads=(), actor=self._origin, origin=origin, rank=rank_of(origin))

    def _is_user(self, turn: Turn) -> bool:
        # The assistant's words stay external whatever name a file gives it: rank must not come from a file.
        if turn.role == "assistant" or turn.via or turn.note is not None:
            return False
        if self._user is not None and turn.speaker == self._user:
            return True
        # An unnamed user is the one user there is; one with another name is somebody else.
        return turn.role == "user" and (self._user_role or (self._user is not None and turn.speaker == "user"))


class _Judged:
    """What became of one batch; judged anew when another writer comes first."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.written: list[Item] = []
        self.repeated = 0
        self.ids: dict[str, Id] = {}
        self.linking: list[tuple[Item, Id]] = []
        self.refused: list[tuple[Item, Refused]] = []
        self.without: list[Item] = []

    def keep(self, item: Item, identity: bytes) -> None:
        known = Id(identity)
        if item.turn.name:
            self.ids[item.turn.name] = known
        if item.links:
            self.linking.append((item, known))


class ImportRun:
    """Takes what is found in a file, in its order."""

    def __init__(self, engine: Engine, speakers: Speakers, name: str, *, batch: int, dry_run: bool) -> None:
        self._engine, self._speakers, self._name = engine, speakers, name
        self._batch, self._dry_run = batch, dry_run
        self._ends = Ends(engine, self.skip, dry_run=dry_run)
        self._waiting: list[Turn] = []
        # What stood beside a stronger value comes after all of those: were they kept out, it must not hold their key
        # when a later one comes.
        self._late: dict[str, Turn] = {}
        self._late_size = 0
        self._awaited: set[str] = set()
        self._conversations: dict[str, None] = {}
        self._read = self._written = self._repeated = self._masked = self._refusals = 0
        self._codes: dict[str, int] = {}
        self._skipped: list[SkippedTurn] = []
        self._refused: list[RefusedTurn] = []

    def take(self, found: Found) -> bool:
        """Take the next thing found, and tell whether a batch was written."""
        match found:
            case Skipped():
                self.skip(found.where, found.why, found.code)
                return False
            case Ending():
                self._ends.end(found)
                return False
            case Linking():
                self._ends.link(found)
                return False
            case Turn():
                return self._take_turn(found)

    def _take_turn(self, turn: Turn) -> bool:
        named = () if turn.note is None else (*turn.note.derived_from, turn.note.supersedes)
        if not turn.beside and not self._waits(turn):
            return self._queue(turn, named)
        self._late[turn.name] = turn
        self._late_size += len(turn.text)
        if self._late_size > _MOST_HELD:
            self._take_late()
        return False

    def _waits(self, turn: Turn) -> bool:
        """Tell whether a turn has to come after what is late; where it may not, that comes now."""
        note = turn.note
        if note is None:
            return False
        superseded = None if note.supersedes is None else self._late.get(note.supersedes)
        # What was beside comes through another voice, and is ended at the end.
        if self._late.keys().isdisjoint(note.derived_from) and (superseded is None or superseded.beside):
            return False
        if note.about is None:
            return True
        self._take_late()
        return False

    def _take_late(self) -> None:
        late, self._late, self._late_size = list(self._late.values()), {}, 0
        for turn in late:
            self._queue(turn, () if turn.note is None else (*turn.note.derived_from, turn.note.supersedes))

    def _queue(self, turn: Turn, named: Iterable[str | None]) -> bool:
        wrote = len(self._waiting) >= self._batch or not self._awaited.isdisjoint(named)
        if wrote:
            self._write()
        self._waiting.append(turn)
        if turn.name:
            self._awaited.add(turn.name)
        return wrote

    def finish(self) -> None:
        """Write what is left, then what became of the memories according to the file."""
        self._take_late()
        self._write()
        self._ends.finish()

    def skip(self, where: str, why: str, code: str) -> None:
        """Count a place that gives no memory."""
        self._codes[code] = self._codes.get(code, 0) + 1
        if len(self._skipped) < MAX_LISTED:
            self._skipped.append(SkippedTurn(where=where, why=why, code=code))

    def report(self, embedded: int) -> ImportReport:
        """Return the counts."""
        return ImportReport(
            format=self._name,
            conversations=tuple(self._conversations),
            read=self._read,
            written=self._written,
            repeated=self._repeated,
            skipped_count=sum(self._codes.values()),
            refused_count=self._refusals,
            skipped=tuple(self._skipped),
            refused=tuple(self._refused),
            skipped_codes=dict(sorted(self._codes.items())),
            masked=self._masked,
            retired=self._ends.retired,
            linked=self._ends.linked,
            embedded=embedded,
            dry_run=self._dry_run,
        )

    def _write(self) -> None:
        """Write the turns that wait and are new, in the file's order and in one batch."""
        engine, unfit = self._engine, list[tuple[Handle, Refused]]()
        items = [item for turn in self._waiting if (item := self._prepare(turn, unfit)) is not None]
        self._waiting, self._awaited = [], set()
        judged = _Judged()
        if self._dry_run:
            with engine.mutex:
                engine.refresh()
                self._admit(items, unfit, Moment(engine.now(), engine.head.seq + 1, engine.keys.epoch + 1), judged)
        elif items or unfit:
            engine.append(lambda at: self._admit(items, unfit, at, judged))
        self._written += len(judged.written)
        self._masked += sum(item.masked for item in judged.written)
        self._repeated += judged.repeated
        self._ends.ids.update(judged.ids)
        for item, identity in judged.linking:
            self._ends.links_of(item, identity)
        for item, error in judged.refused:
            self._refuse(item.turn, item.where, error)
        for item in judged.without:
            self._ends.keep_out(item.turn.name)
            self.skip(item.where, "it derives from what was forgotten", "derived")
        self._ends.write_links()

    def _prepare(self, turn: Turn, unfit: list[tuple[Handle, Refused]]) -> Item | None:
        self._read += 1
        self._conversations.setdefault(turn.conversation)
        engine, where = self._engine, f"{turn.conversation}/{turn.position}"
        note, speaking = turn.note, None
        if note is not None and self._ends.is_kept_out(note.derived_from):
            self._ends.keep_out(turn.name)
            self.skip(where, "it derives from what was refused", "derived")
            return None
        try:
            handle = speaking = self._speakers.of(turn)
            if note is not None and note.command is not None and self._is_here(note.command, turn.name, handle):
                self._repeated += 1
                return None
            fields = fields_of(turn, self._name)
            if note is not None:
                fields |= self._ends.references(note, handle, where)
            content = content_of(turn)
            request = engine.preparer.memory(handle, content, fields)
        except Refused as error:
            if speaking is not None:
                unfit.append((speaking, error))
            self._refuse(turn, where, error)
        except InvalidInput as error:
            self._ends.keep_out(turn.name)
            self.skip(where, str(error), "unfit")
        else:
            links = () if note is None else note.links
            masked = request.body.content != content
            return Item(turn, where, request, engine.values.text_key(turn.text), links, masked)
        return None

    def _admit(
        self, items: Sequence[Item], unfit: Sequence[tuple[Handle, Refused]], at: Moment, judged: _Judged
    ) -> list[Draft]:
        admission, batch = self._engine.admission, Batch(at)
        judged.clear()
        for handle, error in unfit:
            self._count(handle, error, at, batch)
        for item in items:
            handle = item.request.handle
            request, before = self._known(item.request)
            if before is not None:
                judged.repeated += 1
                judged.keep(item, before)
                continue
            try:
                # What was forgotten must not come back behind its speaker's name.
                admission.check_text(item.spoken, handle)
                outcome = self._outcome(request, at, batch)
            except ScopeClosed:
                raise
            except AlreadyDone:
                judged.without.append(item)
                continue
            except Refused as error:
                judged.refused.append((item, error))
                self._count(handle, error, at, batch)
                continue
            judged.keep(item, outcome.id)
            if isinstance(outcome, Existing):
                judged.repeated += 1
                batch.note(outcome)
            else:
                judged.written.append(item)
                batch.add(outcome)
        return batch.drafts

    def _outcome(self, request: MemoryRequest, at: Moment, batch: Batch) -> Draft | Existing:
        admission = self._engine.admission
        try:
            outcome = admission.admit_memory(request, at, batch)
        except AlreadyDone:
            if request.supersedes is None:
                raise
            # Something else became of it here: the words are kept as a memory of their own.
            outcome = admission.admit_memory(msgspec.structs.replace(request, supersedes=None), at, batch)
        if isinstance(outcome, Existing) and request.command_id is not None:
            # Two memories that say the same were two where they come from, too.
            key = self._engine.values.source_key(request.command_id)
            outcome = admission.admit_memory(msgspec.structs.replace(request, source_key=key), at, batch)
        return outcome

    def _count(self, handle: Handle, error: Refused, at: Moment, batch: Batch) -> None:
        counted = self._engine.admission.refusal(handle, "import", error, at)
        if counted is not None:
            batch.add(counted)

    def _is_here(self, command: str, name: str, handle: Handle) -> bool:
        # An export that comes back to where it was made: whatever its memories are by now, they are here.
        store, _, told = command.partition(":")
        identity = told.partition("/")[0]  # a part is of the memory whose name it has
        if store != self._engine.files.store_id.hex() or not (is_id_prefix(identity) and len(identity) == 32):
            return False
        with self._engine.mutex:
            self._engine.refresh()
            memory = self._engine.state.register.memories.get(parse_id(identity))
        if memory is None or memory.erasure is not None or memory.scope != handle.scope:
            return False
        self._ends.here[name] = Id(memory.id)
        return True

    def _known(self, request: MemoryRequest) -> tuple[MemoryRequest, bytes | None]:
        """
        Return the id of the memory that an earlier import made of this, whatever became of it since.

        A record that was corrected, retired or quarantined must not come back as new because its file is read again.
        Only an erased one is left to the tombstones, which somebody may have lifted.
        """
        register, handle = self._engine.state.register, request.handle
        if request.command_id is not None:
            command = register.commands.get((handle.scope, handle.actor, request.command_id))
            if command is None:
                return request, None
            memory = register.memories.get(command.id)
            if memory is not None and memory.erasure is None:
                return request, memory.id
            request = msgspec.structs.replace(request, command_id=None)
        for memory in register.texts.get((handle.scope, request.text_key), ()):
            envelope = memory.envelope
            same = envelope.source_key == request.source_key and envelope.origin == handle.origin
            if same and memory.erasure is None:
                return request, memory.id
        return request, None

    def _refuse(self, turn: Turn, where: str, error: Refused) -> None:
        self._refusals += 1
        self._ends.keep_out(turn.name)
        if len(self._refused) < MAX_LISTED:
            self._refused.append(RefusedTurn(where=where, error=error.code, message=str(error), hint=error.hint))
