"""The asyncio mirror."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest

import muniment
from muniment import aio


def test_every_public_method_of_a_session_has_its_mirror() -> None:
    pairs = [
        (muniment.Session, aio.AsyncSession),
        (muniment.UserSession, aio.AsyncUserSession),
        (muniment.Operator, aio.AsyncOperator),
        (muniment.PastSession, aio.AsyncPastSession),
        (muniment.PastStore, aio.AsyncPastStore),
        (muniment.Store, aio.AsyncStore),
    ]
    of_the_sync_face_only = {"enroll_by", "source"}
    missing = [
        f"{sync.__name__}.{name}"
        for sync, mirror in pairs
        for name, _ in inspect.getmembers(sync)
        if not name.startswith("_") and name not in of_the_sync_face_only and not hasattr(mirror, name)
    ]

    assert [] == missing


def test_a_store_is_used_with_await(tmp_path: Path) -> None:
    async def use() -> list[str | None]:
        async with await aio.open(tmp_path / "store", create=True, model="none") as store:
            session = store.session(scope="acme", actor="agent:planner")
            await session.remember("The launch is on 12 March.")
            past = await store.replay(to="HEAD")
            found = await past.session(scope="acme").recall("launch")
            return [hit.content for hit in found]

    assert ["The launch is on 12 March."] == asyncio.run(use())


def test_a_store_is_entered_without_waiting_for_it_first(tmp_path: Path) -> None:
    async def use() -> None:
        async with aio.open(tmp_path / "store", create=True, model="none") as store:
            receipt = await store.session(scope="acme", actor="agent:planner").remember("kept")
            assert (tmp_path / "store", None) == (store.path, store.folding)
            assert (store.sync.id, receipt.seq) == (store.id, store.head.seq)
            past = await store.replay(to=receipt.recorded_at, without=["origin=web:*"])
            assert 1 == len(await past.session(scope="acme").list())
        with pytest.raises(muniment.Unavailable):
            await store.digests()
        with pytest.raises(muniment.Unavailable):
            await aio.open(tmp_path / "nowhere", model="none")

    asyncio.run(use())


def test_who_speaks_as_the_user_has_what_the_user_may_do(tmp_path: Path) -> None:
    async def use() -> None:
        async with aio.open(tmp_path / "store", create=True, model="none") as store:
            user = store.session(scope="acme", origin="user")
            assert isinstance(user, aio.AsyncUserSession)
            await user.prohibit(muniment.Action("email.send"), reason="never")
            await user.forget_value("a name")
            assert ("acme", "user", "user") == (user.scope, user.actor, user.origin)
            assert "web:a.example" == user.via("web:a.example").origin

    asyncio.run(use())


def test_cancelling_an_await_never_splits_an_append(tmp_path: Path) -> None:
    async def use() -> tuple[int, bool]:
        store = await aio.open(tmp_path / "store", create=True, model="none")
        session = store.session(scope="acme", actor="agent:planner")
        task = asyncio.ensure_future(session.remember_many([{"content": f"line {n}"} for n in range(500)]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await store.close()
        with muniment.open(tmp_path / "store", model="none") as again:
            return len(again.session(scope="acme", actor="agent:planner").list(limit=1000)), again.verify().ok

    count, verified = asyncio.run(use())

    assert count in (0, 500)
    assert verified
