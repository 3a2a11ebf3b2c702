"""
The thirteen steps of the deletion test.

Each step is tried on scopes of its own: it goes through the steps before it without judging them, then judges itself.
So a product that fails one of them is still asked the rest.
"""

from __future__ import annotations

from collections.abc import Callable

from ._adapter import Fact, Refused
from ._steps import INVARIANT, OBLIGATION, STEPS, Step
from ._trial import Trial

KEY = ("Ann", "locker")
WORD = "Heron-318"
VALUE = f"Ann's locker is number {WORD}."
OTHER = "The canteen opens at seven."
SOURCE = "page:handbook#4"


class _Walk:
    """The walk through the steps."""

    def __init__(self, trial: Trial) -> None:
        self.t, self.memory = trial, trial.memory
        self.kept = trial.stays()
        self.id = ""

    def write(self) -> None:
        self.id = self.memory.remember(VALUE, scope=self.t.home, key=KEY, value=WORD, source=SOURCE)

    def delete(self) -> None:
        self.memory.forget(self.id, scope=self.t.home)

    def feed_again(self) -> None:
        facts = [Fact(VALUE, KEY, WORD, SOURCE), Fact(OTHER, ("canteen", "hour"), "seven", SOURCE)]
        self.memory.feed(facts, scope=self.t.home)

    def share(self) -> None:
        self.memory.share(self.id, scope=self.t.home, to=self.t.other)

    def control_written(self) -> None:
        self.t.control(self.t.finds(VALUE), "it was recalled before it was deleted")

    def expect_gone(self, when: str) -> None:
        self.t.control_alive(self.kept)
        self.t.expect(not self.t.finds(VALUE), f"it is not recalled {when}")


def _write(w: _Walk) -> None:
    w.write()
    w.t.control(w.t.memory.get("0" * 32, scope=w.t.home) is None, "an id that was never given reads as nothing")
    w.t.expect(bool(w.id) and w.memory.get(w.id, scope=w.t.home) == VALUE, "its id gives back the text verbatim")


def _retrievable(w: _Walk) -> None:
    w.write()
    w.t.control_alive(w.kept)
    w.t.expect(w.t.finds(VALUE, query="which locker number does Ann have?"), "what was just written is recalled")


def _delete(w: _Walk) -> None:
    w.write()
    w.control_written()
    w.delete()
    w.t.control_alive(w.kept)
    taken = _accepted(lambda: w.memory.forget("0" * 32, scope=w.t.home))
    w.t.expect(not taken, "deleting what was never written is an error, not a success")


def _gone(w: _Walk) -> None:
    w.write()
    w.control_written()
    w.delete()
    w.expect_gone("after the deletion")


def _feed(w: _Walk) -> None:
    w.write()
    w.control_written()
    w.delete()
    w.feed_again()
    w.t.control_alive(w.kept)
    w.t.expect(w.t.finds(OTHER), "the rest of the source is taken")


def _gone_after_feed(w: _Walk) -> None:
    w.write()
    w.control_written()
    w.delete()
    w.feed_again()
    w.t.control(w.t.finds(OTHER), "the source was read again: the rest of it is recalled")
    w.expect_gone("after its source was read again")


def _jobs(w: _Walk) -> None:
    w.write()
    w.delete()
    w.t.control_alive(w.kept)
    w.memory.jobs()
    w.t.expect(w.t.finds(w.kept), "the jobs have run, and left what nobody deleted")


def _gone_after_jobs(w: _Walk) -> None:
    w.write()
    w.control_written()
    w.delete()
    w.feed_again()
    w.memory.jobs()
    w.expect_gone("after every job has run")


def _gone_from_stores(w: _Walk) -> None:
    w.write()
    stores = w.t.stores()
    for store in stores:
        w.t.control(w.t.shows(store, VALUE), f"`{store}` showed it before it was deleted")
    w.delete()
    for store in stores:
        w.t.control(w.t.shows(store, w.kept), f"`{store}` still shows what nobody deleted")
        w.t.expect(not w.t.shows(store, VALUE), f"`{store}` does not show it")


def _audited(w: _Walk) -> None:
    w.write()
    before = w.memory.audit(scope=w.t.home)
    w.t.control(any(entry.target == w.id for entry in before), "the write is in the log")
    w.delete()
    after = w.memory.audit(scope=w.t.home)
    new = after[len(before) :]
    w.t.expect(any(w.id in entry.said or w.id == entry.target for entry in new), "the deletion is logged")
    w.t.expect(not any(WORD in entry.said for entry in after), "the log does not quote what was deleted")


def _shared(w: _Walk) -> None:
    w.write()
    w.t.control(not w.t.finds(VALUE, scope=w.t.other), "the other scope does not see it before it is shared")
    w.share()
    w.t.control(w.t.finds(VALUE, scope=w.t.other), "the scope it is shared with sees it")
    w.t.expect(not w.t.finds(VALUE, scope=w.t.third), "a third scope does not see it")


def _shared_deleted(w: _Walk) -> None:
    w.write()
    w.control_written()
    w.share()
    w.delete()
    w.expect_gone("in its own scope")


def _gone_from_share(w: _Walk) -> None:
    w.write()
    w.share()
    w.t.control(w.t.finds(VALUE, scope=w.t.other), "the scope it is shared with saw it")
    w.delete()
    w.t.control_alive(w.kept)
    w.t.expect(not w.t.finds(VALUE, scope=w.t.other), "the scope it was shared with does not see it any more")


def _accepted(call: Callable[[], None]) -> bool:
    try:
        call()
    except Refused:
        return False
    return True


_WALK = (
    ("01_write", "write: acknowledged with an id that gives the text back", OBLIGATION, _write),
    ("02_retrievable", "what was written is retrievable at once", OBLIGATION, _retrievable),
    ("03_delete", "delete: acknowledged, and only for what is there", OBLIGATION, _delete),
    ("04_gone", "once deleted it is gone", INVARIANT, _gone),
    ("05_feed_source_again", "the source is fed again, and the rest of it taken", OBLIGATION, _feed),
    ("06_gone_after_feed", "still gone after the source was fed again", INVARIANT, _gone_after_feed),
    ("07_run_all_jobs", "every job is run, and leaves what nobody deleted", OBLIGATION, _jobs),
    ("08_gone_after_jobs", "still gone after every job", INVARIANT, _gone_after_jobs),
    ("09_gone_from_derived_stores", "gone from every derived store", INVARIANT, _gone_from_stores),
    ("10_auditable", "the deletion can be audited, and the log does not quote the value", OBLIGATION, _audited),
    ("11_share_before_delete", "shared with one scope, and with no other", OBLIGATION, _shared),
    ("12_delete_shared", "what is shared can be deleted", OBLIGATION, _shared_deleted),
    ("13_gone_from_share", "gone from where it was shared", INVARIANT, _gone_from_share),
)


def _walked(judge: Callable[[_Walk], None]) -> Callable[[Trial], None]:
    return lambda trial: judge(_Walk(trial))


STEPS.extend(Step(f"deletion.{name}", asks, sort, _walked(judge)) for name, asks, sort, judge in _WALK)
