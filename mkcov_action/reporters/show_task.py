"""A task in the text of `mkcov show`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mkcov_action.analyses.consumption import Access
from mkcov_action.neighbourhood.model import EventSide, MetadataField, SlotView, TaskView
from mkcov_action.reporters.clean import name
from mkcov_action.reporters.show_words import (
    MOST_ROWS,
    Cell,
    code_of,
    event_name,
    layer_of,
    left_out,
    operator_of,
    reasons_of,
    share_row,
    table,
    tasks_of,
    triggering,
)
from mkcov_action.reporters.styled import Line, Segment, line
from mkcov_action.reporters.wording import count
from mkcov_action.task_types import Extent

_UNUSED = frozenset({Access.IGNORED, Access.DUMMY, Access.SKIPPED})
_RUNTIME = {0: "ends the kernel", 1: "begins each iteration"}


def task_lines(view: TaskView, *, everything: bool) -> Iterator[Line]:
    """A task by itself."""
    yield line(Segment(f"task {view.task}", "strong"), f": {_what(view)}")
    yield line("  ", code_of(view.dispatch, view.branch))
    yield from table([_slot_row(slot) for slot in view.slots])
    yield from _metadata_lines(view)
    most = None if everything else MOST_ROWS // 2
    if view.waits_for:
        yield from _side_lines("waits for", "it is triggered by", view.waits_for, most)
    elif view.call:
        yield line("  waits for nothing")
    if view.triggers:
        yield from _side_lines("triggers", "waited for by", view.triggers, most)
    elif view.call:
        yield line("  triggers ", Segment("nothing", "warning"))
    if not view.runs:
        yield line("  ", Segment("never runs", "error"), f": it is behind {reasons_of(view.behind)}")


def _what(view: TaskView) -> str:
    kind = f"{operator_of(view)} (task type {view.task_type_number})"
    if view.call is None:
        return f"{kind}, which {_RUNTIME.get(view.task, 'is no part of the model')}"
    others = "" if view.call.tasks == 1 else f", one of the {view.call.tasks:,} tasks {tasks_of(view.call)}"
    return f"{kind}{layer_of(view.call)}{others}"


def _slot_row(slot: SlotView) -> list[Cell]:
    role = f" ({name(slot.role)})" if slot.role else ""
    place = f"{slot.side} {slot.slot}{role}"
    if not slot.present:
        return [place, Segment("missing", "error"), "the body names the slot, the task has none"]
    style = "quiet" if slot.access in _UNUSED else ""
    access = Segment(slot.access.value, style)
    if slot.tensor is None:
        return [place, access, Segment("nullptr", "quiet")]
    shape = f"{slot.data_type} {_list(slot.dims)}, strides {_list(slot.strides)}"
    return [place, access, name(slot.tensor), _bytes(slot), shape]


def _bytes(slot: SlotView) -> str:
    if slot.offset is None:
        return ""
    if slot.bytes is None:
        return f"from byte {slot.offset}"
    if not slot.bytes:
        return f"no bytes at {slot.offset}"
    within = {Extent.SUPERSET: "within ", Extent.SLICE: "on another rank, within "}
    first = within.get(slot.extent, "") if slot.extent else ""
    return f"{first}bytes {slot.offset}-{slot.offset + slot.bytes - 1} ({slot.bytes:,})"


def _list(numbers: Iterable[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def _metadata_lines(view: TaskView) -> Iterator[Line]:
    if view.call is None or not view.metadata:
        return
    read = [field for field in view.metadata if field.read]
    unread = [field for field in view.metadata if field.read is False]
    unknown = [field for field in view.metadata if field.read is None]
    if unknown:
        yield line(f"  metadata: {_fields(unknown)}")
        return
    yield line(
        f"  metadata that the body reads: {_fields(read)}",
        Segment(f"; not read: {_fields(unread)}", "quiet") if unread else "",
    )
    if view.config:
        yield line(f"  runtime_config that the body reads: {', '.join(map(name, view.config))}")


def _fields(fields: Iterable[MetadataField]) -> str:
    return ", ".join(f"{field.name} = {field.value}" for field in fields) or "none"


def _side_lines(verb: str, others: str, side: EventSide, most: int | None) -> Iterator[Line]:
    yield line(f"  {verb} event {event_name(side.event)}", *_counts(side))
    rows = [share_row(share) for share in side.others]
    if rows:
        where = "" if side.event.fires is not None else "as on this rank, "
        yield line(f"    {where}{others}")
        yield from table(rows[:most], indent="      ")
    if most is not None and len(rows) > most:
        yield left_out(len(rows) - most, "call")


def _counts(side: EventSide) -> Iterator[Segment]:
    if side.waits is None or side.gets is None:
        return
    wrong = side.waits != side.gets
    yield Segment(f": it waits for {count(side.waits, 'trigger')}, ")
    yield Segment(triggering(side.gets), "error" if wrong else "")
    if side.event.fires is False:
        yield Segment("; it never fires", "error")
