"""Phrases and columns that the texts of all views share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from mkcov_action.analyses.dispatch import Dispatch
from mkcov_action.analyses.startable import CauseKind
from mkcov_action.finding import ranges
from mkcov_action.neighbourhood.folds import Fold
from mkcov_action.neighbourhood.model import Call, EventRef, Line, OperatorView, Reason, Share, TaskView
from mkcov_action.reporters import styled
from mkcov_action.reporters.clean import name
from mkcov_action.reporters.styled import Segment
from mkcov_action.reporters.wording import count, some

T = TypeVar("T")

MOST_ROWS = 40
"""How many rows of a kind are shown unless all are asked for: a screen."""

_CYCLE = 6
_EVENTS = 6
_BROKEN = 2

Cell = str | Segment


def table(rows: Iterable[Sequence[Cell]], *, indent: str = "  ") -> Iterator[styled.Line]:
    """Rows as lines whose cells stand below each other; what is empty at a line's end is left out."""
    lines = [[Segment(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    widths = [
        max(len(row[place].text) for row in lines if place < len(row))
        for place in range(max(map(len, lines), default=0))
    ]
    for row in lines:
        while row and not row[-1].text:
            row.pop()
        padded = [
            Segment(cell.text.ljust(widths[place]), cell.style) if place < len(row) - 1 else cell
            for place, cell in enumerate(row)
        ]
        gaps = [Segment(indent), *(Segment("  ") for _ in padded[1:])]
        yield tuple(part for pair in zip(gaps, padded, strict=False) for part in pair)


def titles(*words: str) -> list[Cell]:
    """The first row of a table."""
    return [Segment(word, "quiet") for word in words]


def tasks_of(call: Call) -> str:
    """`3-10`, `7`, or `7-90 (12 of these)` where other calls' tasks stand between."""
    if call.last_task - call.first_task + 1 == call.tasks:
        return ranges((call.first_task,)) if call.tasks == 1 else f"{call.first_task}-{call.last_task}"
    return f"{call.first_task}-{call.last_task} ({call.tasks:,} of these)"


def wiring_of(call: Call) -> str:
    """`51 -> 53`: the events that a call waits for and triggers."""
    return f"{_events(call.waits_for)} -> {_events(call.triggers)}"


def _events(refs: Sequence[EventRef]) -> str:
    named: dict[str, list[int]] = {}  # what stands behind a position -> the positions
    broken = []
    for ref in refs:
        if ref.event is None or ref.fault is not None:
            broken.append(event_name(ref))
        else:
            owner = "" if ref.fires is not None else f" of rank {ref.rank}"
            named.setdefault(owner, []).append(ref.event)
    said = [f"{_few(ranges(events))}{owner}" for owner, events in named.items()]
    return ", ".join([*said, some(broken, _BROKEN)] if broken else said) or "-"


def _few(spelled: str) -> str:
    return some(spelled.split(", "), _EVENTS)


def event_name(ref: EventRef) -> str:
    """`51`, `12 of rank 1`, or an id that cannot be right."""
    if ref.event is None:
        return "none"
    if ref.fault is not None:
        return f"{ref.id} ({ref.fault})"
    return f"{ref.event} of rank {ref.rank}" if ref.fires is None else f"{ref.event}"


def triggering(tasks: int) -> str:
    """`9 tasks trigger it`."""
    return f"{count(tasks, 'task')} {'triggers' if tasks == 1 else 'trigger'} it"


def fate_of(tasks: int, never_run: int) -> Segment:
    """`never runs`, `8 of 64 never run`; nothing where all do."""
    if not never_run:
        return Segment("")
    if never_run == tasks:
        return Segment("never runs" if tasks == 1 else "never run", "error")
    return Segment(f"{never_run:,} of {tasks:,} never run", "error")


def state_of(call: Call) -> Segment:
    """What is wrong with a call's tasks: they never run, or run no code."""
    fate = fate_of(call.tasks, call.never_run)
    if call.dispatch is not Dispatch.MISSING:
        return fate
    return Segment("no code" if not fate.text else f"no code, {fate.text}", "error")


def code_of(dispatch: Dispatch, branch: Line | None) -> Segment:
    """Where an operator's code is, or that it has none."""
    if branch is not None:
        return Segment(f"code at {place_of(branch)}")
    if dispatch is Dispatch.MISSING:
        return Segment("no code: its tasks do nothing, but wait for their event and trigger theirs", "error")
    if dispatch is Dispatch.RUNS:
        return Segment("handled by the worker's own loop")
    return Segment("code not found: the dispatcher's form is not known, or not all of it", "warning")


def place_of(line: Line) -> str:
    """`kernel_0.cu:12`."""
    return f"{name(line.uri)}:{line.line}"


def operator_of(view: Call | TaskView | OperatorView) -> str:
    """`TASK_LINEAR variant 2`."""
    return f"{name(view.task_type)} variant {view.variant}"


def layer_of(call: Call) -> str:
    """` of layer 3`; nothing where it has none."""
    return "" if call.layer is None else f" of layer {call.layer}"


def share_row(share: Share) -> list[Cell]:
    """The tasks of a call on one side of an event."""
    call = share.call
    part = (
        count(share.tasks, "task")
        if share.tasks == call.tasks
        else f"{share.tasks:,} of {count(call.tasks, 'task')}"
    )
    return [tasks_of(call), f"{operator_of(call)}{layer_of(call)}", part, state_of(call)]


def reasons_of(reasons: Sequence[Reason]) -> str:
    """`event 51, which waits for 18 triggers while 9 tasks trigger it`, and how many more causes there are."""
    # The first says what is wrong; a fault that repeats in every layer has many.
    more = f", and {count(len(reasons) - 1, 'more cause')}" if len(reasons) > 1 else ""
    return f"{_reason(reasons[0])}{more}" if reasons else "something that was not found"


def _reason(reason: Reason) -> str:
    match reason.kind:
        case CauseKind.STARVED:
            return f"event {reason.event}, which waits for {count(reason.waits or 0, 'trigger')} while {triggering(reason.gets or 0)}"
        case CauseKind.CYCLE:
            more = f" -> … ({len(reason.cycle):,} tasks)" if len(reason.cycle) > _CYCLE else ""
            tasks = " -> ".join(map(str, (*reason.cycle[:_CYCLE], *([] if more else reason.cycle[:1]))))
            return f"the cycle of tasks {tasks}{more}"
        case CauseKind.UNLAUNCHED:
            return "event 1, which does not launch all tasks"
    return f"the event id {reason.id}, which names no event"


def left_out(number: int, noun: str) -> styled.Line:
    """What was left out, and how to see it."""
    return styled.line(Segment(f"  … and {count(number, noun)} more (--all shows all)", "quiet"))


def fold_title(layers: Sequence[int | None]) -> str:
    """`layer 0`, or `layers 3-60: 58 alike, layer 3 is shown`."""
    numbers = [layer for layer in layers if layer is not None]
    if not numbers:
        return "before the first layer"
    if len(layers) == 1:
        return f"layer {numbers[0]}"
    distinct = len(set(numbers))
    stretches = "" if distinct == len(numbers) else f" in {len(layers)} stretches of tasks"
    return f"layers {ranges(numbers)}{stretches}: {distinct} alike, layer {numbers[0]} is shown"


def by_layer(
    folds: Sequence[Fold[T]],
    head: Sequence[Cell] | None,
    cells: Callable[[T], list[Cell]],
    *,
    most: int | None,
) -> Iterator[styled.Line]:
    """A table with a title for each fold of layers; no more than `most` rows in all."""
    shown: list[tuple[Fold[T], Sequence[T]]] = []
    room = sum(len(fold.rows) for fold in folds) if most is None else most
    for fold in folds:
        if room > 0:
            shown.append((fold, fold.rows[:room]))
        room -= len(fold.rows)
    heads = [] if head is None else [head]
    lines = iter(list(table([*heads, *(cells(row) for _, rows in shown for row in rows)])))
    yield from islice(lines, len(heads))
    for fold, rows in shown:
        yield styled.line(fold_title(fold.layers))
        yield from islice(lines, len(rows))
    if room < 0:
        yield left_out(-room, "row")
