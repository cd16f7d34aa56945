"""MK305: producers that stand behind their consumers in the queues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from mkcov_action.analyses.startable import CauseKind
from mkcov_action.finding import Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._calls import calls_of, layers, members, named
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural


@rule(id="MK305", name="producer-after-consumer", severity=Severity.ERROR, stage=Stage.ORDER, since="0.1.0")
def producer_after_consumer(context: Context) -> Iterator[Result]:
    """A task waits for one with a larger number.

    ## What it finds
    An event of which a producer has a larger task number than a consumer. Cycles are left to the
    rule that names them.

    ## Why it matters
    Each worker takes its tasks strictly in the order of their numbers and waits where it has to. If
    the producer stands behind its consumer in one worker's queue, neither ever runs; whether it does
    depends on the number of workers. The same graph then runs on one GPU and hangs on another.

    ## Example
    Task 40 waits for an event that task 52 triggers.

    ## How to fix it
    Number the tasks in topological order, as the generator does.
    """
    for rank in context.ranks:
        groups: defaultdict[tuple[str, str], list[_Back]] = defaultdict(list)
        for event, producer, consumer in _backward(context, rank):
            (written,), (read,) = (calls_of(context, rank, [task]) for task in (producer, consumer))
            groups[written.operator.type_name, read.operator.type_name].append((event, producer, consumer))
        for backward in groups.values():
            event, producer, consumer = backward[0]
            (written,), (read,) = (calls_of(context, rank, [task]) for task in (producer, consumer))
            calls = calls_of(context, rank, (task for _, _, task in backward))
            more = (
                f"; so it is with {plural(len(backward) - 1, 'more event')}{layers(calls)}"
                if len(backward) > 1
                else ""
            )
            yield producer_after_consumer.finding(
                operator=read.operator,
                ranks=(rank.number,),
                kind=f"behind {written.operator.type_name}",
                members=members(calls) if len(calls) > 1 else (),
                message=f"task {consumer:,} ({named(read)}) waits for event {event}, which task {producer:,}"
                f" ({named(written)}) triggers: the producer has the larger number{more}",
                consequence="where both come into one worker's queue, neither ever runs: the kernel hangs on some GPUs",
                fix="number the tasks in topological order",
            )


_Back = tuple[int, int, int]
"""An event, its last producer, its first consumer."""


def _backward(context: Context, rank: Rank) -> Iterator[_Back]:
    """The events that lead back, without those that another rule names."""
    events = context.events(rank)
    named_elsewhere = {
        event
        for cause in context.startable_once_counted(rank).of(CauseKind.CYCLE)
        for event in cause.cycle_events
    }
    named_elsewhere |= (events.too_few | events.too_many) - events.tagged
    for event, (producers, consumers) in enumerate(zip(events.producers, events.consumers, strict=True)):
        if event in named_elsewhere:
            continue
        last = max(
            (events.pairs[index].last for index in producers if not events.pairs[index].put), default=0
        )
        first = min((events.pairs[index].first for index in consumers), default=last)
        if last > first > 1:
            yield event, last, first
