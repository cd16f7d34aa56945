"""An event in the text of `mkcov show`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mkcov_action.neighbourhood.folds import folded, likeness_of_share
from mkcov_action.neighbourhood.model import EventView, Share
from mkcov_action.reporters.show_words import MOST_ROWS, by_layer, reasons_of, share_row, table, triggering
from mkcov_action.reporters.styled import Line, Segment, line
from mkcov_action.reporters.wording import count

_FOLDED_FROM = 12  # a few calls are read one by one, whatever their layers


def event_lines(view: EventView, *, everything: bool, end: int) -> Iterator[Line]:
    """An event by itself; `end` is the event that ends the iteration."""
    wrong = "error" if view.waits != view.gets and view.event and not view.tagged else ""
    yield line(
        Segment(f"event {view.event}", "strong"),
        f": {view.event_type} ({view.event_type_number}){_role(view)}; it waits for ",
        f"{count(view.waits, 'trigger')}, ",
        Segment(triggering(view.gets), wrong),
    )
    yield line(f"  {_stated(view)}")
    if not view.fires and view.event:
        yield from _silence(view)
    by = (
        "triggered by other ranks' puts; this rank's own puts to that position are"
        if view.tagged
        else "triggered by"
    )
    yield from _side(by, view.producers, everything=everything, end=end)
    yield from _side("waited for by", view.consumers, everything=everything, end=end)


def _role(view: EventView) -> str:
    if view.event == 0:
        return ", which stands for the end of the kernel"
    if view.event == 1:
        return ", which launches all tasks; task 1 triggers it"
    return ", which ends the iteration" if view.ends_iteration else ""


def _stated(view: EventView) -> str:
    if view.stop_task <= view.first_task:
        return "by the file's table no task waits for it"
    if view.stop_task == view.first_task + 1:
        return f"by the file's table task {view.first_task} waits for it"
    return f"by the file's table tasks {view.first_task}-{view.stop_task - 1} wait for it"


def _silence(view: EventView) -> Iterator[Line]:
    others = [reason for reason in view.behind if reason.event != view.event]
    parts = []
    if view.never_run_behind:
        verb = "runs" if view.never_run_behind == 1 else "run"
        parts.append(f": {count(view.never_run_behind, 'task')} never {verb} behind it")
    if others:
        parts.append(
            f"{'; it' if parts else ': it'} is{' itself' if parts else ''} behind {reasons_of(others)}"
        )
    yield line("  ", Segment("it never fires", "error"), *parts)


def _side(title: str, shares: Sequence[Share], *, everything: bool, end: int) -> Iterator[Line]:
    if not shares:
        yield line(f"  {title}: nothing")
        return
    tasks = sum(share.tasks for share in shares)
    yield line(f"  {title}: {count(tasks, 'task')} of {count(len(shares), 'call')}")
    most = None if everything else MOST_ROWS // 2
    if everything or len(shares) < _FOLDED_FROM:
        yield from table(map(share_row, shares), indent="    ")
    else:
        folds = folded(shares, lambda share: share.call, likeness_of_share, end=end)
        yield from by_layer(folds, None, share_row, most=most)
