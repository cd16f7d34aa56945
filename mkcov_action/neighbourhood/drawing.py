"""The drawing of a neighbourhood: operator calls and events as nodes, tensors on the edges.

It is bounded, and counts what it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from mkcov_action.analyses.consumption import Access, Side, SlotKey
from mkcov_action.neighbourhood.folds import folded, likeness_of_access, likeness_of_call
from mkcov_action.neighbourhood.model import (
    Call,
    EventRef,
    EventView,
    LayerView,
    OperatorView,
    StatsView,
    TaskView,
    TensorAccess,
    TensorView,
    View,
)
from mkcov_action.neighbourhood.sight import Sight

MOST_CALLS = 40
"""So many calls can still be told apart in one drawing; a layer of a mixture of experts has as many."""

_RING = 8  # with more calls around an event, their other events would hide it


@dataclass(frozen=True, slots=True)
class CallNode:
    """A call; `focus` if it is what was asked for."""

    call: Call
    focus: bool


@dataclass(frozen=True, slots=True)
class EventNode:
    """Events with the same calls on either side, as one; `number` of the first tells it from others.

    `waits` and `gets` are those of each. `more_producers` and `more_consumers` are calls that are not drawn.
    """

    events: tuple[int, ...]
    waits: tuple[int, ...]
    gets: tuple[int, ...]
    tagged: bool
    fires: bool
    focus: bool
    more_producers: int
    more_consumers: int

    @property
    def number(self) -> int:
        """The first of its events."""
        return self.events[0]


class EdgeKind(StrEnum):
    """What an edge of the drawing stands for."""

    TRIGGER = "trigger"  # a call triggers an event
    WAIT = "wait"  # a call waits for an event, after which it reads what was written before
    DATA = "data"  # a call reads what another wrote, without an event between just these two


@dataclass(frozen=True, slots=True)
class Edge:
    """From a call or an event to another, by their numbers; `tensors` is what is read and was written.

    `tasks` is how many tasks trigger or wait, where that is not all of the call's.
    """

    kind: EdgeKind
    source: int
    target: int
    tensors: tuple[str, ...] = ()
    tasks: int | None = None


@dataclass(frozen=True, slots=True)
class Drawing:
    """The nodes and edges of a drawing, and how many calls that belong into it were left out."""

    calls: tuple[CallNode, ...]
    events: tuple[EventNode, ...]
    edges: tuple[Edge, ...]
    left_out: int


@dataclass(slots=True)
class _Scope:
    """What views want to see, in order, each call once and alike layers once.

    `around` are the calls whose events are drawn, `drawn` all calls that are.
    """

    focus: dict[int, None] = field(default_factory=dict)
    around: dict[int, None] = field(default_factory=dict)
    drawn: dict[int, None] = field(default_factory=dict)
    events: dict[int, None] = field(default_factory=dict)
    accesses: list[Sequence[TensorAccess]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    folded_away: set[int] = field(default_factory=set)


def drawing_of(sight: Sight, views: Iterable[View]) -> Drawing:
    """The drawing of all views together."""
    scope = _Scope()
    for view in views:
        _take(sight, view, scope)
    wanted = [*dict.fromkeys((*scope.focus, *scope.around, *scope.drawn))]
    shown = sorted(wanted[:MOST_CALLS])
    events = _events(sight, scope, shown)
    nodes = list(_event_nodes(sight, scope, events, shown))
    marks = not scope.focus.keys() >= set(shown)  # where all are what was asked for, none stands out
    edges = [*_event_edges(sight, nodes, shown), *_data_edges(sight, scope, nodes, shown)]
    return Drawing(
        calls=tuple(CallNode(sight.call(index), index in scope.focus and marks) for index in shown),
        events=tuple(nodes),
        edges=tuple(edges),
        left_out=len(scope.folded_away.union(wanted).difference(shown)),
    )


def _take(sight: Sight, view: View, scope: _Scope) -> None:
    """Adds what one view wants to see."""
    match view:
        case TensorView():
            folds = folded(view.accesses, lambda row: row.call, likeness_of_access, end=_end(sight))
            calls = [row.call.call for fold in folds for row in fold.rows]
            scope.accesses.append(view.accesses)
            scope.names.append(view.name)
            _focus(scope, calls, all_of=(row.call.call for row in view.accesses))
        case TaskView():
            calls = [view.call.call] if view.call else []
            _focus(scope, calls, all_of=calls)
            _neighbours(sight, scope, calls)
        case EventView():
            calls = [share.call.call for share in (*view.producers, *view.consumers)]
            scope.events[view.event] = None
            scope.drawn.update(dict.fromkeys(calls))
            if len(calls) <= _RING:
                scope.around.update(dict.fromkeys(calls))
        case OperatorView():
            whole = folded(view.calls, lambda row: row.call, likeness_of_call, end=_end(sight))
            calls = [row.call.call for fold in whole for row in fold.rows]
            _focus(scope, calls, all_of=(row.call.call for row in view.calls))
            _neighbours(sight, scope, calls)
        case LayerView():
            calls = [row.call.call for row in view.calls]
            _focus(scope, calls, all_of=calls)
        case StatsView():
            pass  # figures have no neighbourhood


def _end(sight: Sight) -> int:
    return len(sight.events) - 1


def _focus(scope: _Scope, calls: Sequence[int], *, all_of: Iterable[int]) -> None:
    scope.focus.update(dict.fromkeys(calls))
    scope.around.update(dict.fromkeys(calls))
    scope.folded_away.update(set(all_of).difference(calls))


def _neighbours(sight: Sight, scope: _Scope, calls: Iterable[int]) -> None:
    """The calls across the events of some calls. The end has all of them: nobody's neighbours."""
    for index in calls:
        call = sight.call(index)
        for event in _own(call.waits_for):
            scope.drawn.update((share.call.call, None) for share in sight.producers(event))
        for event in _own(call.triggers):
            scope.drawn.update((share.call.call, None) for share in sight.consumers(event))


