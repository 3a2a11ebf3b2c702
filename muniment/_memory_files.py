"""
Files over beliefs: each file of the memory tool is a key, each of its versions a memory that supersedes the one before.

The words of the answers are those of the tool's documentation, which Claude knows best:
https://platform.claude.com/docs/en/agents-and-tools/tool-use/memory-tool
"""

from __future__ import annotations

import bisect
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

from muniment.events import AlreadyDone, BadArgument, Moment
from muniment.gate import MemoryFields

from ._answers import Record
from ._memory_paths import ROOT, FileProblem, parents, parse_path, shown_path
from ._session import Session
from ._together import Said, forget_together, holders, last_said, retire_together, stated, write_together

ATTRIBUTE: Final = "memory file"
TAG: Final = "memory-file"
MAX_LINES: Final = 999_999
MAX_FILE_BYTES: Final = 1_000_000
MAX_VIEW_CHARS: Final = 200_000
MAX_FILES: Final = 1_000
_BLANK: Final = "blank"
_DEPTH: Final = 2
_AROUND: Final = 2
_DELETED: Final = "deleted"


class File(NamedTuple):
    """The current version of a file."""

    id: str
    path: str
    text: str

    @property
    def size(self) -> int:
        """How many bytes of UTF-8 it has."""
        return len(self.text.encode())


