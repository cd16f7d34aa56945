"""Random small graphs, whole or broken, of one rank or of all, and what their event ids mean.

For tests of what is told about order. `Truth` reads ids task by task and by the letter of the
definitions; it shares no code with the analyses.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from functools import cached_property

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from mkcov_action.analyses.events import EventGraph, events_of, joined
from mkcov_action.task_graph import Events, TaskGraph

INVALID = 0x7FFFFFFFFFFFFFFE
TAG = 0x1E00000000000000
LINEAR, PUT = 120, 301

Node = tuple[int, int]
"""A rank and a task id."""

Place = tuple[int, int]
"""A rank and the position of one of its events."""

# The same examples in every run, as many as asked for: speed is no matter of health here.
many_worlds = settings(
    max_examples=2000,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@dataclass
class SmallTask:
    """A task: its type and its two event ids."""

    number: int
    dependent: int
    trigger: int


@dataclass
class SmallRank:
    """One rank: tasks from 0 on, and its event table's counts."""

    rank: int
    tasks: list[SmallTask]
    num_triggers: list[int]
    launched: tuple[int, int]
    first_tasks: list[int]

    def graph(self) -> TaskGraph:
        """The rank as the reader would give it."""
        count = len(self.num_triggers)
        first, last = [0] * count, [0] * count
        if count > 1:
            first[1], last[1] = self.launched
        none = array("I", [0] * len(self.tasks))
        return TaskGraph(
            operands=(),
            operand_lists=((),),
            tensor_lists=((),),
            tensor_list_of=array("I", [0]),
            task_type=array("i", [task.number for task in self.tasks]),
            variant_id=none,
            inputs=none,
            outputs=none,
            trigger_event=array("Q", [task.trigger for task in self.tasks]),
            dependent_event=array("Q", [task.dependent for task in self.tasks]),
            metadata={},
            events=Events(
                array("i", [900] * count),
                array("i", self.num_triggers),
                array("q", first),
                array("q", last),
            ),
            first_tasks=tuple(self.first_tasks),
        )


@dataclass
class World:
    """One rank alone, or all ranks of a graph. `typed`: the types tell which tasks put."""

    ranks: list[SmallRank]
    typed: bool = True
    together: bool = field(init=False)

    def __post_init__(self) -> None:
        self.together = len(self.ranks) > 1

    def events(self) -> EventGraph:
        """What the analysis makes of it."""
        put_types = {PUT} if self.typed else None
        graphs = [events_of(rank.graph(), rank.rank, put_types=put_types) for rank in self.ranks]
        return joined(graphs) if self.together else graphs[0]


