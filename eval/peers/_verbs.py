"""Which verbs a product has, asked of the product in a store of a few memories; what it lacks says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

from ._client import Peer, Reply
from ._install import Environment
from ._protocol import Memory, words_vector

Row = dict[str, object]

_FIRST: Final = Memory(
    "The launch is on 12 March.", about=("launch", "date"), value="12 March", kind="fact", scope="acme"
)
_SECOND: Final = Memory(
    "The launch is on 2 April.", about=("launch", "date"), value="2 April", kind="fact", scope="acme"
)
_FILLER: Final = Memory("Paul waters the plants on Fridays.", scope="acme")
_ACT: Final = {"name": "rm.file", "args": {"path": "/srv/reports"}}


def verbs_row(name: str, environment: Environment, folder: Path) -> Row:
    """Return for each verb `yes`, or why not; a verb that answers wrongly says what it answered."""
    with Peer(name, environment) as peer:
        peer.must("setup", folder=folder, words=True)
        asked = words_vector("when is the launch?")

        def ask(verb: str, **fields: object) -> Reply:
            return peer.call(verb, text="when is the launch?", vector=asked, k=3, scope="acme", **fields)

        row: Row = {"peer": name, "remember_many": _told(peer.call("remember_many", memories=[_FILLER]))}
        first = str(peer.must("remember", memory=_FIRST).value)
        before = cast("float", peer.must("clock").value)
        row["supersede"] = _told(changed := peer.call("supersede", id=first, memory=_SECOND))
        # What revises by similarity is told the newer text as it wants to be told: by remembering it.
        second = str(changed.value if changed.ok else peer.must("remember", memory=_SECOND).value)
        row["old value out of recall"] = _told(ask("recall"), lambda found: _FIRST.text not in _texts(found))
        row["current"] = _told(
            peer.call("current", about=("launch", "date"), scope="acme"), lambda found: found == _SECOND.text
        )
        row["history"] = _told(peer.call("history", id=second), lambda found: found == [_FIRST.text, _SECOND.text])
        row["as_of"] = _told(ask("as_of", instant=before), lambda found: _FIRST.text in _texts(found))
        other = peer.call("recall", text=_FIRST.text, vector=words_vector(_FIRST.text), k=3, scope="globex")
        row["scope"] = _told(other, lambda found: not found)
        row["retire"] = _told(peer.call("retire", id=second, reason="over"))
        row["forget"] = _told(peer.call("forget", id=second))
        again = peer.call("remember", memory=_SECOND)
        row["forgotten value kept out"] = "yes" if again.refused else "no: it is taken again"
        row["guard"] = _told(peer.call("guard", action=_ACT, use="destructive_action", scope="acme"), _denied)
        row["prohibit"] = _told(peer.call("prohibit", action=_ACT, scope="acme"))
        row["signed confirmation"] = _told(peer.call("confirm", action=_ACT, scope="acme"))
        peer.must("close")
        return row


def _told(reply: Reply, right: Callable[[object], bool] = lambda _: True) -> str:
    if not reply.ok:
        return f"unavailable: {reply.why}"
    # Ids are left out: they are others in the next run.
    return "yes" if right(reply.value) else f"no: {', '.join(_texts(reply.value)) or reply.value}"[:120]


def _texts(found: object) -> list[str]:
    rows = cast("list[object]", found) if isinstance(found, list) else []
    return [cast("dict[str, str]", row)["text"] for row in rows if isinstance(row, dict)]


def _denied(found: object) -> bool:
    return not cast("dict[str, bool]", found)["allowed"]
