"""
Which parts of its interval a statement held its key over, told so that an import can do it again.

An import has no ranks: what held the key goes through one voice, in which the later statement takes over, and what only
stood beside goes through others, which take over nothing. So that each point of valid time comes out with the value
that it has here, a statement that held only some of its interval is told in parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from muniment.events import Status
from muniment.projections import FAR_FUTURE, Lookup, Memory, breakpoints, resolve, retired_from, superseded_by


class Part(NamedTuple):
    """
    A part of a statement's interval.

    `entitled`: it held the key there, at some time. `settled`: it holds there no more, and stands beside nothing,
    although neither its retirement nor any later statement in the file says so.
    """

    since: int
    until: int
    entitled: bool
    settled: bool


def parts_of(
    statements: Sequence[Memory], *, known: int, lookup: Lookup, is_told: Callable[[Memory], bool]
) -> dict[bytes, list[Part]]:
    """
    Return the parts of all single-valued statements of one key, given in sequence order, by the ids of their memories.

    `is_told` tells whether an import will let a statement in: what is erased or set apart ends what it took over from.
    """
    parts: dict[bytes, list[Part]] = {memory.id: [] for memory in statements}
    told = {memory.id for memory in statements if is_told(memory)}
    points = sorted({point for memory in statements for point in breakpoints(memory, lookup)} | {FAR_FUTURE})
    for since, until in pairwise(points):
        for identity, entitled, settled in _flags(statements, since, known, lookup, told):
            found = parts[identity]
            if found and found[-1][2:] == (entitled, settled):
                found[-1] = found[-1]._replace(until=until)
            else:
                found.append(Part(since, until, entitled, settled))
    return parts


def parts_of_unkeyed(
    memory: Memory, *, known: int, lookup: Lookup, is_told: Callable[[Memory], bool]
) -> Sequence[Part]:
    """
    Return the parts of a memory that only its supersession ends, one of many values too; none where the file tells it.

    What an import will not let in, because it is erased or set apart, ends what it took over from all the same.
    """
    takers = [taker for fate in memory.fates if fate.by is not None and (taker := lookup(fate.by)) is not None]
    if not is_told(memory) or all(map(is_told, takers)):
        return ()
    points = sorted({memory.envelope.valid_from, memory.valid_until, *breakpoints(memory, lookup)})
    parts: list[Part] = []
    for since, until in pairwise(points):
        if not memory.covers(since):
            continue
        # What took over from it is told of its first part only: the others end here, whoever ended them.
        ended = superseded_by(memory, valid_at=since, known=known, lookup=lookup) is not None
        settled = ended and retired_from(memory, known) > since
        if parts and parts[-1].settled == settled:
            parts[-1] = parts[-1]._replace(until=until)
        else:
            parts.append(Part(since, until, entitled=True, settled=settled))
    return parts if any(part.settled for part in parts) else ()


def _flags(
    statements: Sequence[Memory], point: int, known: int, lookup: Lookup, told: set[bytes]
) -> Iterator[tuple[bytes, bool, bool]]:
    held: list[bytes] = []
    resolution = resolve(statements, valid_at=point, known=known, lookup=lookup, held=held)
    current = None if resolution.current is None else resolution.current.id
    # Of what an import lets in, this had the key last: the import will say that it has it still.
    last = next((identity for identity in reversed(held) if identity in told), None)
    for memory in statements:
        identity = memory.id
        if identity not in told or not memory.covers(point):
            continue
        if retired_from(memory, known) <= point:
            settled = False  # its retirement is told
        elif identity == last:
            settled = identity != current
        elif identity in held:
            settled = False  # what took over from it is told
        else:
            # Where nothing that held the key is told, it would have it.
            settled = last is None or resolution.roles.get(identity) not in (Status.ACTIVE, Status.DISPUTED)
        yield identity, identity in held, settled
