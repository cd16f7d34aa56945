"""Who triggers and who awaits each event: decoded ids, and tasks collapsed to pairs of events.

A graph of 160,000 tasks has some 3,000 distinct (dependent, trigger) pairs; what comes after goes by
pairs and events, never by task and task.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial, reduce
from itertools import accumulate, chain, compress, count, pairwise
from operator import ne, or_
from typing import NamedTuple

from mkcov_action.task_graph import INVALID_EVENT, TaskGraph

NO_EVENT = -1
"""Stands where a task waits for nothing or triggers nothing."""

UNRESOLVED = -2
"""Stands where an id cannot be right and no event can be told."""

_TAG = 0x1E00
_FIRST = 1  # task 0 ends the kernel, it is no part of an iteration
_LAUNCHER = 1  # the task that triggers the launch of all others
_LAUNCH = 1  # the position of that event

TaskKey = tuple[int, int]
"""A rank's number and a task id."""


class EventId(NamedTuple):
    """The three parts of an event id: 16 bits of tag, 16 of rank, 32 of position.

    Source: mirage include/mirage/persistent_kernel/runtime_header.h, "EVENT: nvshmem_tag: 16,
    owner_node: 16, event_idx: 32"; persistent_kernel.cuh, get_event_gpu_id.
    """

    tag: int
    rank: int
    position: int

    @property
    def tagged(self) -> bool:
        """Whether a put of another rank triggers the event (EVENT_NVSHMEM_TAG)."""
        return self.tag == _TAG


def decode(event_id: int) -> EventId | None:
    """The parts of an event id; None for the id that stands for no event.

    That one first: its bits hold the tag's.
    """
    if event_id == INVALID_EVENT:
        return None
    return EventId(event_id >> 48, event_id >> 32 & 0xFFFF, event_id & 0xFFFFFFFF)


class Side(StrEnum):
    """Which of a task's two events is meant, as the task graph spells it."""

    DEPENDENT = "dependent_event"
    TRIGGER = "trigger_event"


class Fault(StrEnum):
    """Why an event id cannot be right."""

    MISSING = "missing"  # none, where there must be one; the only fault that leaves order a meaning
    MALFORMED_TAG = "malformed-tag"  # tag bits that are neither the tag nor nothing
    LOST_TAG = "lost-tag"  # a put's trigger, or what waits for puts, without the tag
    STRAY_TAG = "stray-tag"  # the tag on what no put triggers
    OUT_OF_RANGE = "out-of-range"  # no such position in the event table
    WRONG_RANK = "wrong-rank"  # another rank's event where it must be one's own, or the reverse


class Pair(NamedTuple):
    """The tasks of one rank that wait for one event and trigger one event.

    `dependent` and `trigger` are events of the EventGraph, NO_EVENT or UNRESOLVED; the ids are the
    file's. `put` tells tasks that signal other ranks. `first` and `last` are task ids.
    """

    rank: int
    dependent: int
    trigger: int
    tasks: int
    first: int
    last: int
    dependent_id: int
    trigger_id: int
    put: bool


