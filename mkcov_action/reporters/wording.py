"""Small phrases that several parts of a report share: counts, sizes, ranks, places."""

from __future__ import annotations

from collections.abc import Sequence

from mkcov_action.finding import Location, ranges
from mkcov_action.report import Report
from mkcov_action.reporters.clean import name

_KIB = 1024


def count(number: int, noun: str) -> str:
    """`1 error`, `2 errors`, `7,242 tasks`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: int) -> str:
    """A number of bytes in a binary unit: `512 B`, `1.2 MiB`."""
    if number < _KIB:
        return f"{number} B"
    amount, unit = number / _KIB, "KiB"
    for larger in ("MiB", "GiB", "TiB"):
        if round(amount, 1) < _KIB:
            break
        amount, unit = amount / _KIB, larger
    return f"{amount:,.1f} {unit}"


def ranks_of(ranks: Sequence[int]) -> str:
    """`rank 0` or `ranks 0-3, 5`."""
    return f"rank {ranges(ranks)}" if len(set(ranks)) == 1 else f"ranks {ranges(ranks)}"


def some(items: Sequence[str], limit: int) -> str:
    """The first `limit` items, comma separated, and how many more there are."""
    listed = ", ".join(items[:limit])
    return listed if len(items) <= limit else f"{listed} and {len(items) - limit:,} more"


def deselection(report: Report) -> str:
    """The rules that the settings switched off: `MK105, MK109 (2 rules deselected)`."""
    return f"{', '.join(map(name, report.deselected))} ({count(len(report.deselected), 'rule')} deselected)"


def place(location: Location) -> str:
    """`uri:line` or `uri:line:column`, as editors take it."""
    column = f":{location.column}" if location.column is not None else ""
    return f"{name(location.uri)}:{location.line}{column}"
