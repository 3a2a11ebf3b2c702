"""A store of the events package alone: the door, a follower that keeps what a fold would, and memories as texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

from muniment.events._codec import SEGMENT_HEADER_BYTES, frame_size, is_frame_header
from muniment.events._disk import Disk
from muniment.events._door import Door, Moment
from muniment.events._files import create_store, find_store
from muniment.events._ids import Id, new_id
from muniment.events._keys import KeyTree
from muniment.events._kinds import Rank
from muniment.events._lock import MARK_BYTES, WriterLock
from muniment.events._log import Log
from muniment.events._model import Draft, Forgotten, MemoryBody, Remembered, WordsBody
from muniment.events._reader import Batch, Event
from muniment.events._seal import Sealer

NOW = 1_700_000_000_000_000


class Register:
    """A follower that knows each scope's slot, each memory's event, and the memories that were forgotten."""

    def __init__(self) -> None:
        self.scopes: dict[str, int] = {}
        self.memories: dict[bytes, Event] = {}
        self.forgotten: set[bytes] = set()
        self.events: list[Event] = []
        self.batches: list[list[int]] = []

    def apply(self, batch: Batch) -> None:
        """Take in the next batch."""
        self.batches.append([event.seq for event in batch.events])
        self.events.extend(batch.events)
        for event in batch.events:
            if event.envelope is not None:
                self.scopes.setdefault(event.envelope.scope, event.header.scope_slot)
            match event.envelope:
                case Remembered():
                    self.memories[event.header.id] = event
                case Forgotten(targets=targets):
                    self.forgotten.update(identity for identity, _ in targets)
                case _:
                    pass

    def scope_slot(self, scope: str) -> int | None:
        """Return the scope's slot."""
        return self.scopes.get(scope)


class Bare:
    """An open store. Memories are texts, and a batch is a list of them."""

    def __init__(
        self, path: Path, disk: Disk | None = None, *, clock: Callable[[], int] = lambda: NOW, read_only: bool = False
    ) -> None:
        self.path = path
        self.disk = disk or Disk()
        files = find_store(path)
        self.register = Register()
        self.keys = KeyTree(files.root_key, files.keys, self.disk)
        self.sealer = Sealer(files.store_id, self.keys)
        self.lock = WriterLock(files.lock, files.log)
        self.log = Log(files.log, files.store_id, self.disk, lock=self.lock, read_only=read_only)
        self.door = Door(
            log=self.log,
            keys=self.keys,
            sealer=self.sealer,
            lock=self.lock,
            slots=self.register,
            followers=[self.register],
            clock=clock,
            version="test",
            read_only=read_only,
        )

    def __enter__(self) -> Bare:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the descriptors."""
        self.log.close()
        self.lock.close()
        self.keys.close()

    def remember(
        self, *texts: str, scope: str = "acme", ids: Sequence[Id] | None = None, slot: int | None = None
    ) -> list[Id]:
        """Append one batch of memories and return their ids; `slot` is for all of them, None for fresh ones."""
        chosen = list(ids or fresh_ids(len(texts)))
        drafts = [memory(text, one, scope=scope, slot=slot) for text, one in zip(texts, chosen, strict=True)]
        self.door.append(lambda moment: drafts)
        return chosen

    def forget(self, *targets: Id) -> None:
        """Forget memories."""
        self.door.append(lambda moment: [self._forgotten(moment, targets)])

    def text(self, identity: Id) -> str | None:
        """Return a memory's text; None when it was erased."""
        body = self.door.open_body(self.register.memories[identity])
        if body is None:
            return None
        assert isinstance(body, MemoryBody)
        return body.content

    def texts(self) -> dict[Id, str | None]:
        """Return all memories by id."""
        return {Id(identity): self.text(Id(identity)) for identity in self.register.memories}

    def _forgotten(self, moment: Moment, targets: Sequence[Id]) -> Draft:
        return Draft(
            id=new_id(NOW),
            envelope=Forgotten(
                scope="acme",
                actor="user",
                origin="user",
                rank=Rank.USER,
                targets=tuple((one, self.register.memories[one].header.slot) for one in targets),
                tombstones=(("value", bytes(32), None, 1),),
                everyone=True,
                reason="asked",
                key_epoch=moment.key_epoch,
            ),
        )


def make(path: Path, disk: Disk | None = None) -> None:
    """Make an empty store."""
    create_store(path, disk or Disk(), NOW)


def fresh_ids(count: int) -> list[Id]:
    """Return ids that no memory has."""
    return [new_id(NOW) for _ in range(count)]


def memory(text: str, identity: Id | None = None, *, scope: str = "acme", slot: int | None = None) -> Draft:
    """Return the draft of a memory."""
    return Draft(
        id=identity or new_id(NOW),
        envelope=Remembered(
            scope=scope,
            actor="user",
            origin="user",
            rank=Rank.USER,
            kind="note",
            provenance="observation",
            valid_from=NOW,
            valid_to=None,
            text_key=bytes(32),
            form=1,
        ),
        body=MemoryBody(content=text),
        slot=slot,
    )


def words(reason: str) -> WordsBody:
    """Return a body that holds a reason."""
    return WordsBody(reason=reason)


def contents(path: Path) -> dict[str, bytes]:
    """Return every file below a directory, by its relative path."""
    found = {str(file.relative_to(path)): file.read_bytes() for file in _files(path)}
    if "lock" in found:
        found["lock"] = found["lock"][:MARK_BYTES]  # who held it last is another with every opening
    return found


def end_of_log(segment: Path) -> int:
    """Return where the last frame of a segment ends, and its room begins if it has any."""
    data, at = segment.read_bytes(), SEGMENT_HEADER_BYTES
    while is_frame_header(data, at):
        at += frame_size(data[at:])
    return at


def _files(path: Path) -> Iterator[Path]:
    return (file for file in sorted(path.rglob("*")) if file.is_file())
