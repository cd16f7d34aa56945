"""Which tasks can start: the least fixed point, and what keeps the others from it.

After mirage persistent_kernel.cuh, execute_worker and execute_scheduler: a task waits until its event
has as many triggers as it wants; task 1 triggers event 1, which launches all other tasks.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import NamedTuple

from mkcov_action.analyses.cycles import Link, components, shortest_cycle
from mkcov_action.analyses.events import NO_EVENT, UNRESOLVED, EventGraph, TaskKey

_LAUNCHER = 1  # the task that needs no launch


class CauseKind(StrEnum):
    """What keeps tasks from running."""

    STARVED = "starved"  # an event that waits for more triggers than there are
    CYCLE = "cycle"  # events that wait for each other
    UNLAUNCHED = "unlaunched"  # tasks outside the range that event 1 launches
    INVALID = "invalid"  # an id that names no event to wait for


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that keeps tasks from running, whatever else does.

    `event` is an event of the EventGraph: the starved one; of a cycle the one that its smallest task
    awaits; else None. `event_id` is the invalid id, else None. `behind` is how many tasks never run
    behind it; a task behind several causes counts for each.
    `cycle` is a shortest cycle from its smallest task: each task triggers what the next awaits, the
    last what the first awaits. `cycle_events` are all events that wait for each other here, in order.
    """

    kind: CauseKind
    rank: int
    behind: int
    event: int | None = None
    event_id: int | None = None
    cycle: tuple[TaskKey, ...] = ()
    cycle_events: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Startable:
    """What runs in an iteration and what does not. Tasks 0 and 1 are not counted.

    `tasks` is the number of tasks, `never_run` the ids of those that never run, by rank, as ranges
    in order. `fires` tells for each event whether it fires. `causes` come in the order of
    kinds, ranks and events; there are none if everything runs and every event fires.
    """

    tasks: int
    never_run: Mapping[int, tuple[range, ...]]
    fires: tuple[bool, ...]
    causes: tuple[Cause, ...]

    @property
    def blocked(self) -> int:
        """How many tasks never run."""
        return sum(len(ids) for ranges in self.never_run.values() for ids in ranges)

    @property
    def running(self) -> int:
        """How many tasks run."""
        return self.tasks - self.blocked

    def of(self, kind: CauseKind) -> tuple[Cause, ...]:
        """The causes of one kind."""
        return tuple(cause for cause in self.causes if cause.kind is kind)


_Reason = tuple[CauseKind, int, int]
"""A kind of cause, the rank, and the event, the id or nothing (NO_EVENT) that tells it from others."""


class _Unit(NamedTuple):
    """Tasks of a pair that start together: `waits` are the events that must have fired.

    `blocked_by` is what keeps them from ever starting, whatever fires.
    """

    rank: int
    pair: int
    first: int
    tasks: int
    waits: tuple[int, ...]
    trigger: int
    blocked_by: tuple[_Reason, ...]


def startable_of(events: EventGraph, *, forgiven: Collection[int] = ()) -> Startable:
    """What can start. A `forgiven` event with too few triggers fires when it has all there are.

    With `forgiven=events.too_few` what is left never runs for other reasons than wrong counts.
    """
    needs = [
        min(waits, gets) if event in forgiven else waits
        for event, (waits, gets) in enumerate(zip(events.num_triggers, events.triggers, strict=True))
    ]
    units = [unit for rank in events.ranks for unit in _units(events, rank)]
    fired, started = _run(units, needs)
    waiting = [unit for unit, starts in zip(units, started, strict=True) if not starts]
    silent = [event for event, fires in enumerate(fired) if not fires]
    return Startable(
        tasks=sum(max(0, tasks - _LAUNCHER - 1) for tasks in events.tasks.values()),
        never_run={rank: _never_run(events, rank, waiting) for rank in events.ranks},
        fires=tuple(fired),
        causes=_Blame(events, waiting, silent).causes(needs),
    )


def _units(events: EventGraph, rank: int) -> Iterator[_Unit]:
    """The pairs of a rank, split where event 1 launches only some of their tasks."""
    launch, launched, pair_of = events.launch(rank), events.launched[rank], events.pair_of[rank]
    start, stop = (launched.start, launched.stop) if launched else (len(pair_of), len(pair_of))
    left_out = [*range(_LAUNCHER + 1, min(start, len(pair_of))), *range(stop, len(pair_of))]
    outside = Counter(map(pair_of.__getitem__, left_out))
    first_outside = _firsts(pair_of, left_out)
    pairs = events.pairs_of(rank)
    split = left_out or (pairs and pairs[0].tasks > 1)  # the first pair is the one of task 1
    first_inside = _firsts(pair_of, launched) if split else {}
    for index, pair in enumerate(pairs):
        waits = (pair.dependent,) if pair.dependent >= 0 else ()
        blocked_by: tuple[_Reason, ...] = ()
        if pair.dependent == UNRESOLVED:
            blocked_by = ((CauseKind.INVALID, rank, pair.dependent_id),)
        runs_first = pair.first == _LAUNCHER
        if runs_first:
            yield _Unit(rank, index, _LAUNCHER, 1, waits, pair.trigger, blocked_by)
        if outside[index]:
            first = first_outside[index]
            reason = CauseKind.UNLAUNCHED, rank, NO_EVENT
            yield _Unit(rank, index, first, outside[index], waits, pair.trigger, (*blocked_by, reason))
        inside = pair.tasks - runs_first - outside[index]
        if inside:
            first = first_inside[index] if inside < pair.tasks else pair.first
            yield _Unit(rank, index, first, inside, (*waits, launch), pair.trigger, blocked_by)