class MemoryFiles:
    """The files of one scope, as one session may read and change them."""

    def __init__(
        self, session: Session, *, delete: str, max_file_bytes: int, max_view_chars: int, max_files: int
    ) -> None:
        if delete not in ("retire", "forget"):
            raise BadArgument(argument="delete", detail=f"expected retire or forget, got `{delete}`")
        self._session, self._forgets = session, delete == "forget"
        self._known: dict[bytes, bool] = {}
        self._max_bytes, self._max_view, self._max_files = max_file_bytes, max_view_chars, max_files

    # --- the six commands ---------------------------------------------------------------------------------------------

    def view(self, given: object, view_range: object = None) -> str:
        """Return a file with line numbers, or a directory two levels deep with sizes."""
        path = parse_path(given)
        file = self._find(path)
        if file is not None:
            return self._cut(f"Here's the content of {path} with line numbers:\n" + _numbered(file, view_range))
        below = self._below(path)
        if not below and path != ROOT:
            raise FileProblem(f"The path {path} does not exist. Please provide a valid path.")
        heading = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items"
        sizes = {file.path: file.size for file in below}
        listed = [f"{format_size(sum(sizes.values()))}\t{path}", *_listing(path, sizes, _DEPTH)]
        return self._cut(f"{heading} and node_modules:\n" + "\n".join(listed))

    def create(self, given: object, text: object) -> str:
        """Make a file, and fail if there is one."""
        path, said = parse_path(given), self._checked(text, "file_text")
        files = self._all()
        if path == ROOT or any(file.path.startswith(path + "/") for file in files):
            raise FileProblem(f"Error: File {path} already exists")
        self._check_room(path, files)
        if len(files) >= self._max_files:
            raise FileProblem(f"Error: there are {len(files)} files already, and no more than that may be")
        content, metadata = _stored(said)
        fields: MemoryFields = {"about": _about(path), "metadata": metadata, "tags": (TAG,)}
        write_together("remember", [Said(self._session, content, fields)], check=self._free(path))
        return f"File created successfully at: {path}"

    def str_replace(self, given: object, old: object, new: object) -> str:
        """Put a text in the place of another that stands exactly once in the file, and show the lines around it."""
        path = parse_path(given)
        sought, put = _text(old, "old_str"), _text(new, "new_str")
        file = self._find(path)
        if file is None:
            raise FileProblem(f"Error: The path {path} does not exist. Please provide a valid path.")
        if not sought:
            raise FileProblem("No replacement was performed. old_str is empty")
        if sought not in file.text:
            raise FileProblem(f"No replacement was performed, old_str `{sought}` did not appear verbatim in {path}.")
        if file.text.count(sought) > 1:
            numbers = ", ".join(map(str, _lines_of(sought, file.text)))
            raise FileProblem(
                f"No replacement was performed. Multiple occurrences of old_str `{sought}` in lines: {numbers}. "
                "Please ensure it is unique"
            )
        changed = file.text.replace(sought, put)
        self._edit(file, changed)
        at = file.text[: file.text.find(sought)].count("\n")
        lines = changed.split("\n")
        first, last = max(0, at - _AROUND), min(len(lines), at + _AROUND + 1)
        shown = "\n".join(_number(first + n, line) for n, line in enumerate(lines[first:last], 1))
        return self._cut(
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n" + shown
        )

    def insert(self, given: object, line: object, text: object) -> str:
        """Put lines after the line of that number; 0 is the beginning."""
        path, put = parse_path(given), _text(text, "insert_text")
        file = self._find(path)
        if file is None:
            raise FileProblem(f"Error: The path {path} does not exist")
        lines = file.text.split("\n")
        if not lines[-1]:
            lines.pop()
        if isinstance(line, bool) or not isinstance(line, int) or not 0 <= line <= len(lines):
            raise FileProblem(
                f"Error: Invalid `insert_line` parameter: {str(line)[:40]}. It should be within the range of lines of "
                f"the file: [0, {len(lines)}]"
            )
        lines.insert(line, put.rstrip("\n"))
        changed = "\n".join(lines)
        self._edit(file, changed if changed.endswith("\n") else changed + "\n")
        return f"The file {path} has been edited."

    def delete(self, given: object) -> str:
        """Retire a file, or all files of a directory; or have them forgotten, with every version."""
        path = parse_path(given)
        if path == ROOT:
            raise FileProblem("Cannot delete the /memories directory itself")
        going = self._at_or_below(path)
        if not going:
            raise FileProblem(f"Error: The path {path} does not exist")
        self._end(going)
        return f"Successfully deleted {path}"

    def rename(self, given: object, wanted: object) -> str:
        """Give a file or a directory another path; its history goes with it."""
        old, new = parse_path(given, "old_path"), parse_path(wanted, "new_path")
        if old == ROOT:
            raise FileProblem("Cannot rename the /memories directory itself")
        moving, files = self._at_or_below(old), self._all()
        if not moving:
            raise FileProblem(f"Error: The path {old} does not exist")
        if new == ROOT or any(file.path == new or file.path.startswith(new + "/") for file in files):
            raise FileProblem(f"Error: The destination {new} already exists")
        if new.startswith(old + "/"):
            raise FileProblem(f"Error: {old} cannot be moved into itself")
        self._check_room(new, files)
        moves = {file.id: parse_path(new + file.path.removeprefix(old), "new_path") for file in moving}
        said = [
            Said(self._session, content, {
                "about": _about(moves[file.id]), "metadata": metadata, "tags": (TAG,), "supersedes": file.id,
                "reason": "renamed",
            })
            for file in moving
            for content, metadata in [_stored(file.text)]
        ]  # fmt: skip
        free = [self._free(path, allowed=identity) for identity, path in moves.items()]
        self._supersede(old, said, lambda at: _all(free, at))
        return f"Successfully renamed {old} to {new}"

    # --- beyond the commands ------------------------------------------------------------------------------------------

    def clear(self) -> str:
        """Delete every file."""
        self._end(self._all())
        return "All memory cleared"

    def history(self, given: object) -> list[Record]:
        """Return every version that stood in the chain of the path, the oldest first, deleted ones too."""
        path = parse_path(given)
        last = last_said(self._session, _about(path))
        return [] if last is None else self._session.history(last)

    # --- reading ------------------------------------------------------------------------------------------------------

    def _find(self, path: str) -> File | None:
        # The key folds case and look-alikes, so it may find the file of a name that only looks the same.
        for belief in self._session.beliefs(about=_about(path)):
            if belief.scope == self._session.scope and belief.about == _about(path) and belief.status == "active":
                return File(belief.id, path, _text_of(belief.content or "", belief.metadata))
        return None

    def _all(self) -> list[File]:
        found = stated(self._session, ATTRIBUTE, self._known)
        files = [File(one.id, one.subject, _text_of(one.content, one.metadata)) for one in found]
        return sorted(files, key=lambda file: file.path.split("/"))

    def _below(self, path: str) -> list[File]:
        return [file for file in self._all() if file.path.startswith(path + "/")]

    def _at_or_below(self, path: str) -> list[File]:
        file = self._find(path)
        return self._below(path) if file is None else [file]

    def _cut(self, answer: str) -> str:
        over = len(answer) - self._max_view
        return answer if over <= 0 else answer[: self._max_view] + f"\n[{over} more characters: view fewer lines]"

    # --- writing ------------------------------------------------------------------------------------------------------

    def _checked(self, text: object, name: str) -> str:
        said = _text(text, name)
        try:
            size = len(said.encode())
        except UnicodeEncodeError:
            raise FileProblem(f"Error: `{name}` is not Unicode text: it holds half of a character") from None
        if size > self._max_bytes:
            raise FileProblem(f"Error: a file has at most {self._max_bytes} bytes, and this would have {size}")
        if said.count("\n") >= MAX_LINES:
            raise FileProblem("Error: a file has at most 999,999 lines")
        return said

    def _check_room(self, path: str, files: Sequence[File]) -> None:
        inside = {*parents(path)}
        for file in files:
            if file.path in inside:
                raise FileProblem(f"Error: {file.path} is a file, not a directory")

    def _free(self, path: str, *, allowed: str | None = None) -> Callable[[Moment], None]:
        """Return a check that no other file has the name, for the moment of the writing."""

        def check(at: Moment) -> None:
            taken = [memory for memory in holders(self._session, _about(path), at) if memory.id.hex() != allowed]
            if taken:
                said = self._session.get(taken[0].id.hex()).about
                other = said[0] if said is not None and said[0] != path else None
                because = f" as {shown_path(other)}, which looks the same" if other else ""
                what = "File" if allowed is None else "The destination"
                raise FileProblem(f"Error: {what} {path} already exists{because}")

        return check

    def _edit(self, file: File, text: str) -> None:
        content, metadata = _stored(self._checked(text, "the text"))
        fields: MemoryFields = {"metadata": metadata, "tags": (TAG,), "supersedes": file.id, "about": _about(file.path)}
        self._supersede(file.path, [Said(self._session, content, fields)], None)

    def _supersede(self, path: str, said: Sequence[Said], check: Callable[[Moment], None] | None) -> None:
        try:
            write_together("supersede", said, check=check)
        except AlreadyDone:
            # Somebody else changed it since it was read: writing over that would lose their words.
            raise FileProblem(f"Error: {path} was changed by another meanwhile. View it again, then repeat") from None

    def _end(self, files: Sequence[File]) -> None:
        if not self._forgets:
            retire_together([(self._session, file.id) for file in files], reason=_DELETED)
            return
        versions = list(dict.fromkeys(version for file in files for version in self._versions(file.id)))
        if versions:
            forget_together(self._session, versions, reason=_DELETED)

    def _versions(self, identity: str | None) -> Iterator[str]:
        while identity is not None:
            record = self._session.get(identity)
            if record.status != "erased":
                yield identity
            identity = record.supersedes


