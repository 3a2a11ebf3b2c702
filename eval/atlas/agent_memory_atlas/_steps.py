"""The register of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ._trial import Trial

Try: TypeAlias = Callable[[Trial], None]

OBLIGATION = "obligation"
INVARIANT = "invariant"


class Step(NamedTuple):
    """
    One step: its id, what it asks, its sort, and how it is tried.

    An `obligation` is something that the product must do; an `invariant` something that must not be seen. They are
    counted apart: a memory that stores nothing would otherwise score well.
    """

    id: str
    asks: str
    sort: str
    attempt: Try

    @property
    def group(self) -> str:
        """The part of the id before the first stop."""
        return self.id.partition(".")[0]


STEPS: list[Step] = []
"""Every step, in the order of the report."""


def obligation(id: str, asks: str) -> Callable[[Try], Try]:  # noqa: A002
    """Register a step about what the product must do."""
    return _register(id, asks, OBLIGATION)


def invariant(id: str, asks: str) -> Callable[[Try], Try]:  # noqa: A002
    """Register a step about what must not be seen."""
    return _register(id, asks, INVARIANT)


def _register(id: str, asks: str, sort: str) -> Callable[[Try], Try]:  # noqa: A002
    def add(attempt: Try) -> Try:
        STEPS.append(Step(id, asks, sort, attempt))
        return attempt

    return add