@dataclass(frozen=True, slots=True)
class InvalidReference:
    """An event id that cannot be right, and the tasks of the rank that name it on that side."""

    rank: int
    side: Side
    event_id: int
    fault: Fault
    tasks: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class EventGraph:
    """The events of one rank, or of all ranks of a graph, and the pairs of tasks between them.

    Events of all ranks are numbered on: event `position` of a rank is `starts[rank] + position`.
    Columns by event: `num_triggers` is how many triggers it waits for, `triggers` how many tasks
    trigger it, `producers` and `consumers` are the indices of the pairs that trigger and await it.
    Of one rank alone, a put counts as a trigger of the rank's own event of that position: the ranks
    are alike, so as many puts arrive as leave. Of all ranks, it counts where it arrives.

    By rank: `sizes` of the event tables, `tasks` in the file, `launched` (the ids that event 1
    launches), and `pair_of` (a column by task id: its pair, counted from `first_pair`; -1 for
    task 0). Tasks of a pair share its triggers; task 0 belongs to none.

    `puts` counts the tasks of a rank that put under a tag by (rank, target rank, position). `tagged`
    are the events triggered or awaited under a tag. `invalid` are the ids that cannot be right, in
    the order of ranks, sides and first tasks.
    """

    ranks: tuple[int, ...]
    starts: Mapping[int, int]
    sizes: Mapping[int, int]
    tasks: Mapping[int, int]
    launched: Mapping[int, range]
    num_triggers: array[int]
    triggers: array[int]
    pairs: tuple[Pair, ...]
    producers: tuple[tuple[int, ...], ...]
    consumers: tuple[tuple[int, ...], ...]
    first_pair: Mapping[int, int]
    pair_count: Mapping[int, int]
    pair_of: Mapping[int, array[int]]
    puts: Mapping[tuple[int, int, int], int]
    tagged: frozenset[int]
    invalid: tuple[InvalidReference, ...]

    def __len__(self) -> int:
        return len(self.num_triggers)

    @property
    def too_few(self) -> frozenset[int]:
        """The events that wait for more triggers than they get."""
        both = zip(self.triggers, self.num_triggers, strict=True)
        return frozenset(event for event, (gets, waits) in enumerate(both) if gets < waits)

    @property
    def too_many(self) -> frozenset[int]:
        """The events that get more triggers than they wait for."""
        both = zip(self.triggers, self.num_triggers, strict=True)
        return frozenset(event for event, (gets, waits) in enumerate(both) if gets > waits)

    @property
    def orderless(self) -> bool:
        """Whether an id is so wrong that nothing can be said about order."""
        return any(reference.fault is not Fault.MISSING for reference in self.invalid)

    @property
    def ends(self) -> tuple[int, ...]:
        """The last event of each rank, which ends the iteration."""
        return tuple(self.starts[rank] + self.sizes[rank] - 1 for rank in self.ranks if self.sizes[rank])

    def launch(self, rank: int) -> int:
        """The event that launches the rank's tasks; UNRESOLVED if its table has none."""
        return self.starts[rank] + _LAUNCH if self.sizes[rank] > _LAUNCH else UNRESOLVED

    def place(self, event: int) -> tuple[int, int]:
        """The rank and the position of an event."""
        rank = next(rank for rank in reversed(self.ranks) if self.starts[rank] <= event)
        return rank, event - self.starts[rank]

    def pairs_of(self, rank: int) -> tuple[Pair, ...]:
        """The pairs of one rank, in the order of their first tasks."""
        start = self.first_pair[rank]
        return self.pairs[start : start + self.pair_count[rank]]

    def pair(self, task: TaskKey) -> Pair:
        """The pair of a task; IndexError or KeyError for one that is not in an iteration."""
        rank, number = task
        index = self.pair_of[rank][number]
        if index < 0:
            raise IndexError(number)
        return self.pairs[self.first_pair[rank] + index]


class _Raw(NamedTuple):
    """A pair as the file has it; `place` is its index among the rank's."""

    dependent_id: int
    trigger_id: int
    put: bool
    place: int
    first: int
    last: int = 0
    tasks: int = 0


@dataclass(frozen=True, slots=True)
class _Part:
    """What one rank brings into an EventGraph."""

    rank: int
    num_triggers: array[int]
    tasks: int
    launched: range
    raw: Sequence[_Raw]
    pair_of: array[int]
    missing: tuple[InvalidReference, ...]


def events_of(graph: TaskGraph, rank_number: int, *, put_types: Collection[int] | None = None) -> EventGraph:
    """The events of one rank by itself.

    `put_types` are the type numbers whose tasks signal other ranks: exactly their triggers are
    tagged (mirage persistent_kernel.cuh, execute_worker). Without them the tag tells the put.
    """
    puts = frozenset(put_types or ()).intersection(graph.task_type)
    pairs: dict[tuple[int, int, bool], _Raw] = {}
    pair_of = array("i", [-1] * min(len(graph), _FIRST))
    runs = _runs(graph, puts)
    for start, stop in pairwise(runs):
        waits, fires = graph.dependent_event[start], graph.trigger_event[start]
        put = is_tagged(fires) if put_types is None else graph.task_type[start] in puts
        pair = pairs.get((waits, fires, put)) or _Raw(waits, fires, put, len(pairs), start)
        pairs[waits, fires, put] = pair._replace(tasks=pair.tasks + stop - start, last=stop - 1)
        pair_of.extend(array("i", [pair.place]) * (stop - start))
    table = graph.events
    launched = range(0)
    if len(table) > _LAUNCH:
        start, stop = table.first_task_id[_LAUNCH], table.last_task_id[_LAUNCH]
        launched = range(max(start, _LAUNCHER + 1), min(stop, len(graph)))
    missing = tuple(_missing(graph, rank_number, runs))
    raw = tuple(pairs.values())
    part = _Part(rank_number, table.num_triggers, len(graph), launched, raw, pair_of, missing)
    return _graph([part], together=False)


