"""Muniment behind the acceptance tests, through its public API and nothing else."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import ClassVar, cast

import muniment
from muniment import Action, KeyFile

from ._harness import ROOT
from .atlas.agent_memory_atlas import Adapter, Case, Entry, Fact, Item, Key, Refused, Unavailable

DAY = 86_400_000_000
POLICY = '[actions]\n"pay" = "external_action"\n[limits]\nreview = ["web:proposals.example"]\n'


class MunimentAdapter(Adapter):
    """A store whose host makes the handles: the user signs, an agent speaks for itself, a document is a web page."""

    name = "muniment"
    version = muniment.__version__
    fence = ("<memory", "</memory>")
    views = ("list", "beliefs", "briefing", "sql beliefs")
    stores = ("list", "beliefs", "history", "sql memories", "export")
    write_paths = ("remember", "remember_many", "supersede", "import_file")
    calls: ClassVar[dict[str, str]] = {
        "by": "user: store.user_session(signer=); agent: store.session(actor='agent:planner'); document: "
        "store.session(origin='web:...'); operator: store.operator()",
        "remember": "remember(about=, value=, source=, derived_from=, valid_from=, valid_to=)",
        "claim": "remember(provenance='user_confirmation'), and where that is refused metadata and tags that say so",
        "supersede": "supersede", "retire": "retire", "reject": "user.forget", "forget": "forget; operator().forget",
        "lift": "user.lift", "feed": "remember_many(on_refusal='skip') of a web origin",
        "write_by": "remember, remember_many, supersede of a note of its own, store.import_file",
        "share": "session(reads=) of the scope that reads", "recall": "recall(k=)",
        "recall_as": "recall(where=, tags=, ...) on a session of the bound scope", "context": "context",
        "get": "get", "current": "beliefs(about=, valid_at=, known_at=)", "now": "store.head.seq",
        "history": "history", "source_of": "get().source", "look": "list, beliefs, briefing, history, sql, export",
        "jobs": "it has no job that changes memories: checkpoint and embed, with its clock so many days ahead",
        "reindex": "store.rebuild", "reopen": "close and open", "audit": "store.sql over `events`",
        "tombstones": "operator().tombstones", "status": "get().status", "withhold": "operator().quarantine",
        "propose": "remember from an origin that the policy has reviewed", "waiting": "user.pending",
        "review": "user.review", "grant": "user.confirm(uses=None)", "revoke": "user.revoke", "may": "decide",
        "restore": "history, then supersede with what stood before", "negative_case": "its own tests, by pytest",
    }  # fmt: skip
    model: ClassVar[str | None] = None

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._ahead = 0
        self._shared: dict[str, tuple[str, ...]] = {}
        self._scopes: dict[str, str] = {}
        self._key = KeyFile.create(folder / "ann.key")
        self._store = self._open(create=True)
        self._store.enroll("user:ann", self._key.public_key, scopes=("atlas",))

    def _open(self, *, create: bool = False) -> muniment.Store:
        return muniment.open(
            self.folder / "store", create=create, model=self.model, policy=muniment.Policy.from_toml(POLICY),
            clock=lambda: time.time_ns() // 1_000 + self._ahead,
        )  # fmt: skip

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    # --- handles ------------------------------------------------------------------------------------------------------

    def _user(self, scope: str) -> muniment.UserSession:
        return self._store.user_session(scope=scope, principal="user:ann", signer=self._key, reads=self._reads(scope))

    def _agent(self, scope: str, reads: Sequence[str] = ()) -> muniment.Session:
        return self._store.session(scope=scope, actor="agent:planner", reads=(*self._reads(scope), *reads))

    def _speaker(self, by: str, scope: str, reads: Sequence[str] = ()) -> muniment.Session:
        match by:
            case "user":
                return self._user(scope)
            case "agent":
                return self._agent(scope, reads)
            case "document":
                return self._store.session(scope=scope, actor="agent:reader", origin="web:docs.example")
            case _:
                raise Unavailable(f"{by} asserts nothing")

    def _reads(self, scope: str) -> tuple[str, ...]:
        return self._shared.get(scope, ())

    def _kept(self, receipt: muniment.Receipt, scope: str) -> str:
        self._scopes[receipt.id] = scope
        return receipt.id

    # --- writing ------------------------------------------------------------------------------------------------------

    def remember(
        self, text: str, *, scope: str, by: str = "user", key: Key | None = None, value: str | None = None,
        source: str | None = None, derived_from: Sequence[str] = (), valid_from: datetime | None = None,
        valid_to: datetime | None = None, claim: str | None = None,
    ) -> str:  # fmt: skip
        """Remember, as the handle that the host made."""
        reads = {self._scopes[parent] for parent in derived_from} - {scope}
        speaker = self._speaker(by, scope, tuple(reads))

        def write(provenance: str, metadata: dict[str, object], tags: Sequence[str]) -> str:
            receipt = speaker.remember(
                text, about=key, value=value, source=source, derived_from=derived_from, valid_from=valid_from,
                valid_to=valid_to, provenance=provenance, metadata=metadata, tags=tags,
            )  # fmt: skip
            return self._kept(receipt, scope)

        with refusing():
            if claim is None:
                return write("observation", {}, ())
            try:
                return write("user_confirmation", {}, ())
            except muniment.Refused:
                return write("observation", {"origin": claim, "rank": "signed", "actor": "user:ann"}, (claim,))

    def supersede(
        self, id: str, text: str, *, scope: str, by: str = "user", key: Key | None = None,  # noqa: A002
        value: str | None = None, valid_from: datetime | None = None,
    ) -> str:  # fmt: skip
        """Supersede."""
        with refusing():
            receipt = self._speaker(by, scope).supersede(
                id, text, about=key, value=value, valid_from=valid_from, reason="corrected"
            )
            return self._kept(receipt, scope)

    def retire(self, id: str, *, scope: str, by: str = "user") -> None:  # noqa: A002
        """Retire."""
        with refusing():
            self._speaker(by, scope).retire(id, reason="it does not hold")

    def reject(self, id: str, *, scope: str) -> str:  # noqa: A002
        """Forget as the user, which keeps the value out for everyone."""
        with refusing():
            return self._user(scope).forget(id, reason="it was wrong").id or ""

    def lift(self, receipt: str, *, scope: str) -> None:
        """Lift by signature."""
        with refusing():
            self._user(scope).lift(receipt, reason="it was right after all")

    def forget(self, id: str, *, scope: str, by: str = "user") -> None:  # noqa: A002
        """Forget, as somebody in the scope or as the operator."""
        with refusing():
            if by == "operator":
                self._store.operator().forget(id, reason="asked")
            else:
                self._speaker(by, scope).forget(id, reason="asked")

    def feed(self, facts: Sequence[Fact], *, scope: str) -> None:
        """Remember a batch as what a page said, leaving out what is refused."""
        items: list[dict[str, object]] = [
            {"content": fact.text, "about": fact.key, "value": fact.value, "source": fact.source} for fact in facts
        ]
        self._speaker("document", scope).remember_many(items, on_refusal="skip")

    def write_by(self, path: str, text: str, *, scope: str, key: Key | None = None, value: str | None = None) -> None:
        """Write as an agent, or by an import."""
        agent = self._agent(scope)
        with refusing():
            match path:
                case "remember":
                    agent.remember(text, about=key, value=value)
                case "remember_many":
                    agent.remember_many([{"content": text, "about": key, "value": value}])
                case "supersede":
                    own = agent.remember(f"A note of the agent's own, number {self._store.head.seq}.")
                    agent.supersede(own.id, text, about=key, value=value)
                case _:
                    self._import(text, scope)

    def _import(self, text: str, scope: str) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            file.write(json.dumps({"role": "assistant", "content": text}) + "\n")
            file.flush()
            report = self._store.import_file(file.name, scope=scope)
        if report.refused_count:
            raise Refused(report.refused[0].error)

    def share(self, id: str, *, scope: str, to: str) -> None:  # noqa: A002
        """Have the other scope's sessions read this scope."""
        del id
        self._shared[to] = (*self._reads(to), scope)

    # --- reading ------------------------------------------------------------------------------------------------------

    def recall(self, query: str, *, scope: str, k: int = 10) -> list[Item]:
        """Recall as an agent."""
        return [Item(hit.id, hit.content or "") for hit in self._agent(scope).recall(query, k=k)]

    def recall_as(self, query: str, *, scope: str, asked: str) -> list[Item]:
        """Recall in the bound scope, with the other scope in whatever a caller can say."""
        bound = self._agent(scope)
        recall = cast("Callable[..., Sequence[muniment.Hit]]", bound.recall)
        attempts: list[dict[str, object]] = [
            {}, {"where": {"scope": asked}}, {"where": {"reads": [asked]}}, {"tags": [asked]}, {"kinds": [asked]},
            {"scope": asked}, {"reads": (asked,)},
        ]  # fmt: skip
        found: list[Item] = []
        for attempt in attempts:
            try:
                found += [Item(hit.id, hit.content or "") for hit in recall(query, **attempt)]
            except (muniment.MunimentError, TypeError):
                continue
        return found

    def context(self, query: str, *, scope: str) -> str:
        """Return the block."""
        return self._agent(scope).context(query).text

    def get(self, id: str, *, scope: str) -> str | None:  # noqa: A002
        """Return a memory's text."""
        try:
            return self._agent(scope).get(id).content
        except muniment.InvalidInput:
            return None

    def current(self, key: Key, *, scope: str, valid_at: datetime | None = None, known_at: object = None) -> list[str]:
        """Return what is believed."""
        known = known_at if isinstance(known_at, int) else None
        found = self._agent(scope).beliefs(about=key, valid_at=valid_at, known_at=known)
        return [belief.content or "" for belief in found]

    def now(self) -> object:
        """Return the last sequence number."""
        return self._store.head.seq

    def history(self, id: str, *, scope: str) -> list[str]:  # noqa: A002
        """Return the versions."""
        with refusing():
            return [record.content or "" for record in self._agent(scope).history(id)]

    def source_of(self, id: str, *, scope: str) -> str | None:  # noqa: A002
        """Return the source."""
        with refusing():
            return self._agent(scope).get(id).source

    def look(self, where: str, *, scope: str) -> list[str]:
        """Return what a view or a store shows."""
        agent = self._agent(scope)
        match where:
            case "list":
                return [record.content or "" for record in agent.list(status=("active", "conditional"))]
            case "beliefs":
                return [belief.content or "" for belief in agent.beliefs()]
            case "briefing":
                return [json.dumps(agent.briefing().to_dict(), ensure_ascii=False)]
            case "history":
                return [version.content or "" for record in agent.list() for version in agent.history(record.id)]
            case "export":
                return self._exported(scope)
            case _:
                table = where.removeprefix("sql ")
                return [str(row[0]) for row in agent.sql(f"SELECT content FROM {table}")[1]]

    def _exported(self, scope: str) -> list[str]:
        file = io.StringIO()
        try:
            self._store.export(scope, file)
        except muniment.InvalidInput:
            return []
        return [file.getvalue()]

    # --- upkeep -------------------------------------------------------------------------------------------------------

    def jobs(self, *, days: int = 0) -> None:
        """Let so many days pass, and do what an operator's timer does."""
        self._ahead += days * DAY
        self._store.checkpoint()
        self._store.embed()

    def reindex(self) -> None:
        """Drop the projections and fold the log again."""
        self._store.rebuild()

    def reopen(self) -> None:
        """Close and open."""
        self._store.close()
        self._store = self._open()

    # --- oversight ----------------------------------------------------------------------------------------------------

    def audit(self, *, scope: str) -> list[Entry]:
        """Return the events of a scope."""
        query = "SELECT seq, type, id, actor, origin, recorded_at, touched, scope FROM events ORDER BY seq"
        entries: list[Entry] = []
        for seq, what, event, actor, origin, at, touched, where in self._store.sql(query)[1]:
            if where == scope:
                ids = cast("list[str]", touched) or [str(event)]
                entries.append(Entry(str(seq), str(what), ids[0], f"{seq} {what} {ids} by {actor}, {origin}, {at}"))
        return entries

    def tombstones(self, *, scope: str) -> list[str]:
        """Return the tombstones of a scope."""
        return [json.dumps(one.to_dict()) for one in self._store.operator().tombstones() if one.scope == scope]

    def status(self, id: str, *, scope: str) -> str:  # noqa: A002
        """Return the status."""
        with refusing():
            return self._agent(scope).get(id).status

    def withhold(self, id: str, *, scope: str) -> None:  # noqa: A002
        """Quarantine."""
        del scope
        self._store.operator().quarantine([id], reason="doubtful")

    def propose(self, text: str, *, scope: str, key: Key | None = None, value: str | None = None) -> str:
        """Remember what came from where the policy wants a review."""
        proposer = self._store.session(scope=scope, actor="agent:reader", origin="web:proposals.example")
        with refusing():
            return proposer.remember(text, about=key, value=value).id

    def waiting(self, *, scope: str) -> list[Item]:
        """Return what waits for the user."""
        return [Item(record.id, record.content or "") for record in self._user(scope).pending()]

    def review(self, id: str, *, approve: bool, scope: str) -> None:  # noqa: A002
        """Sign the verdict."""
        self._user(scope).review(id, approve=approve, reason="looked at")

    def grant(self, action: str, *, scope: str) -> str:
        """Sign a confirmation."""
        return self._user(scope).confirm(_action(action), agent="agent:planner", uses=None).id

    def revoke(self, grant: str, *, scope: str) -> None:
        """Revoke it."""
        self._user(scope).revoke(grant, reason="changed my mind")

    def may(self, action: str, *, evidence: Sequence[str], scope: str) -> bool:
        """Ask the guard."""
        return self._agent(scope).decide(_action(action), evidence=evidence).allowed

    def restore(self, id: str, *, scope: str) -> None:  # noqa: A002
        """State again what stood before."""
        user = self._user(scope)
        chain = user.history(id)
        place = [record.id for record in chain].index(id)
        before = chain[place - 1]
        value = before.value if isinstance(before.value, str) else None
        user.supersede(id, before.content or "", value=value, reason=f"restored from {before.id}")

    def negative_case(self) -> Case:
        """Name the case."""
        return Case(
            ROOT / "tests" / "promises" / "test_i06_forget_prevents.py",
            "test_i06_a_handle_that_was_open_refuses_it_at_once",
        )

    def run_case(self, name: str) -> bool:
        """Run a case with pytest."""
        case = f"{self.negative_case().file}::{name}"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", case]
        return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


@contextmanager
def refusing() -> Generator[None]:
    """Turn what Muniment refuses into the suite's word for it."""
    try:
        yield
    except (muniment.Refused, muniment.Conflict) as error:
        raise Refused(error.code) from error
    except muniment.InvalidInput as error:
        if error.code != "not_found":
            raise
        raise Refused(error.code) from error


def _action(words: str) -> Action:
    return Action("pay", {"what": words})
