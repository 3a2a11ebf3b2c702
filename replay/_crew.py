"""Work in several processes, begun while there is still more to come: each takes the next piece when it is free."""

from __future__ import annotations

import sys
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

from muniment.events._workers import Worker

Found = TypeVar("Found")


class Crew(Generic[Found]):
    """
    Workers that run `function` of `module`, from bytes to bytes, over tasks.

    What no worker answers, because none could be started or one was killed, `fall_back` does in this process.
    """

    def __init__(
        self,
        workers: int,
        module: str,
        function: str,
        *,
        decode: Callable[[bytes], Found],
        fall_back: Callable[[bytes], Found],
    ) -> None:
        self._module, self._function, self._decode, self._fall_back = module, function, decode, fall_back
        self._tasks: SimpleQueue[tuple[int, bytes] | None] = SimpleQueue()
        self._found: dict[int, Found | BaseException] = {}
        self._count = 0
        self._threads = [Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def add(self, task: bytes) -> None:
        """Hand over one more task."""
        self._tasks.put((self._count, task))
        self._count += 1

    def finish(self) -> list[Found]:
        """Wait, and return what was found, in the order of the tasks."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()
        found: list[Found] = []
        for number in range(self._count):
            one = self._found[number]
            if isinstance(one, BaseException):
                raise one
            found.append(one)
        return found

    def _work(self) -> None:
        worker: Worker | None = None
        try:
            while (item := self._tasks.get()) is not None:
                number, task = item
                worker = worker or self._start()
                answer = None if worker is None else worker.ask(task)
                try:
                    self._found[number] = self._fall_back(task) if answer is None else self._decode(answer)
                except BaseException as error:  # raised where it is waited for
                    self._found[number] = error
                if answer is None and worker is not None:
                    worker.close()
                    worker = None
        finally:
            if worker is not None:
                worker.close()

    def _start(self) -> Worker | None:
        try:
            return Worker(self._module, self._function) if sys.executable else None
        except OSError:
            return None
