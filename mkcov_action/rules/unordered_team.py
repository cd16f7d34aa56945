"""MK505: all-reduces of one team that are not in one order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from mkcov_action.analyses.happens_before import NoOrder
from mkcov_action.finding import Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._calls import calls_of, named
from mkcov_action.rules._races import no_order
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural
from mkcov_action.task_types import ALL_REDUCES


@rule(id="MK505", name="unordered-team", severity=Severity.ERROR, stage=Stage.RANKS, since="0.1.0")
def unordered_team(context: Context) -> Iterator[Result]:
    """Two tile all-reduces share a team, and nothing orders them.

    ## What it finds
    Tile all-reduces with the same `task_offset` use one team, with one barrier. Of any two of them
    one must surely be over before the other starts, and all ranks must have them in the same order.

    ## Why it matters
    A barrier cannot tell who arrives for which operation. Two ranks that enter with different ones sum
    different tiles, or wait for each other without end.

    ## Example
    The all-reduce behind the attention and that behind the experts depend on different events.

    ## How to fix it
    Let the later all-reduce depend on the earlier one, or give it a team of its own.
    """
    sequences: dict[int, dict[int, list[_Tile]]] = {}
    for rank in context.ranks:
        teams = _teams(rank)
        if not teams:
            continue
        sequences[rank.number] = {
            team: [_tile(rank, task) for task in tasks] for team, tasks in teams.items()
        }
        order = context.order(rank)
        if isinstance(order, NoOrder):
            yield unordered_team.not_checked(no_order(rank, order))
            continue
        loose = [
            (team, one, other)
            for team, tasks in teams.items()
            for one, other in pairwise(tasks)
            if not order.before((rank.number, one), (rank.number, other))
        ]
        if loose:
            team, one, other = loose[0]
            (first,), (second,) = (calls_of(context, rank, [task]) for task in (one, other))
            yield unordered_team.finding(
                operator=second.operator,
                tasks=len(loose),
                ranks=(rank.number,),
                kind="unordered",
                message=f"task {one:,} ({named(first)}) and task {other:,} ({named(second)}) use team {team}, and neither"
                f" waits for the other; {plural(len(loose), 'pair')} of all-reduces in all",
                consequence="ranks that enter the team's barrier with different operations sum different tiles, or hang",
                fix="let the later all-reduce depend on the earlier one, or give it a team of its own",
            )
    yield from _across(sequences)


def _teams(rank: Rank) -> dict[int, list[int]]:
    """The all-reduces of each team, in the order of their numbers; none where the file has no team numbers."""
    graph = rank.graph
    numbers = {number for number in set(graph.task_type) if rank.type_name(number) in ALL_REDUCES}
    teams: defaultdict[int, list[int]] = defaultdict(list)
    if numbers and "task_offset" in graph.metadata:
        for task, number in enumerate(graph.task_type):
            if number in numbers:
                teams[graph.metadata["task_offset"][task]].append(task)
    return dict(teams)


_Tile = tuple[tuple[str, int], ...]


def _tile(rank: Rank, task: int) -> _Tile:
    """The tile that an all-reduce sums: its tensor and its byte offset; nothing where it has lost its input."""
    operands = (rank.graph.operands[operand] for operand in rank.graph.operand_lists[rank.graph.inputs[task]])
    return tuple((operand.tensor, operand.offset) for operand in operands)


def _across(sequences: dict[int, dict[int, list[_Tile]]]) -> Iterator[Result]:
    if len(sequences) < 2:
        return
    reference, *others = sequences
    for other in others:
        teams = [
            team
            for team in sorted(sequences[reference].keys() | sequences[other].keys())
            if sequences[reference].get(team) != sequences[other].get(team)
        ]
        if teams:
            yield unordered_team.finding(
                ranks=(reference, other),
                kind="order of ranks",
                message=f"ranks {reference} and {other} do not do the all-reduces of team {teams[0]} in the same order"
                f" ({plural(len(teams), 'team')} in all)",
                consequence="the ranks sum different tiles, or wait for each other without end",
                fix="generate all ranks in one run, with the same layers in the same order",
            )
