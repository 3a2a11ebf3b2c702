"""
The same cases against midas-memory from the package index, as it is, in a child process.

Its surface is narrower: no signatures, no expiry, no scopes beyond a metadata filter, no replay. A confirmation becomes
what its documentation asks for, a memory stamped `user_confirmation` that says what was approved; a prohibition becomes
a `forbidden_action` rule, and an act is allowed when both its guard and its check of those rules allow it. It gets
our embedder, since its own downloads one. Families that its surface has no words for are left out, and named.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

from muniment import Action
from muniment.gate import Confirm, describe_action, parse_signed, parse_statement

from ._safety_cases import Case, happens
from ._safety_doors import AGENT, SCOPE, USES, Decided, Desk, Fields, Refused

LEFT_OUT: Final = {
    "forgery": "it has no signatures",
    "replay": "it has no signatures",
    "60 decided again": "it keeps no decisions",
    "import": "its importers read other formats",
    "59 fence": "its context has no fence to break",
}
_FOLDER: Final = Path(__file__).resolve().parent
_CHILD: Final = """
import json, sys, time
from muniment.projections import packaged_embedder
from midas import Memory
from midas.coding import is_forbidden, remember_forbidden_action

class Embedder:
    min_relevance = 0.0
    def __init__(self):
        self.ours = packaged_embedder(threads=1)
        self.dim = self.ours.dim
        self.known = {}
    def embed(self, text):
        if text not in self.known:
            self.known[text] = [float(x) for x in self.ours.embed_query(text)]
        return self.known[text]
    def embed_many(self, texts):
        return [self.embed(text) for text in texts]

embedder, mem = Embedder(), None
for line in sys.stdin:
    verb, args = json.loads(line)
    answer = None
    if verb == "open":
        mem = Memory(embedder=embedder, supersede=True)
    elif verb == "remember":
        answer = mem.remember(**args).id
    elif verb == "forbid":
        answer = remember_forbidden_action(mem, args["text"], project="acme").id
    elif verb == "forget":
        answer = mem.forget(args["id"])
    elif verb == "get":
        found = [r for r in mem.store.all() if r.id == args["id"]]
        answer = {"content": found[0].content, "provenance": found[0].provenance} if found else None
    elif verb == "live":
        answer = [r.content for r in mem.store.all() if r.superseded_by is None and args["word"] in r.content]
    elif verb == "decide":
        guard = mem.guard_reliance(args["text"], intended_use=args["use"], acting_agent=args["agent"],
                                   metadata_filter={"scope": args["scope"]})
        acts = args["use"] in ("external_action", "destructive_action")
        answer = bool(guard.allowed) and not (acts and is_forbidden(mem, args["text"], "acme"))
    print(json.dumps(answer), flush=True)
