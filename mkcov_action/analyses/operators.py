"""Operators: the layer calls of the model that a rank's tasks carry out, and the layers they are in."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from mkcov_action.analyses.families import layer_of
from mkcov_action.analyses.runs import runs_of
from mkcov_action.finding import Operator
from mkcov_action.kernel_source import Origin
from mkcov_action.megakernel import Rank
from mkcov_action.task_graph import INVALID_EVENT, TaskGraph

_FIRST = 2  # tasks 0 and 1 are the runtime's own
_ATTACHED = frozenset({Origin.MODEL, Origin.SHUFFLED})


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


_Pair = tuple[int, int]
"""The ids of a dependent and a trigger event."""

_Key = tuple[int, int, int, int]
"""Type number, variant, and the tensor lists of inputs and outputs."""

_Tiles = tuple[int, ...]
"""The operand lists and the metadata of a task: tasks of a key that agree in them are twins."""


class _Share(NamedTuple):
    """Consecutive tasks that belong to one call.

    Tasks are numbered among those of the key that have equal `twins`.
    """

    key: _Key
    twins: Hashable
    tasks: int


@dataclass(slots=True)
class _Call:
    """A call that is being collected; its pairs in the order of ids."""

    key: _Key
    index: int
    first: int
    tasks: int = 0
    pairs: dict[_Pair, None] = field(default_factory=dict)


def operators_of(rank: Rank) -> Operators:
    """The operators of an audited rank.

    Calls of one kind may differ in their tensors' names, or in nothing but their events (scratch is
    shared, and forks interleave ids). So: a key is a type, a variant and tensor names in slot order.
    Among the tasks of a key with equal operands (offset, dims) and equal metadata the distinct
    (dependent, trigger) pairs are numbered in the order of ids, and the k-th belongs to the key's
    k-th call. Where a tile strayed, some tasks of a key come more or less often than others: those
    belong to the call that their events or ids are of, as `_Strays` tells.

    Done by runs of equal events: their content repeats from layer to layer, and each distinct one
    is looked at once.
    """
    graph = rank.graph
    contents = _Contents(graph)
    numbers = _numbered(graph, contents)
    calls: dict[tuple[_Key, int], _Call] = {}
    operator_of = array("i", [-1]) * min(_FIRST, len(graph))
    for run in contents.runs:
        pair = graph.dependent_event[run.start], graph.trigger_event[run.start]
        for key, twins, tasks in contents.of(run):
            number = numbers[key, twins][pair]
            call = calls.get((key, number))
            if call is None:
                call = calls[key, number] = _Call(key, len(calls), len(operator_of))
            call.tasks += tasks
            call.pairs[pair] = None
            operator_of.extend(array("i", [call.index]) * tasks)
    layers = _layers(rank, calls.values())
    described = (_described(rank, call, layer) for call, layer in zip(calls.values(), layers, strict=True))
    return Operators(tuple(described), operator_of)


_Numbers = dict[tuple[_Key, Hashable], dict[_Pair, int]]
"""For each key and twins the number of the key's call that they belong to, by their pair."""


def _numbered(graph: TaskGraph, contents: _Contents) -> _Numbers:
    numbers: defaultdict[tuple[_Key, Hashable], dict[_Pair, int]] = defaultdict(dict)
    for run in contents.runs:
        pair = graph.dependent_event[run.start], graph.trigger_event[run.start]
        for key, twins, _ in contents.of(run):
            seen = numbers[key, twins]
            seen.setdefault(pair, len(seen))
    counts: defaultdict[_Key, Counter[int]] = defaultdict(Counter)
    for (key, twins), seen in numbers.items():
        counts[key][len(seen)] += len(twins) if isinstance(twins, frozenset) else 1
    usual = {
        key: max(found, key=lambda count: (found[count], count))
        for key, found in counts.items()
        if len(found) > 1
    }
    return _Strays(usual, numbers).brought_home(graph, contents) if usual else numbers


class _Strays:
    """Tasks of a key that come more or less often than most of it, brought to the calls of these."""

    def __init__(self, usual: Mapping[_Key, int], numbers: _Numbers) -> None:
        self._usual = usual
        self._numbers = numbers
        self._by_event: dict[tuple[object, ...], set[int]] = defaultdict(set)
        self._first: defaultdict[_Key, dict[int, int]] = defaultdict(dict)

    def brought_home(self, graph: TaskGraph, contents: _Contents) -> _Numbers:
        """All numbers, of which those of strays are looked up by pair, trigger, dependent event, or ids."""
        strays: dict[tuple[_Key, Hashable], dict[_Pair, int]] = defaultdict(dict)
        for run in contents.runs:
            pair = graph.dependent_event[run.start], graph.trigger_event[run.start]
            task = run.start
            for key, twins, tasks in contents.of(run):
                seen = self._numbers[key, twins]
                if len(seen) == self._usual.get(key):
                    self._note(key, seen[pair], pair, task)
                elif key in self._usual:
                    strays[key, twins].setdefault(pair, task)
                task += tasks
        return self._numbers | {
            (key, twins): {pair: self._home(key, pair, task) for pair, task in pairs.items()}
            for (key, twins), pairs in strays.items()
        }

    def _note(self, key: _Key, number: int, pair: _Pair, task: int) -> None:
        self._first[key].setdefault(number, task)
        for place in _events(key, pair):
            self._by_event[place].add(number)

    def _home(self, key: _Key, pair: _Pair, task: int) -> int:
        for place in _events(key, pair):
            numbers = self._by_event.get(place, ())
            if len(numbers) == 1:
                return next(iter(numbers))
        first = list(self._first[key].values())  # ascending, as the numbers are
        return max(bisect_right(first, task) - 1, 0)


