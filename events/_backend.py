"""
Where a log can be kept: four operations on one ordered stream of frames, with one writer at a time.

A frame is one commit in its own bytes (`_codec` shows them): it names its first event, holds its events, and ends in
the chain hash of the last. A back end keeps frames, and knows nothing of what they say: it has no keys, and needs none.
It is not trusted either: who reads checks the chain again, from a head that he trusts.

`EmbeddedLog` is the default. `tests/events/test_backends.py` is what every back end passes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from ._codec import EVENT_HEADER, Damaged, Digest, Frame, parse_frame
from ._errors import BadArgument, HeadMoved

_FIRST_PAUSE: Final = 0.001
_LONGEST_PAUSE: Final = 0.05


class ChainHead(NamedTuple):
    """The last event of a log and its chain hash, which commits to all before it; (0, genesis) of an empty one."""

    seq: int
    chain: Digest


class LogBackend(Protocol):
    """
    One log, as one thread of one process has it open. Sequence numbers count events, from 1.

    Every operation may also raise LogCorrupt, where what is kept is not what was appended, and Unavailable.
    """

    def append(self, expected_seq: int, expected_chain: bytes, frame: bytes) -> None:
        """
        Append one frame if (`expected_seq`, `expected_chain`) is the head: compare and set, atomic among all processes.

        Of any number that race for the same head exactly one returns. When this returns the frame is durable: it
        survives a kill and a power cut, and every later `head` and `read`, in any process, sees it. When this raises,
        nothing was appended, but for WriterPoisoned. A writer that dies in between leaves all of the frame or nothing.

        Raises:
            HeadMoved: the head is another one, which its facts name; read on from there, and decide again.
            BadArgument: the frame is not one whole frame that follows `expected_seq` and `expected_chain`.
            WriterPoisoned: the outcome is unknown. This object appends no more; a new one tells by its head.
            DiskFull, DiskFailed, StoreReadOnly: it cannot be written now.
        """
        ...

    def read(self, from_seq: int) -> Iterator[bytes]:
        """
        Yield the frames from the one that holds event `from_seq` to the head, in order, byte for byte as appended.

        Beyond the head that is none: this never waits. What is appended meanwhile may or may not be among them. Writes
        nothing. An iterator that is not exhausted does not hold up who appends.

        Raises:
            BadArgument: `from_seq` is less than 1.
        """
        ...

    def head(self) -> ChainHead:
        """Return the head: what the next append has to expect. Writes nothing."""
        ...

    def wait(self, seq: int, timeout: float | None = None) -> bool:
        """
        Wait until event `seq` can be read, and return True; or False when `timeout` seconds went by without it.

        None waits for ever; 0 only looks. Who appends need not know who waits: a back end asks what it is kept in, with
        pauses of at most 50 ms, or is told by it. Writes nothing.
        """
        ...


def check_frame(frame: bytes, expected_seq: int, expected_chain: bytes) -> Frame:
    """
    Return the frame parsed, its chain recomputed: asked by a back end before it appends, by a reader of what he reads.

    Raises:
        BadArgument: it is not exactly one frame of events that follows that head.
    """
    try:
        found = parse_frame(frame, 0, expected_seq + 1, Digest(expected_chain))
    except Damaged as error:
        raise BadArgument(argument="frame", detail=str(error)) from error
    if found is None or found.size != len(frame):
        raise BadArgument(argument="frame", detail=f"{len(frame)} bytes are not one whole frame")
    if min(map(len, found.events)) < EVENT_HEADER.size:
        raise BadArgument(argument="frame", detail="an event is shorter than its header")
    return found


def head_moved(expected_seq: int, expected_chain: bytes, head: ChainHead) -> HeadMoved:
    """Return the error of an append whose expectation is not the head."""
    return HeadMoved(
        expected_seq=expected_seq, expected_chain=expected_chain.hex(), seq=head.seq, chain=head.chain.hex()
    )


def wait_for(head: Callable[[], ChainHead], seq: int, timeout: float | None) -> bool:
    """Ask for the head, with pauses of 1 to 50 ms, until it reaches `seq`: `wait` for a back end that nobody tells."""
    until = None if timeout is None else time.monotonic() + timeout
    pause = _FIRST_PAUSE
    while head().seq < seq:
        left = pause if until is None else until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)
    return True


def copy_frames(source: LogBackend, target: LogBackend) -> int:
    """
    Append to `target` every frame of `source` that it lacks, and return how many: a mirror, or a log brought back.

    Each is durable before the next, so that a copy that was interrupted is simply begun again.

    Raises:
        HeadMoved: the target is ahead of the source, or another writer came first.
        BadArgument: the source does not go on where the target ends: they are not the same log.
    """
    head, end = target.head(), source.head()
    if head.seq > end.seq or (head.seq == end.seq and head.chain != end.chain):
        raise head_moved(*end, head)
    count = 0
    for frame in source.read(head.seq + 1):
        chain = check_frame(frame, *head).chain
        target.append(*head, frame)
        head, count = ChainHead(head.seq + len(chain), chain[-1]), count + 1
    return count
