"""Where calls arrive: arguments are checked at once, and the engine is loaded when it is first needed."""

from __future__ import annotations

import json
import re
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ._arguments import InvalidParams, read_arguments
from ._settings import ServerSettings
from ._tools import BY_NAME

if TYPE_CHECKING:
    from ._service import Service

_UNUSABLE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_NAME: Final = 64


class Answered(NamedTuple):
    """A tool's text, and whether it says what went wrong."""

    text: str
    failed: bool


class Desk:
    """Takes calls from any thread. One that cannot be carried out is answered; nothing it holds ends the server."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._service: Service | None = None
        self._opening = threading.Lock()

    def warm(self) -> None:
        """Open the store in a thread of its own, so that the first call does not wait for all of it."""
        if self._service is None:
            threading.Thread(target=self._try_open, name="muniment-open", daemon=True).start()

    def call(self, tool: str, arguments: Mapping[str, object] | None, client: str | None) -> Answered:
        """Return what the tool says. Never raises."""
        try:
            read = read_arguments(BY_NAME[tool], arguments)
        except InvalidParams as error:
            return _failed({"error": "invalid_params", "argument": error.argument, "message": str(error)})
        try:
            return Answered(self._opened().call(tool, read, actor_named(client)), failed=False)
        except Exception as error:
            return self._explained(error)

    def close(self) -> None:
        """Close the store, if it was opened."""
        with self._opening:
            service, self._service = self._service, None
        if service is not None:
            service.close()

    def _opened(self) -> Service:
        with self._opening:
            if self._service is None:
                from ._service import Service  # noqa: PLC0415  # the engine, which no handshake waits for

                self._service = Service(self._settings)
            return self._service

    def _try_open(self) -> None:
        try:
            self._opened()
        except Exception as error:
            # Every call will say so again, to somebody who can read it.
            sys.stderr.write(f"muniment: the store cannot be opened: {error}\n")

    def _explained(self, error: Exception) -> Answered:
        from muniment.events import MunimentError  # noqa: PLC0415  # as above

        if isinstance(error, MunimentError):
            from ._service import error_text  # noqa: PLC0415  # as above

            return Answered(error_text(error), failed=True)
        traceback.print_exception(error, file=sys.stderr)
        # The text of an unforeseen error may quote a memory of another scope.
        return _failed({"error": "internal_error", "message": f"{type(error).__name__}; the server's log has more"})


def actor_named(client: str | None) -> str:
    """Return the actor that a client's own name makes; whatever it says, an agent."""
    name = _UNUSABLE.sub("-", client or "").strip("-")[:_MAX_NAME]
    return f"agent:{name or 'mcp'}"


def _failed(fields: dict[str, object]) -> Answered:
    return Answered(json.dumps(fields), failed=True)
