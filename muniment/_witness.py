"""
Checkpoints: heads that are told to somewhere else, so that the log cannot be cut or rewritten behind its users' backs.

Steps of a checkpoint, under the writer lock and after catching up, with what a crash after each leaves:

    1. the anchor is read, and compared with the log when it is not the one that was compared last
    2. the head is signed, where there is a log key: never one that the anchor contradicts
    3. STORE/checkpoints/SIZE.note is written: one more note, of events that are durable. One that nobody asked for
       (after a forget, at sealing) is not synced: a power cut may take it back, or leave it empty and passed over
    4. older notes are thinned out, once in a while: the newest eight stay, and one for each doubling of the distance
       from the head
    5. the anchor is replaced, atomically: it stands at the old or at the new checkpoint, and both are true
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from muniment.events import (
    AnchorMismatch,
    BadArgument,
    BadNote,
    Batch,
    CompactRange,
    Disk,
    Forgotten,
    Head,
    Log,
    MunimentError,
    NoteSigner,
    StoreFiles,
    Tip,
    VerifierKey,
    format_checkpoint,
    format_note,
    format_verifier_key,
    names_in,
    read_file,
    sign_note,
)
from muniment.projections import Tree
from muniment.replay import roots_at

from ._anchor import Anchor, format_anchor, format_older, older_path, parse_anchor, read_anchor, read_older
from ._answers import Answer

_SUFFIX: Final = ".note"
_NEWEST: Final = 8
_REMOVED_AT_ONCE: Final = 16


class Checkpoint(Answer, frozen=True, kw_only=True):
    """
    The log's head as it can be kept elsewhere: how many events, and the root of the tree over them.

    `note` is the text that other tools read. Without a log key it is an unsigned head: `signed` is False, `key` None,
    and whoever can write the place where it is kept can make up another one.
    """

    origin: str
    size: int
    root: str
    signed: bool
    key: str | None
    note: str


class Stored(NamedTuple):
    """One of the store's own checkpoints."""

    name: str
    anchor: Anchor


