"""Layers that are alike are shown once: the first of them, and which they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, TypeVar

from mkcov_action.finding import family_of
from mkcov_action.neighbourhood.model import Call, EventRef, Share, TensorAccess, WiredCall

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fold(Generic[T]):
    """Stretches of rows in layers that are alike; `rows` are those of the first."""

    layers: tuple[int | None, ...]
    rows: Sequence[T]


def folded(
    rows: Iterable[T], call_of: Callable[[T], Call], likeness: Callable[[T], Hashable], *, end: int
) -> list[Fold[T]]:
    """The rows by layer, alike ones drawn together, in the order in which they first come.

    Alike are stretches of rows of one layer whose rows are, in order, alike by themselves, belong to
    operators with as many tasks, and hang together by their events in the same way. `end` is the event
    that ends the iteration: all layers may share it.
    """
    alike: dict[Hashable, list[list[T]]] = {}
    for _, group in groupby(rows, key=lambda row: call_of(row).layer):
        stretch = list(group)
        calls = [call_of(row) for row in stretch]
        key = tuple((likeness(row), *look) for row, look in zip(stretch, _looks(calls, end), strict=True))
        alike.setdefault(key, []).append(stretch)
    return [
        Fold(tuple(call_of(stretch[0]).layer for stretch in stretches), stretches[0])
        for stretches in alike.values()
    ]


def _looks(calls: Sequence[Call], end: int) -> Iterable[tuple[Hashable, ...]]:
    """Of each call what it shares with the same call of another layer; events count from the first one."""
    named = [ref.event for call in calls for ref in (*call.waits_for, *call.triggers)]
    base = min((event for event in named if event is not None), default=0)

    def wiring(refs: Iterable[EventRef]) -> tuple[Hashable, ...]:
        return tuple(
            (ref.event if ref.event == end else (ref.event or 0) - base, ref.rank, ref.fault) for ref in refs
        )

    for call in calls:
        fate = (call.never_run, call.dispatch)
        yield call.operator, call.tasks, fate, wiring(call.waits_for), wiring(call.triggers)


def likeness_of_access(row: TensorAccess) -> Hashable:
    """What accesses of a tensor in layers that are alike share."""
    return row.side, row.slot, row.access, row.start, row.stop, row.tiles, row.data_types


def likeness_of_call(row: WiredCall) -> Hashable:
    """What calls of layers that are alike share: their tensors, but for the numbers in names."""
    return tuple(tuple(name and family_of(name) for name in names) for names in (row.inputs, row.outputs))


def likeness_of_share(row: Share) -> Hashable:
    """What the calls on one side of an event share in layers that are alike."""
    return row.tasks
