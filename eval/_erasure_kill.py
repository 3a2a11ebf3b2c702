"""
The processes of the erasure campaign beside its own, run as `python -m eval._erasure_kill VERB STORE ...`.

`forget STORE SCOPE ID AT` forgets a memory and is killed, by SIGKILL, at its disk operation number AT; `open STORE AT`
opens a store, which finishes what was interrupted, and is killed likewise. `hold STORE` opens the store, reads and
embeds everything, says so on standard output, and goes on when a line comes in: it writes, and closes at the next line.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from muniment import Store
from muniment._engine import Engine, Options
from muniment._version import VERSION
from muniment.events import Disk, find_store
from muniment.projections import packaged_embedder


class KillingDisk(Disk):
    """The real disk, until operation `at`: that one is done by half where it can be, and the process is killed."""

    def __init__(self, at: int) -> None:
        self._left = at

    def _step(self, half: Callable[[], object] | None = None) -> None:
        self._left -= 1
        if self._left == 0:
            if half is not None:
                half()
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, fd: int, data: bytes) -> None:
        """Write, or write the first half."""
        self._step(lambda: os.write(fd, data[: len(data) // 2]))
        super().write(fd, data)

    def overwrite(self, fd: int, data: bytes, at: int) -> None:
        """Overwrite, or overwrite the first 40 bytes: a root without its hash."""
        self._step(lambda: os.pwrite(fd, data[:40], at))
        super().overwrite(fd, data, at)

    def sync(self, fd: int) -> None:
        """Sync, or not."""
        self._step()
        super().sync(fd)

    def sync_directory(self, path: Path) -> None:
        """Sync, or not."""
        self._step()
        super().sync_directory(path)

    def truncate(self, fd: int, size: int) -> None:
        """Cut, or not."""
        self._step()
        super().truncate(fd, size)

    def rename(self, old: Path, new: Path) -> None:
        """Rename, or not."""
        self._step()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        """Remove, or not."""
        self._step()
        super().remove(path)


def open_with(path: Path, disk: Disk | None = None) -> Store:
    """Open a store over a disk of one's own."""
    options = Options(load_embedder=packaged_embedder, disk=disk)
    return Store(Engine(find_store(path), options, VERSION), created=False)


def main(words: list[str]) -> int:
    """Do what the words say; see the module's text."""
    verb, path = words[0], Path(words[1])
    if verb == "forget":
        scope, identity, at = words[2:]
        store = open_with(path, KillingDisk(int(at)))
        store.session(scope=scope, actor="user").forget(identity, reason="killed on the way")
        os._exit(0)  # without closing: what is in the files now is what a kill after the forget leaves
    if verb == "open":
        open_with(path, KillingDisk(int(words[2])))
        os._exit(0)
    if verb == "hold":
        with open_with(path) as store:
            store.embed()
            store.digests()
            print("ready", flush=True)
            sys.stdin.readline()
            store.session(scope="acme/second", actor="agent:second").remember("written by the second process")
            print("written", flush=True)
            sys.stdin.readline()
        return 0
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
