"""A crew answers every task, in order, whatever becomes of its workers."""

from __future__ import annotations

import pytest

from muniment.replay._crew import Crew


def crew(module: str, function: str, fall_back: str = "here") -> Crew[str]:
    def answer(task: bytes) -> str:
        if fall_back == "fails":
            raise LookupError(task)
        return f"{fall_back} {task.decode()}"

    return Crew(2, module, function, decode=lambda data: data.decode(), fall_back=answer)


def test_the_answers_of_several_workers_come_in_the_order_of_the_tasks() -> None:
    made = crew("base64", "b64encode")
    for number in range(9):
        made.add(b"%d" % number)

    assert ["MA==", "MQ==", "Mg==", "Mw==", "NA==", "NQ==", "Ng==", "Nw==", "OA=="] == made.finish()


def test_what_a_dead_worker_leaves_is_done_here() -> None:
    made = crew("binascii", "unhexlify")  # fails at what is not hexadecimal, and ends
    for task in (b"30", b"?", b"31"):
        made.add(task)

    assert ["0", "here ?", "1"] == made.finish()


def test_what_cannot_start_is_done_here() -> None:
    made = crew("no_such_module", "at_all")
    made.add(b"a task")

    assert ["here a task"] == made.finish()


def test_an_error_of_this_process_is_raised_to_whoever_waits() -> None:
    made = crew("no_such_module", "at_all", fall_back="fails")
    made.add(b"a task")

    with pytest.raises(LookupError):
        made.finish()