def joined(graphs: Sequence[EventGraph]) -> EventGraph:
    """The events of all ranks of one graph, where a put triggers the event of the rank that it targets.

    Takes the graphs of single ranks, each rank once; a put to a rank that is not among them cannot
    be right.
    """
    return _graph([_part(graph) for graph in graphs], together=True)


def _part(graph: EventGraph) -> _Part:
    (rank,) = graph.ranks
    raw = [
        _Raw(pair.dependent_id, pair.trigger_id, pair.put, index, pair.first, pair.last, pair.tasks)
        for index, pair in enumerate(graph.pairs)
    ]
    missing = tuple(reference for reference in graph.invalid if reference.fault is Fault.MISSING)
    return _Part(
        rank, graph.num_triggers, graph.tasks[rank], graph.launched[rank], raw, graph.pair_of[rank], missing
    )


def _runs(graph: TaskGraph, puts: Collection[int]) -> list[int]:
    """Where from _FIRST on tasks stop being alike in both events and in being puts; then the end.

    The generator writes an operator's tasks in a row, so that there are few.
    """
    alike: list[Sequence[int]] = [graph.dependent_event, graph.trigger_event]
    if puts:
        alike.append(bytes(map(puts.__contains__, graph.task_type)))
    changes = [map(ne, column[_FIRST:], column[_FIRST + 1 :]) for column in alike]
    changed = reduce(partial(map, or_), changes)
    return [*range(_FIRST, min(len(graph), _FIRST + 1)), *compress(count(_FIRST + 1), changed), len(graph)]


def is_tagged(event_id: int) -> bool:
    """Whether an event id carries the tag of events that other ranks trigger."""
    parts = decode(event_id)
    return parts is not None and parts.tagged


def _missing(graph: TaskGraph, rank: int, runs: Sequence[int]) -> Iterator[InvalidReference]:
    """Tasks that wait for nothing without being listed as first tasks, and tasks that trigger nothing.

    A list of first tasks that is empty tells nothing. Tasks 0 and 1 are the runtime's own.
    """
    listed = frozenset(graph.first_tasks)
    columns = {Side.DEPENDENT: graph.dependent_event, Side.TRIGGER: graph.trigger_event}
    for side, column in columns.items():
        tasks = [
            task
            for start, stop in pairwise(runs)
            if column[start] == INVALID_EVENT and (listed or side is Side.TRIGGER)
            for task in range(max(start, _LAUNCHER + 1), stop)
            if side is Side.TRIGGER or task not in listed
        ]
        if tasks:
            yield InvalidReference(rank, side, INVALID_EVENT, Fault.MISSING, len(tasks), tasks[0], tasks[-1])


class _Judge:
    """Tells what is wrong with the event ids of one rank.

    `sizes` are the lengths of the event tables by rank: of all ranks, or of the one that is alone
    and knows of the others only that their tables have the length of its own.
    """

    def __init__(self, part: _Part, sizes: Mapping[int, int], *, together: bool) -> None:
        self._rank = part.rank
        self._sizes = sizes
        self._together = together
        triggers = [(pair.put, decode(pair.trigger_id)) for pair in part.raw]
        self._put = {parts.position for put, parts in triggers if put and parts}
        self._local = {
            parts.position
            for put, parts in triggers
            if not put and parts and self._fault_of_trigger(parts, put=put) is None
        }

    def owner(self, parts: EventId) -> int:
        """The rank whose event stands for a faultless id."""
        return parts.rank if self._together else self._rank

    def fault_of(self, parts: EventId, side: Side, *, put: bool) -> Fault | None:
        """What is wrong with an id that stands on this side of tasks that put or do not."""
        if side is Side.TRIGGER:
            return self._fault_of_trigger(parts, put=put)
        return self._fault_of_dependent(parts)

    def _fault_of_trigger(self, parts: EventId, *, put: bool) -> Fault | None:
        if parts.tag not in {0, _TAG}:
            return Fault.MALFORMED_TAG
        if put != parts.tagged:
            return Fault.LOST_TAG if put else Fault.STRAY_TAG
        if not put:
            return self._fault_of_own(parts)
        if parts.rank == self._rank or (self._together and parts.rank not in self._sizes):
            return Fault.WRONG_RANK
        return None if parts.position < self._sizes[self.owner(parts)] else Fault.OUT_OF_RANGE

    def _fault_of_dependent(self, parts: EventId) -> Fault | None:
        if parts.tag not in {0, _TAG}:
            return Fault.MALFORMED_TAG
        if parts.tagged and parts.position in self._local - self._put:
            return Fault.STRAY_TAG
        if not parts.tagged and parts.position in self._put - self._local:
            return Fault.LOST_TAG
        return self._fault_of_own(parts)

    def _fault_of_own(self, parts: EventId) -> Fault | None:
        if parts.rank != self._rank:
            return Fault.WRONG_RANK
        return None if parts.position < self._sizes[self._rank] else Fault.OUT_OF_RANGE


