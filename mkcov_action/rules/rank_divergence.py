"""MK501: ranks whose task graphs differ where they must not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import ne

from mkcov_action.analyses.events import decode
from mkcov_action.finding import Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._calls import calls_of, layers, named
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed, plural
from mkcov_action.task_graph import TaskGraph
from mkcov_action.task_types import DATA_TYPE_BYTES, PUTS


@rule(id="MK501", name="rank-divergence", severity=Severity.ERROR, stage=Stage.RANKS, since="0.1.0")
def rank_divergence(context: Context) -> Iterator[Result]:
    """The ranks of a graph differ in their tasks or events.

    ## What it finds
    Ranks run the same graph on their own shards: task by task the type, the variant's place, the tensors
    and tiles, the metadata and the events must be equal, and so must the event tables. Only the rank
    bits of event ids differ, and where puts go. Of several ranks those are named that most others
    contradict.

    ## Why it matters
    Ranks wait for each other's signals by position. One that was generated with other settings, or
    edited, waits for what never comes, or reduces other tiles than its peers.

    ## Example
    One rank of eight was generated for a batch of 16 and the others for 8.

    ## How to fix it
    Generate all ranks in one run, with the same settings.
    """
    if len(context.ranks) < 2:
        return
    sizes = {rank.number: len(rank.graph) for rank in context.ranks}
    if len(set(sizes.values())) > 1:
        yield from _odd("tasks", sizes, "task")
        return  # from the first task on that one rank lacks, all others stand elsewhere
    yield from _tables(context)
    for aspect in _aspects(context.ranks):
        yield from _compare(context, aspect)


@dataclass(frozen=True, slots=True)
class _Aspect:
    """One thing that each task has, as a column by rank."""

    noun: str
    columns: Mapping[int, Sequence[Hashable]]


def _aspects(ranks: Sequence[Rank]) -> Iterator[_Aspect]:
    graphs = {rank.number: rank.graph for rank in ranks}
    yield _Aspect("type", {number: graph.task_type for number, graph in graphs.items()})
    yield _Aspect("variant", {rank.number: _variant_places(rank) for rank in ranks})
    for side in ("inputs", "outputs"):
        yield _Aspect(side, _contents(ranks, side))
    for field in graphs[ranks[0].number].metadata:
        if all(field in graph.metadata for graph in graphs.values()):
            yield _Aspect(field, {number: graph.metadata[field] for number, graph in graphs.items()})
    for side in ("dependent_event", "trigger_event"):
        yield _Aspect(side, {number: _positions(getattr(graph, side)) for number, graph in graphs.items()})


def _contents(ranks: Sequence[Rank], side: str) -> dict[int, list[int]]:
    """What each task's tensors of one side are, the same number for the same content on all ranks."""
    numbers: dict[Hashable, int] = {}
    columns = {}
    for rank in ranks:
        graph = rank.graph
        puts = {number for number in set(graph.task_type) if rank.type_name(number) in PUTS}
        plain = [
            numbers.setdefault(_spelled(graph, operands, 0), len(numbers)) for operands in graph.operand_lists
        ]
        column: Sequence[int] = getattr(graph, side)
        found = list(map(plain.__getitem__, column))
        if side == "outputs" and puts:
            for task, number in enumerate(graph.task_type):
                if number in puts:
                    content = _spelled(graph, graph.operand_lists[column[task]], rank.number)
                    found[task] = numbers.setdefault(content, len(numbers))
        columns[rank.number] = found
    return columns


def _spelled(graph: TaskGraph, operands: Sequence[int], slice_of: int) -> Hashable:
    """Some operands by content; of a put's buffer, without the slice of the rank that writes it.

    Its leading dimension is the ranks: rank r writes at r times its stride (mirage src/kernel/runtime.cc,
    print_task_graph).
    """
    found = []
    for operand in map(graph.operands.__getitem__, operands):
        size = DATA_TYPE_BYTES.get(operand.data_type, 0)
        own = slice_of * operand.strides[0] * size if slice_of and operand.strides else 0
        found.append(operand._replace(offset=operand.offset - own))
    return tuple(found)


