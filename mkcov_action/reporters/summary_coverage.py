"""The map of a graph's tensors in the job summary: a line a family, a mark a layer.

    - layer_*_k_norm           27/28  ●X●●●●●●●● ●●●●●●●●●● ●●●●●●●●
      layer_*_q_norm           28/28  ●●●●●●●●●● ●●●●●●●●●● ●●●●●●●●

A block of fixed-width text, so that layers stand below each other whatever the names are; the marks
are in every such font (Windows Glyph List 4) and differ by shape. The block says it is a `diff`:
GitHub then paints lines that begin with `-` red and `!` orange, which helps those who see colours
and is not needed by those who do not.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mkcov_action.finding import Severity, family_of, natural
from mkcov_action.kernel_source import Origin
from mkcov_action.report import GraphReport, Report, Status, TensorReport
from mkcov_action.reporters.clean import clean
from mkcov_action.reporters.markdown import code, fence_for, folded
from mkcov_action.reporters.summary_page import Row, Section
from mkcov_action.reporters.wording import count


class Mark(StrEnum):
    """What became of a family in a layer; the worst of several is shown, in this order."""

    UNWIRED = "X"
    FLAWED = "!"
    UNUSED = "○"
    WIRED = "●"
    ABSENT = "·"


_LEGEND = {
    Mark.WIRED: "wired",
    Mark.UNWIRED: "not wired",
    Mark.FLAWED: "wired, but a finding names it",
    Mark.UNUSED: "not used, and need not be",
    Mark.ABSENT: "not in this layer",
}
_WORST_FIRST = tuple(Mark)
_ATTACHED = frozenset({Origin.MODEL.value, Origin.SHUFFLED.value})
_UNTOUCHED = frozenset({Status.MISSING_WIRING, Status.UNCONSUMED, Status.DEAD})

_LAYER = re.compile(r"(?<![a-z])layers?[._]?([0-9]+)", re.IGNORECASE)
_GROUP = 10
_COLUMNS = 130
_NAME_LIMIT = 48
_LABEL_LIMIT = 9
_WIRED = "wired"
_OPEN = 24
"""So many families are shown without a click."""


@dataclass(frozen=True, slots=True)
class _Family:
    """One line: `strip` has a mark a layer, or a member where there are no layers."""

    name: str
    strip: tuple[Mark, ...]
    wired: int
    total: int
    layered: bool

    @property
    def worst(self) -> Mark:
        return min(self.strip, key=_WORST_FIRST.index)

    @property
    def troubled(self) -> bool:
        return self.worst in (Mark.UNWIRED, Mark.FLAWED)


def coverage_sections(report: Report) -> Iterator[Section]:
    """The map of each graph; what is wired throughout is folded where it would be long."""
    severities = _severities(report)
    for graph in report.graphs:
        layers, families = _families(report, graph, severities)
        if not families:
            continue
        of = f" of {code(graph.graph)}" if len(report.graphs) > 1 else ""
        title = f"### Tensors by family and layer{of}\n\n"
        shown = families if len(families) <= _OPEN else [each for each in families if each.troubled]
        hidden = families[len(shown) :]
        if shown:
            yield _section(title, shown, layers, rank=3)
        if hidden:
            opening, closing = folded(_hidden_title(hidden, layers))
            yield _section(("" if shown else title) + opening, hidden, layers, rank=7, closing=closing)


def _hidden_title(hidden: Sequence[_Family], layers: Sequence[str]) -> str:
    families = f"{len(hidden):,} families" if len(hidden) > 1 else "1 family"
    figures = [count(sum(family.total for family in hidden), "tensor")]
    if layers:
        figures.append(count(len(layers), "layer"))
    return f"{families} without a flaw ({', '.join(figures)})"


def _section(
    opening: str, families: Sequence[_Family], layers: Sequence[str], *, rank: int, closing: str = ""
) -> Section:
    rows = list(_rows(families, layers))
    fence = fence_for(row.text for row in rows)
    return Section(
        rank=rank,
        opening=f"{opening}{fence}diff\n",
        rows=rows,
        closing=f"{fence}\n\n{_legend(families)}\n{closing}",
        total=len(rows),
        noun="family line",
    )


def _rows(families: Sequence[_Family], layers: Sequence[str]) -> Iterator[Row]:
    """The lines, with the numbers of the layers above the first of those that have layers."""
    names = [clean(family.name, _NAME_LIMIT) for family in families]
    width = max(map(_width, names))
    figures = [f"{family.wired:,}/{family.total:,}" for family in families]
    figures_width = max(map(len, [_WIRED, *figures]))
    above: bool | None = None
    for family, name, figure in zip(families, names, figures, strict=True):
        text = (
            f"{_prefix(family)} {_filled(name, width)}  {figure:>{figures_width}}  {_strip(family.strip)}\n"
        )
        if family.layered is not above:
            ruler = (
                f"  {' ' * width}  {_WIRED:>{figures_width}}  {_ruler(layers)}\n" if family.layered else ""
            )
            text = ("" if above is None else "\n") + ruler + text
        above = family.layered
        yield Row(text)


def _prefix(family: _Family) -> str:
    return {Mark.UNWIRED: "-", Mark.FLAWED: "!"}.get(family.worst, " ")


def _strip(marks: Sequence[Mark]) -> str:
    shown = marks[:_COLUMNS]
    groups = ("".join(shown[start : start + _GROUP]) for start in range(0, len(shown), _GROUP))
    return " ".join(groups) + (f" +{len(marks) - len(shown):,}" if len(marks) > len(shown) else "")


def _ruler(layers: Sequence[str]) -> str:
    """The number of the first layer of every group, above it."""
    labels = [layer[:_LABEL_LIMIT] for layer in layers[:_COLUMNS:_GROUP]]
    titled = f"layer {labels[0]}"
    return " ".join(
        f"{label:<{_GROUP}}" for label in (titled if len(titled) <= _GROUP else labels[0], *labels[1:])
    ).rstrip()


def _legend(families: Sequence[_Family]) -> str:
    used = {mark for family in families for mark in family.strip} | {Mark.WIRED}
    return " · ".join(f"`{mark}` {words}" for mark, words in _LEGEND.items() if mark in used)


def _families(
    report: Report, graph: GraphReport, severities: Mapping[tuple[str, str], Severity]
) -> tuple[Sequence[str], list[_Family]]:
    """The layers of the graph, and the lines: troubled ones first, those with layers before others.

    Attached tensors are all there; scratch and symmetric ones only where something is wrong.
    """
    members: dict[str, list[tuple[TensorReport, Mark]]] = {}
    for tensor in report.tensors:
        if tensor.graph == graph.graph:
            mark = _mark(tensor, severities.get((tensor.graph, tensor.name)))
            members.setdefault(family_of(tensor.name), []).append((tensor, mark))
    kept = {
        name: marked
        for name, marked in members.items()
        if any(tensor.origin in _ATTACHED or mark in (Mark.UNWIRED, Mark.FLAWED) for tensor, mark in marked)
    }
    layers = sorted({_layer(tensor) for marked in kept.values() for tensor, _ in marked} - {""}, key=natural)
    families = [_family(name, marked, layers) for name, marked in kept.items()]
    return layers, sorted(families, key=lambda family: (not family.troubled, not family.layered))


def _family(name: str, marked: Sequence[tuple[TensorReport, Mark]], layers: Sequence[str]) -> _Family:
    marks = Counter(mark for _, mark in marked)
    by_layer: dict[str, list[Mark]] = {}
    for tensor, mark in marked:
        by_layer.setdefault(_layer(tensor), []).append(mark)
    layered = "" not in by_layer
    if layered:
        strip = [min(by_layer.get(layer, [Mark.ABSENT]), key=_WORST_FIRST.index) for layer in layers]
    else:
        strip = [mark for _, mark in sorted(marked, key=lambda pair: natural(pair[0].name))]
    return _Family(
        name=marked[0][0].name if len(marked) == 1 else name,
        strip=tuple(strip),
        wired=marks[Mark.WIRED] + marks[Mark.FLAWED],
        total=len(marked),
        layered=layered,
    )


def _mark(tensor: TensorReport, severity: Severity | None) -> Mark:
    if tensor.status in _UNTOUCHED:
        excused = severity is Severity.NOTE or (severity is None and tensor.status is Status.DEAD)
        return Mark.UNUSED if excused and tensor.status is not Status.MISSING_WIRING else Mark.UNWIRED
    flawed = tensor.status in (Status.UNINITIALISED, Status.PARTIAL)
    return Mark.FLAWED if flawed or (severity or Severity.NOTE) > Severity.NOTE else Mark.WIRED


def _severities(report: Report) -> dict[tuple[str, str], Severity]:
    """(graph, tensor) -> the severity of the worst finding that names it."""
    worst: dict[tuple[str, str], Severity] = {}
    for finding in report.findings:
        for name in (finding.tensor, *finding.members):
            if name is not None:
                key = finding.graph, name
                worst[key] = max(finding.severity, worst.get(key, Severity.NOTE))
    return worst


def _layer(tensor: TensorReport) -> str:
    """The number of the tensor's layer without leading zeros; empty if its name has none."""
    match = _LAYER.search(tensor.name)
    return (match.group(1).lstrip("0") or "0") if match else ""


def _filled(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _width(text: str) -> int:
    """Columns of a fixed-width font: East Asian characters take two."""
    return sum(1 + (unicodedata.east_asian_width(character) in "WF") for character in text)
