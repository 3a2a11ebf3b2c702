"""
One protocol for memory engines that are compared: what can be asked of each, and how it is asked across a pipe.

An adapter is a subclass of `Adapter` in a module of its own (`_midas.py`), found by name through `ADAPTERS`. It
overrides the verbs that its product has. What it does not override answers `Unavailable`, and so does a verb that it
has only for some arguments: an adapter never emulates what the product lacks, and an outcome "unavailable" is never a
pass. The parent talks to a worker (`_worker.py`), which runs in the interpreter of the product's own environment, with
`Peer` of `_client.py`:

    with Peer("midas", environment) as peer:
        peer.call("setup", folder="/somewhere/empty")
        first = peer.call("remember", memory=Memory("The launch is on 12 March.", vector, about=("launch", "date")))
        hits = peer.call("recall", text="when do we launch?", vector=question, k=8)
        hits.value      # a list of Hit as JSON: [{"id": ..., "text": ..., "at": ...}]
        hits.ns         # how long the product's own call took, by the worker's clock
        hits.unavailable, hits.refused, hits.error    # why not, each a text or None

A request is a line `{"verb": "remember", "memory": {"text": ..., "vector": BASE64, ...}}`, the answer a line
`{"value": ..., "ns": 123456}` with `unavailable`, `refused` or `error` where there is no value. A vector is base64 of
little-endian float32 in lines, and bytes of the same in `Memory.vector`. Only the product's own call is timed: an
adapter converts what it was given first, and then calls inside `with self.timed():`.

The verbs, with what they return. Instants are seconds since the epoch, by the machine's clock.

    setup(folder, words=False)  open the store in a folder, a new one in an empty folder, with the settings that
                                `settings` states; `words` makes the vectors that were not given by `words_vector`
    reopen()                    close it, open it again in this process
    close()                     leave everything on the disk
    remember(memory)            -> id, durable on return as far as the product's settings allow
    remember_many(memories)     -> ids, by the product's call for batches
    settle()                    what the product's documentation says to run after a bulk load; -> what that was
    supersede(id, memory)       -> id of what now stands in its place
    retire(id, reason)          withdraw, kept in history
    forget(id)                  erase
    clean_up()                  the product's own maintenance that drops what was erased; -> what that was
    recall(text, vector, k, scope)               -> hits, best first
    as_of(instant, text, vector, k, scope)       -> hits as they were known then
    get(id)                     -> {"id", "text", "status"} or null
    current(about, scope)       -> the value's text that stands for a key, or null
    history(id)                 -> every text that the memory or its key has had, oldest first
    prohibit(action, scope)     the user's signed or stated never
    confirm(action, scope)      the user's yes to one act
    guard(action, use, evidence, scope)  -> {"allowed": bool, "reasons": [...]}; an action is
                                {"name": ..., "args": {...}}, a use one of planning, answer, external_action,
                                destructive_action
    readable(folder)            -> base64 of what whoever takes the closed folder can read beside the raw bytes:
                                what the keys in it open
    facts()                     -> versions and settings

This module and every adapter but Muniment's have nothing but the standard library at import, since they are imported in
interpreters where nothing of ours is installed, and in ours, where nothing of theirs is.
"""

# ruff: noqa: ARG002  # a verb that is missing takes what it would take

from __future__ import annotations

import array
import base64
import json
import math
import re
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias, cast

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Action: TypeAlias = "Mapping[str, Json]"

DIM: Final = 384
ADAPTERS: Final = {
    "muniment": "_muniment",
    "midas": "_midas",
    "inspeximus": "_inspeximus",
    "chromadb": "_chromadb",
    "lancedb": "_lancedb",
    "lancedb-index": "_lancedb_index",
    "sqlite-vec": "_sqlite_vec",
    "langgraph": "_langgraph",
}
"""The module of each adapter in this package; its class is called `Adapter` too."""


class Unavailable(Exception):
    """The product has no such operation, or not for these arguments; the text says which."""


class Refused(Exception):
    """The product was asked for something that it has, and said no; the text is its reason."""


