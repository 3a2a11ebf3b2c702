"""What a store is opened with: a wrong argument is refused by name before anything is made, a wrong clock at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.errors import BadArgument
from tests.worlds import SCOPE, START

NOW = int(START.timestamp()) * 1_000_000


class KeyWithoutHand:
    """Shows a public key, and cannot sign."""

    public_key = bytes(32)


WRONG: dict[str, tuple[str, Any]] = {
    "create in words": ("create", "yes"),
    "read_only as a number": ("read_only", 1),
    "graph in words": ("graph", "no"),
    "a policy that is a mapping": ("policy", {}),
    "a policy that is not there": ("policy", "no such policy.toml"),
    "a model that is a number": ("model", 5),
    "secrets as a truth value": ("secrets", True),
    "secrets as a list": ("secrets", ["mask"]),
    "one exemption without its list": ("exempt_secrets", "github_token"),
    "exemptions as a number": ("exempt_secrets", 5),
    "exemptions that are numbers": ("exempt_secrets", [5]),
    "exemptions that are lists": ("exempt_secrets", [["github_token"]]),
    "an exemption from no rule": ("exempt_secrets", ["no such rule"]),
    "no exemptions": ("exempt_secrets", None),
    "an anchor that is a number": ("anchor", 5),
    "a log key that is a number": ("log_key", 5),
    "a log key that is bytes": ("log_key", bytes(32)),
    "a log key that cannot sign": ("log_key", KeyWithoutHand()),
    "segments as a text": ("segment_bytes", "64"),
    "segments as a fraction": ("segment_bytes", 4096.0),
    "segments as a truth value": ("segment_bytes", True),
    "segments of nothing": ("segment_bytes", 0),
    "segments beyond any file": ("segment_bytes", 1 << 63),
    "a clock that stands": ("clock", NOW),
    "no clock": ("clock", None),
}


@pytest.mark.parametrize(("argument", "given"), WRONG.values(), ids=WRONG)
def test_i12_a_wrong_argument_is_refused_by_name_and_makes_no_store(tmp_path: Path, argument: str, given: Any) -> None:
    path = tmp_path / "store"
    chosen: dict[str, Any] = {"create": True, "model": "none", argument: given}
    with pytest.raises(BadArgument) as caught:
        muniment.open(path, **chosen)
    assert argument == caught.value.facts["argument"]
    assert not path.exists()


NO_INSTANTS: dict[str, Any] = {
    "nothing": None,
    "a text": "2026-03-01",
    "a fraction": NOW / 1,
    "a truth value": True,
    "before the calendar": -62_135_596_800_000_001,
    "nanoseconds": NOW * 1000,
    "more digits than are ever printed": 10**5000,
}


@pytest.mark.parametrize("told", NO_INSTANTS.values(), ids=NO_INSTANTS)
def test_a_clock_that_gives_no_instant_is_named_and_writes_nothing(tmp_path: Path, told: Any) -> None:
    path, time = tmp_path / "store", [told]
    with pytest.raises(BadArgument, match="`clock`") as caught:
        muniment.open(path, create=True, model="none", clock=lambda: time[0])
    assert "clock" == caught.value.facts["argument"]
    assert not path.exists()

    time[0] = NOW
    with muniment.open(path, create=True, model="none", clock=lambda: time[0]) as store:
        session = store.session(scope=SCOPE, actor="agent:planner")
        session.remember("The launch is on 12 March.")
        before = store.head
        time[0] = told
        for call in (lambda: session.remember("Another note."), lambda: session.recall("launch")):
            with pytest.raises(BadArgument, match="`clock`"):
                call()
        time[0] = NOW
        assert before == store.head
        assert ["The launch is on 12 March."] == [hit.content for hit in session.recall("launch note")]


def test_a_clock_before_1970_reads_as_1970(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "store", create=True, model="none", clock=lambda: -5) as store:
        receipt = store.session(scope=SCOPE, actor="agent:planner").remember("The battery of the clock is empty.")
        assert 1970 == receipt.recorded_at.year
