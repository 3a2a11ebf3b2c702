"""
The worker: one adapter, in the interpreter of its product's environment, asked by lines on standard input.

Standard output carries answers and nothing else: what a product prints goes to standard error.
"""

from __future__ import annotations

import base64
import gc
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from typing import TextIO, cast

from ._protocol import ADAPTERS, Adapter, Hit, Memory, Refused, Unavailable, parse_request

NOT_FOUND_SECONDS = 2.0
"""How long a memory that was written is asked for until it counts as not readable."""


def main(name: str, requests: TextIO, answers: TextIO) -> None:
    """Answer requests until there are no more."""
    start = time.perf_counter_ns()
    adapter = make(name)
    for line in requests:
        verb, arguments = parse_request(line)
        if verb == "hello":
            reply: dict[str, object] = {"value": name, "ns": time.perf_counter_ns() - start}
        else:
            reply = answer(adapter, verb, arguments)
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


def make(name: str) -> Adapter:
    """Return the adapter of a product. Its imports are made here, so that no verb's time has them."""
    module = importlib.import_module(f"{__package__}.{ADAPTERS[name]}")
    return cast("Adapter", module.Adapter())


def answer(adapter: Adapter, verb: str, arguments: dict[str, object]) -> dict[str, object]:
    """Return the answer to one request, as it is put in a line."""
    adapter.ns = 0
    call = cast("Callable[..., object]", _OWN.get(verb) or getattr(adapter, verb))
    try:
        value = call(adapter, **arguments) if verb in _OWN else call(**arguments)
    except Unavailable as reason:
        return {"unavailable": str(reason), "ns": adapter.ns}
    except Refused as reason:
        return {"refused": str(reason), "ns": adapter.ns}
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"[:2_000], "ns": adapter.ns}
    return {"value": _plain(value), "ns": adapter.ns}


def lag(adapter: Adapter, memory: Memory, k: int = 8) -> dict[str, object]:
    """Write, then ask until the memory is found: how long from the acknowledgement to the end of that recall."""
    adapter.remember(memory)
    found = find(adapter, memory, k)
    adapter.ns = cast("int", found["ns"])
    return found


def find(adapter: Adapter, memory: Memory, k: int = 8) -> dict[str, object]:
    """Ask for a memory by its own text and vector until it is among the hits; give up after some seconds."""
    start = time.perf_counter_ns()
    asked = 0
    while time.perf_counter_ns() - start < NOT_FOUND_SECONDS * 1e9:
        asked += 1
        hits = adapter.recall(memory.text, memory.vector, k, memory.scope)
        if any(hit.text == memory.text for hit in hits):
            return {"found": True, "asked": asked, "ns": time.perf_counter_ns() - start}
    return {"found": False, "asked": asked, "ns": time.perf_counter_ns() - start}


def resident(adapter: Adapter) -> int:
    """Return the bytes of memory that this process has in use, files mapped into it included."""
    del adapter
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def clock(adapter: Adapter) -> float:
    """Return the worker's wall clock."""
    del adapter
    return time.time()


_OWN: dict[str, Callable[..., object]] = {"lag": lag, "find": find, "resident": resident, "clock": clock}


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, list):
        return [_plain(one) for one in cast("list[object]", value)]
    return value


def refuse_network(event: str, arguments: tuple[object, ...]) -> None:
    """Refuse every connection but local ones: an audit hook, so that a product that phones home fails and shows it."""
    if event == "socket.connect" and isinstance(address := arguments[1], tuple):
        host = str(cast("tuple[object, ...]", address)[0])
        if host not in ("127.0.0.1", "::1", "localhost"):
            raise ConnectionRefusedError(f"a peer wants to connect to `{host}`; peers run offline")


def run(name: str) -> None:
    """Serve standard input; the entry of the child process."""
    sys.addaudithook(refuse_network)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    main(name, sys.stdin, answers)


__all__ = ["Hit", "answer", "main", "make", "run"]