class Truth:
    """What each id of a world means, by the definitions."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ranks = {rank.rank: rank for rank in world.ranks}
        self.tasks = {
            (rank.rank, number): task
            for rank in world.ranks
            for number, task in enumerate(rank.tasks)
            if number > 0
        }

    def puts(self, node: Node) -> bool:
        task = self.tasks[node]
        return (
            task.number == PUT if self.world.typed else task.trigger != INVALID and tag(task.trigger) == "tag"
        )

    def trigger_fault(self, node: Node) -> str | None:
        event, rank = self.tasks[node].trigger, node[0]
        if event == INVALID:
            return "missing" if node[1] > 1 else None
        if tag(event) == "neither":
            return "malformed-tag"
        if self.puts(node) and tag(event) == "none":
            return "lost-tag"
        if not self.puts(node) and tag(event) == "tag":
            return "stray-tag"
        return self._fault_of_put(rank, event) if self.puts(node) else self._fault_of_own(rank, event)

    def _fault_of_put(self, rank: int, event: int) -> str | None:
        target = gpu(event)
        if target == rank or (self.world.together and target not in self.ranks):
            return "wrong-rank"
        table = self.ranks[target if self.world.together else rank].num_triggers
        return None if position(event) < len(table) else "out-of-range"

    def _fault_of_own(self, rank: int, event: int) -> str | None:
        if gpu(event) != rank:
            return "wrong-rank"
        return None if position(event) < len(self.ranks[rank].num_triggers) else "out-of-range"

    def dependent_fault(self, node: Node) -> str | None:
        event, rank = self.tasks[node].dependent, node[0]
        if event == INVALID:
            listed = self.ranks[rank].first_tasks
            return "missing" if node[1] > 1 and listed and node[1] not in listed else None
        if tag(event) == "neither":
            return "malformed-tag"
        triggering = [
            (self.puts(other), self.trigger_fault(other))
            for other, task in self.tasks.items()
            if other[0] == rank and task.trigger != INVALID and position(task.trigger) == position(event)
        ]
        by_puts = any(puts for puts, _ in triggering)
        by_others = any(not puts and fault is None for puts, fault in triggering)
        if tag(event) == "tag" and by_others and not by_puts:
            return "stray-tag"
        if tag(event) == "none" and by_puts and not by_others:
            return "lost-tag"
        return self._fault_of_own(rank, event)

    @cached_property
    def faults(self) -> dict[tuple[Node, str], str]:
        """What is wrong with the ids of each task, by task and side."""
        both = {
            "dependent_event": {node: self.dependent_fault(node) for node in self.tasks},
            "trigger_event": {node: self.trigger_fault(node) for node in self.tasks},
        }
        return {
            (node, side): fault for side, faults in both.items() for node, fault in faults.items() if fault
        }

    @cached_property
    def waits(self) -> dict[Node, Place]:
        """What each task waits for; tasks that wait for nothing or nobody knows what are left out."""
        return {
            node: (node[0], position(task.dependent))
            for node, task in self.tasks.items()
            if task.dependent != INVALID and (node, "dependent_event") not in self.faults
        }

    @cached_property
    def fires(self) -> dict[Node, Place]:
        """What each task triggers; of a rank alone a put triggers its own event."""
        return {
            node: (gpu(task.trigger) if self.world.together else node[0], position(task.trigger))
            for node, task in self.tasks.items()
            if task.trigger != INVALID and (node, "trigger_event") not in self.faults
        }

    @cached_property
    def num_triggers(self) -> dict[Place, int]:
        return {
            (rank.rank, place): wanted
            for rank in self.world.ranks
            for place, wanted in enumerate(rank.num_triggers)
        }

    @cached_property
    def triggers(self) -> dict[Place, int]:
        fired = list(self.fires.values())
        return {event: fired.count(event) for event in self.num_triggers}

    def launched(self, node: Node) -> bool:
        """Whether event 1 launches a task (task 1 needs no launch)."""
        rank = self.ranks[node[0]]
        return len(rank.num_triggers) > 1 and rank.launched[0] <= node[1] < rank.launched[1]

    @property
    def orderless(self) -> bool:
        return any(fault != "missing" for fault in self.faults.values())


def tag(event: int) -> str:
    return {0: "none", 0x1E00: "tag"}.get(event >> 48, "neither")


def gpu(event: int) -> int:
    return (event >> 32) % (1 << 16)


def position(event: int) -> int:
    return event % (1 << 32)


_ANYWHERE = 30  # from this number on a task may trigger an earlier event
_BROKEN = 37  # from this number on one of its ids is broken
_NUMBERS = st.tuples(st.integers(-1, 5), st.integers(0, 5), st.integers(0, 47))


@st.composite
def worlds(draw: st.DrawFn, *, broken: bool = True) -> World:
    """A world of up to three ranks and four events or so; `broken`: some ids cannot be right."""
    numbers = range(draw(st.integers(1, 3)))
    count = draw(st.integers(3, 6))
    remote = draw(st.integers(0, 15)) if len(numbers) > 1 or draw(st.booleans()) else 0
    start = draw(st.integers(0, 2)) if len(numbers) == 1 else 0
    everyone = range(3) if len(numbers) == 1 else numbers
    ranks = []
    for rank in (number + start for number in numbers):
        tasks = [SmallTask(0, INVALID, INVALID), SmallTask(10, INVALID, rank << 32 | 1)]
        others = [number for number in everyone if number != rank]
        for awaited, step, special in draw(st.lists(_NUMBERS, min_size=0, max_size=6)):
            tasks.append(
                _task(
                    rank,
                    count,
                    remote=remote,
                    others=others,
                    awaited=min(awaited, count - 1),
                    step=step,
                    special=special,
                )
            )
            if broken and special >= _BROKEN:
                _break(tasks[-1], special - _BROKEN, rank)
        waits_for_none = [n for n, task in enumerate(tasks) if n > 1 and task.dependent == INVALID]
        listed = draw(st.sampled_from([waits_for_none, waits_for_none, waits_for_none[:1], []]))
        odd = draw(st.integers(0, 9))
        launched = {8: (3, len(tasks)), 9: (2, len(tasks) - 1)}.get(odd, (2, len(tasks)))
        if odd == 7 and len(tasks) > 2:
            tasks[1].trigger = rank << 32 | 2
        if odd == 6:
            tasks[1].dependent = rank << 32 | 2
        ranks.append(SmallRank(rank, tasks, [0] * count, launched, listed))
    world = World(ranks, typed=draw(st.booleans()))
    counts = Truth(world).triggers
    for small in ranks:
        errors = draw(st.lists(st.sampled_from([0, 0, 0, 0, 0, -1, 1]), min_size=count, max_size=count))
        small.num_triggers = [counts[small.rank, place] + error for place, error in enumerate(errors)]
    return world


def _task(
    rank: int, count: int, *, remote: int, others: list[int], awaited: int, step: int, special: int
) -> SmallTask:
    """A task that awaits an event and as a rule triggers a later one; `remote` events are put to."""
    later = min(max(awaited, 1) + 1 + step % 2, count - 1)
    triggered = step % count if special >= _ANYWHERE else later
    dependent = INVALID
    if awaited >= 0:
        dependent = rank << 32 | awaited | (TAG if remote >> awaited & 1 and awaited > 1 else 0)
    if remote >> triggered & 1 and triggered > 1 and others:
        return SmallTask(PUT, dependent, TAG | others[special % len(others)] << 32 | triggered)
    return SmallTask(LINEAR, dependent, rank << 32 | triggered)


def _break(task: SmallTask, how: int, rank: int) -> None:
    """Bends one of a task's ids."""
    match how:
        case 0:
            task.dependent = rank << 32 | 77
        case 1:
            task.trigger = rank << 32 | 77
        case 2:
            task.dependent ^= 1 << 33
        case 3:
            task.trigger ^= 1 << 33
        case 4:
            task.trigger ^= TAG
        case 5:
            task.dependent ^= TAG
        case 6:
            task.trigger = INVALID
        case 7:
            task.dependent = INVALID
        case 8:
            task.trigger ^= 1 << 50
        case 9:
            task.number = PUT
        case _:
            task.dependent ^= 1 << 63
