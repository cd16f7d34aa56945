"""Reads a task graph of any layout, whole, and says what is wrong with one that is none."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator

import msgspec

from mkcov_action.finding import Artifact, Problem, ProblemKind
from mkcov_action.json_text import elements, locate, parsed, position, repeated_keys
from mkcov_action.task_graph.decode import (
    ANY,
    DOCUMENT,
    DOCUMENT_KEYS,
    OBJECT,
    UNTYPED,
    Builder,
    NotSmooth,
    colons_of_objects,
)
from mkcov_action.task_graph.model import TaskGraph
from mkcov_action.task_graph.violations import Violation, violations_of


class Rejected(Exception):
    """The document is not a task graph; carries the problems, most telling first."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(problems[0].message)
        self.problems = problems


def read_whole(data: bytes) -> TaskGraph:
    """Reads any layout at once; Rejected says what is wrong and where."""
    _reject_malformed(data)
    try:
        return _build(data)
    except NotSmooth:
        _reject_repeated_keys(data)
        violations, more = violations_of(data)
        if violations:
            raise Rejected(*_problems(data, violations, more)) from None
    # What is left is valid and spelt unlike the generator spells it, as 1.0 for 1.
    return _build(json.dumps(parsed(data, parse_float=_number)).encode())


def _build(data: bytes) -> TaskGraph:
    try:
        document = DOCUMENT.decode(data)
    except msgspec.MsgspecError as error:
        raise NotSmooth from error
    if any(data.count(b'"%s"' % key.encode()) != 1 for key in DOCUMENT_KEYS) and repeated_keys(data):
        raise NotSmooth
    start = locate(data, ("all_tasks",))
    tasks = bytes(OBJECT.decode(data)["all_tasks"])
    builder = Builder()
    builder.add(b"[]" if tasks == b"null" else tasks)
    return builder.finish(document, data[:start] + b"[]" + data[start + len(tasks) :])


def _number(text: str) -> float | int:
    number = float(text)
    return int(number) if number.is_integer() else number


_BYTE = re.compile(r" \(byte (\d+)\)")
_SURROGATE = re.compile(rb"\\u[dD]")


def _reject_malformed(data: bytes) -> None:
    """Rejects what is no JSON text at all, with the place where it stops being one."""
    if not data.strip():
        raise Rejected(_malformed(data, 0, "the file is empty"))
    try:
        data.decode("utf-8")
        ANY.decode(data)
        if _SURROGATE.search(data):
            UNTYPED.decode(data)  # the quick decoder passes over halves of surrogate pairs
    except UnicodeDecodeError as error:
        raise Rejected(_malformed(data, error.start, "the text is not valid UTF-8")) from error
    except RecursionError as error:
        raise Rejected(_malformed(data, None, "the JSON nests too deep to be a task graph")) from error
    except msgspec.ValidationError:
        pass  # a number beyond what the decoder holds: the schema's business
    except msgspec.DecodeError as error:
        raise Rejected(_explained(data, error)) from error


def _explained(data: bytes, error: msgspec.DecodeError) -> Problem:
    """The decoder's error as a problem with a position."""
    byte = _BYTE.search(str(error))
    if byte is None:
        return _malformed(data, len(data), "the JSON is truncated")
    message = _BYTE.sub("", str(error)).removeprefix("JSON is malformed: ")
    return _malformed(data, int(byte.group(1)), message)


def _malformed(data: bytes, offset: int | None, message: str) -> Problem:
    line, column = (None, None) if offset is None else position(data, offset)
    return Problem(
        kind=ProblemKind.MALFORMED, artifact=Artifact.TASK_GRAPH, message=message, line=line, column=column
    )


def _reject_repeated_keys(data: bytes) -> None:
    """Rejects a document in which an object repeats a key, with the place of the second one.

    Looks closely only where the colons are more than the keys account for.
    """
    start, text = 0, data
    members = OBJECT.decode(data) if data.lstrip().startswith(b"{") else {}
    tasks = bytes(members.get("all_tasks", b""))
    if tasks.startswith(b"[") and data.count(b'"all_tasks"') == 1:
        start = locate(data, ("all_tasks",))
        text = data[:start] + b"[]" + data[start + len(tasks) :]
        for offset, task in elements(tasks):
            _reject_repetition(data, start + offset, task)
    if keys := repeated_keys(text):
        where = _second(data, keys[0])
        raise Rejected(_malformed(data, where, f"the key {keys[0]!r} stands twice in one object"))


def _reject_repetition(data: bytes, offset: int, task: bytes) -> None:
    try:
        suspicious = task.count(b":") != colons_of_objects(b"[" + task + b"]", deep=True)
    except msgspec.MsgspecError:  # no object, or keys that are no text: a violation, told as such
        suspicious = True
    if suspicious and (keys := repeated_keys(task)):
        where = offset + _second(task, keys[0])
        raise Rejected(_malformed(data, where, f"the key {keys[0]!r} stands twice in one object"))


def _second(text: bytes, key: str) -> int:
    """Where a key stands for the second time in a text, in bytes."""
    token = re.compile(rb'"%s"\s*:' % re.escape(key.encode("utf-8", "surrogatepass")))
    return next((match.start() for match in itertools.islice(token.finditer(text), 1, None)), 0)


def _problems(data: bytes, violations: list[Violation], more: int) -> Iterator[Problem]:
    """The violations as problems; the last one says how many more there are."""
    for number, violation in enumerate(violations, start=1):
        line, column = position(data, violation.offset)
        again = f" (and {violation.again:,} more like it)" if violation.again else ""
        rest = f"; {more:,} more violations are not listed" if more and number == len(violations) else ""
        yield Problem(
            kind=ProblemKind.SCHEMA,
            artifact=Artifact.TASK_GRAPH,
            message=f"{violation.message}{again}{rest}",
            code=violation.code,
            line=line,
            column=column,
            pointer=violation.pointer,
        )
