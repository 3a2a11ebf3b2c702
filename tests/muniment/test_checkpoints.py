"""I2, the part that the chain alone cannot hold: heads kept elsewhere, and logs that do not lead to them."""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muniment
from muniment import KeyFile, Store
from muniment._anchor import parse_anchor
from muniment._witness import kept_sizes
from muniment.events import AnchorMismatch, BadArgument, BadNote, parse_checkpoint, parse_note

from .shell import Shell

SCOPE = "acme/apollo"


class Kept:
    """A store, and what its owner keeps elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.path, self.anchor, self.key = (
            folder / "store",
            folder / "elsewhere" / "anchor",
            folder / "keys" / "log.key",
        )
        self.anchor.parent.mkdir()
        KeyFile.create(self.key)
        self._seconds = count(1_800_000_000)

    def open(
        self, path: Path | None = None, *, anchored: bool = True, signed: bool = True, segment_bytes: int = 64 << 20
    ) -> Store:
        """Open a store, by default this one, with what is kept elsewhere."""
        return muniment.open(
            path or self.path, create=path is None, model="none", clock=lambda: next(self._seconds) * 1_000_000,
            anchor=self.anchor if anchored else None, log_key=self.key if signed else None,
            segment_bytes=segment_bytes,
        )  # fmt: skip

    def write(self, *words: str) -> None:
        """Open the store, remember each text in an event of its own, and close it."""
        with self.open() as store:
            for word in words:
                store.session(scope=SCOPE, actor="agent:planner").remember(word)

    def size(self) -> int:
        """Return how many events the anchor tells of."""
        return parse_anchor(self.anchor.read_bytes()).tip.size


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    made = Kept(tmp_path)
    made.write("one", "two", "three")
    return made


def _copy(kept: Kept, name: str) -> Path:
    where = kept.path.with_name(name)
    shutil.copytree(kept.path, where)
    return where


def test_i02_an_anchor_is_made_on_first_opening_and_advanced_on_closing(kept: Kept) -> None:
    first = kept.size()
    kept.write("four")

    assert (4, 6) == (first, kept.size())


def test_i02_a_log_put_back_as_it_was_is_refused(kept: Kept) -> None:
    old = _copy(kept, "old")
    kept.write("four")

    with pytest.raises(AnchorMismatch, match="truncated against the anchor at 6 events: it has 4, so at least 2"):
        kept.open(old)


def test_i02_two_copies_that_both_went_on_are_told_apart(kept: Kept) -> None:
    """Even with the same words: each opening for writing appends a nonce."""
    other = _copy(kept, "other")
    kept.write("four")
    with kept.open(other, anchored=False) as store:
        store.session(scope=SCOPE, actor="agent:planner").remember("four")

    with pytest.raises(AnchorMismatch, match="forked against the anchor at 6 events") as refused:
        kept.open(other)
    assert (5, 6) == (refused.value.facts["first"], refused.value.facts["last"])


def test_i02_where_a_rewritten_log_parts_is_told_by_earlier_anchors(kept: Kept) -> None:
    """Also when whoever rewrote it left nothing of the store's own checkpoints."""
    branch = _copy(kept, "branch")
    kept.write("four")
    true = _copy(kept, "true")
    kept.write("five")
    kept.write("six")
    with kept.open(branch, anchored=False) as store:
        for n in range(9):
            store.session(scope=SCOPE, actor="agent:planner").remember(f"other {n}")
    with kept.open(true, anchored=False) as store:
        for n in range(9):
            store.session(scope=SCOPE, actor="agent:planner").remember(f"other {n}")
    for rewritten, first, last in ((branch, 5, 6), (true, 7, 8)):
        shutil.rmtree(rewritten / "checkpoints")
        with pytest.raises(AnchorMismatch) as refused:
            kept.open(rewritten)
        with muniment.open(rewritten, model="none", read_only=True) as store:
            report = store.verify(kept.anchor)

        assert (10, first, last) == tuple(refused.value.facts[name] for name in ("size", "first", "last"))
        assert f"lies in {first} to {last}" in report.findings[0]


def test_i02_what_stands_beside_the_anchor_decides_nothing(kept: Kept) -> None:
    kept.write("four")
    older = kept.anchor.with_name("anchor.older")
    before = older.read_text()
    for text in ("", "nonsense\n\n1 2 3\n", before.replace("4 ", "5 ")):
        older.write_text(text)
        kept.write("one more")
    older.unlink()
    kept.write("and more")

    assert ["0", "4"] == [line.split(" ")[0] for line in before.splitlines()]


