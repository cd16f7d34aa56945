"""The view of a rank as a whole: its figures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from mkcov_action.analyses.chains import longest_chain
from mkcov_action.analyses.operators import OperatorCall
from mkcov_action.kernel_source import Origin
from mkcov_action.neighbourhood.events import event_type_name
from mkcov_action.neighbourhood.model import (
    Call,
    EventCount,
    LayerCount,
    OriginCount,
    Spread,
    StatsView,
    TypeCount,
)
from mkcov_action.neighbourhood.sight import Sight

_BETWEEN_OPERATORS = 2  # events 0 and 1 and the last are the runtime's own


def stats_view(sight: Sight) -> StatsView:
    """The figures of the rank."""
    graph, events = sight.graph, sight.events
    inner = range(_BETWEEN_OPERATORS, len(events) - 1)
    waiting = [sum(events.pairs[pair].tasks for pair in events.consumers[event]) for event in inner]
    types = sorted(Counter(graph.events.event_type).items())
    mismatched = frozenset(range(1, len(events))) - events.tagged
    return StatsView(
        tasks=len(graph),
        events=len(events),
        first_tasks=len(graph.first_tasks),
        calls=len(sight.operators.calls),
        never_run=sight.startable.blocked,
        event_types=tuple(
            EventCount(event_type=event_type_name(number), event_type_number=number, events=count)
            for number, count in types
        ),
        task_types=tuple(_types(sight)),
        layers=tuple(_layers(sight)),
        tensors=tuple(_tensors(sight)),
        fan_in=_spread([events.triggers[event] for event in inner]),
        fan_out=_spread(waiting),
        too_few_triggers=len(events.too_few & mismatched),
        too_many_triggers=len(events.too_many & mismatched),
        longest_chain=_chain(sight),
        behind=sight.reasons(sight.startable.causes),
    )


def _types(sight: Sight) -> Iterator[TypeCount]:
    graph = sight.graph
    variants = Counter(number for number, _ in set(zip(graph.task_type, graph.variant_id, strict=True)))
    calls = Counter(call.type_number for call in sight.operators.calls)
    never: Counter[int] = Counter()
    for index, tasks in sight.never_run.items():
        if index >= 0:
            never[sight.operators.calls[index].type_number] += tasks
    for number, tasks in sorted(Counter(graph.task_type).items()):
        yield TypeCount(
            task_type=sight.rank.type_name(number),
            task_type_number=number,
            variants=variants[number],
            calls=calls[number],
            tasks=tasks,
            never_run=never[number],
        )


def _layers(sight: Sight) -> Iterator[LayerCount]:
    members: defaultdict[int | None, list[tuple[int, OperatorCall]]] = defaultdict(list)
    for index, call in enumerate(sight.operators.calls):
        members[call.layer].append((index, call))
    for layer in sorted(members, key=lambda number: -1 if number is None else number):
        by_type: Counter[str] = Counter()
        for _, call in members[layer]:
            by_type[call.operator.type_name] += call.tasks
        yield LayerCount(
            layer=layer,
            calls=len(members[layer]),
            tasks=by_type.total(),
            never_run=sum(sight.never_run[index] for index, _ in members[layer]),
            by_type=dict(by_type),
        )


def _tensors(sight: Sight) -> Iterator[OriginCount]:
    for origin in Origin:
        found = [each for each in sight.rank.declarations.values() if each.origin is origin]
        known = [each.bytes for each in found if each.bytes is not None]
        if found:
            yield OriginCount(
                origin=origin,
                tensors=len(found),
                bytes=sum(known) if known else None,
                dead=sum(not sight.consumption.is_referenced(each.name) for each in found),
            )


def _spread(figures: Iterable[int]) -> Spread | None:
    ordered: Sequence[int] = sorted(figures)
    if not ordered:
        return None
    return Spread(least=ordered[0], median=ordered[len(ordered) // 2], most=ordered[-1])


def _chain(sight: Sight) -> tuple[Call, ...] | None:
    pairs = longest_chain(sight.events)
    if pairs is None:
        return None
    calls = (sight.calls_of_pair(pair) for pair in pairs)
    return tuple(sight.call(indices[0]) for indices in calls if indices)
