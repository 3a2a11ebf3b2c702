"""Makes the golden store of the current format version, once, and states digests: `python -m tests.golden.make`."""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
from pathlib import Path

import muniment
from muniment.events import FORMAT
from tests.worlds import AGENT, EXTERNAL, SCOPE, Step, World, one_of_each, perform

from .asked import FOLDER, answers, digests_of, format_answers, opened, unpack


def make(folder: Path) -> None:
    """Write a store that holds every kind of event, with records in several scripts, and what it answers."""
    world = World(folder / "store", policy=muniment.Policy(review=("tool:*",)))
    for step in one_of_each():
        perform(world, step)
    _speak(world)
    _revise(world)
    _refuse(world)
    _close_a_scope(world)
    _roll_back(world)
    world.store.close()


def _speak(world: World) -> None:
    session = world.speaker(AGENT)
    for text in ("Der Start ist am 12. März.", "発売日は三月十二日です。", "الإطلاق في ١٢ مارس", "long " * 500):
        world.clock.advance()
        session.remember(text, kind="fact", tags=("a", "ä"), metadata={"n": 1, "deep": {"list": [None, 1.5]}})
    session.remember(
        "Only when it rains.", applies_when="rain", importance=0.5, source="chat:1/2", valid_to="2030-01-01"
    )
    session.remember("A plan.", about=("team", "member"), value="Ann", many=True, provenance="planning")
    session.via("tool:mail").remember("It waits for a person.")


def _revise(world: World) -> None:
    with muniment.open(world.path, clock=world.clock) as store:  # with the packaged model: it compares meanings
        session = store.session(scope=SCOPE, actor=AGENT)
        session.remember("My dentist appointment is on 12 March at 9.")
        session.revise("Actually, my dentist appointment was moved to 14 March at 9.", act="link")


def _refuse(world: World) -> None:
    owned = world.speaker("user").remember("The user said this.")
    for attempt in (
        lambda: world.speaker(AGENT).forget(owned.id, reason="above my rank"),
        lambda: world.speaker(EXTERNAL).retire(owned.id, reason="above my rank"),
    ):
        world.clock.advance()
        try:
            attempt()
        except muniment.Refused:
            continue
        raise AssertionError("it should have been refused")


def _close_a_scope(world: World) -> None:
    world.speaker(AGENT, "acme/old").remember("Of a project that was dropped.")
    world.ann("acme/old").forget_scope(reason="dropped")


def _roll_back(world: World) -> None:
    receipt = world.speaker(AGENT).remember("Erased, and then an older log was put back.")
    log, kept = world.path / "log", world.path.with_name("kept")
    shutil.copytree(log, kept)
    world.speaker(AGENT).forget(receipt.id, reason="asked to")
    world.store.close()
    shutil.rmtree(log)
    kept.rename(log)
    world.store = world.open_again()
    world.store.operator().accept_rollback(reason="restored from a backup")
    world.clock.advance()
    perform(world, Step("remember", AGENT, "and life went on", 0, None, None))


def main() -> None:
    """Write the pair, unless it is there; and the digests of every golden store, which go with the program."""
    archive, stated = FOLDER / f"format-{FORMAT}.tar", FOLDER / f"format-{FORMAT}.json"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not archive.exists():
            make(folder)
            for snapshot in (folder / "store" / "projections").iterdir():
                snapshot.unlink()  # of the program, not of the format
            with opened(folder / "store", read_only=True) as store:
                stated.write_text(format_answers(answers(store)))
            with tarfile.open(archive, "w") as tar:
                tar.add(folder / "store", "store", filter=_plain)
        for version in range(1, FORMAT + 1):
            with opened(unpack(version, folder / str(version)), read_only=True) as store:
                found = json.dumps(digests_of(store), indent=1)
            (FOLDER / f"format-{version}.digests.json").write_text(found + "\n")


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    main()
