"""MK303: tasks that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.analyses.startable import CauseKind
from mkcov_action.finding import Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._calls import calls_of, named
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural

_MOST_SHOWN = 12


@rule(id="MK303", name="dependency-cycle", severity=Severity.ERROR, stage=Stage.ORDER, since="0.1.0")
def dependency_cycle(context: Context) -> Iterator[Result]:
    """Tasks wait for each other in a cycle.

    ## What it finds
    A chain of tasks, each of which waits for an event that the one before it triggers, and that
    leads back to its start. The shortest such chain is shown from its smallest task.

    ## Why it matters
    None of these tasks can ever start, and neither can what waits for them: the kernel hangs in its
    first iteration.

    ## Example
    Task 40 waits for event 7, which task 52 triggers, which waits for event 9, which task 40 triggers.

    ## How to fix it
    Look for the edge that leads back: the operator that reads what only a later one writes.
    """
    for rank in context.ranks:
        for cause in context.startable_once_counted(rank).of(CauseKind.CYCLE):
            tasks = [task for _, task in cause.cycle]
            calls = calls_of(context, rank, tasks)
            behind = f"; {plural(cause.behind, 'task')} never {'runs' if cause.behind == 1 else 'run'}"
            yield dependency_cycle.finding(
                operator=calls[0].operator if calls else None,
                ranks=(rank.number,),
                kind=" ".join(dict.fromkeys(call.operator.type_name for call in calls)),
                message=f"{_chain(context, rank, tasks)}{behind}",
                consequence="none of these tasks can start: the kernel hangs",
                fix="find the edge that leads back, and let the earlier operator not wait for the later one",
            )


def _chain(context: Context, rank: Rank, tasks: list[int]) -> str:
    """`task 40 (TASK_A of layer 0) -> event 9 -> task 52 (TASK_B of layer 0) -> event 7 -> task 40`."""
    events = context.events(rank)
    steps = [
        f"task {task:,}{_named(context, rank, task)} -> event {events.pair((rank.number, task)).trigger}"
        for task in tasks
    ]
    if len(steps) > _MOST_SHOWN:
        half = _MOST_SHOWN // 2
        steps[half:-half] = [f"… ({len(steps) - 2 * half:,} more tasks)"]
    return f"{' -> '.join(steps)} -> task {tasks[0]:,}"


def _named(context: Context, rank: Rank, task: int) -> str:
    calls = calls_of(context, rank, [task])
    return f" ({named(calls[0])})" if calls else ""
