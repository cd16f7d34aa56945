"""Reads a task graph of any layout, whole, and says what is wrong with one that is none."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import msgspec

from mkcov_action.finding import Artifact, Problem, ProblemKind
from mkcov_action.json_text import PathStep, elements, locate, parse_path, pointer, position, repeated_keys
from mkcov_action.task_graph import METADATA_FIELDS, TaskGraph
from mkcov_action.task_graph_json.decode import (
    ANY,
    DOCUMENT,
    DOCUMENT_KEYS,
    OBJECT,
    TENSORS,
    Builder,
    NotSmooth,
    colons_of_objects,
)


class Rejected(Exception):
    """The document is not a task graph; carries the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def read_whole(data: bytes) -> TaskGraph:
    """Reads any layout at once; Rejected says what is wrong and where."""
    try:
        data.decode("utf-8")
        ANY.decode(data)  # a violation may stand before the place where the JSON breaks
        document = DOCUMENT.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Rejected(_explain(data, error)) from error
    if any(data.count(b'"%s"' % key.encode()) != 1 for key in DOCUMENT_KEYS):
        _reject_repeated_keys(data, data, 0)
    start = locate(data, ("all_tasks",))
    tasks = bytes(OBJECT.decode(data)["all_tasks"])
    builder = Builder()
    rest = data[:start] + b"[]" + data[start + len(tasks) :]
    try:
        builder.add(b"[]" if tasks == b"null" else tasks)
        return builder.finish(document, rest)
    except NotSmooth:
        _reject_repeated_keys(data, rest, None)
        _reject_task(data, start, tasks)
        raise


_BYTE = re.compile(r" \(byte (\d+)\)")
_PATH = re.compile(r" - at `(\$[^`]*)`")


def _explain(data: bytes, error: Exception) -> Problem:
    """The decoder's error as a problem with a position."""
    if isinstance(error, RecursionError):
        return _malformed(data, None, "the JSON nests too deep to be a task graph")
    if isinstance(error, UnicodeDecodeError):
        return _malformed(data, error.start, "the text is not valid UTF-8")
    text = str(error)
    if isinstance(error, msgspec.ValidationError):
        path = _PATH.search(text)
        return _violation(data, parse_path(path.group(1)) if path else (), _wording(error))
    if not data.strip():
        return _malformed(data, 0, "the file is empty")
    byte = _BYTE.search(text)
    if byte is None:
        return _malformed(data, len(data), "the JSON is truncated")
    return _malformed(data, int(byte.group(1)), _wording(error))


def _wording(error: Exception) -> str:
    return _PATH.sub("", _BYTE.sub("", str(error))).removeprefix("JSON is malformed: ")


def _malformed(data: bytes, offset: int | None, message: str) -> Problem:
    line, column = (None, None) if offset is None else position(data, offset)
    return Problem(
        kind=ProblemKind.MALFORMED, artifact=Artifact.TASK_GRAPH, message=message, line=line, column=column
    )


def _violation(data: bytes, path: Sequence[PathStep], message: str) -> Problem:
    line, column = position(data, locate(data, path))
    return Problem(
        kind=ProblemKind.SCHEMA,
        artifact=Artifact.TASK_GRAPH,
        message=message[:1].lower() + message[1:],
        line=line,
        column=column,
        pointer=pointer(path),
    )


def _reject_repeated_keys(data: bytes, text: bytes, offset: int | None) -> None:
    """Rejects `text`, which starts at `offset` of the document, if an object in it repeats a key."""
    keys = repeated_keys(text)
    if not keys:
        return
    if offset is not None:
        token = re.compile(rb'"%s"\s*:' % re.escape(keys[0].encode()))
        offset += next((match.start() for match in itertools.islice(token.finditer(text), 1, None)), 0)
    raise Rejected(_malformed(data, offset, f"the key {keys[0]!r} stands twice in one object"))


def _reject_task(data: bytes, start: int, tasks: bytes) -> None:
    """Rejects the first task that the builder could not take; `start` is where the array starts."""
    generation: set[str] | None = None
    for index, (offset, text) in enumerate(elements(tasks)):
        members = OBJECT.decode(text)
        if text.count(b":") != colons_of_objects(b"[" + text + b"]"):
            _reject_repeated_keys(data, text, start + offset)
        for name in ("trigger_event", "dependent_event"):
            if int(bytes(members[name])) >= 2**64:
                path = ("all_tasks", index, name)
                raise Rejected(_violation(data, path, "expected `int` <= 18446744073709551615"))
        fields = members.keys() & set(METADATA_FIELDS)
        if generation is not None and fields != generation:
            name = min(fields ^ generation)
            message = f"`{name}` stands in some tasks and not in others: one file has one generation"
            raise Rejected(_violation(data, ("all_tasks", index), message))
        generation = fields
        for side in ("inputs", "outputs"):
            _reject_operands(data, bytes(members[side]), ("all_tasks", index, side))


def _reject_operands(data: bytes, text: bytes, path: tuple[PathStep, ...]) -> None:
    try:
        tensors = TENSORS.decode(text) or []
    except msgspec.ValidationError as error:
        inner = _PATH.search(str(error))
        path += parse_path(inner.group(1)) if inner else ()
        raise Rejected(_violation(data, path, _wording(error))) from error
    except msgspec.DecodeError as error:  # text within a name that the outer decoder passed over
        raise Rejected(_malformed(data, locate(data, path), _wording(error))) from error
    if text.count(b":") != 5 * len(tensors):
        _reject_repeated_keys(data, text, locate(data, path))
