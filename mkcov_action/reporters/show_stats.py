"""The figures of a rank in the text of `mkcov show`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from mkcov_action.finding import ranges
from mkcov_action.neighbourhood.model import LayerCount, Spread, StatsView
from mkcov_action.reporters.clean import name
from mkcov_action.reporters.show_words import (
    MOST_ROWS,
    Cell,
    fate_of,
    left_out,
    reasons_of,
    table,
    titles,
)
from mkcov_action.reporters.styled import BLANK, Line, Segment, line
from mkcov_action.reporters.wording import count, size


def stats_lines(view: StatsView, *, everything: bool) -> Iterator[Line]:
    """The figures of a rank by themselves."""
    yield line(
        f"{count(view.tasks, 'task')} in {count(view.calls, 'operator call')}; {count(view.events, 'event')};"
        f" {count(view.first_tasks, 'first task')}"
    )
    yield _fate_line(view)
    yield from _chain_lines(view, everything=everything)
    yield from _event_lines(view)
    yield BLANK
    yield from table([titles("tensors", "declared", "", "no task names"), *_tensor_rows(view)])
    yield BLANK
    yield from _layer_lines(view, everything=everything)
    yield BLANK
    yield from _type_lines(view, everything=everything)


def _fate_line(view: StatsView) -> Line:
    if not view.never_run and not view.behind:
        return line("every task runs and every event fires, as far as the counts tell")
    if not view.never_run:
        return line(Segment("not every event fires", "error"), f": {reasons_of(view.behind)}")
    tasks = fate_of(view.tasks, view.never_run)
    return line(tasks, f", behind {reasons_of(view.behind)}")


def _chain_lines(view: StatsView, *, everything: bool) -> Iterator[Line]:
    if view.longest_chain is None:
        yield line("critical path: ", Segment("none, as events wait for each other", "error"))
        return
    yield line(f"critical path: {count(len(view.longest_chain), 'operator')} one after the other")
    if everything:
        yield from table(
            [_chain_row(call.first_task, call.task_type, call.layer) for call in view.longest_chain]
        )


def _chain_row(first: int, task_type: str, layer: int | None) -> list[Cell]:
    return [f"task {first}", name(task_type), "" if layer is None else f"layer {layer}"]


def _event_lines(view: StatsView) -> Iterator[Line]:
    kinds = ", ".join(f"{each.events:,} {each.event_type}" for each in view.event_types)
    yield line(f"events: {kinds}")
    if view.fan_in and view.fan_out:
        yield line(
            f"between operators an event has {_spread(view.fan_in)} triggers"
            f" and {_spread(view.fan_out)} tasks that wait (least, median, most)"
        )
    for number, words in ((view.too_few_triggers, "fewer"), (view.too_many_triggers, "more")):
        if number:
            verb = "gets" if number == 1 else "get"
            what = f"{count(number, 'event')} {verb} {words} triggers than waited for"
            yield line(Segment(what, "error"))


def _spread(spread: Spread) -> str:
    return f"{spread.least:,}, {spread.median:,}, {spread.most:,}"


def _tensor_rows(view: StatsView) -> Iterator[list[Cell]]:
    for each in view.tensors:
        known = "" if each.bytes is None else size(each.bytes)
        dead = Segment(f"{each.dead:,}", "warning") if each.dead else Segment("0")
        yield [each.origin.value, f"{each.tensors:,}", known, dead]


def _layer_lines(view: StatsView, *, everything: bool) -> Iterator[Line]:
    rows: list[list[Cell]] = [titles("layers", "calls each", "tasks each", "")]
    key = id if everything else _likeness
    for _, group in groupby(view.layers, key=key):
        layers = list(group)
        first = layers[0]
        numbers = [each.layer for each in layers if each.layer is not None]
        title = ranges(numbers) if numbers else "before the first"
        rows.append([title, f"{first.calls:,}", f"{first.tasks:,}", fate_of(first.tasks, first.never_run)])
    shown = rows if everything else rows[: MOST_ROWS // 2]
    yield from table(shown)
    if len(rows) > len(shown):
        yield left_out(len(rows) - len(shown), "row")


def _likeness(layer: LayerCount) -> tuple[object, ...]:
    return layer.layer is None, layer.calls, layer.never_run, sorted(layer.by_type.items())


def _type_lines(view: StatsView, *, everything: bool) -> Iterator[Line]:
    rows: list[list[Cell]] = [titles("task types", "", "variants", "calls", "tasks", "")]
    rows += (
        [
            name(each.task_type),
            f"{each.task_type_number}",
            f"{each.variants:,}",
            f"{each.calls:,}",
            f"{each.tasks:,}",
            fate_of(each.tasks, each.never_run),
        ]
        for each in view.task_types
    )
    shown = rows if everything else rows[:MOST_ROWS]
    yield from table(shown)
    if len(rows) > len(shown):
        yield left_out(len(rows) - len(shown), "type")
