"""Attack success and benign pass where a product has a guard: the cases of `eval safety`, the same for each."""

from __future__ import annotations

from collections.abc import Sequence

from eval._safety_peer import LEFT_OUT, cases_against, packages_of
from eval.safety import all_cases, run_door

from ._install import Environment

Row = dict[str, object]


def guard_rows(midas: Environment | None, *, every: int) -> list[Row]:
    """Return both rates of Muniment and of midas-memory, on every n-th case of the families that both can be asked."""
    cases = [case for case in all_cases() if case.family not in LEFT_OUT][::every]
    rows, _ = run_door("library", cases)
    found = [_row("muniment", rows)]
    if midas is not None:
        found.append(_row("midas", cases_against(packages_of(midas.python), cases)))
    return found


def _row(name: str, rows: Sequence[Row]) -> Row:
    [whole] = [row for row in rows if row["family"] == "all"]
    return {"peer": name, **{key: whole[key] for key in ("cases", "attack success", "benign pass")}}