@dataclass(frozen=True)
class Memory:
    """A memory as every product is given it. What a product has no place for, its adapter leaves out or refuses."""

    text: str
    vector: bytes = b""
    """Little-endian float32; none is allowed where `setup` was told `words`."""
    scope: str | None = None
    """Whose it is; None is the product's default place. An adapter maps it to the product's own means of separation."""
    about: tuple[str, str] | None = None
    """Subject and attribute, where it states the value of a key."""
    value: str | None = None
    origin: str | None = None
    """Where the agent has it from, such as `web:https://...`; `user` is the user's own words."""
    kind: str = "note"
    derived_from: tuple[str, ...] = ()
    valid_from: float | None = None


@dataclass(frozen=True)
class Hit:
    """A memory that a recall gave."""

    id: str
    text: str
    at: str | None = None
    """When it was recorded, if the product says so."""


class Given:
    """The vectors of the texts in hand, for products that take a function from texts to vectors."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}
        self.words = False

    def __len__(self) -> int:
        return len(self._known)

    def hand(self, text: str, vector: bytes) -> None:
        """Make a text's vector known until `drop`."""
        self._known[text] = self.vector(text, vector)

    def vector(self, text: str, vector: bytes) -> bytes:
        """Return the vector as it was given, or one of the words where that was agreed at `setup`."""
        if vector:
            return vector
        if not self.words:
            raise ValueError("a memory without a vector, and `setup` was not told `words`")
        return words_vector(text)

    def drop(self) -> None:
        """Forget every vector: they must not count as the product's memory."""
        self._known.clear()

    def of(self, text: str) -> bytes:
        """Return the vector of a text in hand. Of any other: a `KeyError`, unless words were agreed on at `setup`."""
        return words_vector(text) if self.words and text not in self._known else self._known[text]


class Adapter:
    """A product behind the protocol. `settings` states what a reader needs to know for the figures to be fair."""

    name: ClassVar[str]
    requirements: ClassVar[tuple[str, ...]] = ()
    """What pip installs, pinned; empty where it runs in the interpreter of the runner."""
    versions: ClassVar[tuple[str, ...]] = ()
    """The distributions whose versions are recorded."""
    sqlite: ClassVar[str | None] = None
    """The module of the SQLite that it stores in, where it does."""
    settings: ClassVar[Mapping[str, str]] = {}
    lacks: ClassVar[Mapping[str, str]] = {}
    """Why a verb is unavailable, where that needs a word."""

    folder: Path
    """Where the open store is; `setup` sets it."""

    def __init__(self) -> None:
        self.ns = 0
        self.given = Given()

    @contextmanager
    def timed(self) -> Generator[None, None, None]:
        """Add what runs inside to the time of the verb under way."""
        start = time.perf_counter_ns()
        try:
            yield
        finally:
            self.ns += time.perf_counter_ns() - start

    def _no(self, verb: str) -> Unavailable:
        return Unavailable(self.lacks.get(verb, f"{self.name} has no `{verb}`"))

    def setup(self, folder: Path, *, words: bool = False) -> None:
        """Open the store in a folder; in an empty folder, make one."""
        self.folder, self.given.words = folder, words
        folder.mkdir(parents=True, exist_ok=True)
        self.open()

    def open(self) -> None:
        """Open the store in `self.folder`, or make one; inside `timed` what the product does."""
        raise NotImplementedError

    def reopen(self) -> None:
        """Close and open again."""
        self.close()
        self.open()

    def close(self) -> None:
        """Leave everything on the disk."""
        raise NotImplementedError

    def remember(self, memory: Memory) -> str:
        """Keep a memory."""
        raise NotImplementedError

    def recall(self, text: str, vector: bytes, k: int, scope: str | None = None) -> list[Hit]:
        """Return the best hits."""
        raise NotImplementedError

    def remember_many(self, memories: Sequence[Memory]) -> list[str]:
        """Keep several by the product's call for batches."""
        raise self._no("remember_many")

    def settle(self) -> str:
        """Do what follows a bulk load."""
        raise self._no("settle")

    def supersede(self, id: str, memory: Memory) -> str:  # noqa: A002
        """Put a memory in the place of another."""
        raise self._no("supersede")

    def retire(self, id: str, reason: str) -> None:  # noqa: A002
        """Withdraw."""
        raise self._no("retire")

    def forget(self, id: str) -> None:  # noqa: A002
        """Erase."""
        raise self._no("forget")

    def clean_up(self) -> str:
        """Drop what was erased."""
        raise self._no("clean_up")

    def as_of(self, instant: float, text: str, vector: bytes, k: int, scope: str | None = None) -> list[Hit]:
        """Return the hits as they were known then."""
        raise self._no("as_of")

    def get(self, id: str) -> dict[str, Json] | None:  # noqa: A002
        """Return a memory by id."""
        raise self._no("get")

    def current(self, about: tuple[str, str], scope: str | None = None) -> str | None:
        """Return the text that stands for a key."""
        raise self._no("current")

    def history(self, id: str) -> list[str]:  # noqa: A002
        """Return every text, oldest first."""
        raise self._no("history")

    def prohibit(self, action: Action, scope: str | None = None) -> str:
        """Forbid an act as the user."""
        raise self._no("prohibit")

    def confirm(self, action: Action, scope: str | None = None) -> str:
        """Allow an act as the user."""
        raise self._no("confirm")

    def guard(
        self, action: Action, use: str, evidence: Sequence[str] = (), scope: str | None = None
    ) -> dict[str, Json]:
        """Decide whether what is remembered may justify an act."""
        raise self._no("guard")

    def readable(self, folder: Path) -> bytes:
        """Return what can be read of a closed store beside its raw bytes."""
        del folder
        return b""

    def facts(self) -> dict[str, Json]:
        """Return versions and settings."""
        versions = {name: metadata.version(name) for name in self.versions}
        if self.sqlite is not None:
            versions["SQLite"] = sqlite_facts(import_module(self.sqlite))
        return {"versions": versions, "settings": dict(self.settings)}


