"""Phrases that several rules share."""

from __future__ import annotations

from collections.abc import Sequence

from mkcov_action.analyses.consumption import Access, Consumption, SlotKey


def plural(count: int, noun: str) -> str:
    """`1 task`, `1,234 tasks`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def verb(count: int) -> str:
    """`has` for one, `have` for more."""
    return "has" if count == 1 else "have"


def listed(items: Sequence[object], limit: int = 3) -> str:
    """The first items, and how many more there are."""
    more = f" and {len(items) - limit:,} more" if len(items) > limit else ""
    return ", ".join(str(item) for item in items[:limit]) + more


def ignored_slots(consumption: Consumption, tensor: str) -> str:
    """The slots that hold the tensor and that the kernel never reads, or an empty string."""
    return listed(consumption.slots(tensor, Access.IGNORED, Access.DUMMY))


def readers(slots: Sequence[SlotKey]) -> str:
    """The operators of these slots, each once."""
    return listed(list(dict.fromkeys(str(slot.operator) for slot in slots)))
