"""
A store's directory: its files, its format number, and the rule that an older program touches nothing of a newer store.

`muniment.toml` is the first thing read and the last thing written when a store is made, so a store that was being
created when the machine stopped is not a store yet.
"""

from __future__ import annotations

import errno
import os
import re
import tomllib
from pathlib import Path
from typing import Final, NamedTuple, cast

from ._codec import FORMAT, SEGMENT_HEADER_BYTES, Damaged, parse_segment_header
from ._disk import Disk, check_file_system, names_in, open_reading, raise_typed, read_file
from ._errors import BadArgument, StoreDamaged, StoreMissing, StoreNewer
from ._keys import KeyTree
from ._lock import MARK_BYTES
from ._log import Log
from ._time import format_instant

_TOML: Final = "muniment.toml"
_UNFINISHED_TOML: Final = f".{_TOML}.*"
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
    foreign = sorted(set(names_in(path)).difference(_LEFTOVERS, names_in(path, _UNFINISHED_TOML)))
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


def check_path(given: object, what: str) -> Path:
    """Return a path as one; raises BadArgument for what no file system can take."""
    if not isinstance(given, (str, os.PathLike)):
        raise BadArgument(argument=what, detail=f"expected a path, got {type(given).__name__}")
    path = Path(cast("str | os.PathLike[str]", given))
    try:
        is_usable = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        is_usable = False
    if not is_usable:
        raise BadArgument(argument=what, detail="a path holds neither NUL nor half of a character")
    return path


def find_store(path: Path) -> StoreFiles:
    """
    Read which store lives in a directory, touching nothing.

    Raises:
        StoreMissing: there is none.
        StoreDamaged: its `muniment.toml` cannot be read.
        StoreNewer: its format is newer than this program.
    """
    try:
        data = read_file(path / _TOML)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreMissing(path=str(path.absolute())) from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL):
            raise BadArgument(argument="path", detail=f"`{path}` leads nowhere: {error.strerror}") from error
        raise_typed(error, path / _TOML, "the store")
        raise
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _damaged(path, data[: error.start].count(b"\n") + 1, "it is not UTF-8") from error
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        # What is missing is missing at the end of the document.
        line = int(at[1]) if at else text.count("\n") + 1
        raise _damaged(path, line, "it is not TOML") from error
    number = found.get("format")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise _damaged(path, _line_of(text, "format"), "expected `format`, a whole number")
    if number > FORMAT:
        raise StoreNewer(actual=number, known=FORMAT)
    store_id, created = found.get("store_id"), found.get("created")
    if not isinstance(store_id, str) or not re.fullmatch("[0-9a-f]{32}", store_id):
        raise _damaged(path, _line_of(text, "store_id"), "expected `store_id`, 32 hexadecimal digits")
    if not isinstance(created, str):
        raise _damaged(path, _line_of(text, "created"), "expected `created`, a time")
    return StoreFiles(path, bytes.fromhex(store_id), created, check_file_system(path))


def _line_of(text: str, key: str) -> int:
    # A key that is not there is missing after the last line.
    lines = text.splitlines()
    return next((n for n, line in enumerate(lines, 1) if line.lstrip().startswith(key)), len(lines) + 1)


def _damaged(path: Path, line: int, detail: str) -> StoreDamaged:
    log_id = _log_id(path / "log")
    known = "" if log_id is None else f', or write it anew: the log is that of store_id = "{log_id}"'
    hint = (
        f"put `{_TOML}` back from a copy of the store{known}; its lines are format, store_id and created; the log and "
        "the keys need no repair for that"
    )
    return StoreDamaged(file=str((path / _TOML).absolute()), line=line, detail=detail, hint=hint)


def _log_id(log: Path) -> str | None:
    for segment in sorted(names_in(log, "*.seg")):
        try:
            with open_reading(log / segment) as file:
                return parse_segment_header(file.read(SEGMENT_HEADER_BYTES))[0].hex()
        except (OSError, Damaged):
            continue
    return None


def _make_directory(path: Path, disk: Disk) -> None:
    # Also when it was there: an interrupted creation may have made it without its name being durable.
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for made in reversed(missing):
        disk.sync_directory(made.parent)


def _remove_unfinished(path: Path) -> None:
    # Without muniment.toml and with an empty log, what lies about is an interrupted creation. A log with events in it
    # is somebody's memory, whatever became of the file that names it.
    for segment in names_in(path / "log", "*.seg"):
        if (path / "log" / segment).stat().st_size > SEGMENT_HEADER_BYTES:
            raise BadArgument(argument="path", detail=f"`{path}` holds a log but no {_TOML}: restore that file")
    for directory in (path / "log", path / "keys"):
        for file in names_in(directory):
            (directory / file).unlink()
    (path / "root.key").unlink(missing_ok=True)
    for file in names_in(path, _UNFINISHED_TOML):
        (path / file).unlink()
