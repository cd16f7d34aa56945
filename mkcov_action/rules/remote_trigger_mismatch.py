"""MK502: events that wait for other numbers of remote signals than the other ranks send."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from mkcov_action.finding import Severity
from mkcov_action.rules._calls import calls_of, layers, members, named
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural


@rule(id="MK502", name="remote-trigger-mismatch", severity=Severity.ERROR, stage=Stage.RANKS, since="0.1.0")
def remote_trigger_mismatch(context: Context) -> Iterator[Result]:
    """An event that other ranks trigger waits for more or fewer signals than they send.

    ## What it finds
    `num_triggers` of each event that is awaited or triggered under the tag, held against the puts of
    all other ranks that name it. Not checked unless all ranks were given.

    ## Why it matters
    The wait is for an exact number. With fewer signals the rank hangs, with more it never sees the
    number it waits for, or goes on before the last tile has arrived.

    ## Example
    The puts of one rank were generated for another grid: 128 events wait for one signal each and get two.

    ## How to fix it
    Generate all ranks in one run, so that their puts and their events agree.
    """
    size = context.megakernel.world_size
    if not any(context.events(rank).tagged for rank in context.ranks):
        return
    if size is None or len(context.ranks) < size:
        yield remote_trigger_mismatch.not_checked(
            "not all ranks were given: what the others send is not known"
        )
        return
    events = context.all_events()
    numbers = {rank.number: rank for rank in context.ranks}
    groups: defaultdict[tuple[int, bool, str], list[int]] = defaultdict(list)
    for event in sorted(events.tagged):
        waits, gets = events.num_triggers[event], events.triggers[event]
        if waits != gets:
            number, _ = events.place(event)
            waiting = calls_of(
                context, numbers[number], (events.pairs[p].first for p in events.consumers[event])
            )
            groups[number, gets < waits, waiting[0].operator.type_name if waiting else ""].append(event)
    for (number, few, _), wrong in groups.items():
        rank = numbers[number]
        first = wrong[0]
        calls = calls_of(
            context, rank, (events.pairs[p].first for event in wrong for p in events.consumers[event])
        )
        starts = f", which starts {named(calls[0])}," if calls else ""
        more = (
            f"; so it is with {plural(len(wrong) - 1, 'more event')}{layers(calls)}" if len(wrong) > 1 else ""
        )
        yield remote_trigger_mismatch.finding(
            operator=calls[0].operator if calls else None,
            ranks=(number,),
            kind="too few" if few else "too many",
            members=members(calls) if len(calls) > 1 else (),
            message=f"event {events.place(first)[1]} of rank {number}{starts} waits for"
            f" {plural(events.num_triggers[first], 'signal')} and the other ranks send {events.triggers[first]:,}{more}",
            consequence="the rank hangs"
            if few
            else "the rank never sees the number that it waits for, or starts too early",
            fix="generate all ranks in one run",
        )
