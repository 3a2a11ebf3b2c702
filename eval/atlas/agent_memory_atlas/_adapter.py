"""What the suite asks of a memory: an adapter is a subclass of `Adapter` that overrides what its product has."""

# ruff: noqa: ARG002  # what is not there takes what it would take

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeAlias

Key: TypeAlias = tuple[str, str]
"""A subject and an attribute, such as `("launch", "date")`, for products whose facts have keys."""


class Unavailable(Exception):
    """The product has no such feature; the step is `unavailable`, which is not a pass."""


class Refused(Exception):
    """The product said no: the write, the change or the deletion did not happen."""


class Item(NamedTuple):
    """One memory as it comes back."""

    id: str
    text: str


class Fact(NamedTuple):
    """What an automated path (an extractor, an importer) brings: a text, its key and value, and where it is from."""

    text: str
    key: Key | None = None
    value: str | None = None
    source: str | None = None


class Entry(NamedTuple):
    """One entry of the audit log. `said` is the whole entry as text, so that what it quotes can be searched."""

    id: str
    action: str
    target: str
    said: str


class Case(NamedTuple):
    """A committed check that particular material is not retrieved: the file it stands in and its name there."""

    file: Path
    name: str


class Adapter:
    """
    A memory under test. It is made with an empty folder, once for every step.

    Override what your product has, with its best documented feature, and leave the rest: what is not overridden raises
    `Unavailable`, and so may you, with the reason. Raise `Refused` where your product says no.

    `by` says who speaks: `user` (the person, as strongly as your product can tell), `agent`, `document` (a page, a
    tool's output, an extractor), or `operator` (who may erase everywhere, where there is such a role). `scope` is a
    tenant or user. Never look at the names of scopes, nor at texts: the suite would no longer measure your product.
    """

    name: ClassVar[str] = "unnamed"
    version: ClassVar[str] = "unknown"
    fence: ClassVar[tuple[str, str] | None] = None
    """What opens and closes the block of memories that `context` returns."""
    views: ClassVar[tuple[str, ...]] = ()
    """Ways, beside `recall`, in which your product shows what is true now: a list, a graph, a profile, a summary."""
    stores: ClassVar[tuple[str, ...]] = ()
    """Every place from which content can be read, history, exports and caches included; `look` reads each."""
    write_paths: ClassVar[tuple[str, ...]] = ()
    """Every way in which an automated writer can bring in a text: single, batch, import, another front end."""
    calls: ClassVar[dict[str, str]] = {}
    """What each method calls in your product, for the report: `{"recall": "Memory.recall(query, limit=k)"}`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def close(self) -> None:
        """Release what is open."""

    # --- writing ------------------------------------------------------------------------------------------------------

    def remember(
        self,
        text: str,
        *,
        scope: str,
        by: str = "user",
        key: Key | None = None,
        value: str | None = None,
        source: str | None = None,
        derived_from: Sequence[str] = (),
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
        claim: str | None = None,
    ) -> str:
        """Store a text and return its id. `claim` is whom the *content or its labels* pretend to come from."""
        raise Unavailable("no way to write")

    def supersede(
        self,
        id: str,  # noqa: A002
        text: str,
        *,
        scope: str,
        by: str = "user",
        key: Key | None = None,
        value: str | None = None,
        valid_from: datetime | None = None,
    ) -> str:
        """Put a newer statement in the place of an older one and return its id."""
        raise Unavailable("no way to correct a memory")

    def retire(self, id: str, *, scope: str, by: str = "user") -> None:  # noqa: A002
        """Withdraw a statement without a successor; history may keep it."""
        raise Unavailable("no way to retract without a replacement")

    def reject(self, id: str, *, scope: str) -> str:  # noqa: A002
        """Have a person say that this value is wrong and is to stay out; return what `lift` takes."""
        raise Unavailable("no way to reject a value")

    def lift(self, receipt: str, *, scope: str) -> None:
        """Have a person allow a rejected value again."""
        raise Unavailable("no way to lift a rejection")

    def forget(self, id: str, *, scope: str, by: str = "user") -> None:  # noqa: A002
        """Delete a memory for good. Raise `Refused` when there is no such memory in the scope."""
        raise Unavailable("no way to delete")

    def feed(self, facts: Sequence[Fact], *, scope: str) -> None:
        """Bring in a source by the automated path, as `document`; what the product refuses is left out quietly."""
        raise Unavailable("no automated path")

    def write_by(self, path: str, text: str, *, scope: str, key: Key | None = None, value: str | None = None) -> None:
        """Write as an automated writer by one of `write_paths`; raise `Refused` when that is refused."""
        raise Unavailable("no list of write paths")

    def share(self, id: str, *, scope: str, to: str) -> None:  # noqa: A002
        """Let another scope read a memory, as your product shares."""
        raise Unavailable("no sharing between scopes")

    # --- reading ------------------------------------------------------------------------------------------------------

    def recall(self, query: str, *, scope: str, k: int = 10) -> list[Item]:
        """Return what the product would hand to an agent that asks this, best first, with its default filters."""
        raise Unavailable("no recall")

    def recall_as(self, query: str, *, scope: str, asked: str) -> list[Item]:
        """Recall as a caller bound to `scope` who asks for `asked` by whatever argument a caller can set."""
        raise Unavailable("no bound caller")

    def context(self, query: str, *, scope: str) -> str:
        """Return the text that goes into a prompt."""
        raise Unavailable("no block for a prompt")

    def get(self, id: str, *, scope: str) -> str | None:  # noqa: A002
        """Return the text stored under an id, or None when this scope has none."""
        raise Unavailable("no reading by id")

    def current(self, key: Key, *, scope: str, valid_at: datetime | None = None, known_at: object = None) -> list[str]:
        """Return the texts that hold for a key: at `valid_at`, as it was known at `known_at` (from `now`)."""
        raise Unavailable("no current value of a key")

    def now(self) -> object:
        """Return this moment of record time, for `known_at`."""
        raise Unavailable("no record time")

    def history(self, id: str, *, scope: str) -> list[str]:  # noqa: A002
        """Return every version of the statement that an id belongs to, the oldest first."""
        raise Unavailable("no history")

    def source_of(self, id: str, *, scope: str) -> str | None:  # noqa: A002
        """Return the source that a memory was written with."""
        raise Unavailable("no sources")

    def look(self, where: str, *, scope: str) -> list[str]:
        """Return every text that one of `views` or `stores` shows of a scope."""
        raise Unavailable("no views")

    # --- upkeep -------------------------------------------------------------------------------------------------------

    def jobs(self, *, days: int = 0) -> None:
        """Run every background job there is (consolidation, decay, pruning) as if so many days had passed."""
        raise Unavailable("no background jobs")

    def reindex(self) -> None:
        """Throw away what is derived and make it again from what is kept."""
        raise Unavailable("no way to rebuild what is derived")

    def reopen(self) -> None:
        """Close the store and open it again, as a restart does."""
        raise Unavailable("nothing outlives the process")

    # --- oversight ----------------------------------------------------------------------------------------------------

    def audit(self, *, scope: str) -> list[Entry]:
        """Return the log of mutations that touch a scope, the oldest first."""
        raise Unavailable("no audit log")

    def tombstones(self, *, scope: str) -> list[str]:
        """Return each rejected value's record as stored, as text."""
        raise Unavailable("no tombstones")

    def status(self, id: str, *, scope: str) -> str:  # noqa: A002
        """Return the memory's epistemic status, a word out of a fixed list."""
        raise Unavailable("no status")

    def withhold(self, id: str, *, scope: str) -> None:  # noqa: A002
        """Put a memory into the state in which it is kept but not treated as true."""
        raise Unavailable("no state that withholds")

    def propose(self, text: str, *, scope: str, key: Key | None = None, value: str | None = None) -> str:
        """Write something that a person is to look at, and return its id."""
        raise Unavailable("no review")

    def waiting(self, *, scope: str) -> list[Item]:
        """Return what waits for a person, with its content."""
        raise Unavailable("no review")

    def review(self, id: str, *, approve: bool, scope: str) -> None:  # noqa: A002
        """Give the person's verdict."""
        raise Unavailable("no review")

    def grant(self, action: str, *, scope: str) -> str:
        """Have the person allow an action until further notice, and return the grant's id."""
        raise Unavailable("no grants")

    def revoke(self, grant: str, *, scope: str) -> None:
        """Have the person take a grant back."""
        raise Unavailable("no grants")

    def may(self, action: str, *, evidence: Sequence[str], scope: str) -> bool:
        """Ask the product whether these memories justify the action now."""
        raise Unavailable("no guard")

    def restore(self, id: str, *, scope: str) -> None:  # noqa: A002
        """Put back what stood before the memory `id` took its place, from what the product recorded of it."""
        raise Unavailable("no restoring")

    def negative_case(self) -> Case:
        """Name a committed test of the product which asserts that particular material is *not* retrieved."""
        raise Unavailable("no negative case is named")

    def run_case(self, name: str) -> bool:
        """Run a test of `negative_case().file` by name, and tell whether it ran and passed."""
        raise Unavailable("no negative case is named")
