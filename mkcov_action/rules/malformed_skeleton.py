"""MK307: a graph without the frame that the runtime relies on."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.analyses.events import EventGraph
from mkcov_action.analyses.startable import CauseKind
from mkcov_action.finding import Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._calls import calls_of, layers, types
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed, plural
from mkcov_action.task_graph import INVALID_EVENT
from mkcov_action.task_types import WORKER_TYPES

_TERMINATE, _BEGIN = 0, 10
_TERMINATION, _LAUNCH, _END = 911, 903, 910
# EMPTY; and those that mirage src/kernel/runtime.cc rewrites when it prints, which older files keep.
_INNER = frozenset({900, 901, 902})


@rule(id="MK307", name="malformed-skeleton", severity=Severity.ERROR, stage=Stage.ORDER, since="0.1.0")
def malformed_skeleton(context: Context) -> Iterator[Result]:
    """The graph's first tasks, its first and last events or its consumer ranges are not as they must be.

    ## What it finds
    Task 0 ends the kernel, and task 1 begins an iteration by triggering event 1, which launches all
    others; event 0 stands for termination, and the last event for the end of the iteration. And every
    event between states the range of the tasks that wait for it. Reported is whatever is different,
    tasks of the runtime's own types among those of the model, and a graph without any task of the model.

    ## Why it matters
    The runtime takes these places for granted: it finds the launch and the end by their position. A
    range that is not that of the waiting tasks shows that an edge was moved after generation.

    ## Example
    A task was made to wait for another event, and both events still state their old ranges.

    ## How to fix it
    Generate the task graph again rather than edit it.
    """
    for rank in context.ranks:
        graph = rank.graph
        if len(graph) <= _FIRST:
            yield _finding(
                rank, "empty", "the task graph holds no task of the model", "the kernel computes nothing"
            )
            continue
        yield from _strays(context, rank)
        for kind, message in _frame(rank):
            yield _finding(rank, kind, message, "the runtime does not start, or does not end, an iteration")
        events = context.events(rank)
        if events.invalid or context.startable_once_counted(rank).of(CauseKind.CYCLE):
            continue  # a range that they explain
        if wrong := list(_wrong_ranges(rank, events)):
            yield _finding(
                rank,
                "consumer range",
                _ranges(context, rank, wrong),
                "an edge of the graph is not where the generator put it",
            )


def _ranges(context: Context, rank: Rank, wrong: list[tuple[int, int, int]]) -> str:
    event, first, last = wrong[0]
    table = rank.graph.events
    waiting = (task for event, _, _ in wrong for task in _waiting(context.events(rank), event))
    calls = calls_of(context, rank, waiting)
    those = f" ({types(calls)}{layers(calls)})" if calls else ""
    stated = _tasks(table.first_task_id[event], table.last_task_id[event])
    waiters = _tasks(first, last)
    meant = f"{waiters} {'waits' if last - first <= 1 else 'wait'} for it"
    subject = (
        f"the consumer range of event {event} is not that of the tasks that wait for it"
        if len(wrong) == 1
        else f"the consumer ranges of events {listed([event for event, _, _ in wrong])} are not those of the tasks"
        " that wait for them"
    )
    return f"{subject}{those}: event {event} states {stated}, and {meant}"


_FIRST = 2


def _strays(context: Context, rank: Rank) -> Iterator[Result]:
    """Tasks among the model's that end the kernel, or begin its iteration."""
    graph = rank.graph
    for number, name in WORKER_TYPES.items():
        tasks = [task for task in range(_FIRST, len(graph)) if graph.task_type[task] == number]
        if tasks:
            calls = calls_of(context, rank, tasks)
            yield malformed_skeleton.finding(
                operator=calls[0].operator,
                tasks=len(tasks),
                ranks=(rank.number,),
                kind=f"stray {name}",
                message=f"{plural(len(tasks), 'task')} of the model {'is' if len(tasks) == 1 else 'are'} of type {name}"
                f"{layers(calls)} (task {tasks[0]:,}): only {'the first' if number == _TERMINATE else 'the second'} task"
                " may be",
                consequence="the worker that takes one stops, or begins the next iteration, in the middle of this one",
                fix="generate the task graph again",
            )


def _finding(rank: Rank, kind: str, message: str, consequence: str) -> Result:
    return malformed_skeleton.finding(
        ranks=(rank.number,),
        kind=kind,
        message=message,
        consequence=consequence,
        fix="generate the task graph again",
    )


def _frame(rank: Rank) -> Iterator[tuple[str, str]]:
    graph, events = rank.graph, rank.graph.events
    for task, number, trigger in ((0, _TERMINATE, INVALID_EVENT), (1, _BEGIN, rank.number << 32 | 1)):
        if graph.task_type[task] != number:
            yield (
                f"task {task}",
                f"task {task} is of type {rank.type_name(graph.task_type[task])}, not {number}",
            )
        if graph.dependent_event[task] != INVALID_EVENT:
            yield (
                f"task {task} waits",
                f"task {task} waits for event {graph.dependent_event[task]:#x}, not for none",
            )
        if graph.trigger_event[task] != trigger:
            expected = "none" if task == 0 else "event 1 of its own rank"
            yield (
                f"task {task} triggers",
                f"task {task} triggers event {graph.trigger_event[task]:#x}, not {expected}",
            )
    if len(events) <= _FIRST:
        yield (
            "events",
            f"the table has {plural(len(events), 'event')}: the first two or the last one are missing",
        )
        return
    last = len(events) - 1
    for event, kind in ((0, _TERMINATION), (1, _LAUNCH), (last, _END)):
        if events.event_type[event] != kind:
            yield (
                f"event {'last' if event == last else event}",
                f"event {event} is of type {events.event_type[event]}, not {kind}",
            )
    strays = [event for event in range(2, last) if events.event_type[event] not in _INNER]
    if strays:
        named = listed([f"event {event} (type {events.event_type[event]})" for event in strays])
        yield "inner events", f"{named} between the first two and the last should only count triggers"


def _wrong_ranges(rank: Rank, events: EventGraph) -> Iterator[tuple[int, int, int]]:
    """Each event whose range is not that of its consumers, and the range that would be.

    Where other tasks stand between consumers (forks interleave operators) the span of all is right, too.
    """
    table = rank.graph.events
    start = events.starts[rank.number]
    for event in range(2, len(table) - 1):
        pairs = [events.pairs[index] for index in events.consumers[start + event]]
        first = min((pair.first for pair in pairs), default=0)
        last = max((pair.last + 1 for pair in pairs), default=0)
        stated = table.first_task_id[event], table.last_task_id[event]
        if stated != (first, last) and not (first == last and stated[0] == stated[1]):
            yield event, first, last


def _tasks(first: int, stop: int) -> str:
    """`tasks 3 to 5`, of a half-open range."""
    if stop <= first:
        return "no task"
    return f"task {first:,}" if stop == first + 1 else f"tasks {first:,} to {stop - 1:,}"


def _waiting(events: EventGraph, event: int) -> list[int]:
    return [events.pairs[index].first for index in events.consumers[event]]
