"""MK403: a buffer that is used again too early."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from mkcov_action.analyses.happens_before import NoOrder
from mkcov_action.analyses.races import Race, RaceKind
from mkcov_action.finding import Severity, family_of
from mkcov_action.rules._calls import members
from mkcov_action.rules._races import all_layers, bytes_in, confidence, events_between
from mkcov_action.rules._rule import Context, Result, Stage, rule


@rule(id="MK403", name="data-race", severity=Severity.WARNING, stage=Stage.MEMORY, since="0.1.0")
def data_race(context: Context) -> Iterator[Result]:
    """Two operators use the same bytes, one of them writes, and nothing orders them.

    ## What it finds
    Writes that are not ordered with another write, or with a read that comes before them by task
    number: mostly scratch that a later layer uses again. What exists only because a read does not wait
    for its write is a number in that finding. Sums that are added into one buffer are no race.

    ## Why it matters
    A later layer overwrites what an earlier one still reads. It shows under load, in some layers, on
    some GPUs.

    ## Example
    Two layers share `rmsnorm_out`, and the second norm does not wait for the first layer's linears.

    ## How to fix it
    Give the layers buffers of their own, or let the later writer depend on the earlier user.
    """
    for rank in context.ranks:
        report = context.races(rank)
        if isinstance(report, NoOrder):
            continue  # the rule about reads says so
        calls = context.operators(rank).calls
        groups: defaultdict[tuple[str, str, str, RaceKind], list[Race]] = defaultdict(list)
        for race in report.conflicts:
            types = calls[race.earlier].operator.type_name, calls[race.later].operator.type_name
            groups[family_of(race.tensor), *types, race.kind].append(race)
        for races in groups.values():
            race = races[0]
            first, second = calls[race.earlier], calls[race.later]
            one, other = race.tasks
            does = "reads" if race.kind is RaceKind.WRITE_AFTER_READ else "writes"
            yield data_race.finding(
                tensor=race.tensor,
                operator=second.operator,
                tasks=sum(race.pairs for race in races),
                ranks=(rank.number,),
                kind=f"{race.kind} {first.operator.type_name}",
                confidence=confidence(races),
                members=members([calls[race.later] for race in races]) if len(races) > 1 else (),
                message=f"{second.operator} writes {race.tensor} ({bytes_in(rank, other, race.tensor)}) and is not ordered"
                f" with {first.operator}, which {does} it ({bytes_in(rank, one, race.tensor)})"
                f"{all_layers([calls[race.later] for race in races])}: {events_between(context, rank, one, other)}",
                consequence="one of them works on bytes that the other overwrites",
                fix="let the later operator depend on the earlier one, or give them buffers of their own",
            )
