"""Makes and keeps the vectors of recall's partitions, with a model that is loaded when it is first needed."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muniment.events import ModelMissing, MunimentError

from ._embedder import Embedder
from ._recall import Partition, Recall
from ._sections import Written
from ._segments import indexed_text
from ._signs import SavedSigns, SignShelf
from ._vector_file import KeptVectors, SlotKey, VectorFile, rounded
from ._vectors import VectorIndex

EMBED_WHILE_ASKED: Final = 256
"""How many missing vectors a question waits for, about a second's worth; with more missing, words answer alone."""
OPEN_WHILE_ASKED: Final = 131_072
"""How many kept vectors a question waits for, about a second's worth; with more, words answer alone meanwhile."""
_AT_ONCE: Final = 256
_OPENED_AT_ONCE: Final = 4_096
_BETWEEN_UNSEALING: Final = 0.002
"""Seconds in which whoever waits has the lock: what goes on beside takes a fifth of a processor."""
_NO_MORE: Final = object()
Progress = Callable[[int, int], None]


def _end(stopping: threading.Event, worker: threading.Thread) -> None:
    stopping.set()
    if worker.is_alive() and worker is not threading.current_thread():
        worker.join()


class _Missing(NamedTuple):
    partition: Partition
    row: int

    @property
    def is_gone(self) -> bool:
        """Tell whether it was forgotten since."""
        return self.partition.closed or self.row in self.partition.erased


