"""A page under a byte budget: sections of rows, of which the last ones can be left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mkcov_action.reporters.wording import count

# Room for the sentences that say what was left out: their words and numbers are ours.
_MORE = 100
_NOTE = 400


class Row(NamedTuple):
    """A piece of Markdown that is shown whole or not at all, and how many items it tells of."""

    text: str
    items: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page. `rows` may be made while they are taken; `total` counts all their items.

    Of several sections the one with the smaller `rank` gets its room first.
    """

    rank: int
    opening: str
    rows: Iterable[Row]
    total: int
    noun: str
    closing: str = ""


class Page(NamedTuple):
    """A page of Markdown, and how many items it had no room for."""

    text: str
    left_out: int


def page(head: str, sections: Sequence[Section], budget: int) -> Page:
    """The head and all sections in the order given, in at most `budget` bytes of UTF-8.

    The head, of 500 bytes less than the budget at most, is never cut.
    """
    room = budget - size(head) - _NOTE
    shown = dict.fromkeys(range(len(sections)), "")
    left_out: Counter[str] = Counter()
    for index in sorted(shown, key=lambda index: sections[index].rank):
        shown[index], missing = _fitted(sections[index], room)
        room -= size(shown[index])
        left_out[sections[index].noun] += missing
    return Page(head + "".join(shown.values()) + _note(+left_out), left_out.total())


def size(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text.encode("utf-8"))


def _fitted(section: Section, room: int) -> tuple[str, int]:
    """The section within `room` bytes, and the number of items that had to go."""
    room -= size(section.opening) + size(section.closing) + 1
    kept: list[Row] = []
    for row in section.rows:
        room -= size(row.text)
        kept.append(row)
        if room < 0:
            break
    else:
        return _joined(section, kept) if kept else "", 0
    while kept and room < _MORE:
        room += size(kept.pop().text)
    missing = section.total - sum(row.items for row in kept)
    more = f"\n… and {count(missing, f'more {section.noun}')}\n"
    return _joined(section, kept) + more if kept else "", missing


def _joined(section: Section, rows: Sequence[Row]) -> str:
    return "\n" + section.opening + "".join(row.text for row in rows) + section.closing


def _note(left_out: Counter[str]) -> str:
    if not left_out:
        return ""
    parts = ", ".join(count(number, noun) for noun, number in left_out.items())
    return (
        f"\n**Left out to keep this summary within its size limit:** {parts}."
        " The verdict counts everything; the log and the JSON report show it.\n"
    )
