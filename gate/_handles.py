"""Handles: who is speaking, made by host code and by nobody else. A handle can be lowered and never raised."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from muniment.events import BadArgument, Provenance, Rank, RankTooLow, check_text, is_blank

_ORIGIN: Final = re.compile(r"(web|document|tool|import|agent|user)(:.+)?\Z", re.DOTALL)
_EXTERNAL: Final = frozenset({"web", "document", "tool", "import"})
_CEILINGS: Final = {
    Rank.EXTERNAL: Provenance.OBSERVATION,
    Rank.AGENT: Provenance.ACTION,
    Rank.USER: Provenance.ACTION,
    Rank.SIGNED: Provenance.USER_CONFIRMATION,
}
_STRENGTH: Final = {provenance: strength for strength, provenance in enumerate(Provenance)}
_ALLOWED: Final = {
    rank: frozenset(provenance for provenance in Provenance if _STRENGTH[provenance] <= _STRENGTH[ceiling])
    for rank, ceiling in _CEILINGS.items()
}
_MAX_NAME: Final = 500


class Handle(msgspec.Struct, frozen=True, kw_only=True):
    """One speaker in one scope. `principal` is set only for a user who signs."""

    scope: str
    reads: tuple[str, ...]
    actor: str
    origin: str
    rank: Rank
    principal: str | None = None

    @property
    def ceiling(self) -> Provenance:
        """The strongest evidence that this handle may claim."""
        return _CEILINGS[self.rank]

    def allows(self, provenance: Provenance) -> bool:
        """Tell whether the handle may claim evidence of that sort."""
        return provenance in _ALLOWED[self.rank]

    def via(self, origin: str) -> Handle:
        """
        Return the handle for something that reached the speaker from elsewhere.

        Raises:
            RankTooLow: the origin has a higher rank than this handle.
        """
        rank = rank_of(origin)
        if rank > self.rank or (rank == self.rank and origin != self.origin):
            raise RankTooLow(actual=self.rank.name.lower(), verb="speak as", needed=rank.name.lower())
        return msgspec.structs.replace(self, origin=origin, rank=rank, principal=None)


def rank_of(origin: str) -> Rank:
    """
    Return the rank of an origin: web:, document:, tool:, import: are external; agent: and user have their own.

    Raises:
        BadArgument: it begins with none of these, or names nothing.
    """
    check_text(origin, what="origin", limit=_MAX_NAME)
    match = _ORIGIN.match(origin)
    if match is None:
        raise BadArgument(
            argument="origin", detail=f"`{origin}` begins with none of web:, document:, tool:, import:, agent:, user"
        )
    sort, name = match[1], match[2]
    if sort in _EXTERNAL or sort == "agent":
        if name is None or is_blank(name[1:]):
            raise BadArgument(argument="origin", detail=f"`{origin}` names nothing after `{sort}:`")
        return Rank.EXTERNAL if sort in _EXTERNAL else Rank.AGENT
    return Rank.USER


def check_actor(actor: str) -> None:
    """
    Check the name of an actor.

    Raises:
        BadArgument: it is not `agent:NAME`, `tool:NAME`, `import:NAME`, `user` or `user:NAME`.
    """
    rank_of(actor)