class Dense:
    """
    The dense arm: which model, whether it can be loaded, and which rows still lack a vector.

    `mutex` guards the partitions. It is held to look at them and to put vectors in, never while the model works: an
    append does not wait for an embedder.
    """

    def __init__(
        self,
        mutex: threading.RLock,
        recall: Recall,
        directory: Path | None,
        slot_key: SlotKey,
        load: Callable[[], Embedder] | None,
        *,
        shelf: SignShelf | None = None,
        beside: bool = False,
        graph: bool = False,
    ) -> None:
        """
        With `shelf`, the signs that were saved there spare a question to open all vectors of a large scope.

        With `beside`, vectors that no question waits for are made by a thread of its own, and kept; another opens those
        of a large scope, of which the signs are known, once somebody asks there.

        With `graph`, another builds a graph of the vectors of a large scope once somebody asks there.
        """
        self._mutex, self._recall, self._directory, self._slot_key = mutex, recall, directory, slot_key
        self._loading = threading.Lock()
        self._load = load
        self._embedder: Embedder | None = None
        self._file: VectorFile | None = None
        self._kept: KeptVectors | None = None
        self._held: KeptVectors | None = None
        """What holds the file open, also once every scope has taken its own: vectors may still be sealed."""
        self._shelf = shelf
        self._signs: SavedSigns | None = None
        self._unsaved: list[tuple[bytes, int, NDArray[np.float32]]] = []
        self._beside = False
        self._embeds_beside, self._stopping = beside, threading.Event()
        self._worker: threading.Thread | None = None
        self._opener: threading.Thread | None = None
        self._graphs = graph
        self._builder: threading.Thread | None = None
        self._unsealer: threading.Thread | None = None
        self._opened: set[str] = set()
        """Scopes whose kept vectors were opened beside: what they lack now, they never had."""
        self.signs_wait = False
        """Whether vectors were made by `embed_all` since signs were saved."""
        self.problem: MunimentError | None = None
        self.waits_for: str | None = None
        """Why vectors are not asked meanwhile."""

    def query_vector(self, query: str, scopes: Sequence[str]) -> NDArray[np.float32] | None:
        """
        Return the query's vector, or None while the scopes have more missing vectors than a question waits for.

        The caller does not hold the mutex.
        """
        embedder = self._ready(scopes)
        return None if embedder is None else embedder.embed_query(query)

    def text_vector(self, text: str, scopes: Sequence[str]) -> NDArray[np.float32] | None:
        """Return the vector that a memory of this text would have, or None as `query_vector` does."""
        embedder = self._ready(scopes)
        return None if embedder is None else rounded(embedder.embed([text]))[0]

    def _ready(self, scopes: Sequence[str]) -> Embedder | None:
        if self.loading:
            return None
        embedder = self._loaded()
        if embedder is None:
            return None
        if self.opening or self._open_beside(scopes):
            return None
        with self._mutex:
            missing = self._missing(scopes)
        if len(missing) > EMBED_WHILE_ASKED:
            self._embed_beside()
            return None
        self._embed(embedder, missing, None)
        if self._graphs:
            self._build_beside(scopes)
        if self._embeds_beside:
            self._unseal_beside(scopes)
        return embedder

    @property
    def building(self) -> bool:
        """Tell whether a graph of vectors is being built beside; meanwhile all are searched as without one."""
        return self._builder is not None and self._builder.is_alive()

    def _build_beside(self, scopes: Sequence[str]) -> None:
        if self.building or self._stopping.is_set():
            return
        with self._mutex:
            partitions = [self._recall.partition(scope) for scope in scopes]
            large = [p.vectors for p in partitions if p is not None and p.vectors is not None and p.vectors.wants_graph]
        if large:
            self._builder = threading.Thread(
                target=self._build, args=(large[0].building(),), name="muniment-graph", daemon=True
            )
            weakref.finalize(self, _end, self._stopping, self._builder)
            self._builder.start()

    def _build(self, steps: Iterator[Callable[[], None]]) -> None:
        while not self._stopping.is_set():
            with self._mutex:
                work = next(steps, None)
            if work is None:
                return
            work()

    def _unseal_beside(self, scopes: Sequence[str]) -> None:
        """Open the vectors of large scopes, which questions would open bit by bit, a little slower each."""
        if self._unsealer is not None or self._stopping.is_set():
            return
        with self._mutex:
            partitions = [self._recall.partition(scope) for scope in scopes]
            sealed = [p.vectors for p in partitions if p is not None and p.vectors is not None]
        if any(vectors.still_sealed for vectors in sealed):
            self._unsealer = threading.Thread(
                target=self._unseal, args=(sealed,), name="muniment-sealed-vectors", daemon=True
            )
            weakref.finalize(self, _end, self._stopping, self._unsealer)
            self._unsealer.start()

    def _unseal(self, indexes: Sequence[VectorIndex]) -> None:
        try:
            for steps in [vectors.unsealing() for vectors in indexes]:
                while not self._stopping.wait(_BETWEEN_UNSEALING):
                    with self._mutex:
                        if next(steps, _NO_MORE) is _NO_MORE:
                            break
        finally:
            self._unsealer = None

    @property
    def loading(self) -> bool:
        """Tell whether the model is being loaded beside, so that words answer alone instead of waiting for it."""
        return self._beside and self._embedder is None and self.problem is None

    @property
    def opening(self) -> bool:
        """Tell whether kept vectors are being opened beside: of so many that words answer alone meanwhile."""
        return self._opener is not None and self._opener.is_alive()

    def _open_beside(self, scopes: Sequence[str]) -> bool:
        with self._mutex:
            if self._kept is None:
                return False
            fresh = [scope for scope in scopes if scope not in self._opened]
            if sum(len(self._unopened(scope)[1]) for scope in fresh) <= OPEN_WHILE_ASKED:
                return False
            self._opened.update(fresh)
            self._opener = threading.Thread(
                target=self._open_kept, args=(fresh,), name="muniment-kept-vectors", daemon=True
            )
            self._opener.start()
            return True

    def _unopened(self, scope: str) -> tuple[Partition | None, NDArray[np.int64]]:
        partition = self._recall.partition(scope)
        if partition is None or self._embedder is None:
            return None, np.zeros(0, np.int64)
        if partition.vectors is None:
            partition.vectors = VectorIndex(self._embedder.dim)
        self._lend_signs(partition, partition.vectors)
        return partition, partition.vectors.missing(len(partition.rows))

    def _open_kept(self, scopes: Sequence[str]) -> None:
        for scope in scopes:
            with self._mutex:
                partition, rows = self._unopened(scope)
            for start in range(0, len(rows), _OPENED_AT_ONCE):
                # In pieces: an append, and a question that words answer, wait for one at most.
                with self._mutex:
                    vectors = None if partition is None else partition.vectors
                    if partition is None or vectors is None or self._stopping.is_set():
                        return
                    self._take_kept(partition, vectors, rows[start : start + _OPENED_AT_ONCE])

    def load_beside(self) -> threading.Thread:
        """Load the model in a thread of its own, and return it; until it ends no question waits for the model."""
        self._beside = self._load is not None
        thread = threading.Thread(target=self._load_now, name="muniment-model")
        thread.start()
        return thread

    def _load_now(self) -> None:
        try:
            self._loaded()
        finally:
            # Whatever happened, the next question asks for the model itself, and learns why there is none.
            self._beside = False

    def embed_all(self, progress: Progress | None = None) -> int:
        """Make every missing vector, and return how many were made. The caller does not hold the mutex."""
        embedder = self._loaded()
        if embedder is None:
            return 0
        with self._mutex:
            missing = self._missing(self._recall.scopes())
        self._embed(embedder, missing, progress)
        self.signs_wait |= bool(missing)
        return len(missing)

    def stop(self) -> None:
        """End what goes on beside, and wait for it; the caller does not hold the mutex."""
        self._stopping.set()
        for worker in (self._worker, self._opener, self._builder, self._unsealer):
            if worker is not None and worker is not threading.current_thread():
                worker.join()

    def release(self) -> None:
        """Release the file of the vectors; what is still sealed is not opened any more. The caller holds the mutex."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def follow(self, recall: Recall) -> None:
        """Make vectors for other partitions from now on. The caller holds the mutex."""
        self._recall = recall

    def is_outdated(self) -> bool:
        """Tell whether a rebuild, whoever's it was, has made anew the vectors that are in memory."""
        return self._file is not None and self._file.is_replaced()

    def take_again(self) -> None:
        """Drop the vectors in memory, and take those that the file has now."""
        with self._mutex:
            if self.is_outdated():
                self._unsaved.clear()
            if self._file is not None:
                self._take_from(self._file)
            self._opened.clear()
            for scope in self._recall.scopes():
                partition = self._recall.partition(scope)
                if partition is not None:
                    partition.vectors = None

    def embedder(self) -> Embedder | None:
        """Return the model, loaded; None when there is none, and `problem` says why if it should be there."""
        return self._loaded()

    def _embed_beside(self) -> None:
        # One thread, which ends with the process as well: what it has made until then is kept.
        with self._loading:
            if self._embeds_beside and not self._stopping.is_set() and self._worker is None:
                self._worker = threading.Thread(target=self._embed_missing, name="muniment-vectors", daemon=True)
                weakref.finalize(self, _end, self._stopping, self._worker)
                self._worker.start()

    def _embed_missing(self) -> None:
        embedder = self._loaded()
        try:
            while embedder is not None and not self._stopping.is_set():
                with self._mutex:
                    missing = self._missing(self._recall.scopes())[: 16 * _AT_ONCE]
                if not missing:
                    return
                for start in range(0, len(missing), _AT_ONCE):
                    if not self._stopping.is_set():
                        self._embed(embedder, missing[start : start + _AT_ONCE], None)
                self.save()
        except (MunimentError, OSError) as error:
            # Say, a full disk: words go on answering, and whoever asks is told.
            self.problem = error if isinstance(error, MunimentError) else ModelMissing(detail=str(error))
        finally:
            self._worker = None

    def save(self) -> None:
        """Keep the vectors that were made since, sealed. Asking alone never writes."""
        with self._mutex:
            if self._file is not None:
                self._file.append(self._unsaved)
                self._unsaved.clear()

    def unsaved_signs(self) -> Iterator[tuple[int, Written]]:
        """Yield the chunks of signs that are to be saved, once the vectors are. The caller holds the mutex."""
        return iter(()) if self._signs is None else self._signs.unsaved(self._recall)

    def signs_were_saved(self) -> None:
        """Learn that what was yielded last was saved."""
        self.signs_wait = False
        if self._signs is not None:
            self._signs.were_saved()

    def missing_count(self, scopes: Iterable[str]) -> int:
        """Return how many rows of the scopes lack a vector; all of them while no model was loaded."""
        with self._mutex:
            if self._embedder is not None:
                return len(self._missing(scopes))
            partitions = [partition for scope in scopes if (partition := self._recall.partition(scope)) is not None]
            return sum(len(partition.rows) - len(partition.erased) for partition in partitions)

    @property
    def model_id(self) -> str | None:
        """The model in use, or None before one was loaded."""
        return None if self._embedder is None else self._embedder.model_id

    def _loaded(self) -> Embedder | None:
        with self._loading:
            if self._embedder is None and self._load is not None and self.problem is None:
                try:
                    embedder = self._load()
                except MunimentError as error:
                    self.problem = error
                    return None
                if self._directory is not None:
                    self._file = VectorFile(self._directory, embedder.model_id, embedder.dim, self._slot_key)
                    self._take_from(self._file)
                self._embedder = embedder
            return self._embedder

    def _take_from(self, file: VectorFile) -> None:
        self.release()
        self._kept = self._held = kept = file.load()
        if self._shelf is not None:
            self._signs = SavedSigns(self._shelf, kept, lambda: file.identity)

    def _missing(self, scopes: Iterable[str]) -> list[_Missing]:
        missing: list[_Missing] = []
        asked = list(scopes)
        for scope in asked:
            partition = self._recall.partition(scope)
            if partition is None:
                continue
            if partition.vectors is None and self._embedder is not None:
                partition.vectors = VectorIndex(self._embedder.dim)
            if partition.vectors is None:
                rows = np.arange(len(partition.rows))
            else:
                rows = self._without_kept(partition, partition.vectors)
            missing.extend(_Missing(partition, row) for row in rows.tolist() if row not in partition.erased)
        if self._embedder is not None and self._kept is not None and set(asked).issuperset(self._recall.scopes()):
            self._kept = None  # every scope has taken what is its own
        return missing

    def _without_kept(self, partition: Partition, vectors: VectorIndex) -> NDArray[np.int64]:
        rows = vectors.missing(len(partition.rows))
        if not self._kept or not len(rows):
            return rows
        vectors.make_room(len(partition.rows))
        self._lend_signs(partition, vectors)
        self._take_kept(partition, vectors, vectors.missing(len(partition.rows)))
        return vectors.missing(len(partition.rows))

    def _lend_signs(self, partition: Partition, vectors: VectorIndex) -> None:
        if self._signs is not None and self._kept is not None:
            vectors.make_room(len(partition.rows))
            self._signs.lend(partition, vectors)

    def _take_kept(self, partition: Partition, vectors: VectorIndex, rows: NDArray[np.int64]) -> None:
        if self._kept is None:
            return
        if partition.erased:
            rows = rows[~np.isin(rows, sorted(partition.erased))]
        for found, kept in self._kept.take(partition.rows.numbers_of("slot", rows)):
            vectors.put(rows[found], kept)

    def _embed(self, embedder: Embedder, missing: list[_Missing], progress: Progress | None) -> None:
        for start in range(0, len(missing), _AT_ONCE):
            part = missing[start : start + _AT_ONCE]
            with self._mutex:
                part = [found for found in part if not found.is_gone]
                memories = [partition.rows[row] for partition, row in part]
                bodies = [
                    found.partition.bodies.read(memory.place) for found, memory in zip(part, memories, strict=True)
                ]
            vectors = rounded(embedder.embed(["" if body is None else indexed_text(body) for body in bodies]))
            with self._mutex:
                for found, memory, body, vector in zip(part, memories, bodies, vectors, strict=True):
                    # Forgotten while the model worked: the vector is dropped with the words.
                    if (index := found.partition.vectors) is None or body is None or found.is_gone:
                        continue
                    index.put([found.row], vector[None, :])
                    self._unsaved.append((memory.id, memory.slot, vector))
            if progress is not None:
                progress(min(start + _AT_ONCE, len(missing)), len(missing))
