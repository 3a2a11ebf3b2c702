"""The comparison in Markdown, from a result: for `peers.md`, and the shorter one of the README. Nothing is typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, cast

Row = Mapping[str, object]

COMMAND: Final = "python -m eval peers"
US: Final = "muniment"
_NOISE: Final = 0.95
"""Less than this is better; between, two figures are the same."""


_SETTLED_MS: Final = 1_000
"""What follows a load and takes longer is said beside the product's name."""


class Measure(NamedTuple):
    """A figure of a row: lower is better in all of them."""

    key: str
    title: str
    unit: str


MEASURES: Final = (
    Measure("recall_p50_us", "recall", "ms"),
    Measure("write_p50_us", "one durable write", "ms"),
    Measure("batch_write_us_per_memory", "a memory in a batch", "us"),
    Measure("lag_p50_us", "written to readable", "ms"),
    Measure("other_process_p50_us", "another process's write to readable", "ms"),
    Measure("reopen_to_recall_ms", "reopened to first recall", "ms"),
    Measure("disk_bytes_per_memory", "disk per memory", "bytes"),
    Measure("ram_bytes_per_memory", "RAM per memory", "bytes"),
)

ABILITIES: Final = {
    "remember_many": "a call for batches",
    "supersede": "put a newer text in the place of a memory, by its id",
    "old value out of recall": "the old text is no longer recalled",
    "current": "what holds for a key now",
    "history": "what was said before, of one memory",
    "as_of": "recall as of an instant",
    "scope": "another scope sees nothing",
    "retire": "withdraw, and keep in history",
    "forget": "forget",
    "forgotten value kept out": "a forgotten text is refused when it comes again",
    "guard": "denies a destructive act that nobody allowed",
    "prohibit": "a prohibition",
    "signed confirmation": "a confirmation that is signed",
}
"""How the tables name what was asked; each was asked of the product itself."""


def readme_table(document: Row | None) -> str:
    """Return the README's block for a result file, or what stands there before anything was measured."""
    if document is None:
        return f"Not measured yet on this commit: `{COMMAND}`, then `python -m eval readme-table`.\n"
    result = cast("Row", document["result"])
    parts = [_conditions(document, result)]
    sizes = cast("list[int]", result["sizes"])
    for size in sizes if len(sizes) < 3 else (sizes[1], sizes[-1]):
        parts.append(size_table(result, size))
    parts += [ability_table(result), where_we_lose(result)]
    parts.append(
        f"Every figure of this section: `{COMMAND}`, which installs each product from the package index; one alone: "
        "`--peers NAME --sizes N`. All of them, with settings and versions, are in "
        "[eval/results/peers.md](eval/results/peers.md).\n"
    )
    return "\n".join(parts)


def markdown(result: Row) -> str:
    """Return everything that a result says."""
    sizes = cast("list[int]", result["sizes"])
    parts = ["# Side by side\n", f"`{COMMAND}`\n"]
    if "smoke" in result:
        parts.append(f"**{result['smoke']}**\n")
    parts.append(_how(result))
    parts += [size_table(result, size) for size in sizes]
    parts += [ratio_table(result, size) for size in sizes]
    parts += [where_we_lose(result), ability_table(result), _left_where(result), _settings(result), _failures(result)]
    return "\n".join(part for part in parts if part)


