"""
Spans of what is done with memory, for a host that uses OpenTelemetry; for any other, one look-up in `sys.modules`.

Nothing here imports OpenTelemetry: without it in the process there is nobody to hand a span to.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar, cast

from muniment.events import MunimentError, is_id_prefix

from ._answers import Decision, ErasureReceipt, Hit, Receipt, Revision
from ._version import VERSION

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer, TracerProvider

P = ParamSpec("P")
R = TypeVar("R")
Attribute = str | bool | int | float | list[str]
Attributes = dict[str, Attribute]
_PROVIDER: Final = "muniment"
_API: Final = "opentelemetry.trace"
_modules: Final = sys.modules


class Settings:
    """What is told, and to whom; `muniment.otel.configure` sets it for the process."""

    def __init__(self) -> None:
        self.enabled = True
        self.content = self.scope = False
        self.provider: TracerProvider | None = None


settings: Final = Settings()


def traced(verb: str, operation: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that puts a span around each call of a session's verb; see docs/opentelemetry.md."""

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            # Most processes have none, so this is asked first, and without a call.
            tracer = find_tracer() if _API in _modules else None
            if tracer is None:
                return method(*args, **kwargs)
            keyed = operation == "create_memory" and kwargs.get("about") is not None
            with _within(tracer, verb, "upsert_memory" if keyed else operation) as span:
                if not span.is_recording():
                    return method(*args, **kwargs)
                span.set_attributes(_asked(verb, args, kwargs))
                answer = method(*args, **kwargs)
                span.set_attributes(_answered(verb, answer))
                return answer

        return call

    return decorate


@contextmanager
def spanned(
    verb: str, operation: str, session: object, query: str | None = None, written: Sequence[str] = ()
) -> Generator[Callable[[int], None]]:
    """
    Put a span around what an adapter does for a session, which tells it by a call how many records there were.

    What was asked, or is `written`, is told only where the host asked for content.
    """
    tracer = find_tracer()
    if tracer is None:
        yield lambda _: None
        return
    with _within(tracer, verb, operation) as span:
        span.set_attributes(_of_session(session))
        if settings.content and query is not None:
            span.set_attribute("gen_ai.memory.query.text", query)
        if settings.content and written:
            span.set_attribute("gen_ai.memory.records", json.dumps([{"content": content} for content in written]))
        yield lambda count: span.set_attribute("gen_ai.memory.record.count", count)


def find_tracer() -> Tracer | None:
    """Return the tracer to use; None when there is none, or it is switched off."""
    if not settings.enabled:
        return None
    provider = settings.provider
    if provider is None:
        api = _modules.get(_API)
        get_provider = getattr(api, "get_tracer_provider", None)
        if get_provider is None:
            return None
        provider = cast("TracerProvider", get_provider())
        if isinstance(provider, api.ProxyTracerProvider):  # type: ignore[union-attr]  # it has that function, so it is there
            return None  # no provider was set up: nobody listens
    kept = _kept[0]
    if kept is None or kept[0] is not provider:
        kept = _kept[0] = (provider, provider.get_tracer("muniment", VERSION))
    return kept[1]


_kept: Final[list[tuple[TracerProvider, Tracer] | None]] = [None]


@contextmanager
def _within(tracer: Tracer, verb: str, operation: str) -> Generator[Span]:
    # The exception itself is not recorded: its message may name a scope or quote an argument.
    about: Attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": _PROVIDER,
        "muniment.verb": verb,
    }
    with tracer.start_as_current_span(
        operation, attributes=about, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:
            code = error.code if isinstance(error, MunimentError) else type(error).__qualname__
            span.set_attribute("error.type", code)
            span.set_status(_modules[_API].StatusCode.ERROR, code)
            raise


def _asked(verb: str, args: Sequence[object], kwargs: Mapping[str, object]) -> Attributes:
    session, given = args[0], args[1:]
    found = _of_session(session)
    if verb == "remember_many" and given and isinstance(given[0], Sequence):
        found["gen_ai.memory.record.count"] = len(cast("Sequence[object]", given[0]))
    if verb in ("retire", "forget"):
        targets = given if verb == "forget" else given[:1]
        found["gen_ai.memory.record.count"] = max(1, len(targets))
        # A caller may have passed anything for an id; only what can be one is told.
        if len(targets) == 1 and isinstance(targets[0], str) and is_id_prefix(targets[0]):
            found["gen_ai.memory.record.id"] = targets[0]
    if settings.content:
        found |= _content_asked(verb, given, kwargs)
    return found


def _of_session(session: object) -> Attributes:
    found: Attributes = {}
    source = getattr(session, "_source", None) or getattr(session, "_engine", None)
    store = getattr(source, "store_id", None)
    if isinstance(store, bytes):
        found["gen_ai.memory.store.id"] = store.hex()
    scope = getattr(session, "scope", None)
    if settings.scope and isinstance(scope, str):
        found["muniment.scope"] = scope
    return found


def _content_asked(verb: str, given: Sequence[object], kwargs: Mapping[str, object]) -> Attributes:
    if verb == "recall":
        query = given[0] if given else kwargs.get("query")
        return {"gen_ai.memory.query.text": query} if isinstance(query, str) else {}
    if verb in ("remember", "revise", "supersede"):
        position = 1 if verb == "supersede" else 0
        content = given[position] if len(given) > position else kwargs.get("content")
        return {"gen_ai.memory.records": json.dumps([{"content": content}], default=str)}
    if verb == "decide":
        name = getattr(given[0] if given else kwargs.get("action"), "name", None)
        return {"muniment.action.name": name} if isinstance(name, str) else {}
    return {}


def _answered(verb: str, answer: object) -> Attributes:
    match answer:
        case Receipt():
            found: Attributes = {
                "gen_ai.memory.record.count": 1,
                "muniment.record.status": answer.status,
                "muniment.record.repeated": answer.repeated,
            }
            # The receipt of a deed is of the deed's own event.
            return found if verb == "retire" else found | {"gen_ai.memory.record.id": answer.id}
        case Revision():
            return _answered(verb, answer.receipt)
        case ErasureReceipt():
            return {"gen_ai.memory.record.count": len(answer.erased), "muniment.dry_run": answer.dry_run}
        case Decision():
            return _of_decision(answer)
        case list():
            return _of_hits(cast("list[object]", answer))
        case _:
            return {}


def _of_hits(answer: list[object]) -> Attributes:
    hits = [hit for hit in answer if isinstance(hit, Hit)]
    found: Attributes = {"gen_ai.memory.record.count": len(answer)}
    strength = getattr(answer, "strength", None)
    if isinstance(strength, float):
        found["muniment.recall.strength"] = strength
    if settings.content and hits:
        records = [{"id": hit.id, "content": hit.content, "score": hit.score} for hit in hits]
        found["gen_ai.memory.records"] = json.dumps(records, ensure_ascii=False)
    return found


def _of_decision(decision: Decision) -> Attributes:
    found: Attributes = {
        "muniment.decision.allowed": decision.allowed,
        "muniment.decision.use": decision.use,
        # What follows the colon of a reason names an argument of the call.
        "muniment.decision.reasons": [reason.partition(":")[0] for reason in decision.reasons],
    }
    if decision.id is not None:
        found["muniment.decision.id"] = decision.id
    return found