def sqlite_facts(module: Any) -> str:
    """Return the version of a SQLite, and whether its build zeroes what is deleted: figures of erasure hang on it."""
    connection = module.connect(":memory:")
    zeroes = connection.execute("PRAGMA secure_delete").fetchone()[0]
    connection.close()
    return f"{module.sqlite_version}, secure_delete {'on' if zeroes else 'off'} by its build"


# --- lines ------------------------------------------------------------------------------------------------------------


def format_memory(memory: Memory) -> dict[str, Json]:
    """Return a memory as it stands in a line; what says nothing is left out."""
    fields = {name: value for name, value in asdict(memory).items() if value not in (None, ())}
    return {**fields, "vector": base64.b64encode(memory.vector).decode("ascii")}


def parse_memory(fields: Mapping[str, object]) -> Memory:
    """Return the memory of a line."""
    known: dict[str, Any] = dict(fields)
    known["vector"] = base64.b64decode(known.get("vector", ""))
    for name in ("about", "derived_from"):
        if name in known:
            known[name] = tuple(known[name])
    return Memory(**known)


def format_request(verb: str, arguments: Mapping[str, object]) -> str:
    """Return a request as one line: `{"verb": "recall", "text": "...", "vector": "AAAA...", "k": 8}`."""
    return json.dumps({"verb": verb, **{name: _as_json(value) for name, value in arguments.items()}}) + "\n"


def parse_request(line: str) -> tuple[str, dict[str, object]]:
    """Return the verb and its arguments as an adapter takes them."""
    fields: dict[str, object] = json.loads(line)
    verb = str(fields.pop("verb"))
    return verb, {name: _as_argument(name, value) for name, value in fields.items()}


def _as_json(value: object) -> object:
    if isinstance(value, Memory):
        return format_memory(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_as_json(one) for one in cast("Sequence[object]", value)]
    return value


def _as_argument(name: str, value: object) -> object:
    if name == "memory":
        return parse_memory(cast("Mapping[str, object]", value))
    if name == "memories":
        return [parse_memory(one) for one in cast("list[Mapping[str, object]]", value)]
    if name == "vector":
        return base64.b64decode(str(value))
    if name == "folder":
        return Path(str(value))
    if name == "about" and value is not None:
        return tuple(cast("list[str]", value))
    return value


def floats(vector: bytes) -> list[float]:
    """Return a vector as a list of Python floats."""
    numbers = array.array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def packed(numbers: Sequence[float]) -> bytes:
    """Return numbers as a vector."""
    values = array.array("f", numbers)
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def words_vector(text: str) -> bytes:
    """Return a unit vector of a text's words: equal words, equal direction. For suites that are not about ranking."""
    numbers = [0.0] * DIM
    for word in re.findall(r"\w+", text.casefold()) or [text]:
        digest = blake2b(word.encode(), digest_size=8).digest()
        numbers[int.from_bytes(digest[:4], "big") % DIM] += 1.0 if digest[4] & 1 else -1.0
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return packed([number / length for number in numbers])
