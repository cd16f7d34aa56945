"""Happens-before between tasks, as sets of events (big-int bitsets), closed once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_

from mkcov_action.analyses.cycles import Link, components, shortest_cycle
from mkcov_action.analyses.event_ids import Fault
from mkcov_action.analyses.events import EventGraph, InvalidReference, TaskKey


@dataclass(frozen=True, slots=True)
class NoOrder:
    """Order has no meaning: because of `invalid` ids, or else of tasks that wait for each other.

    `cycles` holds for each knot of these a shortest cycle from its smallest task: each task triggers
    what the next awaits, the last what the first awaits.
    """

    invalid: tuple[InvalidReference, ...] = ()
    cycles: tuple[tuple[TaskKey, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class HappensBefore:
    """What is surely over when a task starts, within one iteration.

    A task is after all tasks that trigger its event, and after what those are after. So order is a
    relation of events: bit f of `ancestors[e]` says that all tasks that trigger f are over before
    any task that awaits e starts; it is bit e of `reach[f]`, too. Bits and indices are events of the
    EventGraph. Bit e of `ancestors[e]` is set unless e fires too early to order anything.

    `awaited_by_end` holds the events whose producers are over when the iteration of some rank ends.
    `stand_ins` are the events that stand for the triggers of pairs whose missing edges are mended: each
    for a pair, by its index, and behind those of the EventGraph.

    Not in it: order by places in a worker's queue, and that task 1 is before all others.
    """

    events: EventGraph
    ancestors: tuple[int, ...]
    reach: tuple[int, ...]
    awaited_by_end: int
    stand_ins: Mapping[int, int] = field(default_factory=dict)

    def trigger_of(self, index: int) -> int:
        """The event by which the tasks of a pair are known to be over."""
        return self.stand_ins.get(index, self.events.pairs[index].trigger)

    def before(self, one: TaskKey, other: TaskKey) -> bool:
        """Whether one task is surely over before the other starts."""
        rank, task = one
        trigger = self.trigger_of(self.events.first_pair[rank] + self.events.pair_of[rank][task])
        dependent = self.events.pair(other).dependent
        return trigger >= 0 and dependent >= 0 and bool(self.ancestors[dependent] >> trigger & 1)

    def is_awaited(self, task: TaskKey) -> bool:
        """Whether the end of some rank's iteration waits for a task."""
        trigger = self.events.pair(task).trigger
        return trigger >= 0 and bool(self.awaited_by_end >> trigger & 1)


def happens_before_of(events: EventGraph, *, forgiven: Collection[int] = ()) -> HappensBefore | NoOrder:
    """The order of tasks: of one rank by itself or of all ranks, as the events are.

    An event with too few triggers counts as if it fired after all its producers. One with too many
    fires before some of them; as nobody knows which, it counts as if it ordered nothing, unless it
    is `forgiven`: then it orders, too, as if it fired after all.
    """
    invalid = tuple(reference for reference in events.invalid if reference.fault is not Fault.MISSING)
    if invalid:
        return NoOrder(invalid=invalid)
    early = events.too_many.difference(forgiven)
    links = [
        Link((pair.rank, pair.first), pair.dependent, pair.trigger)
        for pair in events.pairs
        if pair.dependent >= 0 and pair.trigger >= 0 and pair.trigger not in early
    ]
    parts = components(range(len(events)), links)
    knots = [part.within for part in parts if part.within]
    if knots:
        return NoOrder(cycles=tuple(sorted(map(shortest_cycle, knots))))
    ancestors = [0 if event in early else 1 << event for event in range(len(events))]
    reach = list(ancestors)
    for part in parts:
        (event,) = part.events
        for successor in part.successors:
            ancestors[successor] |= ancestors[event]
    for part in reversed(parts):
        (event,) = part.events
        if event not in early:
            reach[event] |= reduce(or_, map(reach.__getitem__, part.successors), 0)
    awaited = reduce(or_, map(ancestors.__getitem__, events.ends), 0)
    return HappensBefore(events, tuple(ancestors), tuple(reach), awaited)


def mended(order: HappensBefore, edges: Collection[tuple[int, int]]) -> HappensBefore:
    """The order if all tasks of a pair were over before those start that await an event, for each edge of these.

    An edge that would close a cycle is left out. Not to be mended twice.
    """
    count = len(order.events)
    stand_ins = {pair: count + place for place, pair in enumerate(sorted({pair for pair, _ in edges}))}
    ancestors = [*order.ancestors, *(1 << mark for mark in stand_ins.values())]
    reach = [*order.reach, *(1 << mark for mark in stand_ins.values())]
    for pair, mark in stand_ins.items():
        trigger = order.events.pairs[pair].trigger
        if trigger >= 0:
            reach[mark] |= reach[trigger]
            for event in members(reach[trigger]):
                ancestors[event] |= 1 << mark
    for pair, event in sorted(edges):
        dependent = order.events.pairs[pair].dependent
        past = ancestors[dependent] if dependent >= 0 else 0
        if past >> event & 1 or dependent == event:
            continue
        past |= 1 << stand_ins[pair]
        future = reach[event] | 1 << event
        for before in members(past):
            reach[before] |= future
        for after in members(future):
            ancestors[after] |= past
    return replace(order, ancestors=tuple(ancestors), reach=tuple(reach), stand_ins=stand_ins)


def members(bits: int) -> Iterator[int]:
    """The members of a set in order."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
