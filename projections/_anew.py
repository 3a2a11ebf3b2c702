"""Makes the vectors of a store anew, beside those that are in use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ._bodies import ReadBody
from ._dense import Progress
from ._embedder import Embedder
from ._segments import indexed_text
from ._state import Memory
from ._vector_file import SlotKey, VectorFile, remove_vectors, rounded

_AT_ONCE = 256


class VectorsAnew:
    """One model's vectors under way. What an interrupted run has made is not made again."""

    def __init__(self, directory: Path, embedder: Embedder, slot_key: SlotKey) -> None:
        self._embedder = embedder
        self._file = VectorFile(directory, embedder.model_id, embedder.dim, slot_key)
        self._beside = self._file.beside()
        self._made = self._beside.ids()

    def make(
        self,
        memories: Iterable[Memory],
        of: int,
        *,
        read_body: ReadBody,
        refresh: Callable[[], object],
        progress: Progress,
    ) -> int:
        """
        Make what is missing, and return how many that were; `refresh` is called before any key is used.

        Sealed under each memory's own key: what is forgotten meanwhile cannot be read.
        """
        count, waiting = 0, list[Memory]()
        for done, memory in enumerate(memories):
            if memory.id not in self._made and memory.erasure is None:
                waiting.append(memory)
            if len(waiting) == _AT_ONCE:
                count += self._embed(waiting, read_body, refresh)
                waiting.clear()
                progress(done, of)
        return count + self._embed(waiting, read_body, refresh)

    def swap(self) -> None:
        """Put them in the place of those that are in use, and remove what is left of other models."""
        if self._beside.path.exists():
            self._file.replace_by(self._beside)
        remove_vectors(self._file.path.parent, keep=self._file.path)

    def _embed(self, waiting: list[Memory], read_body: ReadBody, refresh: Callable[[], object]) -> int:
        refresh()
        read = [(memory, body) for memory in waiting if (body := read_body(memory.place)) is not None]
        if not read:
            return 0
        vectors = rounded(self._embedder.embed([indexed_text(body) for _, body in read]))
        refresh()
        self._beside.append((memory.id, memory.slot, vector) for (memory, _), vector in zip(read, vectors, strict=True))
        self._made.update(memory.id for memory, _ in read)
        return len(read)
