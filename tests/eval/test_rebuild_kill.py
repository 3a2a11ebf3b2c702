"""The campaign kills rebuilds, and finds none of the promises broken."""

from __future__ import annotations

import argparse

from eval.rebuild_kill import PROMISES, run


def test_a_short_campaign_keeps_every_promise() -> None:
    result = run(argparse.Namespace(kills=10, events=150, seed=3))
    assert True is result["ok"], result["broken"]
    assert 10 == result["killed"]
    assert [0] * len(PROMISES) == [result[promise] for promise in PROMISES]
