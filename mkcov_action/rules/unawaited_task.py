"""MK306: tasks that the end of the iteration does not wait for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from mkcov_action.analyses.events import Pair, Side
from mkcov_action.analyses.happens_before import NoOrder
from mkcov_action.finding import Severity
from mkcov_action.rules._calls import calls_of, layers, members
from mkcov_action.rules._races import no_order
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural


@rule(id="MK306", name="unawaited-task", severity=Severity.WARNING, stage=Stage.ORDER, since="0.1.0")
def unawaited_task(context: Context) -> Iterator[Result]:
    """The end of an iteration does not wait for a task.

    ## What it finds
    Tasks that are no ancestor of the last event, which ends the iteration. Tagged events count as
    triggered by this rank's own puts.

    ## Why it matters
    The next iteration starts while the task still runs: it reads buffers that are being written
    anew, and its result comes too late or overwrites a newer one.

    ## Example
    The cache of a layer is written by a task whose event nobody waits for.

    ## How to fix it
    Let the task trigger an event on the way to the end: every leaf of the graph triggers the last event.
    """
    for rank in context.ranks:
        order = context.order(rank)
        if isinstance(order, NoOrder):
            yield unawaited_task.not_checked(no_order(rank, order))
            continue
        short = order.events.too_few - order.events.tagged - {0}
        groups: defaultdict[str, list[Pair]] = defaultdict(list)
        for pair in order.events.pairs:
            if pair.first > 1 and pair.trigger >= 0 and not order.awaited_by_end >> pair.trigger & 1:
                calls = calls_of(context, rank, [pair.first])
                groups[calls[0].operator.type_name].append(pair)
        if groups and (short or any(item.side is Side.TRIGGER for item in order.events.invalid)):
            yield unawaited_task.not_checked(
                f"rank {rank.number} has events that lack triggers: the way to its end may lead through them"
            )
            continue
        for pairs in groups.values():
            calls = calls_of(context, rank, (pair.first for pair in pairs))
            tasks = sum(pair.tasks for pair in pairs)
            last = Counter({pair.trigger: pair.tasks for pair in pairs}).most_common(1)[0][0]
            yield unawaited_task.finding(
                operator=calls[0].operator,
                tasks=tasks,
                ranks=(rank.number,),
                members=members(calls) if len(calls) > 1 else (),
                message=f"{plural(tasks, 'task')} of {calls[0].operator}{layers(calls)}"
                f" {'triggers' if tasks == 1 else 'trigger'} event {last}"
                f"{'' if len(pairs) == 1 else ' and others'}, for which nothing on the way to the end waits",
                consequence="the next iteration starts while these tasks still run",
                fix="let each of these tasks trigger an event that the last event waits for, or the last event itself",
            )
