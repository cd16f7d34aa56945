"""Reads task_graph_<rank>.json. What does not read smoothly is read again, whole, to say why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import BinaryIO

from mkcov_action.finding import Problem
from mkcov_action.task_graph.decode import NotSmooth, read_pieces
from mkcov_action.task_graph.diagnose import Rejected, read_whole
from mkcov_action.task_graph.model import (
    EVENT_TYPES,
    INVALID_EVENT,
    METADATA_FIELDS,
    NULL_TENSOR,
    Events,
    Operand,
    TaskGraph,
)

__all__ = [
    "EVENT_TYPES",
    "INVALID_EVENT",
    "METADATA_FIELDS",
    "NULL_TENSOR",
    "Events",
    "Operand",
    "TaskGraph",
    "read_task_graph",
]


def read_task_graph(
    open_text: Callable[[], AbstractContextManager[BinaryIO]],
) -> tuple[TaskGraph | None, tuple[Problem, ...]]:
    """Reads a task graph; returns it, or None and the problems that say why not.

    `open_text` opens the (decompressed) text and may be called twice. Errors of opening and of
    reading pass through (OSError, and what a decompressor raises).
    """
    graph, problems = _read(open_text)
    if graph is not None and graph.unknown_keys:
        with open_text() as stream:
            graph = replace(graph, unknown_keys=_first_lines(stream, graph.unknown_keys))
    return graph, problems


def _read(
    open_text: Callable[[], AbstractContextManager[BinaryIO]],
) -> tuple[TaskGraph | None, tuple[Problem, ...]]:
    try:
        with open_text() as stream:
            return read_pieces(stream), ()
    except NotSmooth:
        pass
    with open_text() as stream:
        data = stream.read().removeprefix(b"\xef\xbb\xbf")  # the generator's own loader skips it, too
    try:
        return read_whole(data), ()
    except Rejected as rejected:
        return None, rejected.problems


_PIECE = 1 << 20  # bytes


def _first_lines(stream: BinaryIO, keys: Iterable[str]) -> dict[str, int]:
    """The 1-based line where each key (`task.is_tail_task`) first stands; 1 if it is spelt otherwise."""
    wanted = {key: re.compile(rb'"%s"\s*:' % re.escape(key.rpartition(".")[2].encode())) for key in keys}
    lines = dict.fromkeys(wanted, 1)
    passed, buffer = 0, b""
    while wanted and (more := stream.read(_PIECE)):
        buffer += more
        for key, pattern in list(wanted.items()):
            if match := pattern.search(buffer):
                lines[key] = passed + buffer.count(b"\n", 0, match.start()) + 1
                del wanted[key]
        keep = max(0, len(buffer) - 4096)  # a key may be cut by the end of a piece
        passed += buffer.count(b"\n", 0, keep)
        buffer = buffer[keep:]
    return lines
