"""What becomes of the processes that read ranks, and of their answers, when one of them is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mkcov_action.processes import LOST, Lost, in_processes

_SCRIPT = """
import os, time
from mkcov_action.processes import in_processes

def wait(item):
    print(os.getpid(), flush=True)
    time.sleep(600)

in_processes(wait, [0, 1], at_most=2, progress=lambda done, total: None)
"""


def silent(done: int, total: int) -> None:
    del done, total


def test_answers_come_in_the_order_of_the_items_and_progress_counts_them() -> None:
    told: list[tuple[int, int]] = []

    def square(item: int) -> int:
        time.sleep(0.2 / (item + 1))  # the last ones are the first to answer
        return item * item

    answers = in_processes(
        square, range(5), at_most=3, progress=lambda done, total: told.append((done, total))
    )
    assert answers == [0, 1, 4, 9, 16]
    assert told == [(done, 5) for done in range(6)]


def test_no_more_processes_than_allowed_are_at_work_at_once() -> None:
    def spell(item: int) -> tuple[float, float]:
        start = time.monotonic()
        time.sleep(0.1 + item / 1000)
        return start, time.monotonic()

    answers = in_processes(spell, range(6), at_most=2, progress=silent)
    spells = [answer for answer in answers if not isinstance(answer, Lost)]
    assert len(spells) == 6
    for start, _ in spells:
        assert sum(other <= start < end for other, end in spells) <= 2


def test_a_killed_process_loses_its_own_answer_only() -> None:
    def answer(item: int) -> int:
        if item == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    assert in_processes(answer, range(3), at_most=2, progress=silent) == [0, LOST, 2]


def test_a_process_killed_in_the_middle_of_its_answer_is_not_waited_for() -> None:
    def answer(item: int) -> bytes:
        if item == 0:
            return b"first"
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return bytes(64 << 20)  # far more than a pipe holds, and nobody reads yet

    def busy(done: int, total: int) -> None:
        del total
        time.sleep(1.5 if done == 1 else 0)

    assert in_processes(answer, range(2), at_most=2, progress=busy) == [b"first", LOST]


def test_an_interrupt_leaves_no_process() -> None:
    def interrupt(done: int, total: int) -> None:
        del total
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_processes(lambda item: time.sleep(item * 600), range(3), at_most=3, progress=interrupt)
    assert multiprocessing.active_children() == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_process_outlives_the_one_that_started_it() -> None:
    with subprocess.Popen([sys.executable, "-c", _SCRIPT], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        children = [int(process.stdout.readline()) for _ in range(2)]
        process.kill()
    deadline = time.monotonic() + 20
    while any(_lives(child) for child in children):
        assert time.monotonic() < deadline, "a reading process was left behind"
        time.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
