"""
The positive control of the erasure campaign: what is planted, in every kind, encoding and codec, must be found.

Three places: a file that is there, a file that was removed, and a secret that was replaced by writing beside it and
renaming, which leaves the old one on the device: that is what `root.key` must not do.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import numpy as np

from ._erasure_scan import Hit, Needle, byte_needles, compressors, text_needles, vector_needles

_REPLACED: Final = 40
_TEXT = "control: the zyzzyvaform sleeps quietly below forty bridges of Quinquagenaria"


def planted_needles() -> list[Needle]:
    """Return one of each kind of needle, in every encoding."""
    vector = np.sin(np.arange(384, dtype=np.float32) + 1)
    vector = (vector / np.sqrt((vector * vector).sum())).astype(np.float32)
    needles = text_needles("control-content", "planted", _TEXT) + text_needles("control-word", "planted", "zyzzyvaform")
    needles += vector_needles("planted", vector)
    for kind in ("root", "page-key", "slot-key", "chunk-key"):
        needles += byte_needles(f"control-{kind}", "planted", _key(kind))
    for name in compressors():
        needles += text_needles(f"control-{name}", "planted", f"{name} keeps this sentence in a block of its own")
    needles += byte_needles("control-removed", "planted", _key("removed"))
    return needles + byte_needles("control-renamed", "planted", _key("renamed"))


def plant(directory: Path) -> None:
    """Write everything that `planted_needles` looks for, and sync it."""
    directory.mkdir()
    os.sync()  # what was written before and has no place yet must not be given one that is left below
    plain = [
        n.pattern for n in planted_needles() if n.kind.split("-")[-1] not in ("removed", "renamed", *compressors())
    ]
    blocks = [
        pack(f"{name} keeps this sentence in a block of its own".encode() + b" and some more of it" * 9)
        for name, pack in compressors().items()
    ]
    _write(directory / "there", b"".join(os.urandom(37) + data for data in [*plain, *blocks]))
    # Long, and often: what is written next may be given the blocks that a file has just left.
    _write(directory / "removed", b"".join(os.urandom(4000) + _key("removed") for _ in range(500)))
    (directory / "removed").unlink()
    secrets = [directory / f"secret-{number}" for number in range(_REPLACED)]
    for secret in secrets:
        _write(secret, _key("renamed").ljust(8192, b"\0"))
    for secret in secrets:
        beside = secret.with_name(f".{secret.name}.new")
        _write(beside, os.urandom(32).ljust(8192, b"\0"))
        beside.replace(secret)


def missed(hits: list[Hit], *, raw: bool) -> list[str]:
    """Return what was planted and not found: needles of the file that is there, and on a raw device of the others."""
    found = {(hit.needle.kind, hit.needle.label, hit.needle.pattern) for hit in hits}
    by_kind: dict[str, bool] = {}
    wanted: list[str] = []
    for needle in planted_needles():
        seen = (needle.kind, needle.label, needle.pattern) in found
        if needle.kind.split("-")[-1] in ("removed", "renamed", *compressors()):
            by_kind[needle.kind] = by_kind.get(needle.kind, False) or seen
        elif not seen:
            wanted.append(f"{needle.kind} in {needle.encoding}")
    ended = ("control-removed", "control-renamed")
    return wanted + [kind for kind, seen in by_kind.items() if not seen and (raw or kind not in ended)]


def is_control(hit: Hit) -> bool:
    """Tell whether a hit is of what was planted."""
    return hit.needle.label == "planted"


def _key(kind: str) -> bytes:
    return b"".join(bytes([(len(kind) * 37 + n * 101 + ord(kind[n % len(kind)])) % 251]) for n in range(32))


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
