"""Phrases that the rules about unordered memory share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mkcov_action.analyses.happens_before import NoOrder
from mkcov_action.analyses.operators import OperatorCall
from mkcov_action.analyses.races import Race, RaceReport
from mkcov_action.analyses.spans import span_of
from mkcov_action.finding import Confidence
from mkcov_action.megakernel import Rank
from mkcov_action.rules._calls import layers
from mkcov_action.rules._context import Context
from mkcov_action.rules._wording import listed


def confidence(races: Sequence[Race]) -> Confidence:
    """Certain where the bytes of at least one of the races are certain."""
    return Confidence.CERTAIN if any(race.certain for race in races) else Confidence.POSSIBLE


def bytes_in(rank: Rank, task: int, tensor: str) -> str:
    """`task 356, bytes 0 to 1,179,647`: what a task's tile of the tensor spans."""
    graph = rank.graph
    operands = (*graph.operand_lists[graph.inputs[task]], *graph.operand_lists[graph.outputs[task]])
    for operand in map(graph.operands.__getitem__, operands):
        if operand.tensor == tensor:
            start, stop = span_of(operand) or (0, 0)
            return f"task {task:,}, bytes {start:,} to {stop - 1:,}" if stop > start else f"task {task:,}"
    return f"task {task:,}"


def events_between(context: Context, rank: Rank, earlier: int, later: int) -> str:
    """The nearest events on either side, between which there is no path."""
    events = context.events(rank)
    fires, waits = events.pair((rank.number, earlier)).trigger, events.pair((rank.number, later)).dependent
    one = f"task {earlier:,} triggers event {fires}" if fires >= 0 else f"task {earlier:,} triggers no event"
    other = f"task {later:,} waits for event {waits}" if waits >= 0 else f"task {later:,} waits for none"
    return f"{one}, {other}, and no path leads from the one to the other"


def all_layers(calls: Sequence[OperatorCall]) -> str:
    """Where this is so, if it is in several layers."""
    return layers(calls) if len(calls) > 1 else ""


def no_order(rank: Rank, order: NoOrder) -> str:
    """Why nothing can be said of a rank's order."""
    why = "event ids that cannot be right" if order.invalid else "tasks that wait for each other"
    return f"rank {rank.number} has {why}: the order of its tasks is not known"


def undecided(rank: Rank, report: RaceReport) -> Iterator[str]:
    """The tensors whose bytes were too costly to compare."""
    if report.undecided:
        yield f"rank {rank.number}: the tiles of {listed(report.undecided)} are too many to compare"
