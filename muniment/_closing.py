"""What a disk without room means for a store that is being closed: the log has everything, whatever was not saved."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from muniment.events import DiskFull

_HINT: Final = (
    "nothing acknowledged is lost, and the store is closed: after the next opening what could not be saved is made "
    "from the log again"
)


@contextmanager
def closing(failed: BaseException | None = None) -> Generator[None, None, None]:
    """
    Close within: a disk that is full says what that means here, and nothing where the caller has failed already.

    Raises:
        DiskFull: with that hint. Everything is released all the same.
    """
    try:
        yield
    except DiskFull as error:
        if failed is None:
            raise DiskFull(hint=_HINT, **error.facts) from error
