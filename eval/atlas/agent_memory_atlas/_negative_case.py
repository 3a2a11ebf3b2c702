"""The reference's own negative case, as a project would commit one among its tests."""

from __future__ import annotations

from ._adapter import Adapter


def nothing_forgotten_is_recalled(memory: Adapter) -> bool:
    """Tell whether a forgotten sentence stays out of recall while another is still found."""
    memory.remember("The ferry leaves at six.", scope="case")
    doomed = memory.remember("The ferry leaves at nine.", scope="case")
    memory.forget(doomed, scope="case")
    found = [item.text for item in memory.recall("when does the ferry leave?", scope="case")]
    return found == ["The ferry leaves at six."]
