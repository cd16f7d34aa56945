"""sarif-om's objects as JSON: its classes say how each attribute is spelled, this writes them.

The serialiser that belongs to sarif-om (jschema-to-python) takes 22 s for 10,000 results and drops a
`level` of "warning", because that is the class's default; code scanning reads a missing one by
the rule's default, which need not be the finding's own.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, NamedTuple

import attr

_ALWAYS = frozenset({"level"})
_FIRST = ("$schema", "version")
"""What tells the format, ahead of what may be megabytes."""


class _Property(NamedTuple):
    attribute: str
    name: str
    default: object
    always: bool


def dumps(log: object) -> str:
    """A sarif-om object as JSON text, pure ASCII, with a final newline."""
    return json.dumps(_plain(log), ensure_ascii=True, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """What json can write of a value; what is None or the class's default is left out."""
    if value is None or isinstance(value, (str, int)):
        return value
    kind: Any = type(value)
    if attr.has(kind):
        return {
            each.name: _plain(inner)
            for each in _properties(kind)
            if (inner := getattr(value, each.attribute)) is not None
            and (each.always or inner != each.default)
        }
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


@cache
def _properties(kind: Any) -> tuple[_Property, ...]:
    properties = [
        _Property(
            attribute=field.name,
            name=(name := field.metadata["schema_property_name"]),
            default=_default(field.default),
            always=name in _ALWAYS,
        )
        for field in attr.fields(kind)
    ]
    first = [each for name in _FIRST for each in properties if each.name == name]
    return (*first, *(each for each in properties if each not in first))


def _default(default: Any) -> object:
    """A class's default; a list is given by what makes it."""
    return default.factory() if hasattr(default, "factory") else default
