"""Reads task_graph_<rank>.json. What does not read smoothly is read again, whole, to say why."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import BinaryIO

from mkcov_action.finding import Problem
from mkcov_action.task_graph import TaskGraph
from mkcov_action.task_graph_json.decode import NotSmooth, read_pieces
from mkcov_action.task_graph_json.diagnose import Rejected, read_whole

__all__ = ["read_task_graph"]


def read_task_graph(open_text: Callable[[], AbstractContextManager[BinaryIO]]) -> tuple[TaskGraph | None, tuple[Problem, ...]]:
    """Reads a task graph; returns it, or None and the problems that say why not.

    `open_text` opens the (decompressed) text and may be called twice. Errors of opening and of
    reading pass through (OSError, and what a decompressor raises).
    """
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
        return None, (rejected.problem,)
