"""Positions in JSON text: from a byte or a path to the line and column an editor shows.

Only what is reported is looked up: a document that reads well is never walked.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

PathStep = str | int

_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_GAP = re.compile(rb"[\s,]*")
_KEY = re.compile(rb'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*', re.DOTALL)


def position(data: bytes, offset: int) -> tuple[int, int]:
    """The 1-based line and column (in characters) of a byte offset."""
    offset = max(0, min(offset, len(data)))
    start = data.rfind(b"\n", 0, offset) + 1
    line = data.count(b"\n", 0, start) + 1
    return line, len(data[start:offset].decode("utf-8", "replace")) + 1


_MOST_DIGITS = 4000  # Python refuses to read longer integers; no field of a task graph takes twenty


def parsed(text: bytes, *, parse_float: Callable[[str], float] | None = None) -> Any:
    """A JSON text as Python's objects, whatever the length of its numbers: longer ones are cut short."""
    return json.loads(text, parse_float=parse_float, parse_int=lambda digits: int(digits[:_MOST_DIGITS]))


def pointer(path: Sequence[PathStep]) -> str:
    """The JSON pointer (RFC 6901) of a path."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def locate(data: bytes, path: Sequence[PathStep]) -> int:
    """The byte offset of the value at `path`, or of the deepest value on the way that exists.

    `data` must be a well-formed document.
    """
    start, text = len(data) - len(data.lstrip()), data.strip()
    with contextlib.suppress(msgspec.MsgspecError):  # a key that is no text ends the way, too
        for step in path:
            found = _child(text, step)
            if found is None:
                break
            start, text = start + found[0], found[1]
    return start


def elements(array: bytes) -> Iterator[tuple[int, bytes]]:
    """Each element of an array's text: its byte offset in it, and its own text."""
    at = 1
    for raw in _ITEMS.decode(array):
        text = bytes(raw)
        at = _end_of(_GAP, array, at)
        yield at, text
        at += len(text)


def repeated_keys(text: bytes) -> tuple[str, ...]:
    """The keys that stand twice in one object anywhere in a well-formed JSON text, sorted.

    Slow (the standard library's parser): for texts that are already under suspicion.
    """
    repeated: set[str] = set()

    def note(pairs: list[tuple[str, object]]) -> None:
        counts = Counter(key for key, _ in pairs)
        repeated.update(key for key, count in counts.items() if count > 1)

    json.loads(text, object_pairs_hook=note, parse_int=str, parse_float=str)
    return tuple(sorted(repeated))


def _child(text: bytes, step: PathStep) -> tuple[int, bytes] | None:
    if isinstance(step, int):
        if not text.startswith(b"["):
            return None
        return next((item for index, item in enumerate(elements(text)) if index == step), None)
    return _member(text, step) if text.startswith(b"{") else None


def _member(text: bytes, key: str) -> tuple[int, bytes] | None:
    values = _MEMBERS.decode(text)
    at = 1
    while match := _KEY.match(text, at):
        name = json.loads(match.group(1))
        value = bytes(values[name])
        if name == key:
            return match.end(), value
        at = match.end() + len(value)
    return None


def _end_of(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
