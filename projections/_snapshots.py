"""
Sealed snapshots of the projections. Each file has a key of its own in the key table, under the name given here.

    projections/state-FINGERPRINT-GENERATION.snap      `state/GENERATION`: register, tombstones, present beliefs
    projections/words-FINGERPRINT-CHUNK-KEY.snap       `content/words/CHUNK`: what recall derived from the bodies of
                                                       4096 consecutive events; a forget destroys the keys of those
                                                       it touches
    projections/signs-FINGERPRINT-CHUNK-KEY.snap       `content/signs/CHUNK`: the signs of their vectors, likewise

What a rebuild makes beside them has the same files, and the names `build/GENERATION` and `content/build/CHUNK`, until
one revision of the key table puts all of it in the place of what was there.

The state holds envelopes only, so that it outlives a forget; the forget of a whole scope destroys its key as well. A
snapshot is used only when the log contains its head. Anything else that is wrong with a file, at opening or later,
means that it is not used, and what it held is made again from the log.

A file is written before its key is kept, and under a key that was never used: a crash in between leaves a file that no
key opens. Every file has a name of its own, so that the one before it stays usable until then. While it is written it
ends in `.part` and is locked (`flock`), so that whoever tidies up can tell it from what a kill has left.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final
from weakref import WeakSet

import msgspec
import numpy as np
from blake3 import blake3

from muniment.events import (
    CONTENT_CHUNK,
    KEY_BYTES,
    NORMAL_FORM,
    Forgotten,
    Head,
    KeyTree,
    Log,
    ProjectionStale,
    ResourcesExhausted,
    names_in,
    open_file,
    typed,
)
from muniment.events._seal import commitment

from . import _recall, _register, _tombstones, _tree
from ._bundle import Projections
from ._recall import Recall
from ._sections import Buffer, PlainSections, Repairing, SealedSections, Sections, Written, write_sections
from ._segments import Fragment, Fragments
from ._signs import LAYOUT as SIGNS_LAYOUT
from ._signs import Signs, read_signs
from ._state import FAR_FUTURE
from ._tables import LAYOUT as TABLES_LAYOUT
from ._tokens import ANALYZER_ID
from ._words import LAYOUT as WORDS_LAYOUT

PROJECTION_VERSIONS: Final = (_register.VERSION, _tombstones.VERSION, _recall.VERSION, _tree.VERSION)
"""Raised, each, whenever the same log would give another projection."""
ACTS_VERSION: Final = _register.ACTS_VERSION
_STATE: Final = "state/"
_WORDS: Final = CONTENT_CHUNK + "words/"
_SIGNS: Final = CONTENT_CHUNK + "signs/"
_BUILT_STATE: Final = "build/"
_BUILT_WORDS: Final = CONTENT_CHUNK + "build/"
_SUFFIX: Final = ".snap"
_PART: Final = ".part"
FoldUpto = Callable[[int], Projections]
"""Folds the log from its first event up to a sequence number."""


def fingerprints() -> dict[str, str]:
    """Return what each projection is made with: code versions and settings. Another one means another projection."""
    register, tombstones, recall, tree = PROJECTION_VERSIONS
    return {
        "beliefs": _fingerprint(register, ACTS_VERSION, tree, NORMAL_FORM),
        "recall": _fingerprint(recall, ANALYZER_ID, WORDS_LAYOUT),
        "tombstones": _fingerprint(tombstones, NORMAL_FORM),
    }


def _records_print() -> str:
    # All that reading memories and beliefs depends on. What was acted, what is refused and the tree are other matters;
    # so is the normal form, in which an envelope stays as it was written.
    register, _, recall, _ = PROJECTION_VERSIONS
    return _fingerprint(register, recall, TABLES_LAYOUT)


def _fingerprint(*parts: object) -> str:
    return blake3("|".join(map(str, parts)).encode()).hexdigest()[:16]


class Made:
    """A file that was written and whose key nobody has kept yet."""

    def __init__(self, name: str, key: bytes, path: Path, written: Iterable[tuple[str, Iterable[Buffer]]]) -> None:
        self.name, self.key, self._path = name, key, path
        self._part = path.with_suffix(f".{os.getpid()}{_PART}")
        with typed(path, path.name):
            path.parent.mkdir(mode=0o700, exist_ok=True)
            self._fd = _locked(self._part)
            try:
                write_sections(self._part, key, written)
            except BaseException:
                self.drop()
                raise

    def place(self) -> None:
        """Put the file where it belongs; the writer lock is held, so that nobody tidies it away before it has a key."""
        self._part.replace(self._path)

    def release(self) -> None:
        """Let go of the file, which has its key by now."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def drop(self) -> None:
        """Remove the file, which is of no use."""
        self._part.unlink(missing_ok=True)
        self.release()