def _variant_places(rank: Rank) -> list[int]:
    """The variant of each task as its place among those of its type, in the order in which tasks use them.

    Bodies that differ in a rank's literals may get their numbers in another order.
    """
    places: defaultdict[int, dict[int, int]] = defaultdict(dict)
    pairs = zip(rank.graph.task_type, rank.graph.variant_id, strict=True)
    return [places[number].setdefault(variant, len(places[number])) for number, variant in pairs]


def _positions(column: Sequence[int]) -> list[int]:
    """Event ids without their rank bits."""
    parts = {event: decode(event) for event in set(column)}
    plain = {event: -1 if part is None else part.tag << 32 | part.position for event, part in parts.items()}
    return list(map(plain.__getitem__, column))


def _compare(context: Context, aspect: _Aspect) -> Iterator[Result]:
    reference, odd = _majority({number: _digest(column) for number, column in aspect.columns.items()})
    if not odd:
        return
    expected = aspect.columns[reference]
    for number in odd:
        rank = context.megakernel.rank(number)
        differ = [task for task, other in enumerate(map(ne, aspect.columns[number], expected)) if other]
        calls = calls_of(context, rank, differ)
        example = f" (task {differ[0]:,}{f', {named(calls[0])}' if calls else ''})"
        yield rank_divergence.finding(
            operator=calls[0].operator if calls else None,
            tasks=len(differ),
            ranks=(number,),
            kind=aspect.noun,
            message=f"rank {number} differs from rank {reference} in the {aspect.noun} of {plural(len(differ), 'task')}"
            f"{layers(calls)}{example}",
            consequence="the ranks do not run the same graph: they wait for what never comes, or sum different tiles",
            fix="generate all ranks in one run, with the same settings",
        )


def _digest(column: Sequence[Hashable]) -> int:
    return hash(tuple(column))


def _tables(context: Context) -> Iterator[Result]:
    counts = {rank.number: len(rank.graph.events) for rank in context.ranks}
    if len(set(counts.values())) > 1:
        yield from _odd("events", counts, "event")
        return
    for field in ("event_type", "num_triggers", "first_task_id", "last_task_id"):
        columns = {rank.number: getattr(rank.graph.events, field) for rank in context.ranks}
        reference, odd = _majority({number: tuple(column) for number, column in columns.items()})
        for number in odd:
            differ = [
                event
                for event, different in enumerate(map(ne, columns[number], columns[reference]))
                if different
            ]
            yield rank_divergence.finding(
                ranks=(number,),
                kind=f"event table: {field}",
                message=f"rank {number} differs from rank {reference} in {field} of {plural(len(differ), 'event')}:"
                f" {listed([f'event {event} ({columns[number][event]:,}, not {columns[reference][event]:,})' for event in differ])}",
                consequence="the ranks do not run the same graph: they wait for what never comes",
                fix="generate all ranks in one run, with the same settings",
            )


def _odd(noun: str, counts: dict[int, int], one: str) -> Iterator[Result]:
    reference, odd = _majority(counts)
    for number in odd:
        yield rank_divergence.finding(
            ranks=(number,),
            kind=noun,
            message=f"rank {number} has {plural(counts[number], one)}, rank {reference} {counts[reference]:,}",
            consequence="the ranks do not run the same graph: they wait for what never comes",
            fix="generate all ranks in one run, with the same settings",
        )


def _majority(values: Mapping[int, Hashable]) -> tuple[int, list[int]]:
    """The lowest rank that has what most have, and the ranks that have something else."""
    most = Counter(values.values()).most_common(1)[0][0]
    reference = next(number for number, value in values.items() if value == most)
    return reference, [number for number, value in values.items() if value != most]
