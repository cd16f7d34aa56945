"""What the user wants to be shown: names, patterns and numbers turned into views; unknown ones are usage errors."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import click

from mkcov_action.analyses.events import decode
from mkcov_action.config import matcher
from mkcov_action.finding import Operator, ranges
from mkcov_action.neighbourhood.events import event_view
from mkcov_action.neighbourhood.model import View
from mkcov_action.neighbourhood.operators import layer_view, layers_of, operator_view, operators_of
from mkcov_action.neighbourhood.sight import Sight
from mkcov_action.neighbourhood.stats import stats_view
from mkcov_action.neighbourhood.tasks import task_view
from mkcov_action.neighbourhood.tensors import tensor_view, tensors_of
from mkcov_action.reporters.clean import NAME_LIMIT, clean, name

_GLOB = re.compile(r"[*?\[]")
_OPERATOR = re.compile(r"(?P<type>.+?)(?:(?::| variant )(?P<variant>[0-9]{1,9}))?", re.DOTALL)
_LONGEST = 200  # characters of a name that are compared when close ones are looked for
_PREFIX = "TASK_"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What was asked for; the rank's figures if nothing else was."""

    stats: bool
    tensors: Sequence[str]
    operators: Sequence[str]
    layers: Sequence[int]
    tasks: Sequence[int]
    events: Sequence[int]

    @property
    def named(self) -> bool:
        """Whether something is named that has a neighbourhood."""
        return any((self.tensors, self.operators, self.layers, self.tasks, self.events))


def views_of(sight: Sight, selection: Selection) -> tuple[View, ...]:
    """The views of all that was asked for, each thing once."""
    return tuple(_views(sight, selection))


def _views(sight: Sight, selection: Selection) -> Iterator[View]:
    if selection.stats or not selection.named:
        yield stats_view(sight)
    tensors = _each(selection.tensors, lambda given: _tensors(sight, given))
    yield from (tensor_view(sight, tensor) for tensor in tensors)
    operators = _each(selection.operators, lambda given: _operators(sight, given))
    yield from (operator_view(sight, operator) for operator in operators)
    layers = _each(selection.layers, lambda given: _layer(sight, given))
    yield from (layer_view(sight, layer) for layer in layers)
    tasks = _each(selection.tasks, lambda given: _number("--task", given, len(sight.graph)))
    yield from (task_view(sight, task) for task in tasks)
    events = _each(selection.events, lambda given: _event(sight, given))
    yield from (event_view(sight, event) for event in events)


S = TypeVar("S")


def _each(given: Iterable[S], find: Callable[[S], Iterable[T]]) -> list[T]:
    """All that is found, each once, before the first of it is looked at."""
    return list(dict.fromkeys(found for item in given for found in find(item)))


def _tensors(sight: Sight, given: str) -> list[str]:
    names = tensors_of(sight)
    if given in names:
        return [given]
    found = _matching(given, names, str)
    if not found:
        raise _unknown("--tensor", given, "tensor", names)
    return found


def _operators(sight: Sight, given: str) -> list[Operator]:
    operators = operators_of(sight)
    parts = _OPERATOR.fullmatch(given)
    wanted = given if parts is None else parts["type"]
    types = list(dict.fromkeys(operator.type_name for operator in operators))
    if wanted.isdecimal():  # a number, as the task graph and the line of a critical tensor have it
        wanted = sight.rank.type_name(int(wanted[:9]))
    exact = [each for each in types if wanted.upper() in {each.upper(), each.upper().removeprefix(_PREFIX)}]
    matching = exact or _matching(wanted, types, str) or _matching(f"{_PREFIX}{wanted}", types, str)
    if not matching:
        raise _unknown("--operator", wanted, "operator", types)
    found = sorted(operator for operator in operators if operator.type_name in matching)
    if parts is None or parts["variant"] is None:
        return found
    variants = [operator for operator in found if operator.variant == int(parts["variant"])]
    if not variants:
        have = ranges(operator.variant for operator in found)
        raise click.BadParameter(
            f"{clean(wanted, NAME_LIMIT)} has no variant {int(parts['variant'])} here, but {have}",
            param_hint="--operator",
        )
    return variants


def _matching(pattern: str, items: Sequence[T], key: Callable[[T], str]) -> list[T]:
    """What a glob matches, upper case or lower; nothing if it is none."""
    if not _GLOB.search(pattern):
        return []
    matches = matcher((pattern,))
    return [item for item in items if matches(key(item).lower())]


def _layer(sight: Sight, given: int) -> list[int]:
    layers = layers_of(sight)
    if given not in layers:
        have = f"layers {ranges(layers)}" if layers else "no layer that a name tells"
        raise click.BadParameter(f"there is no layer {given}, but {have}", param_hint="--layer")
    return [given]


def _event(sight: Sight, given: int) -> list[int]:
    """An event by its position, or by its id as the task graph has it: that is larger than any position."""
    parts = decode(given)
    if given >> 32 and parts is not None and parts.rank != sight.rank.number and not given >> 64:
        message = (
            f"{given} is event {parts.position} of rank {parts.rank}: --rank {parts.rank} shows that one"
        )
        raise click.BadParameter(message, param_hint="--event")
    return _number("--event", given if parts is None or given >> 64 else parts.position, len(sight.events))


def _number(option: str, given: int, size: int) -> list[int]:
    if given >= size:
        noun = option.removeprefix("--")
        have = f"{noun}s 0 to {size - 1}" if size else f"no {noun}s"
        raise click.BadParameter(f"there is no {noun} {given}, but {have}", param_hint=option)
    return [given]


def _unknown(option: str, given: str, noun: str, names: Sequence[str]) -> click.BadParameter:
    shown = clean(given, NAME_LIMIT) or '""'
    if _GLOB.search(given):
        return click.BadParameter(f"no {noun} of this rank matches {shown}", param_hint=option)
    folded = {each.lower(): each for each in names if len(each) <= _LONGEST}
    # What every name begins with says nothing of which is meant.
    plain = {each.removeprefix(_PREFIX.lower()): whole for each, whole in folded.items()}
    asked = given[:_LONGEST].lower().removeprefix(_PREFIX.lower())
    close = [plain[each] for each in difflib.get_close_matches(asked, plain, n=3)]
    hint = f"; did you mean {' or '.join(map(name, close))}?" if close else ""
    return click.BadParameter(f"{shown} is no {noun} of this rank{hint}", param_hint=option)
