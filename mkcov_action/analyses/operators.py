"""Operators: the layer calls of the model that a rank's tasks carry out, and the layers they are in."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from operator import itemgetter
from typing import TypeVar

from mkcov_action.analyses.families import layer_of
from mkcov_action.finding import Operator
from mkcov_action.kernel_source import Origin
from mkcov_action.megakernel import Rank
from mkcov_action.task_graph import INVALID_EVENT, TaskGraph

_FIRST = 2  # tasks 0 and 1 are the runtime's own
_ATTACHED = frozenset({Origin.MODEL, Origin.SHUFFLED})

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """One layer call of the model. `inputs` and `outputs` are tensor names in slot order.

    `first` is the smallest id of its `tasks` tasks. `layer` is the number in the names of its model
    and shuffled tensors, else that of the nearest call with a smaller first id that has one, else
    None. The events are the ids that its tasks wait for and trigger, in the order of task ids,
    without the one that stands for none.
    """

    operator: Operator
    type_number: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    first: int
    tasks: int
    layer: int | None
    dependent_events: tuple[int, ...]
    trigger_events: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operators:
    """The layer calls of a rank in the order of their first tasks.

    `operator_of` is a column by task id: the index of its call, -1 for tasks 0 and 1.
    """

    calls: tuple[OperatorCall, ...]
    operator_of: array[int]


def operators_of(rank: Rank) -> Operators:
    """The operators of an audited rank.

    Calls of one kind may differ in their tensors' names, or in nothing but their events (scratch is
    shared, and forks interleave ids). So: a key is a type, a variant and tensor names in slot order.
    Among the tasks of a key with equal operands (offset, dims) and equal metadata the distinct
    (dependent, trigger) pairs are numbered in the order of ids, and the k-th belongs to the key's
    k-th call.
    """
    graph = rank.graph
    twins, twin_of = _numbered(_likeness(graph))
    events = graph.dependent_event[_FIRST:], graph.trigger_event[_FIRST:]
    shares, share_of = _numbered(zip(twin_of, *events, strict=True))  # what twins leave to one call
    twin_of_share, *events_of_share = zip(*shares, strict=True) if shares else ((), (), ())
    seen = [count() for _ in twins]
    place = map(next, map(seen.__getitem__, twin_of_share))
    keys = _keys(graph, twins)
    calls, call_of_share = _numbered(zip(map(keys.__getitem__, twin_of_share), place, strict=True))
    operator_of = array("i", [-1] * min(_FIRST, len(graph)))
    operator_of.extend(map(call_of_share.__getitem__, share_of))
    return Operators(
        tuple(
            OperatorCall(
                operator=Operator(rank.type_name(number), variant),
                type_number=number,
                inputs=graph.tensor_lists[inputs],
                outputs=graph.tensor_lists[outputs],
                first=first,
                tasks=tasks,
                layer=layer,
                dependent_events=dependent,
                trigger_events=trigger,
            )
            for ((number, variant, inputs, outputs), _), first, tasks, layer, dependent, trigger in zip(
                calls,
                _first_places(operator_of, len(calls)),
                _sizes(operator_of, len(calls)),
                _layers(rank, [key for key, _ in calls]),
                *(_gathered(call_of_share, event_ids, len(calls)) for event_ids in events_of_share),
                strict=True,
            )
        ),
        operator_of,
    )


def _numbered(items: Iterable[_T]) -> tuple[list[_T], array[int]]:
    """The distinct items in the order in which they first come, and for each item its place there."""
    numbers: defaultdict[_T, int] = defaultdict(count().__next__)
    places = array("i", map(numbers.__getitem__, items))
    return list(numbers), places


def _likeness(graph: TaskGraph) -> Iterator[tuple[int, ...]]:
    """Of each task what its twins share: type, variant, tiles of inputs and outputs, metadata."""
    tiles = _tiles(graph)
    return zip(
        graph.task_type[_FIRST:],
        graph.variant_id[_FIRST:],
        map(tiles.__getitem__, graph.inputs[_FIRST:]),
        map(tiles.__getitem__, graph.outputs[_FIRST:]),
        *(column[_FIRST:] for column in graph.metadata.values()),
        strict=True,
    )


def _tiles(graph: TaskGraph) -> Sequence[int]:
    """For each operand list the first one that agrees with it in tensors, offsets and dims."""
    distinct, tile_of = _numbered(map(itemgetter(0, 1, 3), graph.operands))
    lists: Iterable[tuple[int, ...]] = graph.operand_lists
    if len(distinct) < len(graph.operands):
        lists = (tuple(map(tile_of.__getitem__, operands)) for operands in lists)
    first: dict[tuple[int, ...], int] = {}
    return [first.setdefault(operands, index) for index, operands in enumerate(lists)]


_Key = tuple[int, int, int, int]
"""Type number, variant, and the tensor lists of inputs and outputs."""


def _keys(graph: TaskGraph, twins: Iterable[tuple[int, ...]]) -> list[_Key]:
    """The key of the operators that twins belong to."""
    names = graph.tensor_list_of
    return [
        (number, variant, names[inputs], names[outputs]) for number, variant, inputs, outputs, *_ in twins
    ]


def _layers(rank: Rank, keys: Iterable[_Key]) -> Iterator[int | None]:
    """The layer of each call: its own, else that of the call before it."""
    lists = rank.graph.tensor_lists
    numbers = {
        name: layer_of(name)
        for name, declaration in rank.declarations.items()
        if declaration.origin in _ATTACHED
    }
    layer = None
    for _, _, inputs, outputs in keys:
        own = Counter(
            number for name in (*lists[inputs], *lists[outputs]) if (number := numbers.get(name)) is not None
        )
        if own:  # a tensor of another layer may have strayed in: most of them tell
            ((layer, _),) = own.most_common(1)
        yield layer


def _first_places(operator_of: array[int], calls: int) -> list[int]:
    """Where each call first stands."""
    first = dict(zip(reversed(operator_of), range(len(operator_of) - 1, -1, -1), strict=True))
    return [first[call] for call in range(calls)]


def _sizes(operator_of: array[int], calls: int) -> list[int]:
    """How many tasks each call has."""
    tasks = Counter(operator_of)
    return [tasks[call] for call in range(calls)]


def _gathered(call_of: Iterable[int], event_ids: Iterable[int], calls: int) -> list[tuple[int, ...]]:
    """The distinct events of each call, in order."""
    found: list[list[int]] = [[] for _ in range(calls)]
    for call, event in dict.fromkeys(zip(call_of, event_ids, strict=True)):
        if event != INVALID_EVENT:
            found[call].append(event)
    return list(map(tuple, found))
