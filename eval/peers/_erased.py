"""
What a forget leaves on the disk: rare words and vectors, searched for in every file before and after.

Before is the control: what cannot be found before a forget says nothing when it is not found after, so a product whose
control finds nothing has no figure. Three times are looked at, in a copy of the folder: when the forget has returned,
after the store was closed, and after the product's own maintenance where it has any. What a store is sealed with lies
beside it, so what the keys in the folder open is searched like the files.
"""

from __future__ import annotations

import base64
import random
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from eval._erasure_scan import Hit, Needle, Scanner, text_needles, vector_needles

from ._client import Peer
from ._install import Environment
from ._protocol import Memory
from ._texts import Texts

SECRETS = 10
_OTHERS = 100
_LETTERS = "bcdfghjklmnpqrstvwxz"

Row = dict[str, object]


def erased_row(name: str, environment: Environment, texts: Texts, folder: Path) -> Row:
    """Write, look, forget, look again; return how many of the memories that were forgotten can still be read."""
    secrets = secret_memories(texts)
    store, copy = folder / "store", folder / "copy"
    row: Row = {"peer": name, "forgotten": SECRETS}
    with Peer(name, environment) as peer:
        peer.must("setup", folder=store)
        for memory in texts.memories(0, _OTHERS):
            peer.must("remember", memory=memory)
        ids = [str(peer.must("remember", memory=memory).value) for memory in secrets]
        peer.call("settle")
        peer.must("close")
        control = still_there(peer, store, copy, secrets)
    with Peer(name, environment) as peer:
        peer.must("setup", folder=store)
        for memory_id in ids:
            peer.must("forget", id=memory_id)
        row["recalled_after"] = _recalled(peer, secrets)
        row["control"] = len(control)
        at_return = still_there(peer, store, copy, secrets)
        peer.must("close")
        closed = still_there(peer, store, copy, secrets)
        row |= leavings("left_at_return", at_return, control) | leavings("left_after_close", closed, control)
    with Peer(name, environment) as peer:
        peer.must("setup", folder=store)
        reply = peer.call("clean_up")
        peer.must("close")
        row["clean_up"] = reply.value or reply.why
        if reply.ok:
            row |= leavings("left_after_clean_up", still_there(peer, store, copy, secrets), control)
    return row


def secret_memories(texts: Texts) -> list[Memory]:
    """Return memories with words that are nowhere else, and with vectors of their own."""
    made = random.Random(29)
    bases = texts.memories(0, SECRETS, mark="secret")

    def word() -> str:
        return "".join(made.choices(_LETTERS, k=14))

    return [Memory(f"The {word()} of {word()} lies under the {word()}.", one.vector, kind="chat") for one in bases]


def still_there(peer: Peer, store: Path, copy: Path, secrets: Sequence[Memory]) -> dict[int, list[str]]:
    """Return by number of a memory in which files of a copy it can be read, as text or as vector."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(store, copy)
    return still_readable(copy, base64.b64decode(cast("str", peer.must("readable", folder=copy).value)), secrets)


def still_readable(folder: Path, opened: bytes, secrets: Sequence[Memory]) -> dict[int, list[str]]:
    """Return by number of a memory where it can be read: in which files, or in what their keys opened."""
    scanner = Scanner(needle for number, memory in enumerate(secrets) for needle in _needles(number, memory))
    return _by_number([*scanner.scan_tree(folder), *scanner.scan(opened, "what the keys open")])


def _needles(number: int, memory: Memory) -> Iterable[Needle]:
    yield from text_needles("text", str(number), memory.text)
    for word in memory.text.rstrip(".").split():
        if len(word) == 14:
            yield from text_needles("text", str(number), word)
    yield from vector_needles(str(number), np.frombuffer(memory.vector, dtype="<f4"))


def _by_number(hits: Iterable[Hit]) -> dict[int, list[str]]:
    found: dict[int, set[str]] = {}
    for hit in hits:
        sort = "text" if hit.needle.kind == "text" else "vector"
        found.setdefault(int(hit.needle.label), set()).add(f"{sort} in {hit.where}")
    return {number: sorted(places) for number, places in sorted(found.items())}


def leavings(name: str, left: dict[int, list[str]], control: dict[int, list[str]]) -> Row:
    """Return how many are left and where; no figure where the control had not found every one before."""
    if len(control) < SECRETS:
        return {name: None}
    return {name: len(left), f"{name}_where": sorted({place for places in left.values() for place in places})[:12]}


def _recalled(peer: Peer, secrets: Sequence[Memory]) -> int:
    count = 0
    for memory in secrets:
        hits = peer.must("recall", text=memory.text, vector=memory.vector, k=8).value
        count += any(hit["text"] == memory.text for hit in cast("list[dict[str, str]]", hits))
    return count
