"""Runs one function over several items, each in a process of its own, and loses no answer to a killed one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


# Forking is cheapest and this program has no threads; elsewhere it may not exist.
_Process: type[BaseProcess] = (
    multiprocessing.get_context("fork").Process
    if sys.platform == "linux"
    else multiprocessing.get_context("spawn").Process
)


class Lost:
    """Stands for the answer of a process that ended without one: it was killed."""


LOST = Lost()


def in_processes(
    function: Callable[[Item], Answer],
    items: Sequence[Item],
    *,
    at_most: int,
    progress: Callable[[int, int], None],
) -> list[Answer | Lost]:
    """The answers in the order of the items, from up to `at_most` processes at once.

    `progress` is told how many items are done and how many there are. However this ends, by an
    interrupt too, no process is left; and should this process be killed, the others end by themselves.
    """
    crew: _Crew[Item, Answer] = _Crew(function)
    answers: dict[int, Answer | Lost] = {}
    waiting = list(enumerate(items))[::-1]
    progress(0, len(items))
    try:
        while waiting or crew:
            while waiting and len(crew) < at_most:
                crew.start(*waiting.pop())
            for index, answer in crew.answers():
                answers[index] = answer
                progress(len(answers), len(items))
    finally:
        crew.kill()
    return [answers[index] for index in range(len(items))]


class _Crew(Generic[Item, Answer]):
    """The processes at work. Each has a pipe of its own, whose only writer it is.

    So the death of a process, even in the middle of its answer, is the end of its pipe. A queue that
    all of them share, as executors have, stays open then and is waited for without end.
    """

    def __init__(self, function: Callable[[Item], Answer]) -> None:
        self._function = function
        self._working: dict[Connection, tuple[int, BaseProcess]] = {}

    def __len__(self) -> int:
        return len(self._working)

    def start(self, index: int, item: Item) -> None:
        reader, writer = multiprocessing.Pipe(duplex=False)
        process = _Process(target=_work, args=(self._function, item, writer), daemon=True)
        with _no_interrupts():  # a forked process must not even be born with our handler
            process.start()
            self._working[reader] = index, process
        writer.close()

    def answers(self) -> Iterator[tuple[int, Answer | Lost]]:
        """Waits for the next answer, or for the end of a process; yields all that are there."""
        for ready in wait(list(self._working)):
            assert isinstance(ready, Connection)
            try:
                answer = ready.recv()
            except (EOFError, OSError):
                answer = LOST
            index, process = self._working.pop(ready)
            ready.close()
            process.join()
            yield index, answer

    def kill(self) -> None:
        for _, process in self._working.values():
            process.kill()
        for reader, (_, process) in self._working.items():
            process.join()
            reader.close()
        self._working.clear()


def _work(function: Callable[[Item], Answer], item: Item, writer: Connection) -> None:
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends without a word: the main process speaks
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    writer.send(function(item))


def _end_with_parent() -> None:
    """Ends this process when the one that started it is gone: nobody waits for the answer."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def _no_interrupts() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
