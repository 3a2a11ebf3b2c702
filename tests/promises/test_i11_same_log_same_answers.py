"""I11: replay is deterministic across processes, time zones, locales and machines; a projection has no clock."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings

import muniment
from tests.asking import At, answers
from tests.checkout import files, shown, syntax
from tests.processes import run
from tests.strategies import histories
from tests.worlds import AGENT, SCOPE, Step, World, one_of_each, perform

MakeWorld = Callable[[], World]

_ANSWERS = """
import json, shutil, sys, muniment
from tests.asking import At, answers
path, seq, ids = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
with muniment.open(path, model="none", read_only=True) as store:
    session = store.session(scope="acme/apollo", actor="agent:planner")
    at = At(valid_at="2026-03-02", known_at=seq)
    past = store.replay(to=seq).session(scope="acme/apollo")
    said = [store.digests(), answers(session, ids, at), answers(past, ids, At(valid_at="2026-03-02"))]
sys.stdout.reconfigure(encoding="utf-8")
print(json.dumps(said, sort_keys=True))
"""

ENVIRONMENTS = [
    {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "0", "LC_ALL": "C"},
    {"TZ": "America/Los_Angeles", "PYTHONHASHSEED": "1", "LC_ALL": "C.UTF-8"},
    {"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "1"},
    {"TZ": "America/St_Johns", "PYTHONHASHSEED": "4242", "LC_ALL": "C"},
    {"TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
    {"TZ": "UTC", "LC_ALL": "de_DE.UTF-8", "PYTHONUTF8": "0", "PYTHONHASHSEED": "0"},
    {"OMP_NUM_THREADS": "1", "PYTHONOPTIMIZE": "2", "PYTHONHASHSEED": "7"},
]


@pytest.fixture
def told(world: World) -> World:
    for step in one_of_each():
        perform(world, step)
    agent = world.speaker(AGENT)
    for text in (
        "ISTANBUL liegt am Wasser",
        "\u0130stanbul",
        "stra\u00dfe STRASSE",
        "\u540c\u3058\u3053\u3068",
        "1.5 EUR",
    ):
        world.ids.append(agent.remember(text, about=(text, "is"), value=text).id)
    return world


@pytest.mark.parametrize("extra", ENVIRONMENTS, ids=lambda e: e.get("TZ", "threads").replace("/", "-"))
@pytest.mark.parametrize("snapshots", [True, False], ids=["from snapshots", "from the log"])
def test_i11_other_processes_under_other_settings_answer_the_same(
    told: World, extra: dict[str, str], snapshots: bool
) -> None:
    seq = told.store.head.seq
    session = told.speaker(AGENT)
    at = At(valid_at="2026-03-02", known_at=seq)
    past = told.store.replay(to=seq).session(scope=SCOPE)
    here = [told.store.digests(), answers(session, told.ids, at), answers(past, told.ids, At(valid_at="2026-03-02"))]
    told.reopen()
    if not snapshots:
        shutil.rmtree(told.path / "projections")

    there = run(_ANSWERS, told.path, str(seq), json.dumps(told.ids), extra=extra)

    assert json.loads(json.dumps(here)) == json.loads(there)


@given(history=histories)
@settings(max_examples=30, deadline=None)
def test_i11_the_wall_clock_is_in_no_projection(make_world: MakeWorld, history: list[Step]) -> None:
    """Opened a hundred years later or before, the same log gives the same digests and the same past."""
    world = make_world()
    for step in history:
        perform(world, step)
    seq, digests = world.store.head.seq, world.store.digests()
    before = answers(world.speaker(AGENT), world.ids, At(known_at=seq))
    century = 36_525 * 86_400

    for seconds in (century, -2 * century):
        world.clock.advance(seconds)
        shutil.rmtree(world.path / "projections", ignore_errors=True)
        with world.open_again() as other:
            assert digests == other.digests()
            assert before == answers(world.speaker(AGENT, store=other), world.ids, At(known_at=seq))


def test_i11_a_copy_on_another_path_answers_the_same(told: World, tmp_path: Path) -> None:
    before, digests = answers(told.speaker(AGENT), told.ids), told.store.digests()
    told.store.close()
    shutil.copytree(told.path, tmp_path / "elsewhere" / "deep")

    with muniment.open(tmp_path / "elsewhere" / "deep", model="none", clock=told.clock) as copy:
        assert digests == copy.digests()
        assert before == answers(told.speaker(AGENT, store=copy), told.ids)
    told.store = told.open_again()


def test_i11_a_clock_that_steps_back_changes_no_order(world: World) -> None:
    agent = world.speaker(AGENT)
    for n in range(4):
        agent.remember(f"value {n}", about=("order", "is"))
        world.clock.advance(-5)

    records = agent.history(agent.beliefs()[0].id)
    assert [f"value {n}" for n in range(4)] == [record.content for record in records]
    times = [record.recorded_at for record in records]
    assert sorted(set(times)) == times
    assert ["value 3"] == [belief.content for belief in agent.beliefs()]
    assert world.store.rebuild().ok


_WALL = {"time", "random", "secrets", "uuid", "locale", "socket", "urllib", "http", "requests", "subprocess"}
_CLOCKS = {"now", "today", "utcnow", "time_ns", "monotonic", "urandom", "wall_clock", "getenv", "environ"}


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def test_i11_no_projection_imports_a_clock_chance_or_the_network() -> None:
    found = [
        f"{shown(path)} imports {name}"
        for package in ("projections", "replay")
        for path in files(".py", under=package)
        for name in _imports(path)
        if name in _WALL
    ]

    assert not found


def test_i11_no_fold_asks_for_the_present() -> None:
    """Files are named and sealed by chance; all that is folded into them is a function of the log."""
    allowed = {
        ("projections/_snapshots.py", "urandom"),
        ("projections/_vector_file.py", "urandom"),
        ("replay/_bench.py", "urandom"),
    }
    found = {
        (shown(path), node.attr)
        for package in ("projections", "replay")
        for path in files(".py", under=package)
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Attribute) and node.attr in _CLOCKS
    }

    assert allowed == found
