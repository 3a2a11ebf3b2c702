"""
Sealed snapshots of the projections, in two chunks with keys of their own.

    projections/envelope-FINGERPRINT.snap   register, tombstones, recall's rows: nothing that a forget must destroy
    projections/content-FINGERPRINT.snap    recall's words: a forget destroys its key, and it is made anew from the log

Each is nonce || sealed (head, data). A snapshot is used only when the log contains its head; anything else about it
that is wrong means that it is not used, and the log is folded instead.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec
from blake3 import blake3

from muniment.events import CONTENT_CHUNK, KEY_BYTES, NORMAL_FORM, Head, KeyTree, Log, open_blob, seal_blob
from muniment.projections import ANALYZER_ID, PROJECTION_VERSIONS, Projections

_NONCE_BYTES: Final = 12
_ENVELOPE: Final = "envelope"
_CONTENT: Final = CONTENT_CHUNK + "words"


class _Envelope(msgspec.Struct, array_like=True):
    head: Head
    register: bytes
    tombstones: bytes
    rows: bytes
    tree: bytes


class _Content(msgspec.Struct, array_like=True):
    head: Head
    words: bytes


def fingerprint() -> str:
    """Return what the projections are made with: code versions and settings. Another one means another projection."""
    said = f"{PROJECTION_VERSIONS}|{NORMAL_FORM}|{ANALYZER_ID}"
    return blake3(said.encode()).hexdigest()[:16]


def load_snapshots(directory: Path, keys: KeyTree, log: Log, state: Projections) -> int:
    """Fill the state from the newest snapshot that the log confirms, and return the sequence number it stands at."""
    data = _read(directory, _ENVELOPE, keys)
    if data is None:
        return 0
    try:
        saved = _ENVELOPE_DECODER.decode(data)
    except msgspec.MsgspecError:
        return 0
    if not log.resume(saved.head):
        return 0
    if not state.tree.load(saved.tree, saved.head):
        log.rewind()
        return 0
    state.register.load(saved.register)
    state.tombstones.load(saved.tombstones)
    state.recall.load_rows(saved.rows)
    words = _read(directory, _CONTENT, keys)
    if words is not None:
        content = _CONTENT_DECODER.decode(words)
        if content.head == saved.head:
            state.recall.load_content(content.words)
    return saved.head.seq


def save_snapshots(directory: Path, keys: KeyTree, head: Head, state: Projections) -> int:
    """Save the state at a head, and return its sequence number. The caller holds the writer lock."""
    directory.mkdir(mode=0o700, exist_ok=True)
    envelope = _Envelope(
        head, state.register.save(), state.tombstones.save(), state.recall.save_rows(), state.tree.save()
    )
    content = _Content(head, state.recall.save_content())
    fresh = {name: os.urandom(KEY_BYTES) for name in (_ENVELOPE, _CONTENT)}
    # Files first, then their keys in one step: a crash between them leaves files that no key opens.
    for name, data in ((_ENVELOPE, _encode(envelope)), (_CONTENT, _encode(content))):
        nonce = os.urandom(_NONCE_BYTES)
        path = _path(directory, name)
        beside = path.with_suffix(f".{os.getpid()}.part")
        beside.write_bytes(nonce + seal_blob(fresh[name], nonce, data, name.encode()))
        beside.replace(path)
    keys.set_chunks(dict(fresh))
    for stale in directory.glob("*.snap"):
        if stale not in (_path(directory, _ENVELOPE), _path(directory, _CONTENT)):
            stale.unlink()
    for part in directory.glob("*.part"):
        part.unlink()
    return head.seq


def _read(directory: Path, name: str, keys: KeyTree) -> bytes | None:
    key = keys.chunk_key(name)
    if key is None:
        return None
    try:
        data = _path(directory, name).read_bytes()
    except OSError:
        return None
    return open_blob(key, data[:_NONCE_BYTES], data[_NONCE_BYTES:], name.encode())


def _path(directory: Path, name: str) -> Path:
    return directory / f"{name.split('/', maxsplit=1)[0]}-{fingerprint()}.snap"


_encode = msgspec.msgpack.Encoder().encode
_ENVELOPE_DECODER: Final = msgspec.msgpack.Decoder(_Envelope)
_CONTENT_DECODER: Final = msgspec.msgpack.Decoder(_Content)
