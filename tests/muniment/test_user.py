"""The user's session: what a person says by signature."""

from __future__ import annotations

from pathlib import Path

import muniment


def test_a_user_with_a_signer_can_remember(tmp_path: Path) -> None:
    key = muniment.KeyFile.create(tmp_path / "key")
    with muniment.open(tmp_path / "store", create=True, model="none") as store:
        store.enroll("user:ann", key.public_key, scopes=("acme",))
        user = store.user_session(scope="acme", principal="user:ann", signer=key)
        receipt = user.remember("I like tea.", provenance="user_confirmation", command_id="c")

        assert "signed" == user.get(receipt.id).rank
        assert user.remember("I like tea.", provenance="user_confirmation", command_id="c").repeated
