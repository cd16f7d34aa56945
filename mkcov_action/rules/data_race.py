"""MK403: a buffer that is used again too early."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from mkcov_action.analyses.happens_before import NoOrder
from mkcov_action.analyses.operators import OperatorCall
from mkcov_action.analyses.races import Race, RaceKind, RaceReport
from mkcov_action.finding import Severity, family_of
from mkcov_action.megakernel import Rank
from mkcov_action.rules._calls import members, named
from mkcov_action.rules._races import all_layers, bytes_in, confidence, events_between
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural


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
        yield from _within_calls(rank, report, calls)
        groups: defaultdict[tuple[str, str, str, RaceKind], list[Race]] = defaultdict(list)
        for race in report.conflicts:
            if race.earlier == race.later:
                continue
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


def _within_calls(rank: Rank, report: RaceReport, calls: Sequence[OperatorCall]) -> Iterator[Result]:
    """Tasks of one operator that write the same bytes; those that are alike in all have a rule of their own."""
    groups: defaultdict[tuple[str, str], list[Race]] = defaultdict(list)
    for race in report.conflicts:
        if race.earlier == race.later and not _are_alike(rank, *race.tasks):
            groups[family_of(race.tensor), calls[race.later].operator.type_name].append(race)
    for races in groups.values():
        race, mine = races[0], [calls[race.later] for race in races]
        one, other = (bytes_in(rank, task, race.tensor) for task in race.tasks)
        yield data_race.finding(
            tensor=race.tensor,
            operator=mine[0].operator,
            tasks=sum(race.pairs for race in races),
            ranks=(rank.number,),
            kind="tasks of one operator",
            confidence=confidence(races),
            members=members(mine) if len(mine) > 1 else (),
            message=f"two tasks of {named(mine[0])} write the same bytes of {race.tensor} ({one}; {other}), and nothing"
            f" orders them: {plural(sum(race.pairs for race in races), 'pair')} of tiles{all_layers(mine)}",
            consequence="what one of them computes is lost",
            fix="give each task of the operator a tile of its own",
        )


def _are_alike(rank: Rank, one: int, other: int) -> bool:
    graph = rank.graph
    return (graph.inputs[one], graph.outputs[one]) == (graph.inputs[other], graph.outputs[other])
