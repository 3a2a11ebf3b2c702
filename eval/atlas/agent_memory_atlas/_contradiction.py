"""
The contradiction test: five shapes of correction, each judged in five ways.

Shapes: a value replaced, a polarity flipped, a statement retracted, one part corrected while the rest stands, and a
statement bounded in time. Judged: A the answer, B the prompt, C both after every job, a restart, and the old source
read again, D the history, E the other views.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from ._adapter import Fact, Key
from ._clock import days_ago
from ._steps import INVARIANT, OBLIGATION, STEPS, Step
from ._trial import Trial, holds_text

SOURCE = "page:minutes#1"


class Shape(NamedTuple):
    """One shape: what was said, what is said now (None: nothing), and what was said beside it and still holds."""

    name: str
    title: str
    key: Key
    query: str
    old: str
    old_value: str
    new: str | None = None
    new_value: str | None = None
    beside: tuple[str, Key, str] | None = None
    bounded: bool = False


SHAPES = (
    Shape(
        "replacement", "a replaced value", ("launch", "date"), "when is the launch?",
        "The launch is on 12 March.", "12 March", "The launch is on 2 April.", "2 April",
    ),
    Shape(
        "polarity", "a statement turned round", ("Ann", "eats fish"), "does Ann eat fish?",
        "Ann does eat fish.", "yes", "Ann does not eat fish.", "no",
    ),
    Shape(
        "retraction", "a retracted statement", ("Ann", "allergy"), "is Ann allergic to walnuts?",
        "Ann is allergic to walnuts.", "walnuts",
    ),
    Shape(
        "partial", "a partly corrected statement", ("review", "room"), "when and where is the design review?",
        "The design review is in room Larch.", "Larch", "The design review is in room Birch.", "Birch",
        beside=("The design review is on Tuesday.", ("review", "day"), "Tuesday"),
    ),
    Shape(
        "bounded", "a statement bounded in time", ("Ann", "desk"), "where is Ann's desk?",
        "Ann's desk is on floor two.", "two", "Ann's desk is on floor five.", "five", bounded=True,
    ),
)  # fmt: skip


class _Case:
    """A shape, said and corrected."""

    def __init__(self, trial: Trial, shape: Shape) -> None:
        self.t, self.memory, self.shape = trial, trial.memory, shape
        self.kept = trial.stays()
        self.started, self.moved = days_ago(30), days_ago(10)
        self.id = self.memory.remember(
            shape.old, scope=trial.home, key=shape.key, value=shape.old_value, source=SOURCE,
            valid_from=self.started if shape.bounded else None,
        )  # fmt: skip
        if shape.beside is not None:
            text, key, value = shape.beside
            self.memory.remember(text, scope=trial.home, key=key, value=value, source=SOURCE)

    def control_said(self) -> None:
        self.t.control(self.t.finds(self.shape.old, query=self.shape.query), "the old statement was recalled")

    def correct(self) -> None:
        shape = self.shape
        if shape.new is None:
            self.memory.retire(self.id, scope=self.t.home)
            return
        self.id = self.memory.supersede(
            self.id, shape.new, scope=self.t.home, key=shape.key, value=shape.new_value,
            valid_from=self.moved if shape.bounded else None,
        )  # fmt: skip

    def expect_current(self, texts: list[str], where: str) -> None:
        shape = self.shape
        if shape.new is not None:
            self.t.expect(holds_text(texts, shape.new), f"{where} has what is said now")
        if shape.beside is not None:
            self.t.expect(holds_text(texts, shape.beside[0]), f"{where} has what was not corrected")
        self.t.expect(not holds_text(texts, shape.old), f"{where} does not have what was said before")


def _answer(c: _Case) -> None:
    c.control_said()
    c.correct()
    c.t.control_alive(c.kept)
    c.expect_current(c.t.texts(c.shape.query), "the answer")


def _prompt(c: _Case) -> None:
    before = c.memory.context(c.shape.query, scope=c.t.home)
    c.t.control(c.shape.old in before, "the old statement was in the prompt")
    c.correct()
    c.t.control(c.kept in c.memory.context(c.kept, scope=c.t.home), "what nobody corrected is still in the prompt")
    c.expect_current([c.memory.context(c.shape.query, scope=c.t.home)], "the prompt")


def _durable(c: _Case) -> None:
    c.control_said()
    c.correct()
    c.memory.jobs()
    other = Fact("The minutes were kept by Bruno.", ("minutes", "keeper"), "Bruno", SOURCE)
    c.memory.feed([Fact(c.shape.old, c.shape.key, c.shape.old_value, SOURCE), other], scope=c.t.home)
    c.memory.jobs()
    c.memory.reopen()
    c.t.control(c.t.finds(other.text), "the old source was read again: the rest of it is recalled")
    c.expect_current(c.t.texts(c.shape.query), "the answer, after jobs, restart and the old source,")


def _askable(c: _Case) -> None:
    c.control_said()
    c.correct()
    texts = c.memory.history(c.id, scope=c.t.home)
    c.t.control(not holds_text(texts, c.kept), "the history is that of one statement")
    c.t.expect(holds_text(texts, c.shape.old), "the history has what was said before")
    if c.shape.new is not None:
        in_order = _place(texts, c.shape.old) < _place(texts, c.shape.new)
        c.t.expect(in_order, "the history has what is said now after what was said before")
    if c.shape.bounded:
        then = c.memory.current(c.shape.key, scope=c.t.home, valid_at=c.started + timedelta(days=2))
        c.t.expect(then == [c.shape.old], "what held then can be asked by its date")


def _place(texts: list[str], text: str) -> int:
    return next((number for number, one in enumerate(texts) if text in one), -1)


def _views(c: _Case) -> None:
    views = c.t.views()
    for view in views:
        c.t.control(c.t.shows(view, c.shape.old), f"`{view}` showed the old statement")
    c.correct()
    for view in views:
        texts = c.memory.look(view, scope=c.t.home)
        c.t.control(holds_text(texts, c.kept), f"`{view}` still shows what nobody corrected")
        c.expect_current(texts, f"`{view}`")


_JUDGED = (
    ("A_answer", "is answered as it is now", OBLIGATION, _answer),
    ("B_prompt", "stands in the prompt as it is now only", INVARIANT, _prompt),
    ("C_durable", "stays so after jobs, restart and the old source read again", INVARIANT, _durable),
    ("D_history", "is still there as history", OBLIGATION, _askable),
    ("E_views", "is the same in every other view", INVARIANT, _views),
)


def _shaped(shape: Shape, judge: Callable[[_Case], None]) -> Callable[[Trial], None]:
    return lambda trial: judge(_Case(trial, shape))


STEPS.extend(
    Step(f"contradiction.{shape.name}.{name}", f"{shape.title} {asks}", sort, _shaped(shape, judge))
    for shape in SHAPES
    for name, asks, sort, judge in _JUDGED
)
