"""One rank as the views look at it: its analyses, and the look-ups that they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

from mkcov_action.analyses.behind import Behind
from mkcov_action.analyses.consumption import Access, Consumption, Side, SlotKey, branch_of
from mkcov_action.analyses.dispatch import Dispatch
from mkcov_action.analyses.events import EventGraph, Fault, decode
from mkcov_action.analyses.events import Side as IdSide
from mkcov_action.analyses.operators import Operators
from mkcov_action.analyses.startable import Cause, Startable
from mkcov_action.config import Config
from mkcov_action.finding import Artifact, Operator
from mkcov_action.kernel_source import Branch
from mkcov_action.megakernel import Megakernel, Rank
from mkcov_action.neighbourhood.model import Call, EventRef, Line, Reason, Share
from mkcov_action.rules import Context
from mkcov_action.task_graph import TaskGraph


class Sight:
    """One audited rank by itself. All look-ups are made when they are first needed."""

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self._context = Context(Megakernel(graph="", ranks=(rank,)), Config())
        self._calls: dict[int, Call] = {}

    @property
    def graph(self) -> TaskGraph:
        """The rank's task graph."""
        return self.rank.graph

    @property
    def operators(self) -> Operators:
        """The layer calls."""
        return self._context.operators(self.rank)

    @property
    def consumption(self) -> Consumption:
        """Who reads and writes what."""
        return self._context.consumption(self.rank)

    @property
    def events(self) -> EventGraph:
        """Who triggers and who awaits each event; an event is its position, as there is one rank."""
        return self._context.events(self.rank)

    @property
    def startable(self) -> Startable:
        """What runs."""
        return self._context.startable(self.rank)

    @cached_property
    def behind(self) -> Behind:
        """Finds what a task or an event is behind."""
        return Behind(self.events, self.startable)

    @cached_property
    def never_run(self) -> Counter[int]:
        """How many tasks of each call never run; -1 stands for task 1."""
        found: Counter[int] = Counter()
        for ids in self.startable.never_run[self.rank.number]:
            found.update(self.operators.operator_of[ids.start : ids.stop])
        return found

    @cached_property
    def _last_task(self) -> dict[int, int]:
        return dict(zip(self.operators.operator_of, range(len(self.graph)), strict=True))

    def runs(self, task: int) -> bool:
        """Whether a task ever runs; task 0 and task 1 do."""
        return not any(task in ids for ids in self.startable.never_run[self.rank.number])

    def tasks_of(self, index: int) -> Sequence[int]:
        """The task ids of a call, in order."""
        first, last = self.operators.calls[index].first, self._last_task[index]
        if last - first + 1 == self.operators.calls[index].tasks:
            return range(first, last + 1)
        column = self.operators.operator_of
        return [task for task in range(first, last + 1) if column[task] == index]

    def call(self, index: int) -> Call:
        """A call as views show it."""
        if index not in self._calls:
            self._calls[index] = self._call(index)
        return self._calls[index]

    def _call(self, index: int) -> Call:
        call = self.operators.calls[index]
        return Call(
            call=index,
            operator=str(call.operator),
            task_type=call.operator.type_name,
            variant=call.operator.variant,
            layer=call.layer,
            first_task=call.first,
            last_task=self._last_task[index],
            tasks=call.tasks,
            never_run=self.never_run[index],
            dispatch=self.consumption.dispatch[call.operator],
            waits_for=tuple(self.event_ref(IdSide.DEPENDENT, event) for event in call.dependent_events),
            triggers=tuple(self.event_ref(IdSide.TRIGGER, event) for event in call.trigger_events),
        )

    @cached_property
    def _faults(self) -> dict[tuple[IdSide, int], Fault]:
        return {(reference.side, reference.event_id): reference.fault for reference in self.events.invalid}

    def event_ref(self, side: IdSide, event_id: int) -> EventRef:
        """An event as an id on one side of a task names it, whichever rank it belongs to."""
        parts = decode(event_id)
        fault = self._faults.get((side, event_id))
        own = parts is not None and parts.rank == self.rank.number and fault is None
        return EventRef(
            id=f"{event_id:#x}",
            event=parts.position if parts else None,
            rank=parts.rank if parts else None,
            fault=fault if parts else None,
            fires=self.startable.fires[parts.position] if parts and own else None,
        )

    @cached_property
    def _calls_of_pairs(self) -> list[list[tuple[int, int]]]:
        """For each pair of events its calls, in order, with how many of their tasks are in it."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.events.pairs]
        both = Counter(zip(self.events.pair_of[self.rank.number], self.operators.operator_of, strict=True))
        for (pair, call), tasks in sorted(both.items()):
            if pair >= 0 and call >= 0:
                found[pair].append((call, tasks))
        return found

    def calls_of_pair(self, pair: int) -> list[int]:
        """The calls whose tasks are in a pair of events, in order; none for task 1's."""
        return [call for call, _ in self._calls_of_pairs[pair]]

    def producers(self, event: int) -> tuple[Share, ...]:
        """The calls whose tasks trigger an event."""
        return self._shares(self.events.producers[event])

    def consumers(self, event: int) -> tuple[Share, ...]:
        """The calls whose tasks wait for an event."""
        return self._shares(self.events.consumers[event])

    def _shares(self, pairs: Iterable[int]) -> tuple[Share, ...]:
        tasks: Counter[int] = Counter()
        for pair in pairs:
            tasks.update(dict(self._calls_of_pairs[pair]))
        return tuple(Share(call=self.call(index), tasks=tasks[index]) for index in sorted(tasks))

    def reasons(self, causes: Iterable[Cause]) -> tuple[Reason, ...]:
        """Causes as views show them."""
        return tuple(self._reason(cause) for cause in causes)

    def _reason(self, cause: Cause) -> Reason:
        return Reason(
            kind=cause.kind,
            behind=cause.behind,
            event=cause.event,
            waits=None if cause.event is None else self.events.num_triggers[cause.event],
            gets=None if cause.event is None else self.events.triggers[cause.event],
            cycle=tuple(task for _, task in cause.cycle),
            id=None if cause.event_id is None else f"{cause.event_id:#x}",
        )

    def dispatch(self, operator: Operator) -> Dispatch:
        """Whether an operator has code."""
        return self.consumption.dispatch[operator]

    def branch(self, operator: Operator) -> tuple[Branch | None, Line | None]:
        """The dispatcher's branch of an operator, and where it stands."""
        branch = branch_of(self.rank, operator)
        return branch, self.kernel_line(branch.line) if branch else None

    def kernel_line(self, line: int) -> Line:
        """A line of the kernel."""
        return Line(uri=self.rank.uri(Artifact.KERNEL) or "", line=line)

    def slots(self, operator: Operator) -> list[tuple[SlotKey, Access]]:
        """The slots that an operator's tasks have, inputs first, with what the kernel does to them."""
        order = list(Side)
        found = [item for item in self.consumption.accesses.items() if item[0].operator == operator]
        return sorted(found, key=lambda item: (order.index(item[0].side), item[0].index))
