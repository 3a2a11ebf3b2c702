"""What a counterfactual leaves out: `origin=web:*`, `actor=agent:x`, `id=...`, `seq=10..20`,
`time=2026-03-01..2026-03-02`, `source=...`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from muniment.events import BadArgument, Event, MemoryEnvelope, format_id, parse_instant
from muniment.gate import check_list
from muniment.replay import Leaves

from ._points import is_number


def leaves_of(without: Sequence[str], source_key: Callable[[str], bytes]) -> Leaves:
    """
    Return what tells whether an event is left out; one that any of the specifications names is.

    Raises:
        BadArgument: a specification names no field that can be left out by.
    """
    tests = [_leave_out(spec, source_key) for spec in check_list(without, "without")]
    return lambda event: any(test(event) for test in tests)


def _leave_out(spec: str, source_key: Callable[[str], bytes]) -> Leaves:
    if not isinstance(cast("object", spec), str):
        raise BadArgument(argument="without", detail=f"expected FIELD=VALUE, got `{spec}`")
    field, separator, wanted = spec.partition("=")
    if not separator or not wanted:
        raise BadArgument(argument="without", detail=f"expected FIELD=VALUE, got `{spec}`")
    if field == "seq":
        first, dots, last = wanted.partition("..")
        if not is_number(first) or (dots and not is_number(last)):
            raise BadArgument(argument="without", detail=f"expected seq=N or seq=N..M, got `{spec}`")
        low, high = int(first), int(last if dots else first)
        return lambda event: low <= event.seq <= high
    if field == "id":
        return lambda event: format_id(event.header.id).startswith(wanted)
    if field == "source":
        key = source_key(wanted)
        return lambda event: isinstance(event.envelope, MemoryEnvelope) and event.envelope.source_key == key
    if field == "time":
        first, dots, last = wanted.partition("..")
        since, until = parse_instant(first), parse_instant(last if dots else first, end=True)
        return lambda event: since <= event.recorded_at <= until
    if field in ("origin", "actor"):

        def by_name(event: Event) -> bool:
            said = str(getattr(event.envelope, field, ""))
            return isinstance(event.envelope, MemoryEnvelope) and fits(wanted, said)

        return by_name
    raise BadArgument(argument="without", detail=f"expected origin, actor, id, source, seq or time, got `{field}`")


def fits(wanted: str, said: str) -> bool:
    """Tell whether a name is the one that is wanted; `web:*` wants every name that begins so."""
    prefix = wanted.removesuffix("*")
    return said.startswith(prefix) if prefix != wanted else said == wanted
