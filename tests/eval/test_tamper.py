"""The attacks of the evaluation, on a store as small as can be; and forgeries that only a hash would let pass."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import muniment
from eval import tamper
from eval._agmi_adapter import MunimentAdapter
from eval._forger import Resealer, read_log, rechain
from muniment.events import LogCorrupt
from muniment.events._codec import Digest, format_frame


@pytest.fixture
def victim(tmp_path: Path) -> tamper.Victim:
    return tamper.Victim(tmp_path / "victim", 3)


@pytest.mark.parametrize("attack", [tamper._frames, tamper._events, tamper._cut_segments])
def test_i02_what_the_chain_finds_is_found_and_named(victim: tamper.Victim, attack: tamper.Attack) -> None:
    row = attack(victim, "tiny")

    assert row.trials > 0
    assert (row.trials, row.trials, 0) == (row.found, row.named, row.missed)


@pytest.mark.parametrize("attack", [tamper._forgeries, tamper._cuts, tamper._rollback, tamper._fork])
def test_i02_what_only_an_anchor_finds_is_found_with_one_and_told_without(
    victim: tamper.Victim, attack: tamper.PairedAttack
) -> None:
    anchored, alone = attack(victim, "tiny")

    assert anchored.trials > 0
    assert (anchored.trials, anchored.trials, 0) == (
        anchored.found, anchored.named + anchored.within, anchored.missed,
    )  # fmt: skip
    assert (0, alone.trials, 0) == (alone.found, alone.told, alone.missed)


def test_i02_flipped_bits_of_a_segment_are_found_and_named(victim: tamper.Victim) -> None:
    row = tamper._edits(victim, "tiny", 23)

    assert row.trials > 50
    assert (row.trials, row.trials, 0) == (row.found, row.named, row.missed)


def _with_field(event: bytes, offset: int, form: str, value: int) -> bytes:
    changed = bytearray(event)
    struct.pack_into(form, changed, offset, value)
    return bytes(changed)


@pytest.mark.parametrize(
    ("offset", "form", "value"),
    [(0, ">B", 2), (1, ">B", 200), (2, ">H", 1), (4, ">Q", 99), (88, ">I", 1), (36, ">I", 0), (40, ">I", 0xFFFFFFFF)],
    ids=["version", "type", "reserved", "number", "length", "scope", "slot"],
)
def test_i02_an_event_that_only_its_hash_vouches_for_is_named(
    victim: tamper.Victim, offset: int, form: str, value: int
) -> None:
    """A forger hashes as well as we do; what he chains must still be an event of ours."""
    batches = [events for segment in read_log(victim.path) for events in segment.events]
    at = 1 + sum(map(len, batches[:-2]))
    forged = [*batches[:-2], [_with_field(batches[-2][0], offset, form, value)], batches[-1]]
    rechain(victim.path, forged)
    with muniment.open(victim.path, model="none", read_only=True) as store:
        report = store.verify()

    assert not report.ok
    assert f"event {at}" in report.findings[0]


@pytest.mark.parametrize(("offset", "form", "value"), [(2, ">H", 1), (1, ">B", 200), (36, ">I", 0)])
def test_i02_a_forged_event_stops_writers_and_leaves_readers_what_was_before_it(
    victim: tamper.Victim, offset: int, form: str, value: int
) -> None:
    batches = [events for segment in read_log(victim.path) for events in segment.events]
    at = 1 + sum(map(len, batches[:-2]))
    rechain(victim.path, [*batches[:-2], [_with_field(batches[-2][0], offset, form, value)], batches[-1]])

    with pytest.raises(muniment.Corrupt):
        muniment.open(victim.path, model="none")
    with muniment.open(victim.path, model="none", read_only=True) as store:
        assert at - 1 == store.head.seq


def test_i02_an_open_store_does_not_go_on_reading_behind_a_forged_tail(victim: tamper.Victim) -> None:
    """What another process appended cannot be read: the present is not known, and the past is not passed off as it."""
    with victim.open() as store:
        session = store.session(scope=tamper.SCOPE, actor="agent:x")
        batches = [events for segment in read_log(victim.path) for events in segment.events]
        last = read_log(victim.path)[-1]
        forged = _with_field(_with_field(batches[-1][0], 4, ">Q", victim.events + 1), 0, ">B", 2)
        link = last.frames[-1][-32:]
        with last.path.open("ab") as file:
            file.write(format_frame(victim.events + 1, [forged], Digest(link))[0])

        with pytest.raises(LogCorrupt, match=f"event {victim.events + 1}"):
            session.list()
        with pytest.raises(LogCorrupt):
            session.remember("behind it")
        store._engine.abandon()


def test_the_forger_seals_as_well_as_we_do(victim: tamper.Victim) -> None:
    """Otherwise the evaluation would try too little: its rewording has to pass for the real thing without an anchor."""
    batches = [events for segment in read_log(victim.path) for events in segment.events]
    keys = Resealer(victim.path)
    forged = keys.reword(batches[1][0], "as the attacker wants it")
    rechain(victim.path, [batches[0], [forged], *batches[2:]])
    with muniment.open(victim.path, model="none", read_only=True) as store:
        said = [record.content for record in store.session(scope=tamper.SCOPE, actor="agent:x").list()]

        assert store.verify().ok
    assert "as the attacker wants it" in said


@pytest.mark.parametrize("thorough", [False, True])
def test_the_adapter_for_agmi_reads_what_it_wrote(thorough: bool) -> None:
    adapter = MunimentAdapter(thorough=thorough, anchored=True)
    adapter.setup()
    try:
        adapter.seed(3)
        before = adapter.read_all_raw()
        adapter.write_raw(before[1])
        adapter.reload()

        assert [one.fields for one in before] == [one.fields for one in adapter.read_all_raw()]
        assert adapter.verify(), adapter.verify_detail
        adapter.write_raw(adapter.mutate_payload(before[1]))
        assert not adapter.verify()
    finally:
        adapter.teardown()