def _firsts(pair_of: array[int], tasks: Sequence[int]) -> dict[int, int]:
    """The first of some tasks, which are in order, that each pair has."""
    backwards = tasks[::-1]
    return dict(zip(map(pair_of.__getitem__, backwards), backwards, strict=True))


def _run(units: Sequence[_Unit], needs: Sequence[int]) -> tuple[list[bool], list[bool]]:
    """Which events fire and which units start, once nothing more does."""
    awaiting: list[list[int]] = [[] for _ in needs]
    for index, unit in enumerate(units):
        for event in unit.waits:
            awaiting[event].append(index)
    left = [len(unit.waits) + len(unit.blocked_by) for unit in units]
    got = [0] * len(needs)
    fired = [need <= 0 for need in needs]
    firing = [event for event, fires in enumerate(fired) if fires]
    starting = [index for index, waits in enumerate(left) if not waits]
    while firing or starting:
        while starting:
            unit = units[starting.pop()]
            if unit.trigger >= 0:
                got[unit.trigger] += unit.tasks
                if got[unit.trigger] >= needs[unit.trigger] and not fired[unit.trigger]:
                    fired[unit.trigger] = True
                    firing.append(unit.trigger)
        for index in awaiting[firing.pop()] if firing else ():
            left[index] -= 1
            if not left[index]:
                starting.append(index)
    return fired, [not waits for waits in left]


def _never_run(events: EventGraph, rank: int, waiting: Iterable[_Unit]) -> tuple[range, ...]:
    """The tasks of a rank that event 1 does not launch or whose units wait for ever."""
    launched, pair_of = events.launched[rank], events.pair_of[rank]
    asleep = {unit.pair for unit in waiting if unit.rank == rank and unit.first in launched}
    start, stop = (launched.start, launched.stop) if launched else (len(pair_of), len(pair_of))
    if not asleep and start <= _LAUNCHER + 1 and stop == len(pair_of):
        return ()
    flags = b"".join(
        (
            bytes(_LAUNCHER + 1),
            b"\x01" * (start - _LAUNCHER - 1),
            bytes(map(asleep.__contains__, pair_of[start:stop])),
            b"\x01" * (len(pair_of) - stop),
        )
    )
    return tuple(range(*match.span()) for match in re.finditer(b"\x01+", flags))


class _Blame:
    """What keeps events from firing and tasks from running.

    Where an event never fires, it is starved, or something that would trigger it never starts: that
    is blocked for good, or waits for an event that never fires. So all of it leads back to a
    reason, or round in a cycle, which is one. A set of reasons is an int, a bit for each.
    """

    def __init__(self, events: EventGraph, waiting: Sequence[_Unit], silent: Collection[int]) -> None:
        self._events = events
        self._waiting = waiting
        self._bits: dict[_Reason, int] = {}
        self._cycles: dict[_Reason, tuple[tuple[TaskKey, ...], tuple[int, ...]]] = {}
        self._of = dict.fromkeys(silent, 0)  # the reasons of each event that never fires
        self._links = [
            Link((unit.rank, unit.first), event, unit.trigger)
            for unit in waiting
            if unit.trigger in self._of
            for event in unit.waits
            if event in self._of
        ]

    def causes(self, needs: Sequence[int]) -> tuple[Cause, ...]:
        """All causes; `needs` is how many triggers each event waits for."""
        for event in self._of:
            # Nothing triggers event 0: only if something awaits it that is to blame.
            if self._events.triggers[event] < needs[event] and (
                self._events.place(event)[1] or self._events.consumers[event]
            ):
                self._of[event] |= self._bit((CauseKind.STARVED, self._events.place(event)[0], event))
        for unit in self._waiting:
            blocking = self._blocking(unit)
            if unit.trigger in self._of:
                self._of[unit.trigger] |= blocking
        self._spread()
        counts: Counter[int] = Counter()
        for unit in self._waiting:
            if unit.first != _LAUNCHER:
                counts[self._behind(unit)] += unit.tasks
        return tuple(self._cause(reason, counts) for reason in sorted(self._bits, key=_order))

    def _bit(self, reason: _Reason) -> int:
        return self._bits.setdefault(reason, 1 << len(self._bits))

    def _blocking(self, unit: _Unit) -> int:
        return reduce(or_, map(self._bit, unit.blocked_by), 0)

    def _behind(self, unit: _Unit) -> int:
        return reduce(or_, (self._of.get(event, 0) for event in unit.waits), self._blocking(unit))

    def _spread(self) -> None:
        """Hands reasons on to the events that wait for these; cycles become reasons."""
        for component in components(self._of, self._links):
            reasons = reduce(or_, map(self._of.__getitem__, component.events))
            if component.within:
                reasons |= self._bit(self._cycle(component.within))
            self._of.update(dict.fromkeys(component.events, reasons))
            for event in component.successors:
                self._of[event] |= reasons

    def _cycle(self, links: Collection[Link]) -> _Reason:
        smallest = min(links)
        reason = CauseKind.CYCLE, smallest.task[0], smallest.awaited
        self._cycles[reason] = shortest_cycle(links), tuple(sorted({link.awaited for link in links}))
        return reason

    def _cause(self, reason: _Reason, counts: Mapping[int, int]) -> Cause:
        kind, rank, which = reason
        bit = self._bits[reason]
        cycle, cycle_events = self._cycles.get(reason, ((), ()))
        return Cause(
            kind=kind,
            rank=rank,
            behind=sum(tasks for reasons, tasks in counts.items() if reasons & bit),
            event=which if kind in {CauseKind.STARVED, CauseKind.CYCLE} else None,
            event_id=which if kind is CauseKind.INVALID else None,
            cycle=cycle,
            cycle_events=cycle_events,
        )


def _order(reason: _Reason) -> tuple[int, int, int]:
    kind, rank, which = reason
    return list(CauseKind).index(kind), rank, which
