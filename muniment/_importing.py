"""Brings a file of conversations or memories into a store: streamed, in batches, and as often as one likes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from muniment.events import BadArgument, check_path, parse_scope

from ._import_run import ImportReport, ImportRun, Speakers
from ._importers import Found, Transcript, Turn, open_transcript

if TYPE_CHECKING:
    from ._store import Store

Progress = Callable[[str, int, int], None]
"""Called with `read` and bytes, then with `embed` and memories: how many are done, and of how many."""

MAX_BATCH: Final = 10_000


class ImportOptions(TypedDict, total=False):
    """What `import_file` takes beside the file and the scope."""

    format: str | None
    user: str | None
    user_role: bool
    split: bool
    only: Collection[str] | None
    branches: bool
    dry_run: bool
    batch: int
    progress: Progress | None
    embed: bool


def import_file(
    store: Store,
    path: str | Path,
    *,
    scope: str,
    format: str | None = None,  # noqa: A002
    user: str | None = None,
    user_role: bool = False,
    split: bool = False,
    only: Collection[str] | None = None,
    branches: bool = False,
    dry_run: bool = False,
    batch: int = 200,
    progress: Progress | None = None,
    embed: bool = True,
) -> ImportReport:
    """
    Remember what a file of conversations or memories says, valid from when it was said, and return what became of it.

    docs/importing.md has the formats. A batch is written whole or not at all. Reading the same file again adds nothing,
    whatever became of its memories since, so an import that was killed is finished by starting it again. What is
    imported has the origin `import:FORMAT`, or below that the tool or document that gave it, whatever the file claims,
    and can justify no action. The host may say whose words are the user's: those of the speaker `user`, or with
    `user_role=True` those under the role `user`; they have the origin `user`, unsigned. With `split=True` each
    conversation has a scope of its own, `SCOPE/CONVERSATION`; `only` names the conversations to take; `branches=True`
    takes those that were left for an edited or another answer, too. `dry_run=True` reads and judges, and writes
    nothing.

    Raises:
        BadArgument: there is no such file, its format is not known, or an argument cannot be used.
        ScopeClosed: the scope was forgotten as a whole.
    """
    parse_scope(scope)
    if not 1 <= batch <= MAX_BATCH:
        raise BadArgument(argument="batch", detail=f"expected 1 to {MAX_BATCH}, got {batch}")
    transcript = open_transcript(check_path(path, "path"), format=format, branches=branches)
    speakers = Speakers(f"import:{transcript.name}", scope, user=user, user_role=user_role, split=split)
    run = ImportRun(store._engine, speakers, transcript.name, batch=batch, dry_run=dry_run)
    for found in _chosen(transcript, only):
        if run.take(found) and progress is not None:
            progress("read", transcript.bytes_read, transcript.total_bytes)
    run.finish()
    if progress is not None:
        progress("read", transcript.bytes_read, transcript.total_bytes)
    embedded = 0
    if embed and not dry_run:
        embedded = store.embed(None if progress is None else lambda done, of: progress("embed", done, of))
    return run.report(embedded)


def _chosen(transcript: Transcript, only: Collection[str] | None) -> Iterator[Found]:
    for found in transcript.turns():
        if only is None or not isinstance(found, Turn) or found.conversation in only:
            yield found
