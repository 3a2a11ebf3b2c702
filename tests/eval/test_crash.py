"""The campaign counts faults that struck, and finds none of the promises broken."""

from __future__ import annotations

import argparse

from eval.crash import PROMISES, run


def test_a_short_campaign_keeps_every_promise() -> None:
    result = run(argparse.Namespace(faults=4, processes=[1, 2], seed=11))
    assert True is result["ok"], result["broken"]
    rows = result["by_processes"]
    assert isinstance(rows, list)
    assert [0] * len(PROMISES) * 2 == [row[promise] for row in rows for promise in PROMISES]
