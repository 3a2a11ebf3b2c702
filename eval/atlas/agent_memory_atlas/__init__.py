"""
Acceptance tests for the memory of AI agents, to run on any project through a small adapter.

See README.md for what is asked and how; `Adapter` for what an adapter may implement.
"""

from ._adapter import Adapter, Case, Entry, Fact, Item, Key, Refused, Unavailable
from ._run import OUTCOMES, Outcome, Report, assess, load, run_step
from ._steps import STEPS, Step
from ._trial import ControlFailed, Failed, Trial

__version__ = "0.1.0"

__all__ = [
    "OUTCOMES",
    "STEPS",
    "Adapter",
    "Case",
    "ControlFailed",
    "Entry",
    "Fact",
    "Failed",
    "Item",
    "Key",
    "Outcome",
    "Refused",
    "Report",
    "Step",
    "Trial",
    "Unavailable",
    "__version__",
    "assess",
    "load",
    "run_step",
]
