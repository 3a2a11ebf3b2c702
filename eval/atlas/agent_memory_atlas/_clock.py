"""Instants relative to now, so that nothing of the suite lies in a future that has come meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_NOW = datetime.now(UTC).replace(microsecond=0)


def days_ago(days: int) -> datetime:
    """Return the instant so many days before this process began."""
    return _NOW - timedelta(days=days)
