"""
The tree over the log's events: what a checkpoint's root is taken from.

It holds the tree of all events but the last, and the last one's chain hash. So it can be saved without being trusted:
the root follows from what was saved *and* from the chain hash that the log has at its head. Somebody who rewrote the
log, and put the true tree into the snapshot, would still have to end the forged log in the true chain hash.
"""

from __future__ import annotations

from typing import Final

from muniment.events import Batch, CompactRange, Head, SequenceGap

VERSION: Final = 1
_FOLD_AT: Final = 4_096
"""Hashes wait until there are this many, or until the root is asked for: in bulk they cost a quarter."""


class Tree:
    """The RFC 6962 tree over the chain hashes of all events, in order."""

    def __init__(self) -> None:
        self.seq = 0
        self._range = CompactRange()
        self._waiting: list[bytes] = []
        self._wanted = 0
        self._found: bytes | None = None

    def apply(self, batch: Batch) -> None:
        """
        Take in the next batch; one that was applied before is passed over.

        Raises:
            SequenceGap: it does not follow the last one.
        """
        if batch.head.seq <= self.seq:
            return
        if batch.events and batch.events[0].header.seq != self.seq + 1:
            raise SequenceGap(expected=self.seq + 1, actual=batch.events[0].seq)
        before = self.seq
        self._waiting.extend([event.hash for event in batch.events])
        self.seq = batch.head.seq
        if before < self._wanted <= self.seq:
            self._found = self._root_of(self._wanted)
        if len(self._waiting) > _FOLD_AT:
            self._fold()

    def root(self) -> bytes:
        """Return the root over all events."""
        self._fold()
        return self._root_of(self.seq)

    def watch(self, size: int) -> None:
        """Keep the root over the first `size` events when they go by; see `root_at`."""
        self._wanted, self._found = size, None

    def root_at(self, size: int) -> bytes | None:
        """Return the root over the first `size` events, when that is all of them or was watched for; else None."""
        if size == self.seq:
            return self.root()
        return self._found if size == self._wanted else None

    def digest(self) -> bytes:
        """Return a hash of the whole projection: the root."""
        return self.root()

    def save(self) -> bytes:
        """Return the tree as bytes, without the last event."""
        self._fold()
        return self._range.save()

    def load(self, data: bytes, head: Head) -> bool:
        """Become what was saved at a head that the log confirms; False, and unchanged, when the two do not fit."""
        try:
            saved = CompactRange.load(data)
        except ValueError:
            return False
        if saved.size != max(0, head.seq - 1):
            return False
        self._range, self.seq = saved, head.seq
        self._waiting = [head.chain] if head.seq else []
        return True

    def copy(self) -> CompactRange:
        """Return the range over all events, to be continued apart from this one."""
        self._fold()
        whole = self._range.copy()
        whole.extend(self._waiting)
        return whole

    def _root_of(self, size: int) -> bytes:
        part = self._range.copy()
        part.extend(self._waiting[: size - part.size])
        return part.root()

    def _fold(self) -> None:
        if len(self._waiting) > 1:
            self._range.extend(self._waiting[:-1])
            del self._waiting[:-1]
