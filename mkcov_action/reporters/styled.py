"""Lines of styled segments: one text, shown plain or coloured.

The lines of a report are made once. Plain output joins the segments; coloured output wraps each
in the codes of its style and changes nothing else, so that both say the same to the letter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    "note": "bold cyan",
    "good": "bold green",
    "strong": "bold",
    "quiet": "dim",
}
"""Style name of a segment -> rich style."""


class Segment(NamedTuple):
    """A piece of a line, already clean; `style` is a key of STYLES or empty."""

    text: str
    style: str = ""


Line = tuple[Segment, ...]

BLANK: Line = ()


def line(*parts: str | Segment) -> Line:
    """A line of unstyled strings and segments."""
    return tuple(Segment(part) if isinstance(part, str) else part for part in parts)


def plain(lines: Iterable[Line]) -> str:
    """The lines without styles, each ended by a newline."""
    return "".join("".join(segment.text for segment in each) + "\n" for each in lines)


def coloured(lines: Iterable[Line]) -> str:
    """The lines with SGR codes of the sixteen standard colours; without the codes, it is plain().

    Style by style, not through a rich Console: that would wrap, crop and strip to its width.
    """
    # Imported here, since most runs print no colour and need not wait for rich.
    from rich.color import ColorSystem  # noqa: PLC0415
    from rich.style import Style  # noqa: PLC0415

    styles = {key: Style.parse(definition) for key, definition in STYLES.items()}

    def paint(segment: Segment) -> str:
        style = styles.get(segment.style)
        return style.render(segment.text, color_system=ColorSystem.STANDARD) if style else segment.text

    return "".join("".join(map(paint, each)) + "\n" for each in lines)
