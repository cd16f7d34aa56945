"""Operators and layers in the text of `mkcov show`: tables of calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mkcov_action.analyses.dispatch import Dispatch
from mkcov_action.finding import ranges
from mkcov_action.neighbourhood.folds import folded, likeness_of_call
from mkcov_action.neighbourhood.model import LayerView, OperatorView, SlotUseView, WiredCall
from mkcov_action.reporters.clean import name
from mkcov_action.reporters.show_words import (
    MOST_ROWS,
    Cell,
    by_layer,
    code_of,
    fate_of,
    operator_of,
    state_of,
    table,
    tasks_of,
    titles,
    wiring_of,
)
from mkcov_action.reporters.styled import Line, Segment, line
from mkcov_action.reporters.wording import count, some

_NAMES = 8
_WIRING = "waits for -> triggers"


def operator_lines(view: OperatorView, *, everything: bool, end: int) -> Iterator[Line]:
    """An operator by itself; `end` is the event that ends the iteration."""
    yield line(
        Segment(f"operator {operator_of(view)}", "strong"),
        f" (task type {view.task_type_number}): {count(view.tasks, 'task')} in {count(len(view.calls), 'call')}",
        *_fate(view.tasks, view.never_run),
    )
    yield line("  ", code_of(view.dispatch, view.branch), _reads(view))
    if view.slots:
        yield line(f"  slots: {', '.join(map(_slot, view.slots))}")
    likeness = id if everything else likeness_of_call
    folds = folded(view.calls, lambda row: row.call, likeness, end=end)
    head = titles("tasks", _WIRING, "inputs -> outputs", "")
    yield from by_layer(folds, head, _call_row, most=None if everything else MOST_ROWS)


def operator_row(view: OperatorView) -> list[Cell]:
    """An operator among others."""
    layers = sorted({row.call.layer for row in view.calls if row.call.layer is not None})
    where = f"layer{'' if len(layers) == 1 else 's'} {ranges(layers)}" if layers else ""
    calls, tasks = count(len(view.calls), "call"), count(view.tasks, "task")
    code = Segment("no code", "error") if view.dispatch is Dispatch.MISSING else Segment("")
    return [operator_of(view), calls, tasks, where, fate_of(view.tasks, view.never_run), code]


def layer_lines(view: LayerView, *, everything: bool) -> Iterator[Line]:
    """A layer by itself."""
    yield line(
        Segment(f"layer {view.layer}", "strong"),
        f": {count(view.tasks, 'task')} in {count(len(view.calls), 'call')}",
        *_fate(view.tasks, view.never_run),
    )
    most = len(view.calls) if everything else MOST_ROWS
    rows = [[tasks_of(row.call), operator_of(row.call), *_call_row(row)[1:]] for row in view.calls[:most]]
    yield from table([titles("tasks", "operator", _WIRING, "inputs -> outputs", ""), *rows])
    if len(view.calls) > most:
        yield line(
            Segment(f"  … and {count(len(view.calls) - most, 'call')} more (--all shows all)", "quiet")
        )


def _fate(tasks: int, never_run: int) -> list[Segment]:
    fate = fate_of(tasks, never_run)
    return [Segment("; "), fate] if fate.text else []


def _reads(view: OperatorView) -> str:
    parts = []
    if view.metadata:
        parts.append(f"it reads the metadata {', '.join(map(name, view.metadata))}")
    if view.config:
        parts.append(
            f"{'and' if parts else 'it reads'} of runtime_config {', '.join(map(name, view.config))}"
        )
    return f"; {' '.join(parts)}" if parts else ""


def _slot(slot: SlotUseView) -> str:
    role = f" ({name(slot.role)})" if slot.role else ""
    return f"{slot.side} {slot.slot}{role} {slot.access}"


def _call_row(row: WiredCall) -> list[Cell]:
    tensors = f"{_names(row.inputs)} -> {_names(row.outputs)}"
    return [
        tasks_of(row.call),
        wiring_of(row.call),
        tensors,
        state_of(row.call),
    ]


def _names(tensors: Sequence[str | None]) -> str:
    return some(["nullptr" if each is None else name(each) for each in tensors], _NAMES) or "-"