def _graph(parts: Sequence[_Part], *, together: bool) -> EventGraph:
    """Resolves the ids of the ranks' pairs to events, and counts."""
    sizes = {part.rank: len(part.num_triggers) for part in parts}
    starts = dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))
    first_pairs = accumulate((len(part.raw) for part in parts), initial=0)
    resolved = [_resolve(part, _Judge(part, sizes, together=together), starts) for part in parts]
    pairs = [pair for found, _ in resolved for pair in found]
    num_triggers = array("i", chain.from_iterable(part.num_triggers for part in parts))
    producers: list[list[int]] = [[] for _ in num_triggers]
    consumers: list[list[int]] = [[] for _ in num_triggers]
    triggers = array("I", bytes(4 * len(num_triggers)))
    tagged: set[int] = set()
    for index, pair in enumerate(pairs):
        if pair.trigger >= 0:
            producers[pair.trigger].append(index)
            triggers[pair.trigger] += pair.tasks
            if pair.put:
                tagged.add(pair.trigger)
        if pair.dependent >= 0:
            consumers[pair.dependent].append(index)
            if is_tagged(pair.dependent_id):
                tagged.add(pair.dependent)
    return EventGraph(
        ranks=tuple(sizes),
        starts=starts,
        sizes=sizes,
        tasks={part.rank: part.tasks for part in parts},
        launched={part.rank: part.launched for part in parts},
        num_triggers=num_triggers,
        triggers=triggers,
        pairs=tuple(pairs),
        producers=tuple(map(tuple, producers)),
        consumers=tuple(map(tuple, consumers)),
        first_pair=dict(zip(sizes, first_pairs, strict=False)),
        pair_count={part.rank: len(part.raw) for part in parts},
        pair_of={part.rank: part.pair_of for part in parts},
        puts=_count_puts(pairs),
        tagged=frozenset(tagged),
        invalid=tuple(reference for _, faults in resolved for reference in faults),
    )


def _resolve(
    part: _Part, judge: _Judge, starts: Mapping[int, int]
) -> tuple[list[Pair], list[InvalidReference]]:
    """The pairs of one rank with their events, and what is wrong with their ids."""
    pairs: list[Pair] = []
    faults: dict[tuple[Side, int, Fault], list[_Raw]] = {}
    for raw in part.raw:
        events = []
        for side, event_id in ((Side.DEPENDENT, raw.dependent_id), (Side.TRIGGER, raw.trigger_id)):
            parts = decode(event_id)
            fault = judge.fault_of(parts, side, put=raw.put) if parts else None
            if fault:
                faults.setdefault((side, event_id, fault), []).append(raw)
                events.append(UNRESOLVED)
            else:
                events.append(starts[judge.owner(parts)] + parts.position if parts else NO_EVENT)
        dependent, trigger = events
        counts = raw.tasks, raw.first, raw.last
        pairs.append(Pair(part.rank, dependent, trigger, *counts, raw.dependent_id, raw.trigger_id, raw.put))
    found = [_invalid(part.rank, *what, raws) for what, raws in faults.items()]
    return pairs, sorted((*part.missing, *found), key=lambda reference: (reference.side, reference.first))


def _invalid(rank: int, side: Side, event_id: int, fault: Fault, raws: Sequence[_Raw]) -> InvalidReference:
    tasks, first, last = (
        sum(raw.tasks for raw in raws),
        min(raw.first for raw in raws),
        max(raw.last for raw in raws),
    )
    return InvalidReference(rank, side, event_id, fault, tasks, first, last)


def _count_puts(pairs: Iterable[Pair]) -> Counter[tuple[int, int, int]]:
    """The tasks that put under a tag by their rank and the rank and position that they trigger."""
    puts: Counter[tuple[int, int, int]] = Counter()
    for pair in pairs:
        parts = decode(pair.trigger_id)
        if pair.put and pair.trigger >= 0 and parts:
            puts[pair.rank, parts.rank, parts.position] += pair.tasks
    return puts
