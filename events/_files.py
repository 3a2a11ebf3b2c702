"""
A store's directory: its files, its format number, and the rule that an older program touches nothing of a newer store.

`muniment.toml` is the first thing read and the last thing written when a store is made, so a store that was being
created when the machine stopped is not a store yet.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Final, NamedTuple

from ._codec import FORMAT, SEGMENT_HEADER_BYTES
from ._disk import Disk, check_file_system, raise_typed
from ._errors import BadArgument, StoreMissing, StoreNewer
from ._keys import KeyTree
from ._lock import MARK_BYTES
from ._log import Log
from ._time import format_instant

_TOML: Final = "muniment.toml"
_LEFTOVERS: Final = {"lock", "log", "keys", "root.key", "projections", "checkpoints", _TOML}


class StoreFiles(NamedTuple):
    """Where a store's files are, and which store it is."""

    path: Path
    store_id: bytes
    created: str
    warning: str | None

    @property
    def lock(self) -> Path:
        """The writer lock."""
        return self.path / "lock"

    @property
    def log(self) -> Path:
        """The directory of segments."""
        return self.path / "log"

    @property
    def root_key(self) -> Path:
        """The two slots of the root."""
        return self.path / "root.key"

    @property
    def keys(self) -> Path:
        """The directory of the key table and pages."""
        return self.path / "keys"

    @property
    def projections(self) -> Path:
        """The directory that may be deleted at any time."""
        return self.path / "projections"

    @property
    def checkpoints(self) -> Path:
        """The directory of signed heads."""
        return self.path / "checkpoints"


def create_store(path: Path, disk: Disk, now: int) -> StoreFiles:
    """
    Make an empty store.

    Raises:
        BadArgument: the directory holds other things, or cannot be one.
        StoreUnsafe: it is on a network file system.
    """
    try:
        _make_directory(path, disk)
    except (FileExistsError, NotADirectoryError) as error:
        raise BadArgument(argument="path", detail=f"`{path}` cannot be made a directory: {error.strerror}") from error
    except OSError as error:
        raise_typed(error, path, "the store")
    foreign = sorted(p.name for p in path.iterdir() if p.name not in _LEFTOVERS and not _is_unfinished_toml(p))
    if foreign:
        raise BadArgument(argument="path", detail=f"`{path}` holds other files, among them `{foreign[0]}`")
    warning = check_file_system(path)
    _remove_unfinished(path)
    store_id = os.urandom(16)
    files = StoreFiles(path, store_id, format_instant(now), warning)
    Log.create(files.log, store_id, disk).close()
    KeyTree.create(files.root_key, files.keys, disk)
    files.projections.mkdir(mode=0o700, exist_ok=True)
    files.checkpoints.mkdir(mode=0o700, exist_ok=True)
    # With room for the mark: on a full disk there would be none later, and forgetting must work there.
    disk.write_file(files.lock, bytes(MARK_BYTES))
    disk.sync_directory(path)
    lines = ("# A Muniment store. Do not edit.", f"format = {FORMAT}", f'store_id = "{store_id.hex()}"')
    text = "\n".join((*lines, f'created = "{files.created}"', ""))
    disk.replace_file(path / _TOML, text.encode())
    return files


def find_store(path: Path) -> StoreFiles:
    """
    Read which store lives in a directory, touching nothing.

    Raises:
        StoreMissing: there is none.
        StoreNewer: its format is newer than this program.
    """
    try:
        text = (path / _TOML).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreMissing(path=str(path.absolute())) from error
    try:
        found = tomllib.loads(text)
        number, store_id, created = int(found["format"]), bytes.fromhex(found["store_id"]), str(found["created"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreMissing(path=str(path.absolute()), hint=f"{_TOML} is damaged: {error}") from error
    if number > FORMAT:
        raise StoreNewer(actual=number, known=FORMAT)
    return StoreFiles(path, store_id, created, check_file_system(path))


def _make_directory(path: Path, disk: Disk) -> None:
    # Also when it was there: an interrupted creation may have made it without its name being durable.
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for made in reversed(missing):
        disk.sync_directory(made.parent)


def _is_unfinished_toml(path: Path) -> bool:
    return path.name.startswith(f".{_TOML}.")


def _remove_unfinished(path: Path) -> None:
    # Without muniment.toml and with an empty log, what lies about is an interrupted creation. A log with events in it
    # is somebody's memory, whatever became of the file that names it.
    for segment in (path / "log").glob("*.seg"):
        if segment.stat().st_size > SEGMENT_HEADER_BYTES:
            raise BadArgument(argument="path", detail=f"`{path}` holds a log but no {_TOML}: restore that file")
    for directory in (path / "log", path / "keys"):
        if directory.is_dir():
            for file in directory.iterdir():
                file.unlink()
    (path / "root.key").unlink(missing_ok=True)
    for file in path.iterdir():
        if _is_unfinished_toml(file):
            file.unlink()
