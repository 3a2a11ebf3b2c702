"""The user's session: what a person says by signature."""

from __future__ import annotations

from pathlib import Path

import pytest

import muniment


def test_a_user_with_a_signer_can_remember(tmp_path: Path) -> None:
    key = muniment.KeyFile.create(tmp_path / "key")
    with muniment.open(tmp_path / "store", create=True, model="none") as store:
        store.enroll("user:ann", key.public_key, scopes=("acme",))
        user = store.user_session(scope="acme", principal="user:ann", signer=key)
        receipt = user.remember("I like tea.", provenance="user_confirmation", command_id="c")

        assert "signed" == user.get(receipt.id).rank
        assert user.remember("I like tea.", provenance="user_confirmation", command_id="c").repeated


def test_the_operator_forgets_values_and_scopes_and_leaves_vetoes_to_the_user(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "store", create=True, model="none") as store:
        key = muniment.KeyFile.create(tmp_path / "keys" / "ann.key")
        store.enroll("user:ann", key.public_key, scopes=("acme",))
        ann = store.user_session(scope="acme/apollo", principal="user:ann", signer=key)
        agent = store.session(scope="acme/apollo", actor="agent:planner")
        ann.remember("the door code is 4711")
        operator = store.operator()

        receipt = operator.forget_value("The door code is 4711.", scope="acme/apollo")
        assert 1 == len(receipt.erased)
        with pytest.raises(muniment.Refused, match="was forgotten"):
            agent.remember("the door code is 4711")

        veto = ann.prohibit(muniment.Action("db.drop"), reason="never")
        with pytest.raises(muniment.Refused, match="rank"):
            operator.forget_scope("acme/apollo")
        ann.unprohibit(veto.id, reason="the scope goes")
        operator.forget_scope("acme/apollo")
        with pytest.raises(muniment.Refused, match="is closed"):
            agent.remember("anything")
