"""
The key tree: root -> table -> pages of data keys made ahead of use.

    root.key              two slots of 4096 bytes, overwritten in place; at rest both hold the current root
    keys/table-E-R        value secret, page keys, chunk keys and the shred ledger, sealed under root E; R is a revision
    keys/pages-E-R        one or more pages of 256 data keys, each page sealed under its own key

Destroying a data key means that no copy of the old root survives: everything else on the disk hangs off it. A root slot
is one aligned sector run, and is overwritten where it lies; write-temp-and-rename would leave the old root on the disk.

Steps of a rotation, with what a crash after each leaves:

    1. pages-E+1-0 with the destroyed slots overwritten by random bytes, under new page keys: an orphan file
    2. table-E+1-0 under the new root: an orphan that nobody can open
    3. fsync of keys/: as before
    4. new root into one root slot, fsync: the commit. The newer slot wins from here on
    5. new root over the other slot, fsync: the old root is gone from the disk
    6. removal of old tables and pages, not synced: what comes back is sealed, no root opens it, and the next rotation
       removes it

`resume` runs steps 5 and 6, by what it finds on the disk, when the next holder of the lock recovers.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from blake3 import blake3

from ._disk import Disk, names_in, open_file, open_reading, read_file, typed
from ._errors import KeyMissing
from ._ledger import Ledger, LedgerTombstone
from ._seal import KEY_BYTES, NONCE_BYTES, TAG_BYTES, open_blob, seal_blob

SLOTS_PER_PAGE: Final = 256
_PAGE_BYTES: Final = SLOTS_PER_PAGE * KEY_BYTES
_SEALED_PAGE_BYTES: Final = NONCE_BYTES + 16 + _PAGE_BYTES + TAG_BYTES
_ROOT_SLOT_BYTES: Final = 4096
_ROOT_MAGIC: Final = b"MNROOT1\0"
_ROOT: Final = struct.Struct(">8sQ32s")
_ROOT_HEAD: Final = struct.Struct(">8sQ")
_MOST_PAGES_AHEAD: Final = 64
_READS: Final = 8


_PageFile: TypeAlias = tuple[int, int]


class _PageRef(msgspec.Struct, array_like=True, frozen=True):
    epoch: int
    revision: int
    index: int
    key: bytes


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    epoch: int
    revision: int
    value_secret: bytes
    pages: list[_PageRef]
    chunks: dict[str, bytes]
    ledger: Ledger


_Stored: TypeAlias = tuple[
    int, int, bytes, list[_PageRef], dict[str, bytes], frozenset[int], tuple[LedgerTombstone, ...]
]
"""A table as it is encoded: epoch, revision, value secret, pages, chunks, and the ledger's slots and tombstones."""


