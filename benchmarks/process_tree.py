"""Runs commands side by side and measures their wall time and the memory of their whole process trees.

Memory is the proportional set size (PSS) from /proc/<pid>/smaps_rollup, so that pages which forked
processes share count once; where the kernel lacks that file it is the resident size from statm. A
thread adds up all descendants every 20 ms and keeps the largest sum: a peak shorter than that can be
missed, for every candidate alike. Linux only.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

INTERVAL = 0.02  # seconds
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run: wall time in seconds, peak memory in bytes, each command's exit status."""

    seconds: float
    peak_bytes: int
    statuses: tuple[int, ...]


def measure(commands: Sequence[Sequence[str]]) -> Measurement:
    """Start all commands at once, wait for the last of them; their standard output is discarded."""
    started = time.perf_counter()
    processes = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for command in commands
    ]
    sampler = _Sampler([process.pid for process in processes])
    sampler.start()
    try:
        statuses = tuple(process.wait() for process in processes)
        seconds = time.perf_counter() - started
    finally:
        sampler.stop()
        for process in processes:
            process.kill()  # does nothing to one that has ended
    return Measurement(seconds, sampler.peak, statuses)


class _Sampler(threading.Thread):
    """Keeps the largest memory that some process trees were seen to hold together, in bytes."""

    def __init__(self, roots: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._roots = roots
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.is_set():
            self.peak = max(self.peak, sum(map(memory_of, process_trees(self._roots))))
            self._done.wait(INTERVAL)

    def stop(self) -> None:
        """End the sampling and wait for the thread."""
        self._done.set()
        self.join()


def process_trees(roots: Iterable[int]) -> set[int]:
    """The given processes and all their living descendants."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdecimal() and (parent := _parent_of(entry)) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found: set[int] = set()
    todo = list(roots)
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo.extend(children.get(pid, ()))
    return found


def _parent_of(entry: Path) -> int | None:
    try:
        stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has just ended
        return None
    return int(stat.rpartition(")")[2].split()[1])  # the name before ")" may hold spaces


def memory_of(pid: int) -> int:
    """The memory of one process in bytes, 0 if it has ended."""
    try:
        for line in (
            (PROC / str(pid) / "smaps_rollup").read_text(encoding="ascii", errors="replace").splitlines()
        ):
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except FileNotFoundError:
        return _resident(pid)
    except OSError:  # it has just ended
        return 0
    return 0


def _resident(pid: int) -> int:
    try:
        pages = int((PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
