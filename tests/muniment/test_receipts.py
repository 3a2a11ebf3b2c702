"""Receipts: what they prove to somebody without the log, and that nothing in them can be changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

import muniment
from muniment import KeyFile, Store, check_proof
from muniment.events import BadArgument, NotFound, ProofInvalid

from .shell import Shell

SECRET = "the code of the safe is ocelot"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    key = KeyFile.create(tmp_path / "keys" / "log.key")
    with muniment.open(tmp_path / "store", create=True, model="none", log_key=key) as made:
        speaker = made.session(scope="acme", actor="agent:planner")
        for n in range(6):
            speaker.remember(f"memory {n}")
        yield made


def _remember(store: Store) -> str:
    return store.session(scope="acme", actor="agent:planner").remember(SECRET).id


def _forget(store: Store, identity: str) -> str:
    receipt = store.session(scope="acme", actor="agent:planner").forget(identity, reason="asked by Ann")
    return str(receipt.id)


def _key(store: Store) -> str:
    return str(store.checkpoint().key)


def test_a_receipt_proves_exactly_one_event_to_somebody_without_the_log(store: Store) -> None:
    kept = store.session(scope="acme", actor="agent:planner").remember("the launch is on 12 March")
    proof = check_proof(json.dumps(store.prove(kept.id)), _key(store))

    assert (kept.id, kept.seq, kept.hash, "remembered") == (proof.id, proof.seq, proof.hash, proof.type)
    assert (store.origin, _key(store)) == (proof.origin, proof.signed_by)
    assert () == proof.unproven


def test_every_event_of_a_log_can_be_proven(store: Store) -> None:
    reader = store._engine.reader()
    events = [event for batch in reader.read_new() for event in batch.events]
    reader.log.close()

    for event in events:
        proof = check_proof(store.prove(event.header.id.hex()), _key(store))

        assert (event.seq, event.hash.hex()) == (proof.seq, proof.hash)


def test_an_erasure_receipt_says_what_when_and_by_whom_and_never_the_value(store: Store) -> None:
    identity = _remember(store)
    receipt = store.prove(_forget(store, identity))
    proof = check_proof(receipt, _key(store))

    assert proof.erased is not None
    assert ([identity], "agent:planner", "acme", "asked by Ann") == tuple(
        proof.erased[name] for name in ("ids", "by", "scope", "reason")
    )
    assert "ocelot" not in json.dumps(receipt)
    assert identity == check_proof(store.prove(identity), _key(store)).id


def test_without_a_key_the_receipt_says_who_vouches_for_nothing(store: Store, tmp_path: Path) -> None:
    proof = check_proof(store.prove(_forget(store, _remember(store))))
    with muniment.open(tmp_path / "other", create=True, model="none") as unsigned:
        identity = unsigned.session(scope="acme", actor="agent:planner").remember("one").id
        receipt = unsigned.prove(identity)

    assert (None, 2) == (proof.signed_by, len(proof.unproven))
    assert identity == check_proof(receipt).id
    with pytest.raises(ProofInvalid, match="a note is"):
        check_proof(receipt, _key(store))


def test_no_field_of_a_receipt_can_be_changed_dropped_or_added(store: Store) -> None:
    receipt, key = store.prove(_forget(store, _remember(store))), _key(store)
    for name, value in receipt.items():
        for changed in _changes(value):
            if json.dumps(changed) == json.dumps(value):
                continue
            with pytest.raises(ProofInvalid):
                check_proof({**receipt, name: changed}, key)
        with pytest.raises(ProofInvalid):
            check_proof({other: kept for other, kept in receipt.items() if other != name}, key)
    with pytest.raises(ProofInvalid, match="comment"):
        check_proof({**receipt, "comment": "trust me"}, key)


def _changes(value: object) -> Iterator[object]:
    """Yield values near a value: each text with one character changed, each list and object with one item changed."""
    yield from (None, 7, [], {}, "")
    if isinstance(value, str):
        yield from (value + "A", value + " ", value.upper() + "x")
        step = max(1, len(value) // 40)
        yield from (
            value[:at] + ("B" if value[at] != "B" else "C") + value[at + 1 :] for at in range(0, len(value), step)
        )
    elif isinstance(value, int):
        yield from (value + 1, float(value), str(value))
    elif isinstance(value, list):
        items = cast("list[object]", value)
        yield from (items[:-1], [*items, items[0]], list(reversed(items)))
    elif isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        yield from ({**fields, name: "another"} for name in fields)
        yield {**fields, "more": 1}


def test_a_receipt_of_one_log_does_not_pass_for_another(store: Store, tmp_path: Path) -> None:
    mine = store.prove(_remember(store))
    with muniment.open(tmp_path / "other", create=True, model="none", log_key=tmp_path / "keys" / "log.key") as other:
        theirs = other.prove(other.session(scope="acme", actor="agent:planner").remember("one").id)
        key = _key(other)

    assert theirs["id"] == check_proof(theirs, key).id
    with pytest.raises(ProofInvalid, match="no signature by"):
        check_proof(mine, key)
    with pytest.raises(ProofInvalid):
        check_proof({**mine, "checkpoint": theirs["checkpoint"]}, key)


def test_ids_are_found_by_unique_prefixes(store: Store) -> None:
    identity = _remember(store)

    assert identity == store.prove(identity[:31])["id"]
    for unknown in ("f" * 32, "no id", ""):
        with pytest.raises(NotFound):
            store.prove(unknown)
    with pytest.raises(BadArgument, match="begins"):
        store.prove(identity[:2])


@pytest.mark.parametrize("text", ["", "[]", "{", "{}", '{"receipt": "muniment receipt v2"}', "[" * 100_000])
def test_what_is_no_receipt_is_refused(text: str) -> None:
    with pytest.raises(ProofInvalid):
        check_proof(text)


def test_the_command_line_gives_and_checks_receipts(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    key = tmp_path / "keys" / "log.key"
    KeyFile.create(key)
    shell.run("init")
    identity = shell.remember("the launch is on 12 March")
    receipt = shell.run("receipt", identity[:30], "--log-key", str(key)).stdout
    verifier = str(shell.row("checkpoint", "--log-key", str(key))["key"])
    file = tmp_path / "receipt.json"
    file.write_text(receipt)

    assert identity == shell.row("receipt", "verify", str(file), "--key", verifier)["id"]
    assert (
        "proof_invalid"
        == shell.row("receipt", "verify", "-", stdin=receipt.replace('"seq":2', '"seq":3'), code=1)["error"]
    )
    shell.run("receipt", "verify", str(tmp_path / "none.json"), code=2)
    shell.run("receipt", "verify", code=2)
