"""That a scope is a wall: for reading by every route, for callers, for prefixes, for background jobs, for ids."""

from __future__ import annotations

from ._adapter import Key, Refused, Unavailable
from ._steps import invariant
from ._trial import Trial, holds_text

KEY: Key = ("Marigold", "merger")
THEIRS = "The Marigold merger closes in June."


@invariant("scope.cross_tenant_absent", "no route shows another tenant's memory")
def cross_tenant(t: Trial) -> None:
    theirs = t.memory.remember(THEIRS, scope=t.other, key=KEY, value="June")
    t.control(t.memory.get(theirs, scope=t.other) == THEIRS, "its own scope reads it by id")
    t.expect(not t.finds(THEIRS), "recall does not show it elsewhere")
    t.expect(not _in_prompt(t), "a prompt does not show it elsewhere")
    t.expect(t.memory.get(theirs, scope=t.home) is None, "its id gives nothing elsewhere")
    for view in t.views():
        t.control(t.shows(view, THEIRS, scope=t.other), f"`{view}` shows it in its own scope")
        t.expect(not t.shows(view, THEIRS), f"`{view}` does not show it elsewhere")


@invariant("scope.caller_cannot_widen", "nothing that a caller can ask for reads beyond the scope it is bound to")
def cannot_widen(t: Trial) -> None:
    t.memory.remember(THEIRS, scope=t.other)
    ours = t.stays()
    t.control(
        holds_text(t.memory.recall_as(ours, scope=t.home, asked=t.home), ours), "it reads the scope it is bound to"
    )
    parent = t.home.rpartition("/")[0]
    asked = (t.other, "", "*", "%", parent, f"{parent}/*", f"{t.home}/../other", f"{t.home}' OR '1'='1", "None")
    for one in asked:
        try:
            found = t.memory.recall_as(THEIRS, scope=t.home, asked=one)
        except (Refused, ValueError, TypeError):
            continue
        t.expect(not holds_text(found, THEIRS), f"asking for `{one}` does not show another scope's memory")
    t.expect(True, "every attempt was refused or read nothing more")


@invariant("scope.no_prefix_match", "a scope whose name begins like another's is another scope")
def no_prefix(t: Trial) -> None:
    t.memory.remember(THEIRS, scope=f"{t.home}-two")
    ours = t.stays()
    t.control(t.finds(THEIRS, scope=f"{t.home}-two"), "its own scope recalls it")
    t.control_alive(ours)
    t.expect(not t.finds(THEIRS), "the scope with the shorter name does not see it")
    t.expect(not t.finds(ours, scope=f"{t.home}-two"), "nor does the longer one see what is in the shorter")


@invariant("scope.background_respects_boundary", "background jobs neither merge nor move memories across scopes")
def background(t: Trial) -> None:
    both = "The fire drill is on the first Thursday."
    mine = t.memory.remember(both, scope=t.home)
    t.memory.remember(both, scope=t.other)
    t.memory.remember(THEIRS, scope=t.other)
    t.memory.jobs()
    t.control(t.finds(THEIRS, scope=t.other), "after the jobs the other scope has its own")
    t.expect(t.finds(both) and t.finds(both, scope=t.other), "the same words in two scopes stay two memories")
    t.memory.forget(mine, scope=t.home)
    t.memory.jobs()
    t.expect(t.finds(both, scope=t.other), "deleting one leaves the other")
    t.expect(not t.finds(both) and not t.finds(THEIRS), "nothing has moved across")


@invariant("scope.ids_do_not_cross", "an id from another scope can be neither deleted nor changed")
def ids_do_not_cross(t: Trial) -> None:
    theirs = t.memory.remember(THEIRS, scope=t.other, key=KEY, value="June")
    t.control(t.finds(THEIRS, scope=t.other), "its own scope recalls it")
    t.attempt(lambda: t.memory.forget(theirs, scope=t.home))
    t.expect(t.finds(THEIRS, scope=t.other), "deleting it from another scope does nothing")
    t.attempt(lambda: t.memory.supersede(theirs, "The Marigold merger is off.", scope=t.home, key=KEY, value="off"))
    t.expect(t.finds(THEIRS, scope=t.other), "correcting it from another scope does nothing")
    t.memory.forget(theirs, scope=t.other)
    t.control(not t.finds(THEIRS, scope=t.other), "its own scope can delete it")


def _in_prompt(t: Trial) -> bool:
    # A product without a block for prompts has one route less.
    try:
        t.control(THEIRS in t.memory.context(THEIRS, scope=t.other), "its own scope has it in a prompt")
        return THEIRS in t.memory.context(THEIRS, scope=t.home)
    except Unavailable:
        return False
