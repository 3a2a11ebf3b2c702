"""A past that is held open."""

from __future__ import annotations

from pathlib import Path

import muniment


def test_i05_a_past_that_is_held_open_forgets_what_another_process_forgot(tmp_path: Path) -> None:
    store = muniment.open(tmp_path / "store", create=True, model="none")
    receipt = store.session(scope="a", actor="agent:x").remember("the door code is blue")
    past = store.replay(to=receipt.seq).session(scope="a")
    assert "the door code is blue" == past.get(receipt.id).content

    with muniment.open(store.path, model="none") as other:
        other.session(scope="a", actor="agent:x").forget(receipt.id, reason="asked")

    assert ("erased", None) == (past.get(receipt.id).status, past.get(receipt.id).content)
    assert [] == past.recall("door code")
