"""A tensor in the text of `mkcov show`: its declaration, then who accesses it, in the order of tasks."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.analyses.consumption import Access
from mkcov_action.kernel_source import Origin
from mkcov_action.neighbourhood.folds import folded, likeness_of_access
from mkcov_action.neighbourhood.model import TensorAccess, TensorView
from mkcov_action.reporters.clean import name
from mkcov_action.reporters.show_words import (
    MOST_ROWS,
    Cell,
    by_layer,
    operator_of,
    place_of,
    state_of,
    tasks_of,
    titles,
    wiring_of,
)
from mkcov_action.reporters.styled import Line, Segment, line
from mkcov_action.reporters.wording import count, size, some
from mkcov_action.task_types import Extent

_UNUSED = frozenset({Access.IGNORED, Access.DUMMY, Access.SKIPPED})
_SOURCES = 4
_HEAD = titles("tasks", "access", "slot", "operator", "waits for -> triggers", "bytes", "")


def tensor_lines(view: TensorView, *, everything: bool, end: int) -> Iterator[Line]:
    """A tensor by itself; `end` is the event that ends the iteration."""
    yield line(Segment(f"tensor {name(view.name)}", "strong"), f": {_declaration(view)}")
    verdict = _verdict(view)
    yield line(_figures(view), "; " if verdict.text else "", verdict)
    if not view.accesses:
        return
    alike = id if everything else likeness_of_access
    folds = folded(view.accesses, lambda row: row.call, alike, end=end)
    yield from by_layer(
        folds, _HEAD, lambda row: _row(row, view.bytes), most=None if everything else MOST_ROWS
    )


def tensor_row(view: TensorView) -> list[Cell]:
    """A tensor among others."""
    kind = "not declared" if view.origin is None else f"{view.origin}"
    known = "" if view.bytes is None else f"{view.bytes:,} bytes"
    writers, readers = _calls(view, "write"), _calls(view, "read")
    wiring = f"written by {count(writers, 'call')}, read by {readers:,}"
    return [name(view.name), kind, known, wiring, _verdict(view)]


def _declaration(view: TensorView) -> str:
    if view.origin is None or view.declared is None:
        return "not declared in the kernel"
    known = f" of {view.bytes:,} bytes ({size(view.bytes)})" if view.bytes is not None else ""
    kind = "of unknown origin" if view.origin is Origin.UNKNOWN else f"{view.origin}"
    sources = ""
    if view.sources:
        names = ["an address" if source is None else name(source) for source in view.sources]
        sources = f", copied together from {some(names, _SOURCES)}"
    return f"{kind}{known}, declared at {place_of(view.declared)}{sources}"


def _figures(view: TensorView) -> str:
    return (
        f"  written by {count(_calls(view, 'write'), 'call')} and read by {_calls(view, 'read'):,};"
        f" {count(view.input_refs, 'input reference')}, {count(view.output_refs, 'output reference')}"
    )


def _calls(view: TensorView, what: str) -> int:
    return len(
        {
            access.call.call
            for access in view.accesses
            if (access.access.reads if what == "read" else access.access.writes)
        }
    )


def _verdict(view: TensorView) -> Segment:
    if not view.accesses:
        return Segment("no task names it", "warning")
    if not view.read:
        return Segment("no task reads it", "warning")
    if not view.written and view.origin in {Origin.SCRATCH, Origin.SYMMETRIC}:
        return Segment("no task is known to write it", "warning")
    return Segment("")


def _row(row: TensorAccess, size_known: int | None) -> list[Cell]:
    style = "quiet" if row.access in _UNUSED else ""
    role = f" ({name(row.role)})" if row.role else ""
    return [
        tasks_of(row.call),
        Segment(row.access.value, style),
        f"{row.side} {row.slot}{role}",
        operator_of(row.call),
        wiring_of(row.call),
        _bytes(row, size_known),
        state_of(row.call),
    ]


def _bytes(row: TensorAccess, size_known: int | None) -> str:
    """The bytes from first to last, and in how many tiles they are taken."""
    if row.start is None or row.stop is None:
        return "unknown"
    if row.stop == row.start:
        return "none"
    whole = row.start == 0 and row.stop == size_known
    covered = "all" if whole and row.extent in {None, Extent.EXACT} else f"{row.start}-{row.stop - 1}"
    if row.access in _UNUSED:
        return ""
    within = {Extent.SUPERSET: "within ", Extent.SLICE: "on another rank, within "}
    tiles = "" if row.tiles == 1 else f" in {row.tiles:,} tiles"
    return f"{within.get(row.extent, '') if row.extent else ''}{covered}{tiles}"
