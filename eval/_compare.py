"""
Compares a fresh result with the committed one, figure by figure.

What an evaluation counts or decides must come out the same; a share or a percentage may move a little, since another
processor rounds otherwise. Durations, rates, their ratios and peaks of memory are noisy: they are compared by a factor,
and only where processor and number of cores are those of the committed run. A machine that takes longer for a fixed
loop than that of the committed run may take longer by as much. Tails (p99, slowest) and what chance deals
out are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, cast

Document = Mapping[str, object]

POINTS: Final = 0.5
"""How far a percentage may move, in points; a share a hundredth of that."""
TIMED: Final = re.compile(
    r"_us\b|_ms\b|_s\b|, (us|ms|s)\b|us_per|a second|ratio|slowest / fastest|recorded / remember|same batches/"
    r"|append, ms|bytes_per_memory|fold/|_us/|a_second|peak|/met/|our .* to "
)
FREE: Final = re.compile(
    r"p99|p90|slowest$|fastest$|slowest writer|fastest writer|kill-|ENOSPC|EIO|power-cut|/none$|by each|by_verb"
    r"|/histories$|/steps$|load_average|seconds|blocks_inflated|bytes_scanned|attacks ended|for example|first dry run"
    r"|_rss|rss_|/load_s|/minutes|packages/|import_ms|/killed$|/secrets/|needles|_where/|cut_short|caps_s"
)
_LISTED: Final = re.compile(r"/(hits|failed_controls)/\d+$")

_NAMING: Final = frozenset(
    {
        "peer",
        "sought",
        "memory",
        "step",
        "family",
        "method",
        "half",
        "category",
        "store",
        "attack",
        "filesystem",
        "set",
        "memories",
    }
)


class Difference(NamedTuple):
    """A figure that came out otherwise than it is committed."""

    figure: str
    committed: object
    fresh: object
    timed: bool


class Comparison(NamedTuple):
    """How many figures were compared, and which differ beyond noise."""

    compared: int
    differences: tuple[Difference, ...]


def compare(committed: Document, fresh: Document, *, factor: float, only: str | None = None) -> Comparison:
    """Compare two result files. `only` is a pattern of figures, where the fresh run was a smaller one."""
    known = dict(_figures(committed["result"], ""))
    made = dict(_figures(fresh["result"], ""))
    times, slower = _same_machine(committed, fresh), _slower(committed, fresh)
    compared, found = 0, list[Difference]()
    for figure, before in known.items():
        if FREE.search(figure) or (only is not None and not re.search(only, figure)):
            continue
        timed = bool(TIMED.search(figure))
        if (timed and not times) or (only is not None and figure not in made):
            continue
        compared += 1
        after = made.get(figure)
        if not _alike(before, after, timed=timed, factor=factor * slower):
            found.append(Difference(figure.lstrip("/"), before, after, timed))
    # A list of what went wrong is empty where nothing did.
    wrong = [figure for figure in made if figure not in known and _LISTED.search(figure)]
    found += [Difference(figure.lstrip("/"), None, made[figure], timed=False) for figure in wrong]
    return Comparison(compared, tuple(found))


def _alike(before: object, after: object, *, timed: bool, factor: float) -> bool:
    if isinstance(before, bool) or not isinstance(before, (int, float)):
        return before == after
    if isinstance(after, bool) or not isinstance(after, (int, float)):
        return False
    if timed:
        return before == after or (before > 0 and after > 0 and max(before / after, after / before) <= factor)
    if isinstance(before, float) or isinstance(after, float):
        return abs(before - after) <= (POINTS if max(abs(before), abs(after)) > 1 else POINTS / 100)
    return before == after


def _same_machine(committed: Document, fresh: Document) -> bool:
    one, other = cast("Document", committed["machine"]), cast("Document", fresh["machine"])
    return (one["cpu"], one["cores"]) == (other["cpu"], other["cores"])


def _slower(committed: Document, fresh: Document) -> float:
    """Return by which factor one of the two machines takes longer for the same loop; 1 where that was not measured."""
    one, other = (cast("Document", each["machine"]).get("loop_ms") for each in (committed, fresh))
    if not isinstance(one, float) or not isinstance(other, float):
        return 1.0
    return max(one / other, other / one)


def _figures(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield every leaf with its path; a row of a table is named by what names it, not by its place."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            yield from _figures(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for place, inner in enumerate(cast("list[object]", value)):
            yield from _figures(inner, f"{path}/{_name_of(inner) or place}")
    else:
        yield path, value


def _name_of(row: object) -> str:
    if not isinstance(row, dict):
        return ""
    texts = [str(value) for key, value in cast("dict[str, object]", row).items() if key in _NAMING]
    return " ".join(texts)