def _own(refs: Iterable[EventRef]) -> Iterator[int]:
    """The events that ids name, a put's by its counterpart on this rank; none that cannot be right."""
    yield from (ref.event for ref in refs if ref.event is not None and ref.fault is None)


def _events(sight: Sight, scope: _Scope, shown: Iterable[int]) -> list[int]:
    """The events to draw: what was asked for, and those of the calls in whose surroundings it lies."""
    found = set(scope.events)
    for index in shown:
        if index in scope.around:
            found.update(_own(sight.call(index).waits_for), _own(sight.call(index).triggers))
    return sorted(found)


def _event_nodes(
    sight: Sight, scope: _Scope, events: Iterable[int], shown: Sequence[int]
) -> Iterator[EventNode]:
    alike: dict[tuple[object, ...], list[int]] = {}
    for event in events:
        sides = [
            tuple(share.call.call for share in side(event)) for side in (sight.producers, sight.consumers)
        ]
        key = (*sides, sight.startable.fires[event], event in scope.events)
        alike.setdefault(key, []).append(event)
    for (producers, consumers, *_), members in alike.items():
        assert isinstance(producers, tuple)
        assert isinstance(consumers, tuple)
        yield EventNode(
            events=tuple(members),
            waits=tuple(sight.events.num_triggers[event] for event in members),
            gets=tuple(sight.events.triggers[event] for event in members),
            tagged=any(event in sight.events.tagged for event in members),
            fires=sight.startable.fires[members[0]],
            focus=members[0] in scope.events,
            more_producers=len(set(producers).difference(shown)),
            more_consumers=len(set(consumers).difference(shown)),
        )


def _event_edges(sight: Sight, nodes: Iterable[EventNode], shown: Sequence[int]) -> Iterator[Edge]:
    for node in nodes:
        producers = sight.producers(node.number)
        for share in producers:
            if share.call.call in shown:
                part = None if _is_whole(node, share.tasks, share.call) else share.tasks
                yield Edge(EdgeKind.TRIGGER, share.call.call, node.number, (), part)
        for share in sight.consumers(node.number):
            if share.call.call in shown:
                part = None if _is_whole(node, share.tasks, share.call) else share.tasks
                reader = share.call.call
                read = _tensors(sight, reader, reading=True)
                written = {
                    name
                    for producer in producers
                    if producer.call.call != reader
                    for name in _tensors(sight, producer.call.call, reading=False)
                }
                tensors = tuple(name for name in read if name in written)
                yield Edge(EdgeKind.WAIT, node.number, reader, tensors, part)


def _is_whole(node: EventNode, tasks: int, call: Call) -> bool:
    return len(node.events) > 1 or tasks == call.tasks


def _tensors(sight: Sight, index: int, *, reading: bool) -> list[str]:
    """The tensors that a call reads, or that it writes."""
    call = sight.operators.calls[index]
    slots = [(Side.INPUT, slot, name) for slot, name in enumerate(call.inputs)]
    slots += [(Side.OUTPUT, slot, name) for slot, name in enumerate(call.outputs)]
    accesses = (
        (sight.consumption.accesses[SlotKey(call.operator, side, slot)], name) for side, slot, name in slots
    )
    return list(
        dict.fromkeys(
            name for access, name in accesses if (access.reads if reading else access.writes or _may(access))
        )
    )


def _may(access: Access) -> bool:
    return access is Access.MAYBE_WRITE


def _data_edges(
    sight: Sight, scope: _Scope, nodes: Iterable[EventNode], shown: Sequence[int]
) -> Iterator[Edge]:
    """From each call to those that read a tensor next in the order of tasks, where no event says so already."""
    told: set[tuple[int, int]] = set()
    for node in nodes:
        producers = [share.call.call for share in sight.producers(node.number)]
        told.update(
            (producer, share.call.call) for share in sight.consumers(node.number) for producer in producers
        )
    for name, accesses in zip(scope.names, scope.accesses, strict=True):
        for writer, reader in dict.fromkeys(_flow(accesses)):
            if writer in shown and reader in shown and (writer, reader) not in told:
                yield Edge(EdgeKind.DATA, writer, reader, (name,))


def _flow(accesses: Iterable[TensorAccess]) -> Iterator[tuple[int, int]]:
    """The last writing call before each reading one, in the order of tasks."""
    writer = None
    calls: dict[int, list[TensorAccess]] = {}
    for access in accesses:
        calls.setdefault(access.call.call, []).append(access)
    for call, its in calls.items():
        if writer is not None and any(access.access.reads for access in its):
            yield writer, call
        if any(access.access.writes for access in its):
            writer = call
