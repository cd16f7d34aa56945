"""Who triggers and who awaits each event: decoded ids, and tasks collapsed to pairs of events.

A graph of 160,000 tasks has some 3,000 distinct (dependent, trigger) pairs; what comes after goes by
pairs and events, never by task and task.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple

from mkcov_action.analyses.event_ids import EventId, Fault, Judge, Side, decode, is_tagged
from mkcov_action.analyses.runs import runs_of
from mkcov_action.task_graph import INVALID_EVENT, TaskGraph

__all__ = [
    "NO_EVENT",
    "UNRESOLVED",
    "EventGraph",
    "EventId",
    "Fault",
    "InvalidReference",
    "Pair",
    "Side",
    "TaskKey",
    "decode",
    "events_of",
    "is_tagged",
    "joined",
]

NO_EVENT = -1
"""Stands where a task waits for nothing or triggers nothing."""

UNRESOLVED = -2
"""Stands where an id cannot be right and no event can be told."""

_FIRST = 1  # task 0 ends the kernel, it is no part of an iteration
_LAUNCHER = 1  # the task that triggers the launch of all others
_LAUNCH = 1  # the position of that event

TaskKey = tuple[int, int]
"""A rank's number and a task id."""


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
    columns: list[Sequence[int]] = [graph.dependent_event, graph.trigger_event]
    if puts:
        columns.append(bytes(map(puts.__contains__, graph.task_type)))
    runs = runs_of(*columns, first=_FIRST)
    for run in runs:
        waits, fires = graph.dependent_event[run.start], graph.trigger_event[run.start]
        put = is_tagged(fires) if put_types is None else graph.task_type[run.start] in puts
        pair = pairs.get((waits, fires, put)) or _Raw(waits, fires, put, len(pairs), run.start)
        pairs[waits, fires, put] = pair._replace(tasks=pair.tasks + len(run), last=run.stop - 1)
        pair_of.extend(array("i", [pair.place]) * len(run))
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


def _missing(graph: TaskGraph, rank: int, runs: Sequence[range]) -> Iterator[InvalidReference]:
    """Tasks that wait for nothing without being listed as first tasks, and tasks that trigger nothing.

    A list of first tasks that is empty tells nothing. Tasks 0 and 1 are the runtime's own.
    """
    listed = frozenset(graph.first_tasks)
    waits = _nowhere(graph.dependent_event, runs) if listed else ()
    found = {
        Side.DEPENDENT: [task for task in waits if task not in listed],
        Side.TRIGGER: list(_nowhere(graph.trigger_event, runs)),
    }
    for side, tasks in found.items():
        if tasks:
            yield InvalidReference(rank, side, INVALID_EVENT, Fault.MISSING, len(tasks), tasks[0], tasks[-1])


def _nowhere(column: array[int], runs: Sequence[range]) -> Iterator[int]:
    """The tasks but 0 and 1 that name no event; in a run all do or none."""
    for run in runs:
        if column[run.start] == INVALID_EVENT:
            yield from (task for task in run if task > _LAUNCHER)


def _graph(parts: Sequence[_Part], *, together: bool) -> EventGraph:
    """Resolves the ids of the ranks' pairs to events, and counts."""
    sizes = {part.rank: len(part.num_triggers) for part in parts}
    starts = dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))
    first_pairs = accumulate((len(part.raw) for part in parts), initial=0)
    resolved = [_resolve(part, _judge(part, sizes, together=together), starts) for part in parts]
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


def _judge(part: _Part, sizes: Mapping[int, int], *, together: bool) -> Judge:
    return Judge(part.rank, ((raw.put, raw.trigger_id) for raw in part.raw), sizes, together=together)


def _resolve(
    part: _Part, judge: Judge, starts: Mapping[int, int]
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