def size_table(result: Row, size: int) -> str:
    """Return a row for each product at a size; the best of each column in bold."""
    rows = _at(result, size)
    lines = [
        f"{size:,} memories:\n",
        "| product | " + " | ".join(f"{m.title}, {m.unit}" for m in MEASURES) + " |",
        "| --- |" + " --- |" * len(MEASURES),
    ]
    best = {m.key: _best(rows, m) for m in MEASURES}
    for row in rows:
        cells = [_cell(row, m, best[m.key]) for m in MEASURES]
        short = "" if row["memories"] == size else f" ({cast('int', row['memories']):,} only: {_cut(row)})"
        settled = row.get("settle_ms")
        if isinstance(settled, (int, float)) and settled >= _SETTLED_MS:
            short += f" (after the load {_number(settled / 1e3)} s: {row['settle']})"
        lines.append(f"| {row['peer']}{short} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def ratio_table(result: Row, size: int) -> str:
    """Return each figure as a multiple of Muniment's in the same run."""
    rows = _at(result, size)
    ours = next((row for row in rows if row["peer"] == US), None)
    if ours is None:
        return ""
    lines = [
        f"{size:,} memories, as multiples of Muniment's figure (below 1: better than Muniment):\n",
        "| product | " + " | ".join(m.title for m in MEASURES) + " |",
        "| --- |" + " --- |" * len(MEASURES),
    ]
    for row in rows:
        if row is not ours:
            ratios = [ratio(row, ours, m) if _whole(row) else None for m in MEASURES]
            lines.append(f"| {row['peer']} | " + " | ".join("" if r is None else _number(r) for r in ratios) + " |")
    return "\n".join(lines) + "\n"


def ratio(row: Row, ours: Row, measure: Measure) -> float | None:
    """Return a figure as a multiple of ours, or None where one of them has none."""
    theirs, base = row.get(measure.key), ours.get(measure.key)
    if not isinstance(theirs, (int, float)) or not isinstance(base, (int, float)) or base <= 0 or theirs <= 0:
        return None
    return theirs / base


def where_we_lose(result: Row) -> str:
    """Return every figure in which a product beats Muniment, by how much."""
    lines: list[str] = []
    for measure in MEASURES:
        beaten: list[str] = []
        for size in cast("list[int]", result["sizes"]):
            rows = _at(result, size)
            ours = next((row for row in rows if row["peer"] == US), None)
            if ours is None:
                continue
            found = [f"{row['peer']} ({told})" for row in rows if (told := _better(row, ours, measure))]
            if found:
                beaten.append(f"at {size:,} " + ", ".join(found))
        if beaten:
            lines.append(f"* {measure.title}: {'; '.join(beaten)}")
    return (
        "\n".join(
            [
                "Where another product is better than Muniment by more than a twentieth, and how many times:\n",
                *(lines or ["* nowhere"]),
            ]
        )
        + "\n"
    )


def _better(row: Row, ours: Row, measure: Measure) -> str:
    """Return how many times better than ours a figure is, or nothing where it is not, or not of the same size."""
    if row is ours or not _whole(row):
        return ""
    value = row.get(measure.key)
    if measure.unit == "bytes" and isinstance(value, (int, float)) and value <= 0:
        return "none measured"
    multiple = ratio(row, ours, measure)
    return "" if multiple is None or multiple >= _NOISE else f"{_number(1 / multiple)}×"


def ability_table(result: Row) -> str:
    """Return what each product can be asked, what a forget leaves, and what its guard lets through."""
    verbs = cast("Sequence[Row]", result["verbs"])
    erased = {row["peer"]: row for row in cast("Sequence[Row]", result["erased"])}
    guards = {row["peer"]: row for row in cast("Sequence[Row]", result["guards"])}
    names = [row["peer"] for row in verbs]
    lines = ["| | " + " | ".join(map(str, names)) + " |", "| --- |" + " --- |" * len(names)]
    for asked in [key for key in (verbs[0] if verbs else {}) if key != "peer"]:
        lines.append(f"| {ABILITIES.get(asked, asked)} | " + " | ".join(_short(row[asked]) for row in verbs) + " |")
    left = [_left(erased.get(name)) for name in names]
    lines.append("| can still be read on the disk after a forget | " + " | ".join(left) + " |")
    for rate in ("attack success", "benign pass"):
        shares = [_share(guards[name][rate]) if name in guards else "no guard" for name in names]
        lines.append(f"| {rate} of the guard | " + " | ".join(shares) + " |")
    return "\n".join([*lines, "", _zeroed_by_build(result)]).rstrip() + "\n"


def _short(told: object) -> str:
    """Return `yes`, `no` or, for what is not there at all, a dash: an outcome unavailable is never a pass."""
    outcome = str(told).partition(":")[0]
    return "–" if outcome == "unavailable" else outcome


def _conditions(document: Row, result: Row) -> str:
    machine = cast("Row", document["machine"])
    smoke = f"**{result['smoke']}.** " if "smoke" in result else ""
    return (
        f"{smoke}{cast('int', machine['cores'])} cores of {machine['cpu']}, Python {machine['python']}, "
        f"{str(document['date'])[:10]}, commit {str(document['commit'])[:8]}. " + _how(result)
    )


def _how(result: Row) -> str:
    return (
        "One run; medians; each product in a process of its own with the same texts (LoCoMo's turns, repeated with "
        f"variations) and the same 384-dimensional vectors, k = {result['k']}. Embedding is not in any figure "
        f"(a question takes {cast('float', result['embedding_a_question_p50_us']) / 1e3:.1f} ms here). Muniment ranks "
        "by words, vectors and neighbouring turns, checks every write and seals it; the vector stores rank by vectors. "
        "numpy has one thread in every process; what a product does with threads of its own is its own. "
        "Bold: best of the column.\n"
    )


def _at(result: Row, size: int) -> list[Row]:
    return [row for row in cast("Sequence[Row]", result["rows"]) if row["sought"] == size]


def _whole(row: Row) -> bool:
    """Tell whether the product holds as many memories as the others: figures at a tenth of the size compare nothing."""
    return row["memories"] == row["sought"]


def _best(rows: Sequence[Row], measure: Measure) -> float:
    values = [row.get(measure.key) for row in rows if _whole(row)]
    return min((value for value in values if isinstance(value, (int, float)) and value > 0), default=0.0)


def _cell(row: Row, measure: Measure, best: float) -> str:
    value = row.get(measure.key)
    if not isinstance(value, (int, float)):
        return "not seen" if measure.key.startswith("other_process") else ""
    if measure.unit == "bytes" and value <= 0:
        return "none measured"
    text = _number(value / 1e3 if measure.key.endswith("_us") and measure.unit == "ms" else value)
    return f"**{text}**" if _whole(row) and value == best else text


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if value < 10 else f"{value:.3g}"


def _cut(row: Row) -> str:
    return "; ".join(str(one) for one in cast("Sequence[object]", row["cut_short"]) if str(one).startswith("load"))


def _left(row: Row | None) -> str:
    """Return how many can be read: when the forget returned, and where that changes, later."""
    if row is None:
        return ""
    if row["left_after_close"] is None:
        return "cannot tell"
    stages = {"at return": row["left_at_return"], "once closed": row["left_after_close"]}
    if isinstance(row.get("left_after_clean_up"), int):
        stages["after its maintenance"] = row["left_after_clean_up"]
    told = [f"{row['left_at_return']} of {row['forgotten']}"]
    for (_, before), (stage, after) in pairwise(stages.items()):
        if after != before:
            told.append(f"{after} {stage}")
    return ", ".join(told)


def _zeroed_by_build(result: Row) -> str:
    """Return a line on products whose figure is that of how this machine's SQLite was built."""
    names: list[str] = []
    for name, facts in cast("Mapping[str, Mapping[str, Mapping[str, str]]]", result["peers"]).items():
        built = facts["versions"].get("SQLite", "").endswith("secure_delete on by its build")
        if built and "secure_delete" not in facts["settings"].get("at rest", ""):
            names.append(name)
    if not names:
        return ""
    return (
        f"What {', '.join(names)} leaves hangs on the SQLite that Python was built with: this one zeroes what is "
        "deleted, which is not SQLite's default.\n"
    )


def _share(value: object) -> str:
    return f"{cast('float', value):.2f}"


def _left_where(result: Row) -> str:
    lines = ["What was still there after a forget, and where:\n"]
    for row in cast("Sequence[Row]", result["erased"]):
        places = cast("Sequence[str]", row.get("left_after_close_where") or ())
        told = ", ".join(places) or ("the control found nothing" if row["left_after_close"] is None else "nothing")
        lines.append(
            f"* {row['peer']}: {told}; control found {row['control']} of {row['forgotten']}; {row['clean_up']}"
        )
    return "\n".join(lines) + "\n"


def _settings(result: Row) -> str:
    lines = ["## Versions and settings\n"]
    for name, facts in cast("Mapping[str, Row]", result["peers"]).items():
        versions = ", ".join(
            f"{one} {version}" for one, version in cast("Mapping[str, str]", facts["versions"]).items()
        )
        lines.append(f"* **{name}**: {versions}")
        lines += [f"  * {what}: {told}" for what, told in cast("Mapping[str, str]", facts["settings"]).items()]
    lines.append("\nWhat is unavailable, and why:\n")
    for row in cast("Sequence[Row]", result["verbs"]):
        lines += [
            f"* {row['peer']}, {verb}: {told}" for verb, told in row.items() if str(told).startswith(("un", "no"))
        ]
    return "\n".join(lines) + "\n"


def _failures(result: Row) -> str:
    rows = cast("Sequence[Row]", result["failed"])
    cut = [
        f"* {row['peer']} at {row['sought']}: {one}"
        for row in cast("Sequence[Row]", result["rows"])
        for one in cast("Sequence[str]", row["cut_short"])
    ]
    lines = [f"* {row['peer']}, {row['what']}: {row['why']}" for row in rows]
    told = ["Parts that were cut short by their cap:\n", *(cut or ["* none"])]
    return "\n".join([*told, *(["\nFailed:\n", *lines] if lines else [])]) + "\n"