class Witness:
    """Makes the checkpoints of one store in one process, and compares its log with those that it finds."""

    def __init__(self, files: StoreFiles, disk: Disk, *, key: NoteSigner | None, anchor: Path | None) -> None:
        self.origin = f"muniment/{files.store_id.hex()}"
        self.path = anchor
        self.problem: AnchorMismatch | None = None
        self.warning: str | None = None
        self._directory, self._disk, self._signer = files.checkpoints, disk, key
        self._compared: Anchor | None = None
        self._place: tuple[Head, CompactRange] | None = None
        self._size = max((int(path.stem) for path in self._notes()), default=0)
        self._segment = 1
        _check_outside(files.path, anchor, "anchor")
        _check_outside(files.path, getattr(key, "path", None), "log_key")

    @property
    def key(self) -> VerifierKey | None:
        """The key with which this process signs checkpoints, or None."""
        return None if self._signer is None else VerifierKey(self.origin, bytes(self._signer.public_key))

    def read_anchor(self) -> Anchor | None:
        """
        Return what stands in the anchor file, or None without one.

        Raises:
            AnchorMismatch: its signature does not hold, or another key than the log key made it.
        """
        found = None if self.path is None else read_anchor(self.path)
        if found is not None and self.key is not None and found.key not in (None, self.key):
            raise AnchorMismatch(
                verdict="not comparable", size=found.tip.size, detail="another key than the log key signed the anchor"
            )
        return found

    def is_led_to(self, new_log: Callable[[], Log]) -> bool:
        """
        Tell whether the log extends the anchor, or no anchor was asked for; False too where only `compare` can tell.

        It reads the log's frames and opens none. `new_log` gives a reader of its own, at the first event.

        Raises:
            AnchorMismatch: as `read_anchor`.
        """
        if self.path is None:
            return True
        anchor = self.read_anchor()
        if anchor is None or anchor.tip.origin != self.origin:
            return False
        log = new_log()
        try:
            return roots_at(log, [anchor.tip.size]).get(anchor.tip.size) == anchor.tip.root
        finally:
            log.close()

    def compare(self, anchor: Anchor, tree: Tree, log: Log) -> None:
        """
        Return if the log extends the anchor. `log` is a reader of its own, at the first event.

        Raises:
            AnchorMismatch: it does not, and the error says what can be told about where they part.
        """
        tip = anchor.tip
        if tip.origin != self.origin:
            raise AnchorMismatch(verdict="foreign", size=tip.size, detail=f"the anchor is of `{tip.origin}`")
        if tip.size > tree.seq:
            raise truncated(tip, tree.seq)
        root = tree.root_at(tip.size)
        if root is None:
            root = roots_at(log, [tip.size], self._place).get(tip.size)
            log.rewind()
        if root != tip.root:
            tips = self.earlier(anchor, self.path)
            raise forked(anchor, tips, roots_at(log, [one.size for one in tips]))
        self._compared = anchor

    def note_place(self, head: Head, tree: Tree) -> None:
        """Remember where the log was when it was compared, so that a newer anchor costs only what came since."""
        self._place = (head, tree.copy())
        self._segment = head.segment

    def is_due(self, batch: Batch | None, head: Head) -> bool:
        """Tell whether a batch calls for a checkpoint: it began a segment, or erased something."""
        if head.segment != self._segment:
            return True
        return batch is not None and Forgotten in [type(event.envelope) for event in batch.events]

    def is_behind(self, head: Head) -> bool:
        """Tell whether there are events after the newest checkpoint."""
        return head.seq > self._size or (self._compared is not None and head.seq > self._compared.tip.size)

    def make(self, tree: Tree) -> tuple[Checkpoint, str]:
        """Return the checkpoint of the tree as it stands, and its text; nothing is written."""
        tip = Tip(self.origin, tree.seq, tree.root())
        text = format_checkpoint(tip)
        if self._signer is not None:
            text = format_note(sign_note(text, self.origin, self._signer)).decode()
        key = self.key
        named = None if key is None else format_verifier_key(key)
        return Checkpoint(
            origin=tip.origin, size=tip.size, root=tip.root.hex(), signed=key is not None, key=named, note=text
        ), text

    def write(self, tree: Tree, head: Head, new_log: Callable[[], Log], *, synced: bool) -> Checkpoint:
        """
        Write a checkpoint of the head, and advance the anchor. The caller holds the writer lock and has caught up.

        The anchor is durable when this returns, and so is the store's own note where it is `synced`.

        Raises:
            AnchorMismatch: the anchor has moved to where this log does not lead: a copy of the store went on too.
        """
        anchor = self.read_anchor()
        if anchor is not None and anchor != self._compared:
            log = new_log()
            try:
                self.compare(anchor, tree, log)
            finally:
                log.close()
        self.note_place(head, tree)
        checkpoint, text = self.make(tree)
        if tree.seq:
            path = self._directory / f"{tree.seq}{_SUFFIX}"
            if synced:
                self._disk.replace_file(path, text.encode())
            else:
                self._disk.write_file(path, text.encode(), synced=False)
            self._thin_out()
        self._size = tree.seq
        self._advance(anchor, tree.seq, text)
        return checkpoint

    def drop_contradicted(self, log: Log) -> None:
        """Remove the store's own checkpoints that the log does not lead to: an older log goes on, on purpose."""
        stored = self.stored(None)
        roots = roots_at(log, [one.anchor.tip.size for one in stored])
        for one in stored:
            if roots.get(one.anchor.tip.size) != one.anchor.tip.root:
                self._disk.remove(self._directory / one.name)

    def stored(self, key: VerifierKey | None) -> list[Stored]:
        """Return the store's own checkpoints, oldest first; with a key only those that it signed."""
        found: list[Stored] = []
        for path in self._notes():
            try:
                found.append(Stored(path.name, parse_anchor(read_file(path), key)))
            except (BadNote, OSError):
                continue
        return [one for one in found if one.anchor.tip.origin == self.origin]

    def earlier(self, anchor: Anchor, path: Path | None) -> list[Tip]:
        """
        Return the checkpoints that can tell where a log parts from the anchor, of which `path` is the file.

        The store's own count only when the anchor's key signed them: whoever rewrote the log can write unsigned ones.
        """
        tips = [] if path is None else read_older(path, self.origin)
        if anchor.key is not None:
            tips += [one.anchor.tip for one in self.stored(anchor.key)]
        return [tip for tip in tips if tip.size < anchor.tip.size]

    def _advance(self, anchor: Anchor | None, size: int, text: str) -> None:
        if self.path is None:
            return
        self.warning = None
        if anchor is not None and anchor.key is not None and self.key is None:
            # An unsigned head in its place would let whoever can write the file take the signature off unnoticed.
            self.warning = f"the anchor stays at {anchor.tip.size} events: it is signed, and no log key was given"
            return
        if anchor is not None and (anchor.tip.size, anchor.key) == (size, self.key):
            return
        try:
            if anchor is not None and anchor.tip.size < size:
                tips = {tip.size: tip for tip in (*read_older(self.path, self.origin), anchor.tip)}
                older = format_older(tips[kept] for kept in kept_sizes(tips))
                self._disk.replace_file(older_path(self.path), older.encode())
            self._disk.replace_file(self.path, format_anchor(text, self.key).encode())
        except FileNotFoundError as error:
            raise BadArgument(argument="anchor", detail=f"there is no folder `{self.path.parent}`") from error
        self._compared = read_anchor(self.path)

    def _thin_out(self) -> None:
        sizes = [int(path.stem) for path in self._notes()]
        superfluous = set(sizes).difference(kept_sizes(sizes))
        # Not one by one: removing a file takes as long as a write does, and each forget writes a checkpoint.
        if len(superfluous) > _REMOVED_AT_ONCE:
            for size in superfluous:
                self._disk.remove(self._directory / f"{size}{_SUFFIX}")

    def _notes(self) -> list[Path]:
        found = (self._directory / name for name in names_in(self._directory, f"*{_SUFFIX}"))
        notes = (path for path in found if path.stem.isdecimal())
        return sorted(notes, key=lambda path: int(path.stem))


