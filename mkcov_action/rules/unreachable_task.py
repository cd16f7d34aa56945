"""MK304: tasks that nothing ever starts."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.analyses.startable import Cause, CauseKind
from mkcov_action.finding import Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._calls import calls_of, layers, types
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural


@rule(id="MK304", name="unreachable-task", severity=Severity.ERROR, stage=Stage.ORDER, since="0.1.0")
def unreachable_task(context: Context) -> Iterator[Result]:
    """Tasks are in the graph that can never start.

    ## What it finds
    Tasks outside the range that event 1 launches, tasks that wait for event 0, which nothing
    triggers, and all that waits behind either. Tasks behind a wrong trigger count, a broken event id
    or a cycle are left to the rules that name these.

    ## Why it matters
    A task that is never launched never triggers its event: what waits for it hangs, or, where nothing
    does, a part of the model is silently not computed.

    ## Example
    Event 1 launches tasks 2 to 1,000 and the graph has 1,200.

    ## How to fix it
    Let the range of event 1 cover every task from 2 on, and generate the task graph again.
    """
    for rank in context.ranks:
        for cause in context.startable_once_counted(rank).causes:
            if cause.kind is CauseKind.UNLAUNCHED:
                yield _unlaunched(context, rank, cause)
            elif cause.kind is CauseKind.STARVED and cause.event == 0:
                yield _awaits_nothing(context, rank, cause)


def _unlaunched(context: Context, rank: Rank, cause: Cause) -> Result:
    launched = context.events(rank).launched[rank.number]
    outside = [
        *range(2, min(launched.start, len(rank.graph))),
        *range(max(launched.stop, 2), len(rank.graph)),
    ]
    calls = calls_of(context, rank, outside)
    said = f"tasks {launched.start:,} to {launched.stop - 1:,}" if launched else "no task"
    behind = cause.behind - len(outside)
    return unreachable_task.finding(
        operator=calls[0].operator if calls else None,
        tasks=cause.behind,
        ranks=(rank.number,),
        kind="unlaunched",
        message=f"event 1 launches {said}: {plural(len(outside), 'task')} of {types(calls)}{layers(calls)}"
        f" {'is' if len(outside) == 1 else 'are'} never launched"
        + (
            f", and {plural(behind, 'more task')} never {'runs' if behind == 1 else 'run'} behind them"
            if behind
            else ""
        ),
        consequence="these tasks never run, and what waits for them hangs",
        fix="let event 1's range cover every task from 2 on",
    )


def _awaits_nothing(context: Context, rank: Rank, cause: Cause) -> Result:
    events = context.events(rank)
    calls = calls_of(context, rank, (events.pairs[index].first for index in events.consumers[0]))
    return unreachable_task.finding(
        operator=calls[0].operator if calls else None,
        tasks=cause.behind,
        ranks=(rank.number,),
        kind="event 0",
        message=f"{types(calls)}{layers(calls)} {'waits' if len(calls) == 1 else 'wait'} for event 0, which nothing"
        f" triggers: {plural(cause.behind, 'task')} never {'runs' if cause.behind == 1 else 'run'}",
        consequence="these tasks never run, and what waits for them hangs",
        fix="let the tasks wait for the event that their producers trigger",
    )
