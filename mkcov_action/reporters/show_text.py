"""The text of `mkcov show`: a line about the rank, then each thing that was asked for.

Layers that are alike are shown once, and what is long is cut with the number of what was left out,
unless everything is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from mkcov_action.finding import family_of
from mkcov_action.neighbourhood.model import (
    EventView,
    LayerView,
    OperatorView,
    Shown,
    TaskView,
    TensorView,
    View,
)
from mkcov_action.reporters.clean import name
from mkcov_action.reporters.show_calls import layer_lines, operator_lines, operator_row
from mkcov_action.reporters.show_event import event_lines
from mkcov_action.reporters.show_stats import stats_lines
from mkcov_action.reporters.show_task import task_lines
from mkcov_action.reporters.show_tensor import tensor_lines, tensor_row
from mkcov_action.reporters.show_words import MOST_ROWS, Cell, left_out, table
from mkcov_action.reporters.styled import BLANK, Line, Segment, coloured, line, plain
from mkcov_action.reporters.wording import count

_WHOLE = 3
"""So many things of a kind are shown whole; of more, a row each."""


def render(shown: Shown, *, everything: bool = False, color: bool = False) -> str:
    """The views as text, each line ended by a newline; nothing untrusted passes unescaped."""
    lines = list(_lines(shown, everything=everything))
    return coloured(lines) if color else plain(lines)


def _lines(shown: Shown, *, everything: bool) -> Iterator[Line]:
    of = f" of {shown.world_size}" if shown.world_size is not None and shown.world_size > 1 else ""
    figures = f"{count(shown.tasks, 'task')}, {count(shown.events, 'event')}"
    yield line(f"graph {name(shown.graph)} rank {shown.rank}{of}: {figures}")
    for _, group in groupby(shown.shown, key=lambda view: view.kind):
        views = list(group)
        if len(views) <= _WHOLE or everything or not _is_pattern(views):
            for view in views:
                yield BLANK
                yield from _whole(view, everything=everything, end=shown.events - 1)
        else:
            yield BLANK
            yield from _listed(views)


def _is_pattern(views: Sequence[View]) -> bool:
    """Whether these are things that a pattern names many of; the others are named one by one."""
    return isinstance(views[0], TensorView | OperatorView)


def _whole(view: View, *, everything: bool, end: int) -> Iterable[Line]:
    match view:
        case TensorView():
            return tensor_lines(view, everything=everything, end=end)
        case TaskView():
            return task_lines(view, everything=everything)
        case EventView():
            return event_lines(view, everything=everything, end=end)
        case OperatorView():
            return operator_lines(view, everything=everything, end=end)
        case LayerView():
            return layer_lines(view, everything=everything)
    return stats_lines(view, everything=everything)


def _listed(views: Sequence[View]) -> Iterator[Line]:
    """Several things of a kind, a row each; tensors that differ in nothing but numbers share one."""
    noun = views[0].kind
    yield line(Segment(count(len(views), noun), "strong"), " match; name one to see it whole")
    tensors = [view for view in views if isinstance(view, TensorView)]
    operators = [view for view in views if isinstance(view, OperatorView)]
    rows = [*_families(tensors), *map(operator_row, operators)]
    yield from table(rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        yield left_out(len(rows) - MOST_ROWS, "row")


def _families(views: Iterable[TensorView]) -> Iterator[list[Cell]]:
    alike: dict[tuple[object, ...], list[TensorView]] = {}
    for view in views:
        alike.setdefault((family_of(view.name), *tensor_row(view)[1:]), []).append(view)
    for members in alike.values():
        first, *others = members
        row = tensor_row(first)
        yield [*row[:1], f"and {len(others):,} alike" if others else "", *row[1:]]
