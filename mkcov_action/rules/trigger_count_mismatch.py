"""MK302: events that wait for other numbers of triggers than they get."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mkcov_action.analyses.events import EventGraph, InvalidReference, Side, decode
from mkcov_action.analyses.operators import OperatorCall
from mkcov_action.analyses.startable import startable_of
from mkcov_action.finding import Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._calls import calls_of, layers, members, named
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed, plural


@rule(id="MK302", name="trigger-count-mismatch", severity=Severity.ERROR, stage=Stage.ORDER, since="0.1.0")
def trigger_count_mismatch(context: Context) -> Iterator[Result]:
    """An event waits for more or fewer triggers than its producers send.

    ## What it finds
    `num_triggers` of an event is held against the tasks that trigger it. Events that other ranks
    trigger are left out, and so is event 0, which ends the kernel.

    ## Why it matters
    With fewer triggers than it waits for, an event never fires: what waits for it hangs, and so does
    all that comes after. With more, it fires before all of its producers are done, and its consumers
    read what is not yet written.

    ## Example
    A join counts each of its nine producers twice: it waits for 18 triggers and gets 9.

    ## How to fix it
    Let the generator count every producer once. Where an operator was taken out by hand, take its
    tasks out of the counts.
    """
    for rank in context.ranks:
        events = context.events(rank)
        for group in _groups(context, rank, events).values():
            yield _finding(context, rank, events, group)


@dataclass(frozen=True, slots=True)
class _Mismatch:
    """One event, by its position; `producers` and `consumers` are the calls on either side."""

    event: int
    waits: int
    gets: int
    producers: Sequence[OperatorCall]
    consumers: Sequence[OperatorCall]


def _groups(context: Context, rank: Rank, events: EventGraph) -> dict[tuple[bool, str, str], list[_Mismatch]]:
    """The mismatches of one rank; what differs in nothing but layer and number is one group."""
    broken = [reference for reference in events.invalid if reference.side is Side.TRIGGER]
    groups: defaultdict[tuple[bool, str, str], list[_Mismatch]] = defaultdict(list)
    for event in sorted((events.too_few | events.too_many) - events.tagged - {0}):
        waits, gets = events.num_triggers[event], events.triggers[event]
        if gets < waits and any(_explains(reference, event, waits - gets) for reference in broken):
            continue
        firsts = ([events.pairs[index].first for index in side[event]]
                  for side in (events.producers, events.consumers))  # fmt: skip
        producers, consumers = (calls_of(context, rank, tasks) for tasks in firsts)
        types = [
            tuple(dict.fromkeys(call.operator.type_name for call in calls))
            for calls in (producers, consumers)
        ]
        key = gets < waits, " ".join(types[1]) or "end", "" if consumers else " ".join(types[0])
        groups[key].append(_Mismatch(event, waits, gets, producers, consumers))
    return groups


def _explains(reference: InvalidReference, event: int, short: int) -> bool:
    """Whether the triggers that an event lacks are those of a broken id, of which that is said."""
    parts = decode(reference.event_id)
    return reference.tasks == short or (parts is not None and parts.position == event)


def _finding(context: Context, rank: Rank, events: EventGraph, group: list[_Mismatch]) -> Result:
    first = group[0]
    few = first.gets < first.waits
    producing = [call for item in group for call in item.producers]
    consuming = [call for item in group for call in item.consumers]
    repeated = [item.consumers[0] for item in group if item.consumers]
    end = first.event == len(events) - 1
    what = (
        f"event {first.event}, which {'ends the iteration' if end else f'starts {_some(first.consumers)}'},"
    )
    more = ""
    if len(group) > 1:
        more = f"; so {'does' if len(group) == 2 else 'do'} {plural(len(group) - 1, 'more event')}{layers(consuming)}"
    return trigger_count_mismatch.finding(
        operator=next((call.operator for call in (*repeated, *producing)), None),
        ranks=(rank.number,),
        kind="too few" if few else "too many",
        members=(
            members(repeated) if len(repeated) == len(group) else tuple(f"event {i.event}" for i in group)
        )
        if len(group) > 1
        else (),
        message=f"{what} waits for {plural(first.waits, 'trigger')} and gets {first.gets:,}"
        f"{f' from {_some(first.producers)}' if first.producers else ''}{more}"
        f"{_behind(context, rank, events, group) if few else ''}",
        consequence="the tasks that wait for it never start: the kernel hangs"
        if few
        else "it fires before all of its producers are done: what waits for it reads what is not yet written",
        fix="let the event wait for as many triggers as tasks trigger it, each producer counted once",
    )


def _some(calls: Sequence[OperatorCall]) -> str:
    return listed([named(call) for call in calls]) if calls else "nothing"


def _behind(context: Context, rank: Rank, events: EventGraph, group: list[_Mismatch]) -> str:
    """How many tasks never run because of these events."""
    mended = startable_of(events, forgiven=[item.event for item in group])
    now = context.startable(rank)
    # What other causes hold back as well stays blocked when these events are mended: it counts, too.
    behind = max(
        now.blocked - mended.blocked,
        max((cause.behind for cause in now.causes if cause.event in {i.event for i in group}), default=0),
    )
    verb = "runs" if behind == 1 else "run"
    return (
        f"; {behind:,} of {plural(now.tasks, 'task')} never {verb} behind {'it' if len(group) == 1 else 'them'}"
        if behind
        else ""
    )
