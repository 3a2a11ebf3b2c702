"""Readers that run beside a process that forgets: each answer is from before or from after, and nothing breaks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import muniment
from muniment import Session, Store
from tests.processes import start

WRITER = """
import sys, muniment
with muniment.open(sys.argv[1], model="none") as store:
    session = store.session(scope="acme", actor="agent:writer")
    print("go", flush=True)
    for n in range(25):
        gone = session.remember(f"a secret kumquat number {n}", about=("fruit", f"no {n}"))
        session.remember(f"a plain apple number {n}")
        session.forget(gone.id, reason="asked to")
    print("done", flush=True)
"""


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    with muniment.open(tmp_path / "store", create=True, model="none") as store:
        store.session(scope="acme", actor="agent:writer").remember("a plain apple to begin with")
    return tmp_path / "store"


def _contents(_: Store, session: Session) -> list[tuple[str, str | None]]:
    return [(record.status, record.content) for record in session.list(limit=1000)]


def _recalled(_: Store, session: Session) -> list[tuple[str, str | None]]:
    return [(hit.status, hit.content) for hit in session.recall("kumquat number", k=50)]


def _in_sql(_: Store, session: Session) -> list[tuple[str, str | None]]:
    rows = session.sql("SELECT status, content FROM memories")[1]
    return [(str(status), None if content is None else str(content)) for status, content in rows]


def _in_the_past(store: Store, _: Session) -> list[tuple[str, str | None]]:
    past = store.replay(to=max(1, store.head.seq - 2)).session(scope="acme")
    return [(record.status, record.content) for record in past.list(limit=1000)]


def _verified(store: Store, _: Session) -> list[tuple[str, str | None]]:
    assert store.verify().ok
    return []


@pytest.mark.parametrize("read", [_contents, _recalled, _in_sql, _in_the_past, _verified])
@pytest.mark.parametrize("read_only", [False, True])
def test_i05_a_reader_beside_a_process_that_forgets_sees_before_or_after(
    path: Path, read_only: bool, read: Callable[[Store, Session], list[tuple[str, str | None]]]
) -> None:
    with start(WRITER, path) as writer, muniment.open(path, model="none", read_only=read_only) as store:
        assert writer.stdout is not None
        assert "go\n" == writer.stdout.readline()
        session = store.session(scope="acme", actor="agent:reader")
        reads = 0
        while writer.poll() is None:
            for status, content in read(store, session):
                # An erased record has no content, and any other has all of it.
                assert (status == "erased") == (content is None)
                assert content is None or content.startswith(("a secret kumquat number ", "a plain apple "))
            reads += 1
        assert "done\n" == writer.stdout.read()
        assert reads > 1
        assert all(content is None or "kumquat" not in content for _, content in read(store, session))
