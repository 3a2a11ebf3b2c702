"""
Acceptance tests for agent memory: Muniment, a reference sound and leaky, midas-memory and inspeximus, step by step.

The tests are the package `agent_memory_atlas` in this folder, which knows nothing of Muniment: see README.md there for
what is asked. This is the evaluation that runs it over several memories. The reference comes first: a suite whose steps
cannot fail, or fail for another's fault, shows nothing. Each leak is therefore switched on alone, and exactly the step
of its name must fail. Peers run as they are, each in an environment of its own, through the adapters in
`eval/_atlas_peers/`.
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this evaluation's own arguments."""
    from eval import _atlas  # noqa: PLC0415  # a peer's interpreter imports this package, and has no Muniment

    _atlas.add_arguments(parser)


def run(args: argparse.Namespace) -> dict[str, object]:
    """Run every step over every memory, and return what came of it."""
    from eval import _atlas  # noqa: PLC0415  # as above

    return _atlas.run(args)
