"""The store and the model agree on random histories, at every position; `python -m eval model-check` runs many more."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from .machine import Histories

TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=8,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
