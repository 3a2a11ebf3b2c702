"""What a server is started with; nothing a client sends changes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Which store, and the one scope that every tool writes to and reads, with those it reads besides."""

    store: Path
    scope: str
    reads: tuple[str, ...] = ()
    reads_below: tuple[str, ...] = ()
    policy: str | None = None
    model: str | None = None
    create: bool = False


@dataclass(frozen=True, kw_only=True)
class HttpSettings:
    """Where the server listens, and whom it hears."""

    host: str
    port: int
    token: str
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