"""


class PeerDoor:
    """The peer behind the same methods as our doors."""

    name = "peer"
    store_id = "0" * 32

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child
        self._ask("open")

    def _ask(self, verb: str, **args: object) -> object:
        if self._child.stdin is None or self._child.stdout is None:
            raise AssertionError("the child has no pipes")
        self._child.stdin.write(json.dumps([verb, args]) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        if not line:
            raise AssertionError("the child has gone")
        return cast("object", json.loads(line))

    def remember(
        self,
        text: str,
        *,
        scope: str = SCOPE,
        origin: str | None = None,
        as_user: bool = False,
        extra: Fields | None = None,
        **fields: object,
    ) -> str:
        """Remember a text as its API takes it: whoever calls says what sort of evidence it is."""
        fields = {**fields, **(extra or {})}
        kind = fields.get("kind", "note")
        provenance = fields.get("provenance", "user_confirmation" if as_user else "observation")
        metadata = {"scope": scope, **cast("dict[str, object]", fields.get("metadata", {}))}
        return str(
            self._ask(
                "remember",
                content=text,
                provenance=provenance,
                source=origin,
                metadata=metadata,
                actor="user:ann" if as_user else AGENT,
                kind=kind if kind in ("note", "fact", "constraint", "commitment") else "note",
            )
        )

    def supersede(self, id: str, text: str, *, origin: str | None = None, as_user: bool = False) -> str:  # noqa: A002
        """State a newer text: what it supersedes is for its similarity to say."""
        del id
        return self.remember(text, origin=origin, as_user=as_user)

    def retire(self, id: str, *, origin: str | None = None, as_user: bool = False) -> None:  # noqa: A002
        """Forget: there is nothing between."""
        self.forget(id, origin=origin, as_user=as_user)

    def forget(self, id: str, *, origin: str | None = None, as_user: bool = False) -> None:  # noqa: A002
        """Forget by id."""
        del origin, as_user
        if not self._ask("forget", id=id):
            raise Refused("not found")

    def prohibit(self, action: Action, *, scope: str = SCOPE) -> str:
        """State a forbidden action."""
        del scope
        return str(self._ask("forbid", text=f"never {describe_action(action)}"))

    def revoke(self, id: str) -> None:  # noqa: A002
        """Forget the approval."""
        self.forget(id)

    def submit(self, line: str) -> str:
        """Remember what was approved, as confirmed by the user."""
        statement = parse_statement(parse_signed(line).statement)
        if not isinstance(statement, Confirm):
            raise Refused("it has no such statement")
        return str(
            self._ask(
                "remember",
                content=f"The user approved: {describe_action(statement.action)}",
                provenance="user_confirmation",
                actor=statement.agent,
                metadata={"scope": statement.scope},
                created_at=statement.signed_at / 1e6,
            )
        )

    def feed(self, lines: str) -> None:
        """Not on its surface."""
        del lines
        raise Refused("no import of this format")

    def get(self, id: str) -> dict[str, object]:  # noqa: A002
        """Return a memory; a confirmation is the highest standing it knows."""
        found = cast("dict[str, object] | None", self._ask("get", id=id))
        if found is None:
            raise Refused("not found")
        return {**found, "rank": "signed" if found["provenance"] == "user_confirmation" else "external"}

    def current(self, subject: str, attribute: str) -> list[str]:
        """Return the oldest live text that names the attribute: it has no keys, and a newer one may stand beside it."""
        del subject
        return cast("list[str]", self._ask("live", word=attribute))[:1]

    def context(self, query: str) -> str:
        """Not compared."""
        del query
        raise Refused("no fenced context")

    def outcome(self, id: str) -> tuple[str, bool]:  # noqa: A002
        """Not on its surface."""
        del id
        raise Refused("it keeps no decisions")

    def decide(
        self,
        action: Action,
        *,
        use: str | None = None,
        evidence: Sequence[str] = (),
        agent: str = AGENT,
        scope: str = SCOPE,
        command_id: str | None = None,
    ) -> Decided:
        """Ask its guard about the act in words, with the use that the host means by the name, and its rules."""
        del evidence, command_id
        name = action.name if isinstance(action.name, str) else ""
        stated = next((meant for pattern, meant in USES.items() if name.startswith(pattern[:-1])), "destructive_action")
        # It takes the caller's word for the use.
        allowed = self._ask("decide", text=describe_action(action), use=use or stated, agent=agent, scope=scope)
        return Decided(bool(allowed), None, (), None)


def against_peer(requirement: str, cases: Sequence[Case] = ()) -> dict[str, object] | str:
    """Install the peer into a folder of its own, run what its surface allows, and return both rates by family."""
    if requirement == "none":
        return "left out"
    with tempfile.TemporaryDirectory(prefix="muniment-peer-") as name:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", name, requirement]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"not installed: {done.stderr.strip()[-200:]}"
        rows = cases_against(Path(name), [case for case in cases if case.family not in LEFT_OUT])
    return {"package": requirement, "rows": rows, "left out": LEFT_OUT}


def packages_of(python: Path) -> Path:
    """Return the folder of the packages that an interpreter of a virtual environment has."""
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())


def cases_against(packages: Path, cases: Sequence[Case]) -> list[dict[str, object]]:
    """Run cases against the peer that is installed in a folder, and return both rates by family."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join((str(packages), str(_FOLDER.parent))))
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        with tempfile.TemporaryDirectory(prefix="muniment-desk-") as name:
            return _rows(child, Desk(Path(name)), cases)
    finally:
        child.kill()
        child.communicate()


def _rows(child: subprocess.Popen[str], desk: Desk, cases: Sequence[Case]) -> list[dict[str, object]]:
    counts: dict[str, list[int]] = {}
    for case in cases:
        row = counts.setdefault(case.family, [0, 0, 0])
        row[0] += 1
        row[1] += happens(case.attack, PeerDoor(child), desk)[0]
        row[2] += happens(case.control, PeerDoor(child), desk)[0]
    counts["all"] = [sum(row[i] for row in counts.values()) for i in range(3)]
    return [
        {"family": family, "cases": n, "attack success": hit / max(n, 1), "benign pass": ok / max(n, 1)}
        for family, (n, hit, ok) in counts.items()
    ]
