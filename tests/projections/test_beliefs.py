"""What may be offered at a point, for a whole scope at once, is what each memory's own status at that point says."""

from __future__ import annotations

from muniment.projections import LATEST, LIVE
from tests.projections.histories import History


def test_an_approved_successor_takes_the_place_of_what_it_supersedes() -> None:
    history = History()
    first = history.remember("tea")
    second = history.remember("coffee", supersedes=first, pending=True)
    beliefs = history.state.beliefs
    while_it_waited = beliefs.mask("s", valid_at=100, known=LATEST, statuses=LIVE).tolist()

    history.review(second, approve=True)

    assert [True, False] == while_it_waited
    assert [False, True] == beliefs.mask("s", valid_at=100, known=LATEST, statuses=LIVE).tolist()