def _events(key: _Key, pair: _Pair) -> Iterator[tuple[object, ...]]:
    """By what a task of a key is known: its pair, and each of its events."""
    yield key, pair
    yield key, "trigger", pair[1]
    yield key, "dependent", pair[0]


class _Contents:
    """What runs of tasks with equal events hold. Each distinct content is split into shares once."""

    def __init__(self, graph: TaskGraph) -> None:
        tiles = _tiles(graph)
        operands = [graph.inputs, graph.outputs]
        if tiles is not None:
            operands = [array("I", map(tiles.__getitem__, column)) for column in operands]
        self._graph = graph
        self._columns = [graph.task_type, graph.variant_id, *operands, *graph.metadata.values()]
        self.runs = runs_of(graph.dependent_event, graph.trigger_event, first=_FIRST)
        models: dict[tuple[bytes, ...], range] = {}
        self._model_of = {
            run: models.setdefault(
                tuple([column[run.start : run.stop].tobytes() for column in self._columns]), run
            )
            for run in self.runs
        }
        self._shares = dict(self._split(models.values()))

    def of(self, run: range) -> Sequence[_Share]:
        """The tasks of a run by the call that they belong to."""
        return self._shares[self._model_of[run]]

    def _split(self, runs: Iterable[range]) -> Iterator[tuple[range, Sequence[_Share]]]:
        pieces = {run: self._pieces(run) for run in runs}
        sets: defaultdict[_Key, set[frozenset[_Tiles]]] = defaultdict(set)
        for found in pieces.values():
            for key, tiles in found.items():
                sets[key].add(tiles)
        mixed = {key for key, tiles in sets.items() if sum(map(len, tiles)) > len(frozenset().union(*tiles))}
        for run, found in pieces.items():
            if len(found) == 1 and mixed.isdisjoint(found):
                # All twins of each task come in runs like this one: these tasks are numbered as one.
                ((key, tiles),) = found.items()
                yield run, (_Share(key, tiles, len(run)),)
            else:
                yield (
                    run,
                    [
                        _Share(key, tiles if key in mixed else found[key], 1)
                        for key, tiles in zip(self._keys(run), self._tiles(run), strict=True)
                    ],
                )

    def _pieces(self, run: range) -> dict[_Key, frozenset[_Tiles]]:
        """For each key in a run what its tasks share with their twins."""
        keys = list(self._keys(run))
        if len(set(keys)) == 1:
            return {keys[0]: frozenset(self._tiles(run))}
        pieces: defaultdict[_Key, set[_Tiles]] = defaultdict(set)
        for key, tiles in zip(keys, self._tiles(run), strict=True):
            pieces[key].add(tiles)
        return {key: frozenset(tiles) for key, tiles in pieces.items()}

    def _keys(self, run: range) -> Iterator[_Key]:
        names = self._graph.tensor_list_of.__getitem__
        number, variant, inputs, outputs, *_ = self._slices(run)
        return zip(number, variant, map(names, inputs), map(names, outputs), strict=True)

    def _tiles(self, run: range) -> Iterator[_Tiles]:
        _, _, *tiles = self._slices(run)
        return zip(*tiles, strict=True)

    def _slices(self, run: range) -> list[array[int]]:
        return [column[run.start : run.stop] for column in self._columns]


def _tiles(graph: TaskGraph) -> Sequence[int] | None:
    """For each operand list the first that agrees with it in tensors, offsets and dims.

    None if no two lists do: it is the list itself.
    """
    first_tile: dict[tuple[object, ...], int] = {}
    tiles = [
        first_tile.setdefault(tile, index)
        for index, tile in enumerate(map(itemgetter(0, 1, 3), graph.operands))
    ]
    lists: Iterable[tuple[int, ...]] = graph.operand_lists
    if len(first_tile) < len(tiles):
        lists = (tuple(map(tiles.__getitem__, operands)) for operands in lists)
    first_list: dict[tuple[int, ...], int] = {}
    found = [first_list.setdefault(operands, index) for index, operands in enumerate(lists)]
    return found if len(first_list) < len(found) else None


def _layers(rank: Rank, calls: Iterable[_Call]) -> Iterator[int | None]:
    """The layer of each call: its own, else that of the call before it."""
    lists = rank.graph.tensor_lists
    numbers = {
        name: layer_of(name)
        for name, declaration in rank.declarations.items()
        if declaration.origin in _ATTACHED
    }
    layer = None
    for call in calls:
        _, _, inputs, outputs = call.key
        found = Counter(numbers.get(name) for name in (*lists[inputs], *lists[outputs]))
        del found[None]
        if found:  # a tensor of another layer may have strayed in: the majority tells
            ((layer, _),) = found.most_common(1)
        yield layer


def _described(rank: Rank, call: _Call, layer: int | None) -> OperatorCall:
    number, variant, inputs, outputs = call.key
    dependent, trigger = zip(*call.pairs, strict=True)
    return OperatorCall(
        operator=Operator(rank.type_name(number), variant),
        type_number=number,
        inputs=rank.graph.tensor_lists[inputs],
        outputs=rank.graph.tensor_lists[outputs],
        first=call.first,
        tasks=call.tasks,
        layer=layer,
        dependent_events=_without_none(dependent),
        trigger_events=_without_none(trigger),
    )


def _without_none(event_ids: Iterable[int]) -> tuple[int, ...]:
    return tuple(event for event in dict.fromkeys(event_ids) if event != INVALID_EVENT)