def format_size(size: int) -> str:
    """Return a size as a person reads it: `12B`, `1.5K`, `2M`."""
    unit = min(max(size.bit_length() - 1, 0) // 10, 3)
    scaled = size / 1024**unit
    return f"{int(scaled)}{'BKMG'[unit]}" if scaled == int(scaled) else f"{scaled:.1f}{'BKMG'[unit]}"


def _all(checks: Sequence[Callable[[Moment], None]], at: Moment) -> None:
    for check in checks:
        check(at)


def _about(path: str) -> tuple[str, str]:
    return path, ATTRIBUTE


def _text(given: object, name: str) -> str:
    if not isinstance(given, str):
        raise FileProblem(f"Error: `{name}` is required, and is a text")
    return given


def _stored(text: str) -> tuple[str, Mapping[str, object] | None]:
    """Return content and metadata; a blank text is no memory, so it stands beside words that say so."""
    if text.isspace() or not text:
        return f"(a blank file, {uuid.uuid4().hex})", {_BLANK: text}
    return text, None


def _text_of(content: str, metadata: Mapping[str, object]) -> str:
    return cast("str", metadata[_BLANK]) if _BLANK in metadata else content


def _number(number: int, line: str) -> str:
    return f"{number:>6}\t{line}"


def _numbered(file: File, view_range: object) -> str:
    lines = file.text.split("\n")
    start, end = 0, len(lines)
    if isinstance(view_range, (list, tuple)) and len(cast("Sequence[object]", view_range)) == 2:
        first, last = cast("Sequence[object]", view_range)
        if not isinstance(first, int) or not isinstance(last, int):
            raise FileProblem("Error: `view_range` is two line numbers")
        start, end = max(1, first) - 1, len(lines) if last == -1 else last
    return "\n".join(_number(number, line) for number, line in enumerate(lines[start:end], start + 1))


def _lines_of(sought: str, text: str) -> list[int]:
    breaks = [at for at, character in enumerate(text) if character == "\n"]
    found: dict[int, None] = {}
    at = text.find(sought)
    while at != -1:
        found[bisect.bisect_left(breaks, at) + 1] = None
        at = text.find(sought, at + 1)
    return list(found)


def _listing(path: str, sizes: Mapping[str, int], depth: int) -> Iterator[str]:
    """Yield the lines of what lies in a directory, each directory followed by what lies in it."""
    inside: dict[str, dict[str, int]] = {}
    for file, size in sizes.items():
        inside.setdefault(file.removeprefix(path + "/").split("/")[0], {})[file] = size
    for name in sorted(inside):
        if name.startswith(".") or name == "node_modules":
            continue
        here, files = f"{path}/{name}", inside[name]
        if here in files:
            yield f"{format_size(files[here])}\t{here}"
            continue
        yield f"{format_size(sum(files.values()))}\t{here}/"
        if depth > 1:
            yield from _listing(here, files, depth - 1)
