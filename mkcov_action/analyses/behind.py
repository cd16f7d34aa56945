"""Which causes a task or an event that never comes to its turn is behind."""

from __future__ import annotations

from collections.abc import Iterator

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
        pair = self._events.pair(task)
        launched = task[1] == _LAUNCHER or task[1] in self._events.launched[task[0]]
        return self._walk(pair, unlaunched=not launched)

    def of_event(self, event: int) -> tuple[Cause, ...]:
        """All causes that keep an event from firing; none if it fires."""
        return self._sorted(self._causes([event]))

    def _walk(self, pair: Pair, *, unlaunched: bool) -> tuple[Cause, ...]:
        direct = list(self._direct(pair, unlaunched=unlaunched))
        return self._sorted([*direct, *self._causes(list(self._awaited(pair)))])

    def _sorted(self, causes: list[Cause]) -> tuple[Cause, ...]:
        found = set(causes)
        return tuple(cause for cause in self._startable.causes if cause in found)

    def _causes(self, events: list[int]) -> list[Cause]:
        """The causes at these events and at all those that they wait for in turn."""
        reached = [event for event in events if not self._startable.fires[event]]
        seen = set(reached)
        causes: list[Cause] = []
        for event in reached:  # grows as it is walked
            causes += self._of_event.get(event, [])
            for index in self._events.producers[event]:
                pair = self._events.pairs[index]
                causes += self._direct(pair, unlaunched=self._has_unlaunched(pair))
                more = [awaited for awaited in self._awaited(pair) if awaited not in seen]
                more = [awaited for awaited in more if not self._startable.fires[awaited]]
                seen.update(more)
                reached += more
        return causes

    def _awaited(self, pair: Pair) -> Iterator[int]:
        """What the tasks of a pair wait for: their event and, but for task 1, their launch."""
        if pair.dependent not in {NO_EVENT, UNRESOLVED}:
            yield pair.dependent
        launch = self._events.launch(pair.rank)
        if pair.last != _LAUNCHER and launch != UNRESOLVED:
            yield launch

    def _direct(self, pair: Pair, *, unlaunched: bool) -> Iterator[Cause]:
        """The causes that lie in the pair itself."""
        keys: list[tuple[CauseKind, int, int | None]] = []
        if pair.dependent == UNRESOLVED:
            keys.append((CauseKind.INVALID, pair.rank, pair.dependent_id))
        if unlaunched:
            keys.append((CauseKind.UNLAUNCHED, pair.rank, None))
        yield from (self._of_pair[key] for key in keys if key in self._of_pair)

    def _has_unlaunched(self, pair: Pair) -> bool:
        launched = self._events.launched[pair.rank]
        first = _LAUNCHER + 1 if pair.first == _LAUNCHER else pair.first
        return pair.last > _LAUNCHER and (first not in launched or pair.last not in launched)
