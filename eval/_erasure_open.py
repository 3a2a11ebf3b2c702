"""
What can be read from a store's files with the keys that lie beside them: the strongest reader of a copied store.

It trusts nothing that the engine says of a memory. It opens the root, the table and every page, then every event's
envelope and body, every snapshot chunk, every vector and every torn remainder, with whatever key fits. A forget that
leaves a value in any of these under a key that is still there is found here, where a search of the files finds nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from blake3 import blake3
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from muniment.events import KEY_BYTES, Disk, KeyTree, Log, MunimentError, ProjectionStale, find_store, open_blob
from muniment.events._codec import EVENT_HEADER, NO_SLOT, EventHeader, parse_event_header
from muniment.events._keys import SLOTS_PER_PAGE
from muniment.events._seal import commitment
from muniment.projections import SealedSections

_VECTOR_HEAD = 8 + 2 + 32
_VECTOR_PREFIX = 16 + 4 + 12
_SEAL = 32


class Opened(NamedTuple):
    """Something that a key on the disk opened."""

    where: str
    plain: bytes


class KeysOnDisk(NamedTuple):
    """Every key that the files give: the root, page keys, chunk keys, and the slots' keys, replaced ones included."""

    root: bytes
    pages: tuple[bytes, ...]
    chunks: dict[str, bytes]
    slots: list[bytes]


def read_keys(store: Path) -> KeysOnDisk:
    """
    Read every key of a store as a thief with a copy would.

    Raises:
        KeyMissing: the table does not open under the root that is there.
    """
    tree = KeyTree(store / "root.key", store / "keys", Disk())
    # The tree shows these to nobody; whoever has the files has them all the same.
    table = tree._table
    return KeysOnDisk(
        tree._root,
        tuple(ref.key for ref in table.pages),
        dict(table.chunks),
        [tree.slot_key(slot) for slot in range(len(table.pages) * SLOTS_PER_PAGE)],
    )


def open_all(store: Path, keys: KeysOnDisk) -> Iterator[Opened]:
    """Yield everything in the store's files that any of the keys opens."""
    yield from _events(store, keys)
    yield from _torn(store, keys)
    yield from _chunks(store, keys)
    yield from _vectors(store, keys)


def mixed(store: Path, old_keys: Path, where: Path) -> Path:
    """Return a copy of a store's newest files with the `keys/` of an older copy: all that a thief has but the root."""
    shutil.copytree(store, where)
    shutil.rmtree(where / "keys")
    shutil.copytree(old_keys, where / "keys")
    return where


def _events(store: Path, keys: KeysOnDisk) -> Iterator[Opened]:
    files = find_store(store)
    by_commitment = {commitment(key): key for key in keys.slots}
    log = Log(files.log, files.store_id, Disk(), read_only=True)
    try:
        for located in log.read_new():
            for raw in located.frame.events:
                yield from _parts(files.store_id, raw, by_commitment)
    finally:
        log.close()


def _parts(log_id: bytes, raw: bytes, by_commitment: dict[bytes, bytes]) -> Iterator[Opened]:
    # Any key that fits the commitment, whatever slot the event names.
    header = parse_event_header(raw)
    body_at = EVENT_HEADER.size + header.envelope_bytes
    parts = [("E", header.scope_commitment, raw[EVENT_HEADER.size : body_at])]
    if header.slot != NO_SLOT:
        parts.append(("B", header.commitment, raw[body_at:]))
    for domain, committed, sealed in parts:
        key = by_commitment.get(committed)
        plain = (
            None if key is None else _decrypt(key, header, sealed, domain.encode() + log_id + raw[: EVENT_HEADER.size])
        )
        if plain is not None:
            yield Opened(f"log:{header.seq}:{'envelope' if domain == 'E' else 'body'}", plain)


def _torn(store: Path, keys: KeysOnDisk) -> Iterator[Opened]:
    # Events lie anywhere in what was set aside: a header is tried at every byte whose commitment some key has.
    log_id = find_store(store).store_id
    by_commitment = {commitment(key): key for key in keys.slots}
    for path in sorted((store / "log").glob("*.torn-*")):
        data = path.read_bytes()
        for at in range(len(data) - EVENT_HEADER.size):
            header = EventHeader(*EVENT_HEADER.unpack_from(data, at))
            key = by_commitment.get(header.commitment)
            if key is not None:
                context = b"B" + log_id + data[at : at + EVENT_HEADER.size]
                start = at + EVENT_HEADER.size + header.envelope_bytes
                plain = _decrypt(key, header, data[start : start + header.body_bytes], context)
                if plain is not None:
                    yield Opened(f"{path.name}:{at}", plain)


def _chunks(store: Path, keys: KeysOnDisk) -> Iterator[Opened]:
    for path in sorted((store / "projections").glob("*.snap")):
        for name, key in keys.chunks.items():
            try:
                sections = SealedSections(path, key)
            except ProjectionStale:
                continue  # another key's file
            for section in sections._directory:
                yield Opened(f"{path.name}:{name}:{section}", sections.between(section, 0, path.stat().st_size))


def _vectors(store: Path, keys: KeysOnDisk) -> Iterator[Opened]:
    derived = [blake3(key, derive_key_context="muniment 2026 vector v1").digest() for key in keys.slots]
    for path in sorted((store / "projections").glob("vectors-*")):
        data = path.read_bytes()
        size = _VECTOR_PREFIX + 2 * int.from_bytes(data[8:10], "big") + _SEAL
        for at in range(_VECTOR_HEAD, len(data) - size + 1, size):
            identity, slot = data[at : at + 16], int.from_bytes(data[at + 16 : at + 20], "big")
            context = b"vector" + data[10:42] + identity
            nonce, sealed = data[at + 20 : at + 32], data[at + 32 : at + size]
            plain = open_blob(derived[slot], nonce, sealed, context) if slot < len(derived) else None
            if plain is not None:
                yield Opened(f"{path.name}:{identity.hex()}", plain)


def _decrypt(key: bytes, header: EventHeader, sealed: bytes, context: bytes) -> bytes | None:
    try:
        return AESGCM(key[:KEY_BYTES]).decrypt(header.nonce, sealed, context)
    except (InvalidTag, ValueError):
        return None


def opens(store: Path) -> bool:
    """Tell whether the keys that lie in a store open its table at all."""
    try:
        read_keys(store)
    except MunimentError:
        return False
    return True
