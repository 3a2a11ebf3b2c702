"""I1: every change is an event, appended by one function, under one writer lock, in one atomic batch."""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import muniment
from muniment import Action, Session
from tests.checkout import package_modules, shown, syntax
from tests.worlds import AGENT, SIGNED, World, one_of_each, perform

Deed = Callable[[World, str], object]


def _calls(method: str) -> list[str]:
    return [
        f"{shown(path)}:{ast.unparse(node.func)}"
        for path in package_modules()
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
    ]


def test_i01_only_the_door_appends_to_the_log() -> None:
    """Found in the source: `Log.append` is reached from one call, and `Door.append` from the engine alone."""
    assert ["events/_door.py:self._log.append"] == [c for c in _calls("append") if c.endswith("log.append")]
    assert {"muniment/_engine.py:self.door.append"} == {c for c in _calls("append") if c.endswith("door.append")}


def test_i01_only_the_log_writes_into_its_directory() -> None:
    """Frames reach a segment through one helper of the log, and no other module opens a segment for writing."""
    frame, what_a_dead_writer_left = ["events/_log.py:self._disk.overwrite"] * 2
    assert [frame, what_a_dead_writer_left] == [c for c in _calls("overwrite") if "events/_log" in c]
    assert [] == [c for c in _calls("write") if "events/_log" in c]
    assert {"events/_log.py", "events/_room.py", "events/_keys.py", "events/_disk.py"} >= {
        call.split(":")[0] for call in _calls("truncate") + _calls("overwrite")
    }


def _log_bytes(path: Path) -> bytes:
    # What comes and goes behind the last frame is room, and no part of the log.
    return b"".join(segment.read_bytes().rstrip(b"\0") for segment in sorted((path / "log").glob("*.seg")))


def test_i01_every_event_adds_to_the_log_and_changes_nothing_before_it(world: World) -> None:
    for step in one_of_each():
        before, head = _log_bytes(world.path), world.store.head.seq

        perform(world, step)

        after = _log_bytes(world.path)
        assert after.startswith(before), step
        assert world.store.head.seq > head, step


READS: dict[str, Deed] = {
    "recall": lambda w, i: w.speaker(AGENT).recall("launch"),
    "context": lambda w, i: w.speaker(AGENT).context("launch"),
    "beliefs": lambda w, i: w.speaker(AGENT).beliefs(),
    "get": lambda w, i: w.speaker(AGENT).get(i),
    "history": lambda w, i: w.speaker(AGENT).history(i),
    "links": lambda w, i: w.speaker(AGENT).links(i),
    "list": lambda w, i: w.speaker(AGENT).list(),
    "diff": lambda w, i: w.speaker(AGENT).diff(0),
    "briefing": lambda w, i: w.speaker(AGENT).briefing(),
    "pending": lambda w, i: w.ann().pending(),
    "trace": lambda w, i: w.store.operator().trace(i),
    "dry forget": lambda w, i: w.speaker(AGENT).forget(i, reason="asked", dry_run=True),
    "dry decide": lambda w, i: w.speaker(AGENT).decide(Action("x"), dry_run=True),
    "replay": lambda w, i: w.store.replay(to=2).session(scope="acme").recall("launch"),
    "verify": lambda w, i: w.store.verify(),
    "stats": lambda w, i: w.store.stats(),
    "digests": lambda w, i: w.store.digests(),
    "rebuild": lambda w, i: w.store.rebuild(),
    "reopen": lambda w, i: w.reopen(),
}


@pytest.mark.parametrize("verb", READS)
def test_i01_reading_and_maintenance_change_no_byte_of_the_log(world: World, verb: str) -> None:
    for step in one_of_each():
        perform(world, step)
    before = _log_bytes(world.path)

    try:
        READS[verb](world, world.ids[0])
    except muniment.InvalidInput as error:
        pytest.fail(f"{verb}: {error}")

    assert before == _log_bytes(world.path)


def test_i01_a_batch_is_one_frame_written_wholly_or_not_at_all(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("an old value")
    before = world.store.head.seq
    items: list[dict[str, object]] = [{"content": f"item {n}"} for n in range(5)]

    with pytest.raises(muniment.InvalidInput):
        agent.remember_many([*items, {"content": " "}])
    with pytest.raises(muniment.InvalidInput):
        agent.remember_many([*items, {"content": "x", "derived_from": ["0" * 32]}])
    assert before == world.store.head.seq

    receipts = agent.remember_many(items)
    assert [before + 1 + n for n in range(5)] == [receipt.seq for receipt in receipts]
    assert 1 == len({receipt.recorded_at for receipt in receipts})


def test_i01_one_refusal_refuses_the_whole_batch_and_is_the_only_event(world: World) -> None:
    ann = world.ann()
    forgotten = ann.remember("the secret dish is beetroot")
    ann.forget(forgotten.id, reason="asked")
    before = len(world.speaker(AGENT).list())

    with pytest.raises(muniment.Refused, match="forgotten on"):
        world.speaker(AGENT).remember_many([{"content": "fine"}, {"content": "The secret dish is beetroot."}])
    assert before == len(world.speaker(AGENT).list())

    kept = world.speaker(AGENT).remember_many(
        [{"content": "fine"}, {"content": "The secret dish is beetroot."}], on_refusal="skip"
    )
    assert 1 == len(kept)
    assert [(1, "tombstoned")] == [(refusal.index, refusal.error) for refusal in kept.refused]


def test_i01_batches_of_many_threads_do_not_interleave(world: World) -> None:
    def write(session: Session, name: str) -> None:
        for n in range(6):
            session.remember_many([{"content": f"{name} {n} {part}"} for part in range(3)])

    threads = [threading.Thread(target=write, args=(world.speaker(who), who)) for who in (AGENT, SIGNED, "agent:b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    records = world.speaker(AGENT).list(limit=1000)
    assert 54 == len(records)
    for batch in [records[n : n + 3] for n in range(0, 54, 3)]:
        assert 1 == len({(record.recorded_at, record.actor, (record.content or "")[:-2]) for record in batch})
        assert [batch[0].seq + part for part in range(3)] == [record.seq for record in batch]
    times = [record.recorded_at for record in records]
    assert sorted(times) == times
