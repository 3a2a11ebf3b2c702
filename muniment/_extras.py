"""What an adapter says when the package that it adapts is not installed."""

from __future__ import annotations

from muniment.events import ExtraMissing


def extra_missing(extra: str, error: ImportError) -> ExtraMissing:
    """Return the error that names the extra to install."""
    return ExtraMissing(extra=extra, detail=str(error), hint=f"pip install 'muniment[{extra}]'")