class Snapshots:
    """The snapshots of one store, as one process uses them; with `building`, those that a rebuild makes beside them."""

    def __init__(self, directory: Path, keys: KeyTree, fold_upto: FoldUpto, *, building: bool = False) -> None:
        self._directory, self._keys, self._fold_upto = directory, keys, fold_upto
        self._state, self._words = (_BUILT_STATE, _BUILT_WORDS) if building else (_STATE, _WORDS)
        made_with = fingerprints()
        # One file holds the state of all, but the words that recall derived need not be made again with the register.
        self._state_print = _fingerprint(*PROJECTION_VERSIONS, ACTS_VERSION, NORMAL_FORM, TABLES_LAYOUT)
        self._words_print, self._signs_print = made_with["recall"], _fingerprint(SIGNS_LAYOUT)
        self._held: WeakSet[SealedSections] = WeakSet()
        self._loaded: dict[int, dict[str, Fragment]] = {}

    def load(self, log: Log, state: Projections, *, words: Fragments | None = None) -> int:
        """
        Fill the state from a snapshot that the log confirms, and return the sequence number it stands at, or 0.

        With `words` the saved words are left aside, and taken from there.
        """
        self._loaded.clear()
        state.recall.take_from(self if words is None else words)
        for name in reversed(self._keys.content_chunks(self._state)):
            try:
                sections = self._opened(self._state_path(name), self._keys.chunk_key(name) or b"")
                head = _decode_head(sections.between("head", 0, FAR_FUTURE))
                if not log.resume(head):
                    continue
                if not state.tree.load(sections.between("tree", 0, FAR_FUTURE), head):
                    log.rewind()
                    continue
                chunks = self.chunks() if words is None else ()
                state.load(self._repairing(sections, head.seq, state), chunks)
            except (ProjectionStale, msgspec.MsgspecError):
                log.rewind()
                continue
            return head.seq
        return 0

    def load_records(self, log: Log, state: Projections) -> bool:
        """
        Fill the state from a snapshot that `load` refuses and whose memories, links and words are as they would be now.

        Such a state is asked for those alone, is applied to by `apply_records`, and is never saved.
        """
        state.recall.take_from(self)
        wanted = _records_print().encode()
        for name in reversed(self._keys.content_chunks(self._state)):
            for file in names_in(self._directory, f"state-*-{name.rpartition('/')[2]}{_SUFFIX}"):
                try:
                    sections = self._opened(self._directory / file, self._keys.chunk_key(name) or b"")
                    if sections.between("records", 0, FAR_FUTURE) != wanted:
                        continue
                    head = _decode_head(sections.between("head", 0, FAR_FUTURE))
                    if log.resume(head):
                        state.load_records(self._repairing(sections, head.seq, state), self.chunks())
                        return True
                except (ProjectionStale, msgspec.MsgspecError):
                    log.rewind()
        return False

    def save(
        self,
        head: Head,
        state: Projections,
        now: int,
        *,
        words: bool = True,
        closing: bool = False,
        signs: Iterable[tuple[int, Written]] = (),
    ) -> int:
        """
        Save the state at a head, and return its sequence number. The caller holds the writer lock.

        From then on the state stands on what was saved, and what it held in memory is free. Without `words` those that
        nobody has asked for yet stay queued. With `closing` each chunk of words is let go when it was saved, so that a
        store whose words were never asked for does not gather all of them in memory just to save them. `signs` are
        chunks of them that are to take the place of the saved ones.
        """
        made: list[Made] = []
        chunks: list[int] = []
        try:
            for chunk, data in state.recall.unsaved_chunks() if words else ():
                made.append(self._write_chunk(chunk, data))
                chunks.append(chunk)
                state.recall.saved_chunk(chunk, release=closing)
            made += [self._made(_SIGNS, chunk, sections) for chunk, sections in signs]
            made.append(self.write_state(head, state, now))
            self.keep(made, instead_of=(self._state,))
        except BaseException:
            state.recall.unsave(chunks)
            raise
        finally:
            for one in made:
                one.drop()
        self.stand_on(made[-1], head, state)
        return head.seq

    def write_state(self, head: Head, state: Projections, now: int) -> Made:
        """Write the state at a head beside what is saved."""
        name = self._state + os.urandom(8).hex()
        return Made(name, os.urandom(KEY_BYTES), self._state_path(name), self._sections(head, state, now))

    def write_words(self, recall: Recall, chunk: int) -> Made:
        """Write a chunk of words beside what is saved."""
        return self._write_chunk(chunk, recall.chunk(chunk))

    def keep(self, made: Sequence[Made], *, instead_of: Sequence[str] = ()) -> None:
        """
        Keep the keys of what was written, dropping those of names that begin so; the caller holds the writer lock.

        One revision of the key table: a crash leaves all that was there before, or all that is there now.
        """
        self._keys.reload()
        fresh: dict[str, bytes | None] = {
            name: None for prefix in instead_of for name in self._keys.content_chunks(prefix)
        }
        for one in made:
            one.place()
        self._keys.set_chunks(fresh | {one.name: one.key for one in made})
        self._remove_stale()

    def stand_on(self, made: Made, head: Head, state: Projections) -> None:
        """Let the state read from the file that was written from it, instead of from memory."""
        sections = self._opened(self._state_path(made.name), made.key)
        state.register.rest_on(self._repairing(sections, head.seq, state))

    def replace_by_built(self, made: Made | None, *, words: bool) -> None:
        """
        Put what a rebuild has made in the place of what is saved; the caller holds the writer lock.

        `made` is the state; without it the saved one stays. With `words` the built chunks take the place of the saved.
        """
        keys = self._keys
        keys.reload()
        fresh: dict[str, bytes | None] = dict.fromkeys(
            keys.content_chunks(_BUILT_STATE) + keys.content_chunks(_BUILT_WORDS)
        )
        if words:
            fresh |= dict.fromkeys(keys.content_chunks(_WORDS))
            for name in keys.content_chunks(_BUILT_WORDS):
                fresh[_WORDS + name.removeprefix(_BUILT_WORDS)] = keys.chunk_key(name)
        if made is not None:
            fresh |= dict.fromkeys(keys.content_chunks(_STATE))
            fresh[_STATE + made.name.removeprefix(_BUILT_STATE)] = made.key
            made.place()
        keys.set_chunks(fresh)
        self._remove_stale()

    def chunks(self) -> set[int]:
        """Return the chunks of words that have a key and a file."""
        files = set(names_in(self._directory))
        return {chunk for chunk in self._chunks_of(self._words) if self._words_path(chunk).name in files}

    def touched_by(self, forgotten: Forgotten, state: Projections) -> Collection[str]:
        """Return the names of the keys that a forget must destroy, of all chunks that hold something of its targets."""
        if forgotten.closed_scope is not None:
            return [*self._keys.content_chunks(_STATE), *self._keys.content_chunks(CONTENT_CHUNK)]
        chunks = state.chunks_of(forgotten)
        if chunks is None:
            return self._keys.content_chunks(CONTENT_CHUNK)
        # Those that a rebuild is just making, too.
        names = {f"{prefix}{chunk:08x}" for chunk in chunks for prefix in (_WORDS, _BUILT_WORDS, _SIGNS)}
        return [name for name in self._keys.content_chunks(CONTENT_CHUNK) if name in names]

    def signs(self, chunk: int, of: bytes) -> Signs | None:
        """Return the saved signs of one chunk, of the vectors in one file; None when they are not there."""
        key = self._keys.chunk_key(f"{_SIGNS}{chunk:08x}")
        if key is None:
            return None
        try:
            return read_signs(SealedSections(self._chunk_path(_SIGNS, chunk, key), key), of)
        except ProjectionStale:
            return None

    def take(self, chunk: int, scope: str) -> Fragment | None:
        """Return the saved words of one scope in one chunk, once; None when they are not there."""
        found = self._loaded.get(chunk)
        if found is None:
            found = self._loaded[chunk] = {fragment.scope: fragment for fragment in self._fragments(chunk)}
        return found.pop(scope, None)

    def release(self, chunk: int) -> None:
        """Let go of what was read of a chunk; it can be taken again."""
        self._loaded.pop(chunk, None)

    def _fragments(self, chunk: int) -> list[Fragment]:
        key = self._keys.chunk_key(f"{self._words}{chunk:08x}")
        if key is None:
            return []
        try:
            data = SealedSections(self._words_path(chunk, key), key).array("words", np.uint8)
            return _decode_fragments(data.data)
        except (ProjectionStale, msgspec.MsgspecError):
            return []

    def _repairing(self, sections: Sections, seq: int, state: Projections) -> Sections:
        def repair() -> Sections:
            folded = self._fold_upto(seq)
            made = PlainSections(folded.sections(state.beliefs.saved_at))
            if folded.register.counts() != state.register.saved_counts():
                # A scope was forgotten since: the log gives other rows, and only a new opening can start from them.
                raise ProjectionStale(
                    name="state", detail="it is damaged, and the log has moved on: open the store again"
                )
            return made

        return Repairing(sections, repair)

    def _sections(self, head: Head, state: Projections, now: int) -> Iterator[tuple[str, Iterable[Buffer]]]:
        yield from state.sections(now)
        yield "tree", [state.tree.save()]
        yield "records", [_records_print().encode()]
        yield "head", [msgspec.msgpack.encode(head)]

    def _write_chunk(self, chunk: int, data: bytes) -> Made:
        return self._made(self._words, chunk, [("words", [data])])

    def _made(self, prefix: str, chunk: int, written: Written) -> Made:
        key = os.urandom(KEY_BYTES)
        return Made(f"{prefix}{chunk:08x}", key, self._chunk_path(prefix, chunk, key), written)

    def _chunks_of(self, prefix: str) -> list[int]:
        return [int(name.removeprefix(prefix), 16) for name in self._keys.content_chunks(prefix)]

    def _remove_stale(self) -> None:
        keys = self._keys
        current = {self._state_path(name) for prefix in (_STATE, _BUILT_STATE) for name in keys.content_chunks(prefix)}
        for prefix in (_WORDS, _BUILT_WORDS, _SIGNS):
            for chunk in self._chunks_of(prefix):
                current.add(self._chunk_path(prefix, chunk, keys.chunk_key(f"{prefix}{chunk:08x}") or b""))
        for name in names_in(self._directory, f"*{_SUFFIX}"):
            if self._directory / name not in current:
                (self._directory / name).unlink(missing_ok=True)
        for name in names_in(self._directory, f"*{_PART}"):
            _remove_unless_locked(self._directory / name)

    def close(self) -> None:
        """Release the files that lazily read state still holds; the state cannot be asked any more."""
        for sections in list(self._held):
            sections.close()
        self._held.clear()

    def _opened(self, path: Path, key: bytes) -> SealedSections:
        sections = SealedSections(path, key)
        self._held.add(sections)
        return sections

    def _state_path(self, name: str) -> Path:
        return self._directory / f"state-{self._state_print}-{name.rpartition('/')[2]}{_SUFFIX}"

    def _words_path(self, chunk: int, key: bytes | None = None) -> Path:
        return self._chunk_path(self._words, chunk, key or self._keys.chunk_key(f"{self._words}{chunk:08x}") or b"")

    def _chunk_path(self, prefix: str, chunk: int, key: bytes) -> Path:
        of = f"signs-{self._signs_print}" if prefix == _SIGNS else f"words-{self._words_print}"
        # The commitment stands at the head of the file as well: it tells nothing of the key.
        return self._directory / f"{of}-{chunk:08x}-{commitment(key).hex()[:16]}{_SUFFIX}"


def _locked(path: Path) -> int:
    while True:
        fd = open_file(path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            return fd
        os.close(fd)  # whoever tidied up took it for a leftover, before it was locked


def _remove_unless_locked(path: Path) -> None:
    with suppress(OSError, ResourcesExhausted):
        fd = open_file(path, os.O_RDONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
        finally:
            os.close(fd)


_decode_head: Final = msgspec.msgpack.Decoder(Head).decode
_decode_fragments: Final = msgspec.msgpack.Decoder(list[Fragment]).decode
