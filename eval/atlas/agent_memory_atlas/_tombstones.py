"""What keeps a rejected value out: laundering, upkeep, spellings, other units, other paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ._adapter import Fact, Key
from ._steps import INVARIANT, STEPS, Step, invariant, obligation
from ._trial import Trial

KEY: Key = ("archive", "alarm code")
WRONG, WRONG_VALUE = "The archive alarm code is Delta-4821.", "Delta-4821"
RIGHT, RIGHT_VALUE = "The archive alarm code is Delta-4822.", "Delta-4822"


def _reject(t: Trial, text: str = WRONG, value: str = WRONG_VALUE, key: Key = KEY) -> str:
    wrong = t.memory.remember(text, scope=t.home, key=key, value=value, source="page:a#1")
    t.control(t.finds(text), "the value was recalled before it was rejected")
    return t.memory.reject(wrong, scope=t.home)


def _control_other_value(t: Trial) -> None:
    t.control(t.restate(RIGHT, by="agent", key=KEY, value=RIGHT_VALUE), "another value of the same key is admitted")


@invariant("tombstone.laundering_sequence", "rejected, replaced, restated and corroborated: it stays inactive")
def laundering(t: Trial) -> None:
    _reject(t)
    t.memory.remember(RIGHT, scope=t.home, key=KEY, value=RIGHT_VALUE)
    t.control(t.finds(RIGHT), "what was put in its place is recalled")
    for number, speaker in enumerate(("agent", "document", "document", "agent")):
        t.attempt(
            lambda who=speaker, n=number: t.memory.remember(  # type: ignore[misc]
                WRONG, scope=t.home, by=who, key=KEY, value=WRONG_VALUE, source=f"page:{n}#1"
            )
        )
    t.expect(not t.finds(WRONG), "four restatements from three sources do not bring it back")
    t.expect(t.finds(RIGHT), "they do not displace what was put in its place")


@invariant("tombstone.survives_ttl_and_prune", "pruning and the passing of time do not drop it")
def survives_prune(t: Trial) -> None:
    _reject(t)
    t.memory.jobs(days=800)
    t.memory.reindex()
    t.memory.jobs(days=800)
    _control_other_value(t)
    t.expect(not t.restate(WRONG, by="agent", key=KEY, value=WRONG_VALUE), "it is still kept out")


@invariant("tombstone.survives_restart", "a restart does not drop it")
def survives_restart(t: Trial) -> None:
    _reject(t)
    t.memory.reopen()
    _control_other_value(t)
    t.expect(not t.restate(WRONG, by="agent", key=KEY, value=WRONG_VALUE), "it is still kept out")


class _Spelling(NamedTuple):
    name: str
    asks: str
    text: str
    value: str


_SPELLINGS = (
    _Spelling("case", "in other case", "the ARCHIVE alarm code is DELTA-4821.", "DELTA-4821"),
    _Spelling(
        "white_space", "with other white space", "The archive \u00a0alarm  code is Delta-4821. ", " Delta-4821"
    ),
    _Spelling(
        "compatibility", "in full-width characters",
        "The archive alarm code is Ｄｅｌｔａ-４８２１.", "Ｄｅｌｔａ-４８２１",
    ),
    _Spelling(
        "invisible", "with invisible characters",
        "The arc\u200bhive alarm code is Del\u00adta-48\u200d21.", "Del\u200bta-4821",
    ),
    _Spelling(
        "look_alike", "with letters of another script",
        "The \u0430rchive alarm code is D\u0435lta-4821.", "D\u0435lta-4821",
    ),
    _Spelling("trailing_stop", "without its full stop", "The archive alarm code is Delta-4821", "Delta-4821."),
)  # fmt: skip


def _spelt(spelling: _Spelling) -> Callable[[Trial], None]:
    def attempt(t: Trial) -> None:
        _reject(t)
        _control_other_value(t)
        back = t.restate(spelling.text, by="agent", key=KEY, value=spelling.value)
        t.expect(not back and not _read_back(t, spelling.text), "the other spelling is kept out")

    return attempt


def _read_back(t: Trial, text: str) -> bool:
    # A product may store a text in a normal form of its own: what is asked for the value must not give it either.
    spellings = {text.strip(), WRONG}
    found = t.texts("what is the archive alarm code?")
    return any(one.strip() in spellings for one in found)


STEPS.extend(
    Step(f"tombstone.spelling_{one.name}", f"the rejected value {one.asks} is kept out", INVARIANT, _spelt(one))
    for one in _SPELLINGS
)


@invariant("tombstone.short_values", "a value of a few characters is kept out too")
def short_values(t: Trial) -> None:
    key = ("Ann", "dose")
    _reject(t, "5 mg", "5 mg", key)
    t.control(t.restate("10 mg", by="agent", key=key, value="10 mg"), "another short value is admitted")
    t.expect(not t.restate("5 mg", by="agent", key=key, value="5 mg"), "the short value is kept out")


@invariant("tombstone.reextraction_stays_inactive", "its source, extracted again, does not bring it back")
def reextraction(t: Trial) -> None:
    _reject(t)
    beside = Fact("The archive closes at nine.", ("archive", "hours"), "nine", "page:a#1")
    t.memory.feed([Fact(WRONG, KEY, WRONG_VALUE, "page:a#1"), beside], scope=t.home)
    t.memory.jobs()
    t.control(t.finds(beside.text), "the source was read again: the rest of it is recalled")
    t.expect(not t.finds(WRONG), "the rejected value is not recalled")


@invariant("tombstone.no_second_memory_unit", "it does not come back as a record of another sort")
def second_unit(t: Trial) -> None:
    _reject(t)
    _control_other_value(t)
    t.expect(not t.restate(WRONG, by="agent"), "the same words without a key are kept out")
    reworded = "Use Delta-4821 at the archive panel."
    t.expect(
        not t.restate(reworded, by="agent", key=KEY, value=WRONG_VALUE), "the same value in other words is kept out"
    )


@invariant("tombstone.every_write_path", "every automated way in keeps it out")
def every_path(t: Trial) -> None:
    _reject(t)
    for number, path in enumerate(t.write_paths()):
        innocent = f"Decision: shelf {number + 40} must always stay empty."
        t.memory.write_by(path, innocent, scope=t.home)
        t.control(t.finds(innocent), f"`{path}` brings in what nobody rejected")
        t.attempt(lambda by=path: t.memory.write_by(by, WRONG, scope=t.home, key=KEY, value=WRONG_VALUE))  # type: ignore[misc]
        t.expect(not t.finds(WRONG), f"`{path}` keeps it out")


@obligation("tombstone.audited_lift", "a person can lift it, and the lift is in the log")
def audited_lift(t: Trial) -> None:
    receipt = _reject(t)
    t.control(not t.restate(WRONG, by="agent", key=KEY, value=WRONG_VALUE), "before the lift it is kept out")
    before = len(t.memory.audit(scope=t.home))
    t.memory.lift(receipt, scope=t.home)
    after = t.memory.audit(scope=t.home)
    t.expect(len(after) > before, "the lift is logged")
    t.expect(t.restate(WRONG, by="user", key=KEY, value=WRONG_VALUE), "after it the value can be stated")


@invariant("tombstone.scope_isolated", "it binds its scope and no other")
def scope_isolated(t: Trial) -> None:
    _reject(t)
    t.control(not t.restate(WRONG, by="agent", key=KEY, value=WRONG_VALUE), "in its own scope it is kept out")
    taken = t.attempt(lambda: t.memory.remember(WRONG, scope=t.other, by="agent", key=KEY, value=WRONG_VALUE))
    t.expect(taken and t.finds(WRONG, scope=t.other), "in another scope it can be stated")


@invariant("tombstone.holds_no_plaintext", "what is kept of the rejected value is a digest")
def no_plaintext(t: Trial) -> None:
    before = len(t.memory.tombstones(scope=t.home))
    _reject(t)
    kept = t.memory.tombstones(scope=t.home)
    t.control(len(kept) > before, "there is a record of the rejection")
    t.expect(not any(WRONG_VALUE in one or WRONG in one for one in kept), "it does not hold the value")
