"""Turns operators into task ids and events, as the generator does since it draws a graph of edges.

Each set of operators that others wait for gets one event, or one for each share that the edge has.
A task has one event to trigger and one to wait for, so whoever waits for an operator must wait for
the same set; they are numbered together, so that an event's consumers are one range of ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd

from tools.builder.errors import BuilderError
from tools.builder.operators import Operator

INVALID_EVENT = 0x7FFFFFFFFFFFFFFE
REMOTE_TAG = 0x1E00000000000000
"""Marks an event that another rank's put triggers (mirage runtime.cc, get_event_id)."""

EMPTY, LAUNCH_DEPENDENT, END, TERMINATION = 900, 903, 910, 911

Event = tuple[int, int, int, int]
"""event_type, num_triggers, first_task_id, last_task_id (half-open)."""


@dataclass(eq=False, slots=True)
class Join:
    """Operators that are waited for together, and those that wait for them."""

    producers: tuple[Operator, ...]
    consumers: list[Operator] = field(default_factory=list)
    first_event: int = 0
    shares: int = 1

    @property
    def remote(self) -> bool:
        """Whether other ranks trigger its events."""
        return self.producers[0].is_put

    def divide(self) -> None:
        """Settles how many events carry the edge: as many equal shares as allowed and possible."""
        common = gcd(*(operator.tiles for operator in (*self.producers, *self.consumers)))
        allowed = min(consumer.shares for consumer in self.consumers)
        self.shares = max(count for count in range(1, min(allowed, common) + 1) if common % count == 0)


@dataclass(frozen=True, slots=True)
class Segment:
    """Tiles `start` to `stop` of an operator, whose tasks follow each other; `dependent` is an event id."""

    operator: Operator
    start: int
    stop: int
    first_task: int
    dependent: int

    @property
    def stop_task(self) -> int:
        """The id behind the last task."""
        return self.first_task + (self.stop - self.start) * self.operator.tasks_per_tile


@dataclass(slots=True)
class Plan:
    """Every event, and every task as a run of tiles."""

    rank: int
    events: list[Event] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    first_tasks: list[int] = field(default_factory=list)
    awaited_in: dict[Operator, Join] = field(default_factory=dict)
    tasks: int = 2

    def event_id(self, position: int) -> int:
        """The id of an event that this rank triggers itself."""
        return self.rank << 32 | position

    def trigger(self, operator: Operator, tile: int, target: int) -> int:
        """The event that a tile's task triggers; a put's is on the rank that it writes to."""
        join = self.awaited_in.get(operator)
        if join is None:
            return self.event_id(len(self.events) - 1)
        position = join.first_event + tile * join.shares // operator.tiles
        if join.remote:
            return REMOTE_TAG | target << 32 | position
        return self.event_id(position)


def plan(operators: Sequence[Operator], rank: int) -> Plan:
    """Numbers tasks and events. Events 0, 1 and the last are the runtime's own."""
    result = Plan(rank, events=[(TERMINATION, 1, 0, 0), (LAUNCH_DEPENDENT, 1, 2, 2)])
    waiting = _joins(operators, result)
    placed: set[Operator] = set()
    for operator in operators:
        if operator in placed:
            continue
        join = waiting.get(operator)
        if join is None:
            result.first_tasks.extend(range(result.tasks, result.tasks + operator.tasks))
            _place(result, operator, 0, operator.tiles, INVALID_EVENT)
            placed.add(operator)
        else:
            _place_consumers(result, join)
            placed.update(join.consumers)
    result.events[1] = (LAUNCH_DEPENDENT, 1, 2, result.tasks)
    leaves = [operator for operator in operators if operator not in result.awaited_in]
    result.events.append((END, sum(leaf.tasks for leaf in leaves), 0, 0))
    return result


def _place_consumers(result: Plan, join: Join) -> None:
    join.first_event = len(result.events)
    for share in range(join.shares):
        first = result.tasks
        dependent = result.event_id(len(result.events)) | (REMOTE_TAG if join.remote else 0)
        for consumer in join.consumers:
            size = consumer.tiles // join.shares
            _place(result, consumer, share * size, (share + 1) * size, dependent)
        triggers = sum(producer.tasks for producer in join.producers) // join.shares
        result.events.append((EMPTY, triggers, first, result.tasks))


def _place(result: Plan, operator: Operator, start: int, stop: int, dependent: int) -> None:
    segment = Segment(operator, start, stop, result.tasks, dependent)
    result.segments.append(segment)
    result.tasks = segment.stop_task


def _joins(operators: Sequence[Operator], result: Plan) -> dict[Operator, Join]:
    joins: dict[frozenset[Operator], Join] = {}
    waiting: dict[Operator, Join] = {}
    for operator in operators:
        if not operator.waits_for:
            continue
        join = joins.setdefault(frozenset(operator.waits_for), Join(operator.waits_for))
        join.consumers.append(operator)
        waiting[operator] = join
        for producer in operator.waits_for:
            if result.awaited_in.setdefault(producer, join) is not join:
                raise BuilderError(
                    f"{producer} triggers one event, but {operator} waits for other operators beside it"
                    f" than {result.awaited_in[producer].consumers[0]} does"
                )
        if len({producer.is_put for producer in operator.waits_for}) > 1:
            raise BuilderError(f"{operator} waits for a put and a local operator: one event cannot tell both")
    for join in joins.values():
        join.divide()
    for operator in operators:
        if operator.is_put and operator not in result.awaited_in:
            raise BuilderError(
                f"{operator}: some operator must wait for a put, or its target never hears of it"
            )
    return waiting
