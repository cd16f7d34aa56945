"""Happens-before between tasks, as sets of events (big-int bitsets), closed once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
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

    Not in it: order by places in a worker's queue, and that task 1 is before all others.
    """

    events: EventGraph
    ancestors: tuple[int, ...]
    reach: tuple[int, ...]
    awaited_by_end: int

    def before(self, one: TaskKey, other: TaskKey) -> bool:
        """Whether one task is surely over before the other starts."""
        trigger, dependent = self.events.pair(one).trigger, self.events.pair(other).dependent
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