def kept_sizes(sizes: Iterable[int]) -> set[int]:
    """Return which checkpoints stay: the newest, and of the others the oldest at each doubling of the distance."""
    newest_first = sorted(sizes, reverse=True)
    kept = set(newest_first[:_NEWEST])
    by_distance = {(newest_first[0] - size).bit_length(): size for size in newest_first[_NEWEST:]}
    return kept.union(by_distance.values())


def truncated(tip: Tip, events: int) -> AnchorMismatch:
    """Return the error that says how many events are missing."""
    return AnchorMismatch(
        verdict="truncated",
        size=tip.size,
        events=events,
        detail=f"it has {events}, so at least {tip.size - events} are missing; "
        "whether these are the first of those cannot be told from a root",
    )


def forked(anchor: Anchor, earlier: Iterable[Tip], roots: dict[int, bytes]) -> AnchorMismatch:
    """Return the error that says between which events the log and the anchor part, as far as that can be told."""
    size = anchor.tip.size
    same = {tip.size for tip in earlier if roots.get(tip.size) == tip.root}
    others = {tip.size for tip in earlier if tip.size in roots} - same
    first = 1 + max((kept for kept in same if all(kept < other for other in others)), default=0)
    last = min(others, default=size)
    detail = f"the roots differ; the first event that is another one lies in {first} to {last}"
    return AnchorMismatch(verdict="forked", size=size, first=first, last=last, detail=detail)


def _check_outside(store: Path, path: Path | None, argument: str) -> None:
    if path is not None and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(store)):
        raise BadArgument(argument=argument, detail="inside the store it goes wherever the store is copied or put back")


def quietly(write: Callable[[], object], witness: Witness) -> None:
    """
    Write a checkpoint after an append that is durable and acknowledged already: what fails here must not deny that.

    A contradicted anchor is kept in `problem`, and refuses the next append; anything else in `warning`, which `stats`
    shows, and closing the store tries again.
    """
    try:
        write()
    except AnchorMismatch as error:
        witness.problem = error
    except (MunimentError, OSError) as error:
        witness.warning = f"no checkpoint was written: {error}"
