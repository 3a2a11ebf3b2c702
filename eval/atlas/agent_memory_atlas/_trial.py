"""One step being tried: its scopes, its controls, its expectations."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ._adapter import Adapter, Item, Key, Refused, Unavailable


class ControlFailed(Exception):
    """The positive control did not hold, so the step shows nothing about the product."""


class Failed(Exception):
    """The product did not do what the step asks."""


class Trial:
    """
    A memory and three scopes that no other step uses.

    A step states controls (what must hold for the step to mean anything) and expectations. One without either is not
    a step, and `run_step` says so.
    """

    def __init__(self, memory: Adapter, step: str) -> None:
        self.memory = memory
        self.home, self.other, self.third = (f"atlas/{step}/{who}" for who in ("home", "other", "third"))
        self.controls: list[str] = []
        self.expected: list[str] = []

    def control(self, holds: bool, what: str) -> None:
        """State what must hold for the step to mean anything."""
        if not holds:
            raise ControlFailed(what)
        self.controls.append(what)

    def expect(self, holds: bool, what: str) -> None:
        """State what the product must do."""
        if not holds:
            raise Failed(what)
        self.expected.append(what)

    # --- helpers ------------------------------------------------------------------------------------------------------

    def texts(self, query: str, *, scope: str | None = None, k: int = 10) -> list[str]:
        """Return the texts that a recall brings."""
        return [item.text for item in self.memory.recall(query, scope=scope or self.home, k=k)]

    def finds(self, text: str, *, query: str | None = None, scope: str | None = None) -> bool:
        """Tell whether a text is recalled, asked for in its own words unless said otherwise."""
        return holds_text(self.texts(query or text, scope=scope), text)

    def shows(self, where: str, text: str, *, scope: str | None = None) -> bool:
        """Tell whether a view or a store shows a text."""
        return holds_text(self.memory.look(where, scope=scope or self.home), text)

    def attempt(self, call: Callable[[], object]) -> bool:
        """Try a call that the product may refuse, and tell whether it was taken."""
        try:
            call()
        except Refused:
            return False
        return True

    def restate(self, text: str, *, by: str, key: Key | None = None, value: str | None = None) -> bool:
        """Try to write a text, and tell whether it is recalled afterwards."""
        taken = self.attempt(
            lambda: self.memory.remember(text, scope=self.home, by=by, key=key, value=value, source=f"{by}:restated")
        )
        return taken and self.finds(text)

    def stays(self) -> str:
        """Write an innocent memory and return its text; `control_alive` looks for it later."""
        text = "The office plant in the lobby is a fern."
        self.memory.remember(text, scope=self.home, key=("lobby", "plant"), value="a fern")
        return text

    def control_alive(self, text: str) -> None:
        """Check that recall still works, by a memory that nothing should have touched."""
        self.control(self.finds(text), "a memory that nothing touched is still recalled")

    def views(self) -> tuple[str, ...]:
        """Return the views, of which there must be one."""
        return self._named(self.memory.views, "no view beside recall is listed")

    def stores(self) -> tuple[str, ...]:
        """Return the stores, of which there must be one."""
        return self._named(self.memory.stores, "no store is listed")

    def write_paths(self) -> tuple[str, ...]:
        """Return the write paths, of which there must be one."""
        return self._named(self.memory.write_paths, "no write path is listed")

    def _named(self, names: tuple[str, ...], why: str) -> tuple[str, ...]:
        if not names:
            raise Unavailable(why)
        return names


def holds_text(texts: Iterable[str | Item], text: str) -> bool:
    """Tell whether one of some texts holds a text verbatim."""
    return any(text in (one.text if isinstance(one, Item) else one) for one in texts)
