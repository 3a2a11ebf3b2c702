"""A committed figure that comes out otherwise is found; noise is not; each committed result has its command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from eval.__main__ import registry
from eval._compare import compare
from eval._harness import ROOT
from eval._reproducing import CAMPAIGNS, SPEED, STEPS, Step, command_of, run_steps

Result = dict[str, object]


def document(result: Result, cpu: str = "a processor") -> Result:
    return {"machine": {"cpu": cpu, "cores": 2}, "result": result}


def differs(before: Result, after: Result, *, only: str | None = None, cpu: str = "a processor") -> list[str]:
    found = compare(document(before), document(after, cpu), factor=2.0, only=only)
    return [one.figure for one in found.differences]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"ok": True}, {"ok": False}),
        ({"missed": 0}, {"missed": 1}),
        ({"attack success": 0.0}, {"attack success": 0.02}),
        ({"@10": 78.2}, {"@10": 77.1}),
        ({"recall_p50_us": 100}, {"recall_p50_us": 201}),
        ({"events a second": 1_000.0}, {"events a second": 499.0}),
        ({"verbs": "yes"}, {"verbs": "unavailable: why"}),
        ({"there": 1}, {}),
    ],
)
def test_what_came_out_otherwise_is_found(before: Result, after: Result) -> None:
    assert [next(iter(before))] == differs(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"@10": 78.2}, {"@10": 78.4}),
        ({"auc": 0.9138}, {"auc": 0.914}),
        ({"recall_p50_us": 100}, {"recall_p50_us": 190.0}),
        ({"recall_p99_us": 100}, {"recall_p99_us": 9_000}),
        ({"power-cut": 846, "load_average": 1.0}, {"power-cut": 830, "load_average": 9.0}),
        ({}, {"new": 1}),
    ],
)
def test_noise_and_what_chance_deals_out_is_not(before: Result, after: Result) -> None:
    assert [] == differs(before, after)


def test_times_of_another_machine_are_not_compared_and_counts_are() -> None:
    before: Result = {"recall_p50_us": 100, "missed": 0}
    assert [] == differs(before, {"recall_p50_us": 900, "missed": 0}, cpu="another")
    assert ["missed"] == differs(before, {"recall_p50_us": 900, "missed": 3}, cpu="another")


def test_a_machine_that_takes_longer_for_the_same_loop_may_take_longer() -> None:
    before, after = document({"recall_p50_us": 100, "missed": 0}), document({"recall_p50_us": 390, "missed": 1})
    for one, loop_ms in ((before, 10.0), (after, 20.0)):
        cast("Result", one["machine"])["loop_ms"] = loop_ms
    assert ["missed"] == [one.figure for one in compare(before, after, factor=2.0).differences]
    cast("Result", after["machine"])["loop_ms"] = 10.0
    assert {"missed", "recall_p50_us"} == {one.figure for one in compare(before, after, factor=2.0).differences}


def test_what_went_wrong_is_named_where_nothing_did() -> None:
    assert ["failed_controls/0"] == differs({"failed_controls": []}, {"failed_controls": ["planted and not found"]})


def test_rows_are_compared_by_name_and_a_smaller_run_by_what_it_has() -> None:
    before: Result = {"rows": [{"peer": "a", "left": 0}, {"peer": "b", "left": 5}]}
    assert [] == differs(before, {"rows": [{"peer": "b", "left": 5}, {"peer": "a", "left": 0}]})
    assert ["rows/b/left"] == differs(before, {"rows": [{"peer": "b", "left": 4}]}, only="/rows/")
    assert [] == differs(before, {"other": 1}, only="^/ok$")


def test_a_committed_result_equals_itself_and_compares_something() -> None:
    for path in sorted((ROOT / "eval" / "results").glob("*.json")):
        known = cast("Result", json.loads(path.read_text(encoding="utf-8")))
        found = compare(known, known, factor=1.0)
        assert () == found.differences, path.name
        assert found.compared > 0, path.name


def test_every_committed_result_has_the_command_that_makes_it() -> None:
    committed = {path.stem for path in (ROOT / "eval" / "results").glob("*.json")} - {"reproduce", "bench"}
    assert committed <= {step.committed for step in (*STEPS, *CAMPAIGNS)}
    steps = [step for step in (*STEPS, *CAMPAIGNS, *SPEED) if step.committed in committed]
    assert {step.words[0] for step in steps} <= set(registry())


def test_the_steps_take_less_than_forty_minutes() -> None:
    assert sum(step.minutes for step in STEPS) < 40


def test_the_campaigns_are_named_apart() -> None:
    text = (ROOT / "eval" / "README.md").read_text(encoding="utf-8")
    assert [] == [command_of(step) for step in CAMPAIGNS if f"`{command_of(step)}` | {step.minutes:g} |" not in text]


def test_a_step_whose_times_are_compared_runs_alone() -> None:
    assert {step.committed for step in STEPS if step.is_timed} == {step.committed for step in SPEED} | {"peers"}


def test_a_step_that_cannot_run_fails_and_one_without_data_is_skipped(tmp_path: Path) -> None:
    for name in ("recall-beam", "recall-speed"):
        (tmp_path / f"{name}.json").write_text("{}", encoding="utf-8")
    steps = [
        Step("recall-beam", ("recall", "--no-such-option"), 1),
        Step("recall-speed", ("recall-speed",), 1),
        Step("new", ("new",), 1),
    ]
    failed, skipped, new = run_steps(steps, data=tmp_path, fresh=tmp_path / "new", results=tmp_path, factor=2.0)
    assert "failed" == failed["outcome"]
    assert "unrecognized arguments" in str(failed["why"])
    assert "skipped" == skipped["outcome"]
    assert "locomo_dev.json" in str(skipped["why"])
    assert "nothing committed" == new["outcome"]
