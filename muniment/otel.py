"""
OpenTelemetry: what is told about memory, once the host has set up a tracer provider.

Spans need no call: `pip install 'muniment[otel]'`, and a provider. See docs/opentelemetry.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._telemetry import settings

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider


def configure(
    *, enabled: bool = True, content: bool = False, scope: bool = False, tracer_provider: TracerProvider | None = None
) -> None:
    """
    Set for this process what spans hold. Each call sets all of it; what is left out goes back to its default.

    `content` adds what is remembered, recalled and asked for, and the names of actions; `scope` adds scopes. Spans go
    to `tracer_provider`, or else to the global one.
    """
    settings.enabled, settings.content, settings.scope = enabled, content, scope
    settings.provider = tracer_provider


__all__ = ["configure"]