class KeyTree:
    """
    The keys of one store, as one process sees them.

    Reading methods may be called by anyone. `reserve`, `shred`, `set_chunks` and `resume` change the disk and belong to
    the holder of the writer lock. A reader that cannot unseal something calls `reload` and tries again.
    """

    def __init__(self, root_path: Path, directory: Path, disk: Disk) -> None:
        """
        Open the tree.

        Raises:
            KeyMissing: no root slot is whole, or the table does not open under the root.
        """
        self._root_path, self._directory, self._disk = root_path, directory, disk
        self._cache: dict[int, bytes] = {}
        self._root_fd: int | None = None
        self._root, self._table = self._load()
        self._last_counted: tuple[_Table | None, Counter[_PageFile]] = (None, Counter())
        self._is_swept = False

    @classmethod
    def create(cls, root_path: Path, directory: Path, disk: Disk) -> KeyTree:
        """Make a new tree with one page of keys; the caller syncs the directory that holds `root.key`."""
        directory.mkdir(mode=0o700, exist_ok=True)
        root = os.urandom(KEY_BYTES)
        page, sealed = _new_page(0)
        disk.write_file(directory / _pages_name(1, 0), sealed)
        table = _Table(
            epoch=1,
            revision=0,
            value_secret=os.urandom(KEY_BYTES),
            pages=[_PageRef(1, 0, 0, page)],
            chunks={},
            ledger=Ledger.of(frozenset(), ()),
        )
        disk.write_file(directory / _table_name(1, 0), _seal_table(root, table))
        disk.sync_directory(directory)
        slot = _format_root(1, root)
        disk.write_file(root_path, slot + slot)
        return cls(root_path, directory, disk)

    @property
    def epoch(self) -> int:
        """How many rotations there were, counting creation as the first."""
        return self._table.epoch

    @property
    def value_secret(self) -> bytes:
        """The secret of keyed digests; never changes while the store lives."""
        return self._table.value_secret

    @property
    def capacity(self) -> int:
        """How many slots have a key."""
        return len(self._table.pages) * SLOTS_PER_PAGE

    @property
    def ledger(self) -> tuple[LedgerTombstone, ...]:
        """The tombstones that the key tree remembers even when an older log is put back."""
        return self._table.ledger.tombstones

    @property
    def shredded(self) -> frozenset[int]:
        """The slots whose keys were destroyed."""
        return self._table.ledger.shredded

    @property
    def first_never_shredded(self) -> int:
        """The first slot after all those whose keys were destroyed."""
        return self._table.ledger.first_never_shredded

    def is_shredded(self, slot: int) -> bool:
        """Tell whether the slot's key was destroyed on purpose."""
        return slot in self._table.ledger.shredded

    def slot_key(self, slot: int) -> bytes:
        """Return the key of a slot; a destroyed slot gives random bytes that open nothing."""
        number, index = divmod(slot, SLOTS_PER_PAGE)
        page = self._cache.get(number)
        if page is None:
            page = self._cache[number] = self._open_page(number)
        return page[index * KEY_BYTES : (index + 1) * KEY_BYTES]

    def live_key(self, slot: int) -> bytes | None:
        """Return the key of a slot, or None when it was destroyed: what stands in its place may seal nothing."""
        key = self.slot_key(slot)
        # After the key, not before: fetching it may have loaded the table in which the slot is destroyed.
        return None if self.is_shredded(slot) else key

    def chunk_key(self, name: str) -> bytes | None:
        """Return the key of a sealed chunk of a projection, or None when it has none (any more)."""
        return self._table.chunks.get(name)

    def content_chunks(self, prefix: str) -> list[str]:
        """Return the names of the chunks that begin with a prefix."""
        return [name for name in self._table.chunks if name.startswith(prefix)]

    def reload(self) -> bool:
        """Read the root again, and tell whether another process has rotated it or added to the table."""
        before = (self._table.epoch, self._table.revision)
        # A table that was written once never changes, and opening a large one takes milliseconds.
        if _read_root(self._root_path) == (before[0], self._root) and self._table_names(before[0])[:1] == [
            _table_name(*before)
        ]:
            return False
        self._root, self._table = self._load()
        if before != (self._table.epoch, self._table.revision):
            self._is_swept = False
            self._cache.clear()
            return True
        return False

    def is_current(self) -> bool:
        """Tell whether the root on disk is still the one this process holds; reads the head of each slot."""
        if self._root_fd is None:
            self._root_fd = open_file(self._root_path, os.O_RDONLY)
        # Compared as bytes: a slot that a crash left half-written is not this epoch's either.
        ours = _ROOT_HEAD.pack(_ROOT_MAGIC, self._table.epoch)
        return all(os.pread(self._root_fd, len(ours), at) == ours for at in (0, _ROOT_SLOT_BYTES))

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Release the descriptor."""
        if self._root_fd is not None:
            os.close(self._root_fd)
            self._root_fd = None

    def is_at_rest(self) -> bool:
        """Tell whether both root slots hold the same root, so that no older one is on the disk."""
        _, _, slots = _read_root_slots(self._root_path)
        return slots[0] == slots[1]

    def reserve(self, upto: int) -> None:
        """Make sure that every slot below `upto` has a durable key. Called before the events that use them."""
        if upto <= self.capacity:
            return
        first = len(self._table.pages)
        needed = -(-upto // SLOTS_PER_PAGE) - first
        count = max(needed, min(_MOST_PAGES_AHEAD, 1 + first // 8))
        revision = self._table.revision + 1
        made = [_new_page(first + n) for n in range(count)]
        self._disk.write_file(
            self._directory / _pages_name(self.epoch, revision), b"".join(sealed for _, sealed in made)
        )
        pages = [_PageRef(self.epoch, revision, n, key) for n, (key, _) in enumerate(made)]
        self._revise(msgspec.structs.replace(self._table, revision=revision, pages=self._table.pages + pages))

    def set_chunks(self, keys: dict[str, bytes | None]) -> None:
        """Keep or drop the keys of projection chunks. A dropped key stays on the disk until the next rotation."""
        self.reload()
        chunks = {name: key for name, key in (self._table.chunks | keys).items() if key is not None}
        self._revise(msgspec.structs.replace(self._table, revision=self._table.revision + 1, chunks=chunks))

    def shred(
        self,
        slots: Collection[int],
        *,
        drop_chunks: Collection[str] = (),
        tombstones: Sequence[LedgerTombstone] = (),
    ) -> None:
        """Destroy the keys of slots and of projection chunks: when it returns, no copy of them is on the disk."""
        epoch = self.epoch + 1
        by_page: dict[int, list[int]] = {}
        for slot in sorted(slots):
            by_page.setdefault(slot // SLOTS_PER_PAGE, []).append(slot % SLOTS_PER_PAGE)
        refs = list(self._table.pages)
        sealed: list[bytes] = []
        fresh: dict[int, bytes] = {}
        files = self._page_files()
        for index, (number, gone) in enumerate(by_page.items()):
            plain = bytearray(self._page(number))
            for place in gone:
                plain[place * KEY_BYTES : (place + 1) * KEY_BYTES] = os.urandom(KEY_BYTES)
            fresh[number] = bytes(plain)
            key = os.urandom(KEY_BYTES)
            files.subtract([(refs[number].epoch, refs[number].revision)])
            refs[number] = _PageRef(epoch, 0, index, key)
            sealed.append(_seal_page(key, number, fresh[number]))
        if sealed:
            files[epoch, 0] = len(sealed)
            self._disk.write_file(self._directory / _pages_name(epoch, 0), b"".join(sealed))
        root = os.urandom(KEY_BYTES)
        table = _Table(
            epoch=epoch,
            revision=0,
            value_secret=self.value_secret,
            pages=refs,
            chunks={name: key for name, key in self._table.chunks.items() if name not in drop_chunks},
            ledger=self._table.ledger.with_shredded(slots, tombstones),
        )
        self._disk.write_file(self._directory / _table_name(epoch, 0), _seal_table(root, table))
        self._disk.sync_directory(self._directory)
        self._write_root_slot(epoch % 2, epoch, root)
        superseded = [_table_name(self._table.epoch, self._table.revision)]
        superseded += [_pages_name(*file) for file, pages in files.items() if not pages]
        self._root, self._table = root, table
        self._last_counted = (table, +files)
        self._cache.update(fresh)
        self._write_root_slot(1 - epoch % 2, epoch, root)
        # A crash of whoever was here before may have left others, and listing takes long where there are many.
        for name in superseded if self._is_swept else self._superfluous():
            self._disk.remove(self._directory / name)
        self._is_swept = True

    def resume(self) -> None:
        """Finish a rotation that was interrupted, or whose outcome is unknown; usually there is nothing to do."""
        self.reload()
        epoch, root, slots = _read_root_slots(self._root_path)
        if slots[0] != slots[1]:
            # A sync that failed may have left the new root in memory only, in a page marked clean: it must reach the
            # disk before the old one goes.
            current = slots.index((epoch, root))
            self._write_root_slot(current, epoch, root)
            self._write_root_slot(1 - current, epoch, root)
        for name in self._superfluous():
            self._disk.remove(self._directory / name)

    def _superfluous(self) -> list[str]:
        keep = {_pages_name(*file) for file in self._page_files()}
        keep.add(_table_name(self._table.epoch, self._table.revision))
        return [name for name in names_in(self._directory) if name not in keep]

    def _page_files(self) -> Counter[_PageFile]:
        # How many pages of each file are in use; counting them again takes as long as a sync where there are many.
        table, files = self._last_counted
        if table is not self._table:
            files = Counter((ref.epoch, ref.revision) for ref in self._table.pages)
            self._last_counted = (self._table, files)
        return files.copy()

    def _revise(self, table: _Table) -> None:
        # Same root, so the older revision may stay on the disk: it dies with this root at the next rotation.
        path = self._directory / _table_name(table.epoch, table.revision)
        self._disk.replace_file(path, _seal_table(self._root, table))
        old = self._directory / _table_name(self._table.epoch, self._table.revision)
        self._table = table
        self._disk.remove(old)

    def _load(self) -> tuple[bytes, _Table]:
        # A rotation in another process may remove files between two of our reads: the root says so, and we read again.
        epoch = 0
        for _ in range(_READS):
            epoch, root = _read_root(self._root_path)
            table = self._newest_table(epoch, root)
            if table is not None:
                return root, table
        raise KeyMissing(slot="table", detail=f"no table of epoch {epoch} opens under the root")

    def _newest_table(self, epoch: int, root: bytes) -> _Table | None:
        for name in self._table_names(epoch):
            try:
                data = read_file(self._directory / name)
            except FileNotFoundError:
                continue
            plain = open_blob(_table_key(root), data[:NONCE_BYTES], data[NONCE_BYTES:], b"table")
            if plain is not None:
                number, revision, secret, pages, chunks, shredded, tombstones = _STORED_DECODER.decode(plain)
                return _Table(
                    epoch=number,
                    revision=revision,
                    value_secret=secret,
                    pages=pages,
                    chunks=chunks,
                    ledger=Ledger.of(shredded, tombstones),
                )
        return None

    def _table_names(self, epoch: int) -> list[str]:
        # None where the whole directory is gone, and with it every key.
        return sorted(names_in(self._directory, f"table-{epoch:016x}-*"), reverse=True)

    def _page(self, number: int) -> bytes:
        return self._cache.get(number) or self._open_page(number)

    def _open_page(self, number: int) -> bytes:
        for attempt in (0, 1):
            if number < len(self._table.pages) and (plain := self._read_page(number)) is not None:
                return plain
            if attempt == 0:
                self.reload()
        raise KeyMissing(slot=number * SLOTS_PER_PAGE, detail=f"key page {number} cannot be opened")

    def _read_page(self, number: int) -> bytes | None:
        ref = self._table.pages[number]
        try:
            with open_reading(self._directory / _pages_name(ref.epoch, ref.revision)) as file:
                file.seek(ref.index * _SEALED_PAGE_BYTES)
                data = file.read(_SEALED_PAGE_BYTES)
        except FileNotFoundError:
            return None
        return open_blob(ref.key, data[:NONCE_BYTES], data[NONCE_BYTES:], _page_context(number))

    def _write_root_slot(self, slot: int, epoch: int, root: bytes) -> None:
        with typed(self._root_path, "root.key"):
            fd = open_file(self._root_path, os.O_RDWR)
            try:
                self._disk.overwrite(fd, _format_root(epoch, root), slot * _ROOT_SLOT_BYTES)
                self._disk.sync(fd)
            finally:
                os.close(fd)


def _format_root(epoch: int, root: bytes) -> bytes:
    head = _ROOT.pack(_ROOT_MAGIC, epoch, root)
    return (head + blake3(head).digest()).ljust(_ROOT_SLOT_BYTES, b"\0")


def _read_root_slots(path: Path) -> tuple[int, bytes, list[tuple[int, bytes] | None]]:
    try:
        data = read_file(path)
    except FileNotFoundError as error:
        raise KeyMissing(slot="root", detail="root.key is missing") from error
    slots: list[tuple[int, bytes] | None] = []
    for at in (0, _ROOT_SLOT_BYTES):
        head = data[at : at + _ROOT.size]
        whole = len(head) == _ROOT.size and blake3(head).digest() == data[at + _ROOT.size : at + _ROOT.size + 32]
        magic, epoch, root = _ROOT.unpack(head) if whole else (b"", 0, b"")
        slots.append((epoch, root) if magic == _ROOT_MAGIC else None)
    usable = [slot for slot in slots if slot is not None]
    if not usable:
        raise KeyMissing(slot="root", detail="no root slot is whole")
    return *max(usable), slots


def _read_root(path: Path) -> tuple[int, bytes]:
    epoch, root, _ = _read_root_slots(path)
    return epoch, root


def _table_key(root: bytes) -> bytes:
    return blake3(root, derive_key_context="muniment 2026 key table v1").digest()


def _seal_table(root: bytes, table: _Table) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    stored = (table.epoch, table.revision, table.value_secret, table.pages, table.chunks, *table.ledger.encoded())
    return nonce + seal_blob(_table_key(root), nonce, _encode(stored), b"table")


def _new_page(number: int) -> tuple[bytes, bytes]:
    key = os.urandom(KEY_BYTES)
    return key, _seal_page(key, number, os.urandom(_PAGE_BYTES))


def _seal_page(key: bytes, number: int, plain: bytes) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return nonce + seal_blob(key, nonce, plain, _page_context(number))


def _page_context(number: int) -> bytes:
    return b"page" + number.to_bytes(4, "big")


def _table_name(epoch: int, revision: int) -> str:
    return f"table-{epoch:016x}-{revision:08x}"


def _pages_name(epoch: int, revision: int) -> str:
    return f"pages-{epoch:016x}-{revision:08x}"


_encode = msgspec.msgpack.Encoder().encode
_STORED_DECODER: Final = msgspec.msgpack.Decoder(_Stored)
