"""Spans: which there are, what they hold, and that they hold no content unless the host asks for it."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import muniment
from muniment import Action, aio, otel
from muniment._together import Said, retire_together, write_together
from muniment.langgraph import MunimentStore
from tests.worlds import AGENT, SCOPE, SIGNED, USER, World


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    found = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(found))
    otel.configure(tracer_provider=provider)
    yield found
    otel.configure()
    provider.shutdown()


def _told(spans: Sequence[ReadableSpan]) -> list[tuple[str, object]]:
    return [(span.name, dict(span.attributes or {})["muniment.verb"]) for span in spans]


def _attributes(exporter: InMemorySpanExporter) -> dict[str, object]:
    [span] = exporter.get_finished_spans()
    return dict(span.attributes or {})


# --- which spans ------------------------------------------------------------------------------------------------------


def test_what_an_adapter_writes_or_retires_together_is_one_span(world: World, exporter: InMemorySpanExporter) -> None:
    agent, user = world.speaker(AGENT), world.speaker(USER)
    said = write_together("remember", [Said(user, "one", {}), Said(agent, "two", {})])
    write_together("remember", [Said(agent, "12 March", {"about": ("launch", "date")})])
    write_together("supersede", [Said(agent, "two again", {"supersedes": said[1].id})])
    user.retire(said[0].id, reason="over")
    retire_together([(agent, said[1].id), (user, said[0].id)], reason="over")
    with pytest.raises(muniment.Refused):
        retire_together([(agent, user.remember("three").id)], reason="over")

    spans = exporter.get_finished_spans()
    assert [
        ("create_memory", "remember"),
        ("upsert_memory", "remember"),
        ("update_memory", "supersede"),
        ("update_memory", "retire"),
        ("update_memory", "retire"),
        ("create_memory", "remember"),
        ("update_memory", "retire"),
    ] == _told(spans)
    attributes = [dict(span.attributes or {}) for span in spans]
    # Of the two that were retired together, one was so already.
    assert [2, 1, 1, 1, 1, 1, 1] == [each["gen_ai.memory.record.count"] for each in attributes]
    assert {world.store.id} == {str(each["gen_ai.memory.store.id"]) for each in attributes}
    assert "rank_too_low" == attributes[-1]["error.type"]
    assert not [each for each in attributes if "gen_ai.memory.records" in each]


def test_what_an_adapter_writes_is_told_only_where_the_host_asks_for_content(
    world: World, exporter: InMemorySpanExporter
) -> None:
    otel.configure(content=True, tracer_provider=_provider(exporter))
    write_together("remember", [Said(world.speaker(AGENT), "one", {}), Said(world.speaker(AGENT), "two", {})])

    records = json.loads(str(_attributes(exporter)["gen_ai.memory.records"]))
    assert ["one", "two"] == [record["content"] for record in records]


def test_verbs_are_memory_operations_of_the_conventions(world: World, exporter: InMemorySpanExporter) -> None:
    agent = world.speaker(AGENT)
    first = agent.remember("one")
    agent.remember("two", about=("launch", "date"))
    agent.remember_many([{"content": "three"}, {"content": "four"}])
    agent.supersede(first.id, "one again")
    agent.recall("one")
    agent.context("one")
    agent.beliefs()
    agent.retire(agent.remember("five").id, reason="over")
    agent.forget(agent.remember("six").id, reason="asked")
    agent.decide(Action("mail", {"to": "x"}))
    world.store.replay(to="HEAD").session(scope=SCOPE).recall("one")

    spans = exporter.get_finished_spans()
    assert [
        ("create_memory", "remember"),
        ("upsert_memory", "remember"),
        ("create_memory", "remember_many"),
        ("update_memory", "supersede"),
        ("search_memory", "recall"),
        ("search_memory", "recall"),
        ("search_memory", "beliefs"),
        ("create_memory", "remember"),
        ("update_memory", "retire"),
        ("create_memory", "remember"),
        ("delete_memory", "forget"),
        ("decide", "decide"),
        ("search_memory", "recall"),
    ] == _told(spans)
    for span in spans:
        attributes = dict(span.attributes or {})
        assert span.kind is SpanKind.INTERNAL
        assert span.status.status_code is StatusCode.UNSET
        assert span.name == attributes["gen_ai.operation.name"]
        assert attributes["gen_ai.provider.name"] == "muniment"
        assert world.store.id == attributes["gen_ai.memory.store.id"]


def test_users_and_operators_forgetting_is_told(world: World, exporter: InMemorySpanExporter) -> None:
    world.speaker(USER).remember("one")
    exporter.clear()
    ann = world.speaker(SIGNED)
    assert isinstance(ann, muniment.UserSession)
    ann.forget_value("one")
    world.store.operator().forget_value("two", scope=SCOPE)
    world.store.operator().forget_scope(SCOPE)

    assert [("delete_memory", verb) for verb in ("forget_value", "forget_value", "forget_scope")] == _told(
        exporter.get_finished_spans()
    )


def test_a_write_tells_its_record(world: World, exporter: InMemorySpanExporter) -> None:
    receipt = world.speaker(AGENT).remember("one")

    assert {
        "gen_ai.operation.name": "create_memory",
        "gen_ai.provider.name": "muniment",
        "gen_ai.memory.store.id": world.store.id,
        "gen_ai.memory.record.id": receipt.id,
        "gen_ai.memory.record.count": 1,
        "muniment.verb": "remember",
        "muniment.record.status": "active",
        "muniment.record.repeated": False,
    } == _attributes(exporter)


def test_a_revision_tells_the_record_that_it_wrote(world: World, exporter: InMemorySpanExporter) -> None:
    revision = world.speaker(AGENT).revise("one")

    attributes = _attributes(exporter)
    assert ("create_memory", revision.receipt.id) == (
        attributes["gen_ai.operation.name"],
        attributes["gen_ai.memory.record.id"],
    )


def test_a_recall_tells_how_many_and_how_strong(world: World, exporter: InMemorySpanExporter) -> None:
    agent = world.speaker(AGENT)
    agent.remember_many([{"content": "the launch is near"}, {"content": "the launch is far"}])
    exporter.clear()
    hits = agent.recall("launch")

    attributes = _attributes(exporter)
    assert (2, hits.strength) == (attributes["gen_ai.memory.record.count"], attributes["muniment.recall.strength"])


def test_an_erasure_and_a_retirement_tell_the_record_they_are_about(
    world: World, exporter: InMemorySpanExporter
) -> None:
    agent = world.speaker(AGENT)
    ids = [agent.remember(text).id for text in ("one", "two", "three")]
    exporter.clear()
    agent.retire(ids[0], reason="over")
    assert ids[0] == _attributes(exporter)["gen_ai.memory.record.id"]
    exporter.clear()
    agent.forget(ids[1], ids[2], reason="over")

    attributes = _attributes(exporter)
    assert attributes["gen_ai.memory.record.count"] == 2
    assert "gen_ai.memory.record.id" not in attributes


def test_a_denied_decision_is_an_answer_and_no_error(world: World, exporter: InMemorySpanExporter) -> None:
    decision = world.speaker(AGENT).decide(Action("mail", {"to": "x"}))

    [span] = exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.UNSET
    attributes = _attributes(exporter)
    assert False is attributes["muniment.decision.allowed"]
    assert ("destructive_action", ("no_confirmation",), decision.id) == (
        attributes["muniment.decision.use"],
        attributes["muniment.decision.reasons"],
        attributes["muniment.decision.id"],
    )


def test_a_refusal_is_an_error_by_its_code(world: World, exporter: InMemorySpanExporter) -> None:
    agent = world.speaker(AGENT)
    agent.forget(agent.remember("wombat").id, reason="asked")
    exporter.clear()
    with pytest.raises(muniment.Refused):
        agent.remember("Wombat")
    with pytest.raises(TypeError):
        agent.remember()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

    first, second = exporter.get_finished_spans()
    for span, code in ((first, "tombstoned"), (second, "TypeError")):
        assert (StatusCode.ERROR, code) == (span.status.status_code, span.status.description)
        assert code == dict(span.attributes or {})["error.type"]
        assert () == tuple(span.events)


# --- what they hold ---------------------------------------------------------------------------------------------------

WORD = "wombat"
"""Stands in everything that a caller can say."""


def _say_everything(world: World, scope: str) -> None:
    agent = world.store.session(scope=scope, actor=f"agent:{WORD}")
    page = agent.via(f"web:https://{WORD}.example")
    trap = page.remember(f"a {WORD}", source=f"{WORD}/1", tags=[WORD], metadata={WORD: WORD}, applies_when=WORD)
    made = agent.remember(f"the {WORD}", about=(WORD, WORD), value=WORD, command_id=WORD)
    agent.remember_many([{"content": f"many a {WORD}"}], command_id=f"{WORD}s")
    agent.supersede(made.id, f"no {WORD}", reason=f"a {WORD}")
    agent.recall(WORD, tags=[WORD])
    agent.context(WORD)
    agent.beliefs((WORD, WORD))
    agent.decide(Action(WORD, {WORD: WORD}), evidence=[trap.id])
    for wrong in (
        lambda: agent.retire(WORD, reason=WORD),
        lambda: agent.forget(WORD, reason=WORD),
        lambda: agent.recall(WORD, kinds=[WORD]),
        lambda: agent.remember(f"the {WORD}", command_id=WORD),
        lambda: agent.decide(Action(WORD, {}), use=WORD),
    ):
        with pytest.raises(muniment.MunimentError):
            wrong()
    agent.retire(agent.remember(f"one more {WORD}").id, reason=WORD)
    agent.forget(agent.remember(f"yet another {WORD}").id, reason="asked")
    store = MunimentStore(world.store, scope=scope, actor=f"agent:{WORD}")
    store.put((WORD,), WORD, {WORD: WORD})
    store.search((WORD,), query=WORD, filter={WORD: WORD})
    store.delete((WORD,), WORD)


def test_no_span_holds_content_or_a_scope_unless_asked(world: World, exporter: InMemorySpanExporter) -> None:
    _say_everything(world, f"acme/{WORD}")

    spans = exporter.get_finished_spans()
    assert 20 == len(spans)
    for span in spans:
        assert WORD not in span.to_json()


def test_content_is_told_where_the_host_says_so(world: World, exporter: InMemorySpanExporter) -> None:
    otel.configure(content=True, tracer_provider=_provider(exporter))
    agent = world.speaker(AGENT)
    receipt = agent.remember("the wombat sleeps")
    [hit] = agent.recall("wombat")
    agent.decide(Action("mail", {"to": "x"}))

    written, read, decided = [dict(span.attributes or {}) for span in exporter.get_finished_spans()]
    assert [{"content": "the wombat sleeps"}] == json.loads(str(written["gen_ai.memory.records"]))
    assert "wombat" == read["gen_ai.memory.query.text"]
    assert [{"content": "the wombat sleeps", "id": receipt.id, "score": hit.score}] == json.loads(
        str(read["gen_ai.memory.records"])
    )
    assert "mail" == decided["muniment.action.name"]
    assert "muniment.scope" not in written


def test_scopes_are_told_where_the_host_says_so(world: World, exporter: InMemorySpanExporter) -> None:
    otel.configure(scope=True, tracer_provider=_provider(exporter))
    world.speaker(AGENT).remember("one")

    attributes = _attributes(exporter)
    assert SCOPE == attributes["muniment.scope"]
    assert "gen_ai.memory.records" not in attributes


def _provider(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


# --- whose spans ------------------------------------------------------------------------------------------------------


def test_an_awaited_call_is_a_child_of_the_callers_span(world: World, exporter: InMemorySpanExporter) -> None:
    provider = _provider(exporter)
    otel.configure(tracer_provider=provider)

    async def use() -> None:
        agent = aio.AsyncSession(world.speaker(AGENT))
        store = MunimentStore(world.store, scope="acme/graph", actor=AGENT)
        with provider.get_tracer("host").start_as_current_span("outer"):
            await agent.remember("one")
            await store.aput(("a",), "k", {"v": 1})

    asyncio.run(use())

    first, second, outer = exporter.get_finished_spans()
    assert outer.context is not None
    for span in (first, second):
        assert span.parent is not None
        assert outer.context.span_id == span.parent.span_id


def test_the_langgraph_store_tells_what_it_puts_searches_and_deletes(
    world: World, exporter: InMemorySpanExporter
) -> None:
    store = MunimentStore(world.store, scope="acme/graph", actor=AGENT)
    store.put(("a",), "k", {"v": 1})
    store.search(("a",))
    store.delete(("a",), "k")

    assert ["upsert_memory", "search_memory", "delete_memory"] == [s.name for s in exporter.get_finished_spans()]
    assert [1, 1, 1] == [dict(s.attributes or {})["gen_ai.memory.record.count"] for s in exporter.get_finished_spans()]


def test_it_can_be_switched_off(world: World, exporter: InMemorySpanExporter) -> None:
    otel.configure(enabled=False, tracer_provider=_provider(exporter))
    world.speaker(AGENT).remember("one")

    assert () == exporter.get_finished_spans()


def test_the_verbs_keep_their_signatures() -> None:
    assert ["self", "query", "k"] == list(inspect.signature(muniment.Session.recall).parameters)[:3]
    assert (muniment.Session.remember.__doc__ or "").strip().startswith("Record a memory")


_USE = """
import sys, tempfile
{before}
import muniment, muniment.aio, muniment.otel
with muniment.open(tempfile.mkdtemp() + "/store", create=True, model="none") as store:
    agent = store.session(scope="acme", actor="agent:planner")
    agent.remember("one")
    agent.recall("one")
{after}
"""
_SDK = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
"""


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("sys.modules['opentelemetry'] = None", "print('fine')", "fine"),
        (
            "",
            "print({m.split('.')[0] for m in sys.modules} & {'langgraph', 'langchain_core', 'opentelemetry'})",
            "set()",
        ),
        (_SDK, "print([span.name for span in exporter.get_finished_spans()])", "['create_memory', 'search_memory']"),
    ],
    ids=["not installed", "not in use", "the global provider"],
)
def test_spans_need_a_provider_and_nothing_else(before: str, after: str, expected: str) -> None:
    """And what `muniment` imports brings no framework with it."""
    script = _USE.format(before=before, after=after)
    said = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)

    assert expected == said.stdout.strip()
