"""Two processes that race for single-use confirmations, and a decision that is retried after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import muniment
from muniment import Action

from ._safety_doors import AGENT, ANN, SCOPE

_RACER: Final = """
import sys, muniment
from muniment import Action
store = muniment.open(sys.argv[1], model="none")
agent = store.session(scope="acme", actor="agent:planner")
for line in sys.stdin:
    print(int(agent.decide(Action("rm.file", {"n": int(line)})).allowed), flush=True)
"""
_DECIDER: Final = """
import os, sys, muniment
from muniment import Action
store = muniment.open(sys.argv[1], model="none")
agent = store.session(scope="acme", actor="agent:planner")
decision = agent.decide(Action("rm.file", {"n": int(sys.argv[2])}), command_id="job-" + sys.argv[2])
print(decision.id, decision.allowed, decision.repeated, flush=True)
os.kill(os.getpid(), 9)
"""


def race(count: int) -> dict[str, object]:
    """Let two processes decide at once on each of `count` single-use confirmations, and count what they won."""
    with tempfile.TemporaryDirectory(prefix="muniment-race-") as name:
        path = _store_with(Path(name), count)
        racers = [_start(_RACER, path, 0) for _ in range(2)]
        won = [0, 0]
        both = neither = 0
        for n in range(count):
            # Whoever is told first has a head start of microseconds: they take turns.
            for racer in racers if n % 2 else reversed(racers):
                _tell(racer, n)
            answers = [int(_line(racer)) for racer in racers]
            won = [total + answer for total, answer in zip(won, answers, strict=True)]
            both += all(answers)
            neither += not any(answers)
        for racer in racers:
            _end(racer)
        with muniment.open(path, model="none", read_only=True) as store:
            sound = store.verify().ok
    return {
        "confirmations": count,
        "spent": sum(won),
        "by each": won,
        "spent twice": both,
        "not spent": neither,
        "log verifies": sound,
    }


def killed_and_retried(count: int) -> dict[str, object]:
    """Decide under a command id, be killed at once, and decide again: each job has one decision, allowed once."""
    with tempfile.TemporaryDirectory(prefix="muniment-kill-") as name:
        path = _store_with(Path(name), count)
        same = killed = 0
        for n in range(count):
            answers: list[list[str]] = []
            for _ in range(2):
                racer = _start(_DECIDER, path, n)
                answers.append(_line(racer).split())
                killed += _end(racer) == -signal.SIGKILL
            same += answers[0][:2] == answers[1][:2] and [a[2] for a in answers] == ["False", "True"]
        with muniment.open(path, model="none") as store:
            again = store.session(scope=SCOPE, actor=AGENT).decide(Action("rm.file", {"n": 0})).allowed
    return {"jobs": count, "killed": killed, "one decision": same, "allowed again without the id": again}


def _store_with(folder: Path, count: int) -> Path:
    key = muniment.KeyFile.create(folder / "key")
    with muniment.open(folder / "store", create=True, model="none") as store:
        store.enroll(ANN, key.public_key, scopes=(SCOPE,))
        user = store.user_session(scope=SCOPE, principal=ANN, signer=key)
        for n in range(count):
            user.confirm(Action("rm.file", {"n": n}), agent=AGENT, expires_in="1h")
    return folder / "store"


def _start(code: str, path: Path, number: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", code, str(path), str(number)]
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ, PYTHONPATH=os.getcwd())
    )


def _line(process: subprocess.Popen[str]) -> str:
    if process.stdout is None:
        raise AssertionError("the process has no output")
    return process.stdout.readline().strip()


def _tell(process: subprocess.Popen[str], number: int) -> None:
    if process.stdin is None:
        raise AssertionError("the process has no input")
    process.stdin.write(f"{number}\n")
    process.stdin.flush()


def _end(process: subprocess.Popen[str]) -> int:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    return process.wait()
