"""Running the steps over an adapter, and the report of it."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast

from . import _contradiction, _deletion, _evidence, _marks, _recall, _scopes, _tombstones
from ._adapter import Adapter, Refused, Unavailable
from ._steps import INVARIANT, OBLIGATION, STEPS, Step
from ._trial import ControlFailed, Failed, Trial

MODULES: Final = (_marks, _deletion, _contradiction, _tombstones, _scopes, _evidence, _recall)
"""Their import registers the steps."""
OUTCOMES: Final = ("pass", "fail", "unavailable", "control_failed", "error")
"""Only the first counts as passed."""

_GROUPS = ("mark", "axis", "deletion", "contradiction", "tombstone", "scope", "evidence", "gateway", "correction",
           "retrieval", "prompt")  # fmt: skip
STEPS.sort(key=lambda step: _GROUPS.index(step.group))

Factory = Callable[[Path], Adapter]


class Outcome(NamedTuple):
    """What became of one step. `detail` is what was not as asked, or why the step could not be tried."""

    step: str
    outcome: str
    detail: str
    controls: tuple[str, ...]


class Report(NamedTuple):
    """Every outcome of one adapter, and what was merely looked at."""

    name: str
    version: str
    outcomes: tuple[Outcome, ...]
    observations: dict[str, str]
    calls: dict[str, str]

    @property
    def ok(self) -> bool:
        """Tell whether every step passed."""
        return all(one.outcome == "pass" for one in self.outcomes)

    def of(self, outcome: str) -> list[str]:
        """Return the ids of the steps that had an outcome."""
        return [one.step for one in self.outcomes if one.outcome == outcome]

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON-ready data."""
        sorts = {step.id: step.sort for step in STEPS}
        counts = Counter(one.outcome for one in self.outcomes)
        return {
            "adapter": self.name,
            "version": self.version,
            "ok": self.ok,
            "counts": {outcome: counts[outcome] for outcome in OUTCOMES},
            "obligations": _share(self.outcomes, sorts, OBLIGATION),
            "invariants": _share(self.outcomes, sorts, INVARIANT),
            "observations": self.observations,
            "calls": self.calls,
            "steps": [
                {"step": one.step, "outcome": one.outcome, "detail": one.detail, "controls": list(one.controls)}
                for one in self.outcomes
            ],
        }


def assess(make: Factory, *, only: Sequence[str] = (), shared: bool = False) -> Report:
    """
    Run every step, or those whose ids begin with one of `only`, and return the report.

    Each step gets a memory of its own in an empty folder. With `shared` all steps use one memory, in scopes of their
    own: quicker, and closer to a store that has been in use.
    """
    steps = [step for step in STEPS if not only or step.id.startswith(tuple(only))]
    with tempfile.TemporaryDirectory(prefix="atlas-", ignore_cleanup_errors=True) as folder:
        makers = _one_for_all(make, Path(folder)) if shared else _one_each(make, Path(folder))
        outcomes = tuple(run_step(step, makers) for step in steps)
        observations = {"paraphrase": _observe_paraphrase(makers)}
        memory = makers("closing")
        memory.close()
        return Report(memory.name, memory.version, outcomes, observations, dict(memory.calls))


def run_step(step: Step, open_memory: Callable[[str], Adapter]) -> Outcome:
    """Try one step on the memory that `open_memory` gives for its id."""
    trial: Trial | None = None
    try:
        memory = open_memory(step.id)
        trial = Trial(memory, step.id)
        step.attempt(trial)
    except Unavailable as error:
        return _outcome(step, "unavailable", str(error), trial)
    except ControlFailed as error:
        return _outcome(step, "control_failed", f"control: {error}", trial)
    except Refused as error:
        return _outcome(step, "control_failed", f"what the step needs was refused: {error}", trial)
    except Failed as error:
        return _outcome(step, "fail", f"not so: {error}", trial)
    except Exception as error:  # an adapter may raise anything, and one step must not end the run
        return _outcome(step, "error", f"{type(error).__name__}: {error}"[:300], trial)
    if not trial.controls or not trial.expected:
        return _outcome(step, "control_failed", "the step stated no control or no expectation", trial)
    return _outcome(step, "pass", "", trial)


def load(name: str) -> Factory:
    """Return the adapter class that `module:Class` names; modules of the working directory are found too."""
    module, _, cls = name.partition(":")
    if not cls:
        raise ValueError(f"expected `module:Class`, got `{name}`")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return cast("Factory", getattr(importlib.import_module(module), cls))
    finally:
        sys.path.pop(0)


def _outcome(step: Step, outcome: str, detail: str, trial: Trial | None) -> Outcome:
    return Outcome(step.id, outcome, detail, tuple(trial.controls) if trial else ())


def _share(outcomes: Collection[Outcome], sorts: dict[str, str], sort: str) -> str:
    of_sort = [one for one in outcomes if sorts[one.step] == sort]
    return f"{sum(one.outcome == 'pass' for one in of_sort)}/{len(of_sort)}"


def _one_each(make: Factory, folder: Path) -> Callable[[str], Adapter]:
    last: list[Adapter] = []

    def open_memory(step: str) -> Adapter:
        while last:
            last.pop().close()
        place = folder / step
        place.mkdir()
        last.append(make(place))
        return last[0]

    return open_memory


def _one_for_all(make: Factory, folder: Path) -> Callable[[str], Adapter]:
    made: list[Adapter] = []

    def open_memory(step: str) -> Adapter:
        del step
        if not made:
            made.append(make(folder))
        return made[0]

    return open_memory


def _observe_paraphrase(open_memory: Callable[[str], Adapter]) -> str:
    """Record whether a paraphrase of a rejected value gets in. It is expected to: nothing short of a model knows it."""
    try:
        trial = Trial(open_memory("observed"), "observed")
        said = trial.memory.remember("The night porter is called Aldo.", scope=trial.home)
        trial.memory.reject(said, scope=trial.home)
        back = trial.restate("Aldo is who works as the porter at night.", by="agent")
    except Exception as error:  # as for a step
        return f"not seen: {type(error).__name__}: {error}"[:200]
    return "admitted" if back else "kept out"
