"""MK301: event ids that cannot be right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from mkcov_action.analyses.events import Fault, InvalidReference, Side
from mkcov_action.finding import Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._calls import calls_of, layers, members
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed, plural


@rule(id="MK301", name="invalid-event", severity=Severity.ERROR, stage=Stage.ORDER, since="0.1.0")
def invalid_event(context: Context) -> Iterator[Result]:
    """A task waits for or triggers an event that cannot be meant.

    ## What it finds
    An event id is a tag, a rank and a position in the event table. Reported are positions outside
    the table, another rank's bits on an event of the task's own rank, a tag that a put lacks or that
    stands on what no put triggers, and no event at all where there must be one.

    ## Why it matters
    The worker takes the low bits of the id as an index and waits on whatever counter lies there, or
    signals it: it hangs, or starts before its inputs are written.

    ## Example
    `dependent_event` is 95 and the table has 95 events, 0 to 94.

    ## How to fix it
    Generate the task graph again. If a script edited it, keep tag and rank bits of the ids.
    """
    for rank in context.ranks:
        groups: defaultdict[tuple[Side, Fault, str], list[InvalidReference]] = defaultdict(list)
        for reference in context.events(rank).invalid:
            first = calls_of(context, rank, [reference.first])
            type_name = first[0].operator.type_name if first else ""
            groups[reference.side, reference.fault, type_name].append(reference)
        for (side, fault, _), references in groups.items():
            tasks = sum(reference.tasks for reference in references)
            calls = calls_of(context, rank, (reference.first for reference in references))
            operator = calls[0].operator if calls else None
            does = "wait for" if side is Side.DEPENDENT else "trigger"
            one = "waits for" if side is Side.DEPENDENT else "triggers"
            yield invalid_event.finding(
                operator=operator,
                tasks=tasks,
                ranks=(rank.number,),
                kind=f"{side} {fault}",
                members=members(calls) if len(calls) > 1 else (),
                message=f"{plural(tasks, 'task')} of {operator or 'the runtime'}{layers(calls)} "
                f"{one if tasks == 1 else does} {_what(rank, references, fault)}"
                f" (task {references[0].first:,})",
                consequence=_consequence(side, fault),
                fix="generate the task graph again; a script that edits event ids must keep their tag and rank bits",
            )


def _what(rank: Rank, references: list[InvalidReference], fault: Fault) -> str:
    ids = listed([f"{reference.event_id:#x}" for reference in references])
    size = len(rank.graph.events)
    return {
        Fault.MISSING: "no event",
        Fault.MALFORMED_TAG: f"event {ids}, whose tag is no tag",
        Fault.LOST_TAG: f"event {ids} without the tag that signals between ranks need",
        Fault.STRAY_TAG: f"event {ids} under the tag of signals between ranks, which no put sends",
        Fault.OUT_OF_RANGE: f"event {ids}, and the table has {plural(size, 'event')}",
        Fault.WRONG_RANK: f"event {ids}, whose rank bits are not right for rank {rank.number}",
    }[fault]


def _consequence(side: Side, fault: Fault) -> str:
    if side is Side.TRIGGER:
        return "the event that should be triggered is not: what waits for it never starts"
    if fault is Fault.MISSING:
        return "the tasks start at once, before their inputs are written"
    return (
        "the tasks wait on a counter that is not theirs: they hang, or start before their inputs are written"
    )
