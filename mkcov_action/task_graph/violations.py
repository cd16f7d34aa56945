"""What in a document breaks the schema: jsonschema judges, but only what the typed decoder refused."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import msgspec

from mkcov_action.json_text import PathStep, elements, locate, parsed, pointer
from mkcov_action.schema import load
from mkcov_action.task_graph.decode import EVENT, OBJECT, TASK, TENSORS
from mkcov_action.task_graph.model import METADATA_FIELDS

MOST_LISTED = 50
_MOST_JUDGED = 1000  # fragments: jsonschema takes a third of a millisecond for each
_MOST_SHOWN = 60  # characters of a value

Path = tuple[PathStep, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """One break of the schema, or `again` more of its sort; `offset` is the value's first byte.

    `code` is the same for all violations of one sort.
    """

    pointer: str
    offset: int
    message: str
    code: str
    again: int = 0


def violations_of(data: bytes) -> tuple[list[Violation], int]:
    """The violations of a well-formed document, one of each sort, most telling first.

    At most MOST_LISTED; the second value counts those that are not listed, each sort's own
    repetitions aside.
    """
    sorts: dict[str, Violation] = {}
    for violation in _document_violations(data):
        first = sorts.get(violation.code)
        sorts[violation.code] = replace(first, again=first.again + 1) if first else violation
    listed = sorted(sorts.values(), key=lambda violation: (violation.pointer.count("/"), violation.offset))
    rest = listed[MOST_LISTED:]
    return listed[:MOST_LISTED], sum(1 + violation.again for violation in rest)


def _document_violations(data: bytes) -> Iterator[Violation]:
    members = OBJECT.decode(data) if data.lstrip().startswith(b"{") else None
    if members is None:
        yield from _judge(data, 0, (), _schema())
        return
    lists = {key: bytes(raw) for key, raw in members.items()}
    # The lists' members are judged one by one below; here they only have to be lists.
    outline = {key: [] if text.startswith(b"[") else parsed(text) for key, text in lists.items()}
    for path, message, code in _errors(outline, _schema()):
        yield Violation(pointer(path), locate(data, path), message, code)
    for key, refuses, schema in (
        ("all_tasks", _refuses_task, _schema("task")),
        ("all_events", _refuses(EVENT), _schema("event")),
        ("first_tasks", _refuses_natural, _schema("natural")),
    ):
        if lists.get(key, b"").startswith(b"["):
            yield from _list_violations(data, key, lists[key], refuses, schema)


def _list_violations(
    data: bytes, key: str, text: bytes, refuses: Callable[[bytes], bool], schema: Any
) -> Iterator[Violation]:
    start = locate(data, (key,))
    judged = 0
    generation: tuple[int, frozenset[str]] | None = None
    for index, (offset, fragment) in enumerate(elements(text)):
        if refuses(fragment):
            judged += 1
            if judged <= _MOST_JUDGED:
                yield from _judge(fragment, start + offset, (key, index), schema)
            else:
                yield Violation(pointer((key, index)), start + offset, "more of the kind", "not judged")
        elif key == "all_tasks":
            fields = frozenset(OBJECT.decode(fragment)).intersection(METADATA_FIELDS)
            generation = generation or (index, fields)
            for name in sorted(fields ^ generation[1]):
                message = f"`{name}` stands in some tasks and not in others: one file has one generation"
                yield Violation(pointer((key, index)), start + offset, message, f"generation {name}")


def _refuses(decoder: msgspec.json.Decoder[Any]) -> Callable[[bytes], bool]:
    def refuses(text: bytes) -> bool:
        try:
            decoder.decode(text)
        except msgspec.MsgspecError:
            return True
        return False

    return refuses


def _refuses_task(text: bytes) -> bool:
    try:
        task = TASK.decode(text)
        TENSORS.decode(task.inputs)
        TENSORS.decode(task.outputs)
    except msgspec.MsgspecError:
        return True
    return task.trigger_event >= 2**64 or task.dependent_event >= 2**64


def _refuses_natural(text: bytes) -> bool:
    return re.fullmatch(rb"0|[1-9][0-9]{0,17}", text) is None


@cache
def _schema(definition: str = "") -> Any:
    """A validator of the whole schema or of one of its definitions."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - a tenth of a second, rarely needed

    schema = load("task_graph")
    if definition:
        schema = {**schema["$defs"][definition], "$defs": schema["$defs"]}
    return Draft202012Validator(schema)


def _judge(text: bytes, start: int, path: Path, validator: Any) -> Iterator[Violation]:
    """What jsonschema says of a fragment that starts at byte `start` of the document."""
    for inner, message, code in _errors(parsed(text), validator):
        yield Violation(pointer((*path, *inner)), start + locate(text, inner), message, f"{path[:1]}{code}")


def _errors(value: Any, validator: Any) -> Iterator[tuple[Path, str, str]]:
    for error in validator.iter_errors(value):
        path: Path = tuple(error.absolute_path)
        names = "/".join("*" if isinstance(step, int) else step for step in path)
        if error.validator == "required":
            for name in error.validator_value:
                if name not in error.instance and f"'{name}'" in error.message:
                    yield path, f"`{name}` is missing", f"{names} required {name}"
        else:
            yield (
                path,
                f"expected {_expected(error)}, found {_shown(error.instance)}",
                f"{names} {error.validator}",
            )


_TYPES = {
    "integer": "an integer",
    "string": "a string",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def _expected(error: Any) -> str:
    if error.validator == "type":
        types = error.validator_value
        return " or ".join(_TYPES[name] for name in ([types] if isinstance(types, str) else types))
    if error.validator == "minimum":
        return f"at least {error.validator_value}"
    if error.validator == "maximum":
        return f"at most {error.validator_value}"
    return str(error.message)


def _shown(value: object) -> str:
    """A value as JSON, cut to a short line."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**_MOST_SHOWN:
        return "an integer of more than 60 digits"
    pieces = json.JSONEncoder(ensure_ascii=True).iterencode(value)
    text = "".join(itertools.islice(pieces, _MOST_SHOWN + 1))
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]} …"
