"""Which causes a task or an event that never comes to its turn is behind."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from mkcov_action.analyses.events import NO_EVENT, UNRESOLVED, EventGraph, Pair, TaskKey
from mkcov_action.analyses.startable import Cause, CauseKind, Startable

_LAUNCHER = 1  # the task that needs no launch


class Behind:
    """Walks from what waits for ever to the causes of that, against the direction of the triggers."""

    def __init__(self, events: EventGraph, startable: Startable) -> None:
        self._events = events
        self._startable = startable
        self._of_event: dict[int, list[Cause]] = {}
        self._of_pair: dict[tuple[CauseKind, int, int | None], Cause] = {}
        for cause in startable.causes:
            for event in {*cause.cycle_events, *([] if cause.event is None else [cause.event])}:
                self._of_event.setdefault(event, []).append(cause)
            if cause.kind in {CauseKind.UNLAUNCHED, CauseKind.INVALID}:
                self._of_pair[cause.kind, cause.rank, cause.event_id] = cause

    def of_task(self, task: TaskKey) -> tuple[Cause, ...]:
        """All causes that a task is behind; none if it runs."""
        rank, number = task
        pair = self._events.pair(task)
        launched = number in self._events.launched[rank]
        left_out = number != _LAUNCHER and not launched
        waits = self._awaited(pair, launched=number != _LAUNCHER and launched)
        return self._sorted([*self._direct(pair, left_out=left_out), *self._causes(waits)])

    def of_event(self, event: int) -> tuple[Cause, ...]:
        """All causes that keep an event from firing; none if it fires."""
        return self._sorted(self._causes([event]))

    def _sorted(self, causes: list[Cause]) -> tuple[Cause, ...]:
        found = set(causes)
        return tuple(cause for cause in self._startable.causes if cause in found)

    def _causes(self, events: Iterable[int]) -> list[Cause]:
        """The causes at these events and at all those that they wait for in turn."""
        reached = [event for event in events if not self._startable.fires[event]]
        seen = set(reached)
        causes: list[Cause] = []
        for event in reached:  # grows as it is walked
            causes += self._of_event.get(event, [])
            for index in self._events.producers[event]:
                pair = self._events.pairs[index]
                causes += self._direct(pair, left_out=index in self._left_out)
                for awaited in self._awaited(pair, launched=index in self._launched):
                    if awaited not in seen and not self._startable.fires[awaited]:
                        seen.add(awaited)
                        reached.append(awaited)
        return causes

    def _awaited(self, pair: Pair, *, launched: bool) -> Iterator[int]:
        """What tasks of a pair wait for: their event and, if event 1 launches them, that."""
        if pair.dependent not in {NO_EVENT, UNRESOLVED}:
            yield pair.dependent
        if launched:
            yield self._events.launch(pair.rank)

    def _direct(self, pair: Pair, *, left_out: bool) -> Iterator[Cause]:
        """The causes that lie in the pair itself."""
        keys: list[tuple[CauseKind, int, int | None]] = []
        if pair.dependent == UNRESOLVED:
            keys.append((CauseKind.INVALID, pair.rank, pair.dependent_id))
        if left_out:
            keys.append((CauseKind.UNLAUNCHED, pair.rank, None))
        yield from (self._of_pair[key] for key in keys if key in self._of_pair)

    @cached_property
    def _launched(self) -> frozenset[int]:
        """The pairs with a task that event 1 launches."""
        return self._pairs_with(lambda pair_of, launched: pair_of[launched.start : launched.stop])

    @cached_property
    def _left_out(self) -> frozenset[int]:
        """The pairs with a task that event 1 leaves out; task 1 needs no launch."""
        return self._pairs_with(
            lambda pair_of, launched: (
                pair_of[_LAUNCHER + 1 : launched.start] + pair_of[launched.stop :]
                if launched
                else pair_of[_LAUNCHER + 1 :]
            )
        )

    def _pairs_with(self, some: Callable[[array[int], range], Iterable[int]]) -> frozenset[int]:
        events = self._events
        return frozenset(
            events.first_pair[rank] + pair
            for rank in events.ranks
            for pair in set(some(events.pair_of[rank], events.launched[rank]))
            if pair >= 0
        )
