"""The README's table of claims, made from the committed results, so that neither can change without the other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

Node = Mapping[str, Any]

_HEAD: Final = ("claim", "figure", "command")


class Results:
    """The committed results, read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, name: str) -> Node:
        found: Node = json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))["result"]
        return found


def claims_table(folder: Path) -> str:
    """Return the table, in the order in which the README makes its claims."""
    results = Results(folder)
    rows = [*_kept(results), *_safe(results), *_found(results), *_fast(results)]
    lines = [_HEAD, tuple("---" for _ in _HEAD), *((claim, figure, f"`{command}`") for claim, figure, command in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


Claim = tuple[str, str, str]


def _kept(results: Results) -> list[Claim]:
    crash, kills, erasure = results["crash"], results["rebuild-kill"], results["erasure"]
    struck = sum(row[how] for row in crash["by_processes"] for how in _STRUCK)
    lost, half, keyless = (_sum(crash["by_processes"], name) for name in _LOST)
    disks = erasure["filesystems"]
    hits = sum(value for disk in disks for name, value in disk.items() if name.endswith("_hits"))
    tamper, model = results["tamper"], results["model-check"]
    trials, found, told = (_sum(tamper["attacks"], name) for name in ("trials", "found", "told"))
    disagreements = "0 disagreements" if model["ok"] else "**disagreements**"
    return [
        (
            "what was acknowledged is kept",
            f"{_n(struck)} seeded faults that struck (kills before, within and after each disk operation, full disk, "
            f"I/O errors, power cuts), with 1 and with 4 writing processes: {lost} acknowledged and lost, {half} "
            f"half-visible batches, {keyless} memories without their key",
            f"python -m eval crash --faults {crash['faults']}",
        ),
        (
            "a killed rebuild breaks nothing",
            f"{kills['killed']} seeded kills of rebuilds, at file operations and at random instants, while another "
            f"process wrote ({_n(kills['writes_acknowledged_meanwhile'])}) and forgot "
            f"({_n(kills['forgets_acknowledged_meanwhile'])}): {kills['opened_wrong']} next openings wrong, "
            f"{kills['second_run_failed']} second runs incomplete, {kills['forgotten_and_readable']} forgotten texts "
            f"readable, {kills['left_behind']} files left behind",
            "python -m eval rebuild-kill",
        ),
        (
            "a forget leaves nothing",
            f"{disks[0]['forgotten']} of {disks[0]['memories']} memories forgotten, in a folder and on "
            f"{_and([str(disk['filesystem']) for disk in disks[1:]])}, with a second process and after "
            f"{sum(disks[0]['kills'].values())} kills: about {_n(round(disks[0]['needles'], -3))} byte patterns "
            "searched for in files, in what any key on the disk still opens, and in the raw device: "
            f"{hits} hits; {sum(len(disk['failed_controls']) for disk in disks)} controls not found",
            "python -m eval erasure",
        ),
        (
            "tampering is found",
            f"{_n(trials)} edits: {_n(found)} found, {tamper['missed']} missed; for {told} cuts and rollbacks with "
            "nothing kept elsewhere `verify` says that it cannot tell",
            "python -m eval tamper",
        ),
        (
            "live, rebuilt and replayed agree",
            f"{_n(model['steps'])} steps of random histories by two processes against an independent model: "
            f"{disagreements}",
            "python -m eval model-check --steps 20000",
        ),
    ]


def _safe(results: Results) -> list[Claim]:
    safety, atlas = results["safety"], results["atlas"]
    families = [row for door in safety["doors"].values() for row in door]
    success = max(row["attack success"] for row in families)
    benign = min(row["benign pass"] for row in families)
    [ours] = [row for row in atlas["memories"] if row["memory"] == "muniment"]
    return [
        (
            "text never authorises",
            f"{safety['attacks']} attacks and {safety['benign']} controls, through the library, the command line and "
            "the MCP server, under a tight and under the loosest policy: attack success at most "
            f"{success:.2f}, benign pass at least {benign:.2f}",
            "python -m eval safety",
        ),
        (
            "the public acceptance tests for agent memory",
            f"{atlas['steps']} steps (deletion, contradiction, rejection, scope, evidence, fence), each with a "
            f"positive control and a leak that fails it alone: Muniment passes {ours['pass']}; two other memories, as "
            "they are, beside it in [eval/results/atlas.md](eval/results/atlas.md). The suite "
            "[runs on any project](eval/atlas/README.md)",
            "python -m eval atlas",
        ),
    ]


def _found(results: Results) -> list[Claim]:
    locomo = _row(results["recall-locomo"]["locomo"]["recall"], method="muniment", half="reporting")
    beam = _row(results["recall-beam"]["beam"]["recall"], method="muniment", half="reporting")
    long = _row(results["recall-longmemeval"]["longmemeval"]["rows"], half="reporting")
    unkeyed = _row(results["recall-unkeyed"]["memops_unkeyed"]["rows"], half="reporting")
    at = "@5", "@10", "@20"
    return [
        (
            "finding the right turn",
            f"halves not fitted on: LoCoMo, turn level, n = {locomo['n']}: "
            f"{', '.join(str(locomo[k]) for k in at)} % at 5, 10, 20; BEAM, messages, n = {beam['n']}: "
            f"{', '.join(str(beam[k]) for k in at)}; LongMemEval-S, all sessions in the top 5, "
            f"n = {long['answerable']}: {long['all@5']} % (`--long 290`). [eval/RESULTS.md](eval/RESULTS.md) has the "
            "conditions, the caveats and what falls short",
            "python -m eval recall",
        ),
        (
            "contradictions without a model",
            f"of MemOps' updates without keys {unkeyed['updates_linked']} % are proposed, and "
            f"{unkeyed['distinct_linked']} % of other facts",
            "python -m eval recall --sets unkeyed",
        ),
    ]


def _fast(results: Results) -> list[Claim]:
    return [_guard(results), _opening(results), _log(results), _replay(results), _recall(results)]


def _guard(results: Results) -> Claim:
    guard = results["guard-speed"]
    dry = [row["dry run, us"] for row in guard["rows"]]
    return (
        "a decision costs little",
        f"{min(dry):.0f} to {max(dry):.0f} microseconds (median) over {_n(guard['memories'])} memories and "
        f"{_n(guard['prohibitions'])} prohibitions",
        "python -m eval guard-speed",
    )


def _opening(results: Results) -> Claim:
    opened, vectors = results["open-speed"], results["replay-speed-100k"]
    clean, killed = opened["after_close"], opened["after_kill"]
    return (
        "opening does not read the log",
        f"{_n(opened['events'])} events: first belief after {clean['belief_ms']:.0f} ms, first append after "
        f"{clean['append_ms']:.0f} ms, first word search after {clean['words_ms']:.0f} ms; after a forget and a kill "
        f"{killed['belief_ms']:.0f}, {killed['append_ms']:.0f} and {killed['words_ms']:.0f} ms. "
        f"{_n(vectors['events'])} with vectors: first recall after {vectors['after_close']['recall_ms']:.0f} and "
        f"{vectors['after_kill']['recall_ms']:.0f} ms (`replay-speed`)",
        f"python -m eval open-speed --n {opened['events']}",
    )


def _log(results: Results) -> Claim:
    log = results["log-speed"]
    one, size = log["one durable append"], log["by size"]
    return (
        "speed of the log",
        f"one durable append: {one['ratio at the log layer']:.1f} times a raw write and fdatasync of a file that "
        f"grows at the log layer, "
        f"{one['ratio through remember']:.1f} times through `remember` with every check. Batches of 100: "
        f"{_rate(log['log layer, 100 events a batch']['events a second'])} events a second sealed and chained (SQLite "
        f"sealed and chained alike {_rate(log['sqlite, same batches']['sealed'])}; `eventsourcing`, which does "
        f"neither, {_rate(log['eventsourcing']['recorder, 100 a batch, events a second'])}), "
        f"{_rate(log['remember_many, 100 a batch']['events a second'])} through `remember_many`. At "
        f"{_n(size['memories'])} memories an append takes {size['ratio of appends']:.1f} times as long as at a "
        f"thousand, a forget as long as {size['ratio of forget']:.0f} appends; `verify` opens every seal of "
        f"{_rate(size['verify, as it is called, events a second'])} events a second",
        f"python -m eval log-speed --n {size['memories']}",
    )


def _replay(results: Results) -> Claim:
    replay = results["replay-speed"]
    fold = replay["fold"]
    return (
        "speed of replay",
        f"{_rate(fold['folded_a_second'])} events a second into beliefs and tombstones on one core, "
        f"{fold['ratio']:.1f} times as long as reading alone; a belief at any point of both times "
        f"{replay['belief_at_random_points_us']['p50'] / 1e3:.1f} ms (median) at {_n(replay['events'])} events; "
        f"{replay['fold_peak_per_million'] / 1e9:.1f} GB of memory, "
        f"{replay['rebuild']['peak_per_million'] / 1e9:.1f} GB for a rebuild with vectors",
        f"python -m eval replay-speed --n {replay['events']}",
    )


def _recall(results: Results) -> Claim:
    rows: Sequence[Node] = results["recall-speed"]["rows"]
    each = ", ".join(f"{row['whole_p50_us'] / 1e3:.1f} ms at {_n(row['memories'])}" for row in rows)
    dearer = [us / row["whole_cpu_p50_us"] - 1 for row in rows for us in row["filtered_cpu_p50_us"].values()]
    embedding = max(row["embedding_p50_us"] for row in rows) / 1e3
    return (
        "speed of recall",
        f"p50 {each} memories, words and evidence included, embedding the question (up to {embedding:.0f} ms) "
        f"excluded; filters and points in the past cost up to {max(dearer):.0%} more",
        f"python -m eval recall-speed --sizes {','.join(str(row['memories']) for row in rows)}",
    )


_STRUCK: Final = ("kill-before", "kill-half", "kill-after", "ENOSPC", "EIO", "power-cut")
_LOST: Final = ("acknowledged_and_lost", "half_visible_batches", "memories_without_their_key")


def _sum(rows: Sequence[Node], name: str) -> int:
    return sum(row[name] for row in rows)


def _row(rows: Sequence[Node], **named: str) -> Node:
    [found] = [row for row in rows if all(row[key] == value for key, value in named.items())]
    return found


def _n(number: int) -> str:
    return f"{number:,}"


def _rate(a_second: float) -> str:
    return _n(round(a_second / 100) * 100)


def _and(words: Sequence[str]) -> str:
    return " and ".join("XFS" if word == "xfs" else word for word in words)
