"""The harness reports what was measured, on what, and nothing else."""

import argparse
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval._harness import (
    DataAbsent,
    commit_facts,
    format_result,
    machine_facts,
    need,
    percentile,
    time_calls,
    time_each,
    time_paired,
    write_result,
)

WHEN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Ticks:
    """A clock that moves only when a call says that it took time."""

    def __init__(self) -> None:
        self.now = 0
        self.order: list[str] = []

    def __call__(self) -> int:
        return self.now

    def taking(self, name: str, *nanoseconds: int) -> Callable[[], None]:
        durations = iter(nanoseconds)

        def call() -> None:
            self.order.append(name)
            self.now += next(durations)

        return call


@given(st.lists(st.integers(), min_size=1), st.floats(0, 100))
def test_a_percentile_is_a_value_that_was_measured_and_that_share_does_not_exceed(
    values: list[int], percent: float
) -> None:
    found = percentile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) >= len(values) * percent / 100 - 1e-9


def test_a_percentile_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_warming_up_is_not_counted() -> None:
    clock = Ticks()
    timing = time_calls(clock.taking("a", 9_000_000, 1_000, 2_000, 3_000), n=3, warm_up=1, clock=clock)
    assert (timing.n, timing.p50, timing.p99, timing.fastest, timing.slowest) == (3, 2.0, 3.0, 1.0, 3.0)


def test_each_of_several_calls_is_timed_once() -> None:
    clock = Ticks()
    timing = time_each([clock.taking("a", 5_000), clock.taking("b", 7_000)], clock=clock)
    assert (timing.n, timing.p50, timing.p99) == (2, 5.0, 7.0)


def test_a_pair_alternates_who_goes_first_and_its_ratio_is_within_rounds() -> None:
    clock = Ticks()
    # The machine is ten times slower in the second round: the medians apart would mislead, the ratio does not.
    a = clock.taking("a", 2_000, 20_000, 2_000)
    b = clock.taking("b", 1_000, 10_000, 1_000)
    paired = time_paired(a, b, rounds=3, warm_up=0, clock=clock)
    assert clock.order == ["a", "b", "b", "a", "a", "b"]
    assert (paired.ratio, paired.ratio_p10, paired.ratio_p90) == (2.0, 2.0, 2.0)


def test_a_set_that_is_absent_is_named(tmp_path: Path) -> None:
    args = argparse.Namespace(data=tmp_path)
    (tmp_path / "here.json").touch()
    assert need(args, "here.json") == tmp_path / "here.json"
    with pytest.raises(DataAbsent, match=r"`locomo/x\.json` is not in"):
        need(args, "locomo/x.json")


def test_a_result_is_written_with_machine_commit_date_and_duration(tmp_path: Path) -> None:
    timing = time_each([lambda: None])
    path = write_result("speed", {"write": timing}, out=tmp_path / "new", started=WHEN, seconds=1.23456)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert list(document) == ["name", "date", "seconds", "commit", "changed", "machine", "result"]
    assert (document["name"], document["date"], document["seconds"]) == ("speed", "2026-03-01T12:00:00+00:00", 1.235)
    assert document["result"] == {"write": msgspec.to_builtins(timing)}


def test_a_result_that_is_no_number_is_refused_before_a_byte_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_result("bad", {"x": float("nan")}, out=tmp_path, started=WHEN, seconds=0)
    assert not list(tmp_path.iterdir())


def test_the_machine_is_described_and_not_named() -> None:
    facts = machine_facts()
    assert list(facts) == ["cores", "cpu", "memory_bytes", "kernel", "python", "packages"]
    assert "numpy" in msgspec.convert(facts["packages"], dict[str, str])


def test_without_git_there_is_no_commit(tmp_path: Path) -> None:
    assert commit_facts(tmp_path) == {"commit": None, "changed": None}


def test_rows_are_a_table_and_the_rest_is_key_and_value() -> None:
    text = format_result({"n": 3, "scores": {"mean": 0.123456}, "by_k": [{"k": 5, "recall": 59.0}, {"k": 10}]})
    assert text.splitlines() == ["n  3", "scores.mean  0.1235", "", "by_k", "k   recall", "5   59", "10"]
