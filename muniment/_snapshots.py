"""
Sealed snapshots of the projections. Each file has a key of its own in the key table, under the name given here.

    projections/state-FINGERPRINT-GENERATION.snap    `state/GENERATION`: register, tombstones, present beliefs
    projections/words-FINGERPRINT-CHUNK.snap         `content/words/CHUNK`: what recall derived from the bodies of 4096
                                                     consecutive events; a forget destroys the keys of those it touches

The state holds envelopes only, so that it outlives a forget; the forget of a whole scope destroys its key as well. A
snapshot is used only when the log contains its head. Anything else that is wrong with a file, at opening or later,
means that it is not used, and what it held is made again from the log.

A file is written before its key is kept, and under a key that was never used: a crash in between leaves a file that no
key opens. A state's file has a name of its own, so that the one before it stays usable until then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

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
)
from muniment.projections import (
    ANALYZER_ID,
    FAR_FUTURE,
    PROJECTION_VERSIONS,
    WORDS_LAYOUT,
    Buffer,
    Fragment,
    PlainSections,
    Projections,
    Repairing,
    SealedSections,
    Sections,
    write_sections,
)

_STATE: Final = "state/"
_WORDS: Final = CONTENT_CHUNK + "words/"
_SUFFIX: Final = ".snap"
FoldUpto = Callable[[int], Projections]
"""Folds the log from its first event up to a sequence number."""


def fingerprint() -> str:
    """Return what the projections are made with: code versions and settings. Another one means another projection."""
    said = f"{PROJECTION_VERSIONS}|{NORMAL_FORM}|{ANALYZER_ID}|{WORDS_LAYOUT}"
    return blake3(said.encode()).hexdigest()[:16]


class Snapshots:
    """The snapshots of one store, as one process uses them."""

    def __init__(self, directory: Path, keys: KeyTree, fold_upto: FoldUpto) -> None:
        self._directory, self._keys, self._fold_upto = directory, keys, fold_upto
        self._fingerprint = fingerprint()
        self._held: list[SealedSections] = []
        self._loaded: dict[int, dict[str, Fragment]] = {}

    def load(self, log: Log, state: Projections) -> int:
        """Fill the state from a snapshot that the log confirms, and return the sequence number it stands at, or 0."""
        state.recall.take_from(self)
        for name in self._keys.content_chunks(_STATE):
            try:
                sections = self._opened(self._state_path(name), self._keys.chunk_key(name) or b"")
                head = _decode_head(sections.between("head", 0, FAR_FUTURE))
                if not log.resume(head):
                    continue
                if not state.tree.load(sections.between("tree", 0, FAR_FUTURE), head):
                    log.rewind()
                    continue
                state.load(self._repairing(sections, head.seq, state), self._saved_chunks())
            except (ProjectionStale, msgspec.MsgspecError):
                log.rewind()
                continue
            return head.seq
        return 0

    def save(self, head: Head, state: Projections, now: int, *, words: bool = True, closing: bool = False) -> int:
        """
        Save the state at a head, and return its sequence number. The caller holds the writer lock.

        From then on the state stands on what was saved, and what it held in memory is free. Without `words` those that
        nobody has asked for yet stay queued. With `closing` each chunk of words is let go when it was saved, so that a
        store whose words were never asked for does not gather all of them in memory just to save them.
        """
        self._directory.mkdir(mode=0o700, exist_ok=True)
        fresh: dict[str, bytes | None] = dict.fromkeys(self._keys.content_chunks(_STATE))
        for chunk, data in state.recall.unsaved_chunks() if words else ():
            name = f"{_WORDS}{chunk:08x}"
            fresh[name] = self._write(self._words_path(chunk), [("words", [data])])
            state.recall.saved_chunk(chunk, release=closing)
        name = _STATE + os.urandom(8).hex()
        key = fresh[name] = self._write(self._state_path(name), self._sections(head, state, now))
        self._keys.set_chunks(fresh)
        self._remove_stale()
        sections = self._opened(self._state_path(name), key)
        state.register.rest_on(self._repairing(sections, head.seq, state))
        return head.seq

    def touched_by(self, forgotten: Forgotten, state: Projections) -> Collection[str]:
        """Return the names of the keys that a forget must destroy, of all chunks that hold something of its targets."""
        if forgotten.closed_scope is not None:
            return [*self._keys.content_chunks(_STATE), *self._keys.content_chunks(CONTENT_CHUNK)]
        chunks = state.chunks_of(forgotten)
        if chunks is None:
            return self._keys.content_chunks(CONTENT_CHUNK)
        names = {f"{_WORDS}{chunk:08x}" for chunk in chunks}
        return [name for name in self._keys.content_chunks(CONTENT_CHUNK) if name in names]

    def take(self, chunk: int, scope: str) -> Fragment | None:
        """Return the saved words of one scope in one chunk, once; None when they are not there."""
        found = self._loaded.get(chunk)
        if found is None:
            found = self._loaded[chunk] = {fragment.scope: fragment for fragment in self._fragments(chunk)}
        return found.pop(scope, None)

    def _fragments(self, chunk: int) -> list[Fragment]:
        key = self._keys.chunk_key(f"{_WORDS}{chunk:08x}")
        if key is None:
            return []
        try:
            data = SealedSections(self._words_path(chunk), key).array("words", np.uint8)
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
        yield "head", [msgspec.msgpack.encode(head)]

    def _write(self, path: Path, written: Iterable[tuple[str, Iterable[Buffer]]]) -> bytes:
        key = os.urandom(KEY_BYTES)
        beside = path.with_suffix(f".{os.getpid()}.part")
        write_sections(beside, key, written)
        beside.replace(path)
        return key

    def _saved_chunks(self) -> set[int]:
        return {int(name.removeprefix(_WORDS), 16) for name in self._keys.content_chunks(_WORDS)}

    def _remove_stale(self) -> None:
        current = {self._state_path(name) for name in self._keys.content_chunks(_STATE)}
        current.update(self._words_path(chunk) for chunk in self._saved_chunks())
        for path in (*self._directory.glob(f"*{_SUFFIX}"), *self._directory.glob("*.part")):
            if path not in current:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the files that lazily read state still holds; the state cannot be asked any more."""
        for sections in self._held:
            sections.close()
        self._held.clear()

    def _opened(self, path: Path, key: bytes) -> SealedSections:
        sections = SealedSections(path, key)
        self._held.append(sections)
        return sections

    def _state_path(self, name: str) -> Path:
        return self._directory / f"state-{self._fingerprint}-{name.removeprefix(_STATE)}{_SUFFIX}"

    def _words_path(self, chunk: int) -> Path:
        return self._directory / f"words-{self._fingerprint}-{chunk:08x}{_SUFFIX}"


_decode_head: Final = msgspec.msgpack.Decoder(Head).decode
_decode_fragments: Final = msgspec.msgpack.Decoder(list[Fragment]).decode