def test_i02_a_copy_that_goes_on_while_open_is_refused_at_its_next_append(kept: Kept) -> None:
    other = _copy(kept, "other")
    with kept.open(other) as late:
        kept.write("four")
        speaker = late.session(scope=SCOPE, actor="agent:planner")
        receipt = speaker.remember("five")
        speaker.forget(receipt.id, reason="calls for a checkpoint")
        with pytest.raises(AnchorMismatch, match="forked"):
            speaker.remember("six")
        shutil.copy(kept.anchor, kept.anchor.with_suffix(".kept"))
        with pytest.raises(AnchorMismatch, match="forked"):
            late.close()

    assert kept.anchor.read_bytes() == kept.anchor.with_suffix(".kept").read_bytes()


def test_i02_the_anchor_of_another_log_is_refused(kept: Kept, tmp_path: Path) -> None:
    with pytest.raises(AnchorMismatch, match="foreign"):
        muniment.open(tmp_path / "another", create=True, model="none", anchor=kept.anchor)


def test_i02_any_changed_bit_of_a_signed_anchor_is_refused(kept: Kept) -> None:
    whole = kept.anchor.read_bytes()
    for at in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[at // 8] ^= 1 << at % 8
        with pytest.raises(BadNote):
            parse_anchor(bytes(changed))
    kept.anchor.write_bytes(whole.replace(b"\n4\n", b"\n3\n"))

    with pytest.raises(AnchorMismatch, match="not comparable"):
        kept.open()


def test_i02_an_anchor_by_another_key_is_refused(kept: Kept, tmp_path: Path) -> None:
    other = KeyFile.create(tmp_path / "keys" / "other.key")

    with pytest.raises(AnchorMismatch, match="another key than the log key"):
        muniment.open(kept.path, model="none", anchor=kept.anchor, log_key=other)


def test_i02_without_the_log_key_a_signed_anchor_is_checked_but_never_replaced(kept: Kept) -> None:
    before = kept.anchor.read_bytes()
    with kept.open(signed=False) as store:
        store.session(scope=SCOPE, actor="agent:planner").remember("four")
        store.checkpoint()

        assert "no log key was given" in str(store.stats()["warning"])
    assert before == kept.anchor.read_bytes()
    kept.write("five")
    assert 8 == kept.size()


def test_i02_the_anchor_never_moves_backwards(kept: Kept) -> None:
    """A process that opened earlier, and has not caught up, still writes the newest head."""
    with kept.open() as early:
        kept.write("four", "five")
        ahead = kept.size()
        assert early.checkpoint().size >= ahead
    assert ahead == kept.size()


def test_i02_the_anchor_and_the_log_key_may_not_lie_in_the_store(kept: Kept) -> None:
    inside = KeyFile.create(kept.path / "log.key")
    with pytest.raises(BadArgument, match="anchor"):
        muniment.open(kept.path, model="none", anchor=kept.path / "anchor")
    with pytest.raises(BadArgument, match="log_key"):
        muniment.open(kept.path, model="none", log_key=inside)


def test_i02_a_forged_snapshot_does_not_hide_a_forged_log(kept: Kept) -> None:
    """
    Somebody who rewrites the log can also seal a snapshot, with the true tree of the log that was. Its root is then
    still made with the chain hash at the head of the log that is.
    """
    true = _copy(kept, "true")
    forged = _copy(kept, "forged")
    for path, words in ((true, "as it was"), (forged, "as he wants")):
        with kept.open(path, anchored=False) as store:
            store.session(scope=SCOPE, actor="agent:planner").remember(words)
    shutil.rmtree(kept.path)
    shutil.copytree(true, kept.path)
    kept.write("on it goes")
    with kept.open(true, anchored=False) as was, kept.open(forged, anchored=False) as now:
        tree, saved = now._engine.state.tree, was._engine.state.tree.save()

        assert tree.load(saved, now.head)
        assert was._engine.state.tree.root() != tree.root()


def test_i02_a_checkpoint_is_written_after_a_forget_and_when_a_segment_is_sealed(kept: Kept) -> None:
    with kept.open(segment_bytes=2_000) as store:
        speaker = store.session(scope=SCOPE, actor="agent:planner")
        before = kept.size()
        receipt = speaker.forget(speaker.remember("soon gone").id, reason="asked")
        after_forget = kept.size()
        for n in range(6):
            speaker.remember(f"filling {n}")

        assert (4, receipt.seq) == (before, after_forget)
        assert kept.size() > after_forget
        assert len(list((kept.path / "log").glob("*.seg"))) > 1


def test_i02_a_checkpoint_that_cannot_be_written_does_not_deny_the_forget(kept: Kept) -> None:
    with kept.open() as store:
        speaker = store.session(scope=SCOPE, actor="agent:planner")
        memory = speaker.remember("soon gone")
        shutil.rmtree(kept.path / "checkpoints")

        assert "erased" == speaker.forget(memory.id, reason="asked").status
        assert "no checkpoint was written" in str(store.stats()["warning"])
        (kept.path / "checkpoints").mkdir()


def test_i02_stored_checkpoints_are_notes_and_unsigned_ones_say_so(kept: Kept) -> None:
    signed = parse_note((kept.path / "checkpoints" / "4.note").read_bytes())
    with muniment.open(kept.path, model="none") as store:
        made = store.checkpoint()

    assert 4 == parse_checkpoint(signed.text).size
    assert (False, None) == (made.signed, made.key)
    assert parse_checkpoint(made.note) == parse_checkpoint((kept.path / "checkpoints" / "4.note").read_text())
    with pytest.raises(BadNote):
        parse_note(made.note.encode())


def test_i02_verify_compares_without_writing_and_says_what_it_did_not_check(kept: Kept) -> None:
    old = _copy(kept, "old")
    kept.write("four")
    before = {path: path.read_bytes() for path in old.rglob("*") if path.is_file()}
    with muniment.open(old, model="none", read_only=True) as store:
        cut, alone = store.verify(kept.anchor), store.verify()
    with kept.open() as store:
        whole = store.verify()

    assert before == {path: path.read_bytes() for path in old.rglob("*") if path.is_file()}
    assert (False, "truncated") == (cut.ok, cut.anchor)
    assert (True, None) == (alone.ok, alone.anchor)
    assert any("missing at the end" in one for one in alone.unchecked)
    assert (True, "extends", ()) == (whole.ok, whole.anchor, whole.unchecked)


def test_i02_an_unsigned_anchor_works_and_is_called_unsigned(tmp_path: Path) -> None:
    anchor = tmp_path / "anchor"
    with muniment.open(tmp_path / "store", create=True, model="none", anchor=anchor) as store:
        store.session(scope=SCOPE, actor="agent:planner").remember("one")
    with muniment.open(tmp_path / "store", model="none", anchor=anchor) as store:
        report = store.verify()

    assert "unsigned" == anchor.read_text().partition("\n")[0]
    assert (True, "extends") == (report.ok, report.anchor)
    assert any("unsigned head" in one for one in report.unchecked)


def test_i02_the_root_is_at_hand_after_opening_without_reading_the_log(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tripwire: reading from the first event on opening, or for a checkpoint, would find it."""

    def tripwire(*_: object) -> None:
        raise AssertionError("the log was read from its first event")

    monkeypatch.setattr("muniment._witness.roots_at", tripwire)
    with kept.open() as store:
        assert 4 == store.checkpoint().size


@given(sizes=st.sets(st.integers(1, 10**9), min_size=1, max_size=200))
def test_the_checkpoints_that_are_kept_are_few_and_reach_back_far(sizes: set[int]) -> None:
    kept = kept_sizes(sizes)

    assert kept <= sizes
    assert len(kept) <= 8 + 31
    assert {min(sizes), max(sizes)} <= kept
    assert kept == kept_sizes(kept)


def _flags(kept: Kept) -> tuple[str, ...]:
    return ("--anchor", str(kept.anchor), "--log-key", str(kept.key))


def test_the_command_line_verifies_against_an_anchor(kept: Kept, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    old = _copy(kept, "old")
    made = shell.row("checkpoint", *_flags(kept))
    kept.write("four")

    assert (True, 4) == (made["signed"], made["size"])
    assert "extends" == shell.row("verify", "--anchor", str(kept.anchor))["anchor"]
    assert "truncated" == shell.row("verify", "--store", str(old), "--anchor", str(kept.anchor), code=1)["anchor"]
    assert "anchor_mismatch" == shell.row("list", "--store", str(old), *_flags(kept), code=1)["error"]
