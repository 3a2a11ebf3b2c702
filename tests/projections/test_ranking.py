"""What ranks a memory: its words and meaning, and those of its live neighbours; never its rivals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import muniment
from muniment import Hit, Session
from muniment.projections._contradictions import PROPOSED_FROM, judge
from muniment.projections._dates import Named, named_dates, nearness
from muniment.projections._embedder import packaged_embedder
from muniment.projections._strength import actions
from tests.worlds import AGENT, USER, World

MakeWorld = Callable[[], World]
DAY = 86_400_000_000


def say(session: Session, *turns: str, conversation: str = "talk") -> list[str]:
    return [session.remember(t, kind="chat", metadata={"conversation": conversation}).id for t in turns]


def scores(hits: list[Hit]) -> dict[str, float]:
    return {hit.id: hit.score for hit in hits}


def test_a_turn_is_lifted_by_the_words_of_the_turn_before_it_in_its_conversation(world: World) -> None:
    agent = world.speaker(AGENT)
    say(agent, "where did you buy the beetroot", "at the market, the stall has beetroot on Fridays")
    say(agent, "at the market, the stall has beetroot on Fridays as well", conversation="another")

    hits = agent.recall("buy beetroot", k=3)

    assert "at the market, the stall has beetroot on Fridays" in [hit.content for hit in hits[:2]]


def far(name: str) -> list[str]:
    """Turns between two that are to be no neighbours; the same words said twice would be one memory."""
    return [f"{number} {name}" for number in ("one", "two", "three", "four", "five", "six")]


def test_a_conversation_that_says_more_of_what_is_asked_lifts_its_turns_and_no_lone_memory(world: World) -> None:
    agent = world.speaker(AGENT)
    rich = say(agent, "the quince is ripe", *far("x"), "a quince for Ann", conversation="rich")
    poor = say(agent, "that quince is ripe", *far("y"), "a pear for Ann", conversation="poor")

    hits = {hit.id: hit for hit in agent.recall("quince ripe", k=20)}

    assert hits[poor[0]].score < hits[rich[0]].score < hits[poor[0]].score + 1
    assert hits[poor[0]].near_score < hits[rich[0]].near_score


def test_a_memory_in_no_conversation_is_not_lifted(world: World) -> None:
    agent = world.speaker(AGENT)
    lone = [agent.remember(text).id for text in ("that quince is ripe", "a quince for Ann")]
    told = say(agent, "the quince is ripe", "a quince for Bob")

    lifts = {hit.id: hit.near_score for hit in agent.recall("quince ripe")}

    assert [0.0, 0.0] == [lifts[each] for each in lone]
    assert 0.0 < lifts[told[0]]


def test_what_is_not_live_lifts_nothing(world: World) -> None:
    user = world.speaker(USER)
    first = say(user, "the quince is ripe", *far("x"), "a quince for Ann", conversation="first")
    second = say(user, "that quince is ripe", *far("y"), "a quince for Bob", conversation="second")
    user.retire(second[-1], reason="over")

    found = scores(user.recall("quince ripe", k=20, status=("active", "retired")))

    assert found[second[0]] < found[first[0]]


@pytest.mark.parametrize("how", ["forget", "retire", "supersede"])
def test_what_is_not_live_speaks_for_no_neighbour(make_world: MakeWorld, how: str) -> None:
    plain, changed = make_world(), make_world()
    for world in (plain, changed):
        user = world.speaker(USER)
        first, _ = say(user, "mine is the quince jam" if world is changed else "xyzzy", "and the jam of mine is sweet")
        if how == "forget":
            user.forget(first, reason="asked")
        elif how == "retire":
            user.retire(first, reason="over")
        else:
            user.supersede(first, "something else")

    found = [world.speaker(USER).recall("quince jam")[0].score for world in (plain, changed)]

    assert found[0] == pytest.approx(found[1], abs=0.5 if how != "forget" else 1e-9)


def test_i05_the_words_of_a_forgotten_turn_are_gone_from_its_neighbours_after_a_rebuild_too(world: World) -> None:
    user = world.speaker(USER)
    _, second, _ = say(user, "about the quince", "the secret is rosewater", "so much for the quince")
    user.forget(second, reason="asked")
    before = [hit.to_dict() for hit in user.recall("rosewater quince", k=5)]
    digests = world.store.digests()

    world.store.rebuild()

    assert before == [hit.to_dict() for hit in world.speaker(USER).recall("rosewater quince", k=5)]
    assert digests == world.store.digests()


def test_i04_scores_of_turns_in_conversation_are_the_same_in_the_past(world: World) -> None:
    agent = world.speaker(AGENT)
    ids = say(agent, "the quince is ripe", "shall we pick it?", "yes, on Monday")
    world.clock.advance()
    then, seq = [hit.to_dict() for hit in agent.recall("pick quince")], world.store.head.seq
    say(agent, "the quince jam is done", "quince for everybody")
    agent.retire(ids[0], reason="eaten")

    assert then == [hit.to_dict() for hit in agent.recall("pick quince", known_at=seq)]
    past = world.store.replay(to=seq).session(scope=agent.scope)
    assert then == [hit.to_dict() for hit in past.recall("pick quince")]


def test_other_scopes_turns_are_no_neighbours(make_world: MakeWorld) -> None:
    alone, beside = make_world(), make_world()
    say(beside.store.session(scope="acme/other", actor=AGENT), "the quince is ripe", "the quince is sour")
    for world in (alone, beside):
        say(world.speaker(AGENT), "the quince is small", "and hard")

    found = [list(scores(world.speaker(AGENT).recall("quince")).values()) for world in (alone, beside)]

    assert found[0] == found[1]


def test_the_current_one_comes_before_what_it_superseded(world: World) -> None:
    agent = world.speaker(AGENT)
    old = agent.remember("likes coffee")
    new = agent.supersede(old.id, "tea now, no more coffee")

    hits = agent.recall("likes coffee", status=("active", "superseded"))

    assert [(new.id, "active"), (old.id, "superseded")] == [(hit.id, hit.status) for hit in hits]
    assert [new.id] == [hit.id for hit in agent.recall("likes coffee", k=1, status=("active", "superseded"))]
    assert [new.id] == [hit.id for hit in agent.recall("likes coffee")]


def test_k_is_reached_in_a_scope_of_five_among_many_under_filters(world: World) -> None:
    crowd = world.store.session(scope="acme/crowd", actor=AGENT)
    crowd.remember_many([{"content": f"quince number {n}"} for n in range(400)])
    small = world.store.session(scope="acme/small", actor=AGENT, reads=["acme/crowd"])
    for n in range(5):
        small.remember(f"quince of kind {n}", tags=("rare",))

    assert 5 == len(small.recall("quince", k=5, tags=("rare",)))
    assert 300 == len(small.recall("quince", k=300))


def test_a_context_with_weak_evidence_says_so_and_one_with_strong_does_not(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("The launch of Apollo is on the second of April.")

    weak, strong = agent.context("who repairs bicycles?"), agent.context("launch of Apollo on the second of April")

    assert weak.is_weak
    assert 'evidence="weak' in weak.text
    assert any("weak" in note for note in weak.notes)
    assert strong.strength > weak.strength
    assert muniment.WEAK <= strong.strength
    assert 'evidence="weak' not in strong.text


def test_dates_in_a_question_are_read_and_the_days_after_count_less() -> None:
    assert [Named(2023, 5, 21)] == named_dates("who called on 21 May, 2023?")
    assert [Named(2023, 5, 21)] == named_dates("who called on May 21st, 2023?")
    assert [Named(2024, 2, 0), Named(0, 8, 3)] == named_dates("in February 2024 and on August 3")
    assert [Named(2023, 7, 1)] == named_dates("since 2023-07-01")
    assert [] == named_dates("may I ask?")
    noon = 19_498 * DAY + DAY // 2  # 21 May 2023
    assert [1.0, 0.7, 0.3, 0.0] == nearness([Named(2023, 5, 21)], noon + DAY * np.array([0, 5, 12, 40])).tolist()


def test_an_update_is_told_from_another_fact_with_its_reasons() -> None:
    embedder = packaged_embedder()
    new = "Actually, my dentist appointment was moved to 14 March at 9."
    earlier = ["My dentist appointment is on 12 March at 9.", "The cat eats twice a day."]
    cosines = embedder.embed(earlier) @ embedder.embed([new])[0]

    update, other = (judge(old, new, float(cosine)) for old, cosine in zip(earlier, cosines, strict=True))

    assert {"another number or date", "a word of change"} <= set(update[1])
    assert other[0] < PROPOSED_FROM <= update[0]


def test_saying_the_same_again_is_no_contradiction() -> None:
    assert () == judge("The cat eats fish.", "The cat eats fish.", 1.0)[1]


def test_a_store_without_a_model_ranks_by_words(world: World) -> None:
    session = world.speaker(AGENT)
    session.remember("quince jam")
    hits = session.recall("quince")

    assert [(None, 1)] == [(hit.dense_rank, hit.word_rank) for hit in hits]
    assert 0 < hits.strength < 1


def test_what_depends_on_a_condition_comes_after_what_simply_holds(world: World) -> None:
    agent = world.speaker(AGENT)
    depends = agent.remember("the ferry to Kos leaves at nine", applies_when="in summer")
    holds = agent.remember("the ferry to Kos leaves at eight")

    hits = agent.recall("when does the ferry to Kos leave?")

    assert [holds.id, depends.id] == [hit.id for hit in hits]
    assert 1.0 == pytest.approx(hits[0].score - hits[1].score)


def test_a_question_says_little_unless_a_user_asks_it_of_an_assistant(world: World) -> None:
    session = world.speaker(AGENT)
    text = "Could the quince tree near the gate bear fruit this year"
    told, asked, by_user = (
        session.remember(text + end, kind="chat", metadata=metadata, source=f"talk:{n}").id
        for n, (end, metadata) in enumerate(((".", {}), ("?", {}), ("?", {"role": "user"})))
    )
    scores = {hit.id: hit.score for hit in session.recall("quince fruit")}
    assert scores[told] == scores[by_user] > scores[asked]


def test_words_that_nothing_found_holds_weaken_the_evidence_unless_they_only_ask(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("the blue bicycle was bought in Ghent")
    agent.remember("the tram to the fair was late")

    asking = agent.recall("remind me how many blue bicycles were bought in Ghent").strength
    unmet = agent.recall("Agathe the welder and blue bicycles bought in Ghent").strength

    assert unmet < asking - 0.05


def test_a_word_counts_less_the_further_below_the_best_the_memory_that_holds_it_is(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("the blue bicycle was bought in Ghent")
    agent.remember("the blue bicycle was mended, and the lock was bought in Liege")
    agent.remember("a postcard from Oslo")

    near = agent.recall("blue bicycle bought in Liege").strength
    far = agent.recall("blue bicycle bought in Oslo").strength
    nowhere = agent.recall("blue bicycle bought in Malmo").strength

    assert nowhere < far < near


def test_what_somebody_does_may_be_told_in_other_words(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("the blue bicycle is from a shop in Ghent")

    acted = agent.recall("which blue bicycle did I purchase in Ghent").strength
    named = agent.recall("which blue bicycle, purchase in Ghent").strength

    assert named < acted - 0.1


def test_actions_are_known_by_where_they_stand() -> None:
    assert {"purchas"} == actions("which bicycle did I just purchase in Ghent?")
    assert {"giv"} == actions("what did my dad give me?")
    assert {"visit", "return"} == actions("Did Ann visit Oslo before she returned?")
    # In Swedish `i` is a preposition, in English one writes it large.
    assert frozenset() == actions("hur länge var jag i Stockholm?")


def test_what_somebody_else_said_weakens_the_evidence_for_whom_the_question_names(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("I adopted a cat called Oliver", metadata={"speaker": "Caroline"})
    agent.remember("the weather is fine", metadata={"speaker": "Melanie"})

    assert agent.recall("did Melanie adopt a cat?").strength < agent.recall("did Caroline adopt a cat?").strength - 0.1


def test_the_strength_does_not_depend_on_how_many_hits_are_asked_for(world: World) -> None:
    agent = world.speaker(AGENT)
    for name in ("Ann", "Bob", "Cid", "Dan", "Eva"):
        agent.remember(f"{name} likes quince jam")

    assert 1 == len({agent.recall("who likes plum or quince jam?", k=k).strength for k in (1, 2, 5, 8)})
