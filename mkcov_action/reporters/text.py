"""The text report: what a tired engineer reads in a terminal or finds in a CI log.

Figures and critical tensors first, then findings worst first, then what was not checked, and last
the verdict on one line. Lower-case words start findings; upper-case words speak of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mkcov_action.report import Report
from mkcov_action.reporters.clean import clean, name
from mkcov_action.reporters.finding_lines import finding_lines
from mkcov_action.reporters.rank_lines import rank_lines
from mkcov_action.reporters.styled import BLANK, Line, Segment, coloured, line, plain
from mkcov_action.reporters.tensor_lines import all_lines, critical_lines, info_lines
from mkcov_action.reporters.verdict_line import verdict_line
from mkcov_action.reporters.wording import deselection


def render(report: Report, *, all_tensors: bool = False, color: bool = False) -> str:
    """The report as text, each line ended by a newline; `all_tensors` lists every tensor.

    Nothing untrusted passes unescaped, and the text without colour codes is the same either way.
    """
    lines = list(_lines(report, all_tensors=all_tensors))
    return coloured(lines) if color else plain(lines)


def _lines(report: Report, *, all_tensors: bool) -> Iterator[Line]:
    yield from _section(rank_lines(report))
    yield from _section((*critical_lines(report), *info_lines(report)))
    if all_tensors:
        yield from _section(all_lines(report))
    yield from finding_lines(report)
    yield from _section((*_not_checked_lines(report), *_run_lines(report)))
    yield verdict_line(report)


def _section(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines and a blank one; nothing at all where there is none."""
    empty = True
    for each in lines:
        empty = False
        yield each
    if not empty:
        yield BLANK


def _not_checked_lines(report: Report) -> Iterator[Line]:
    for skipped in report.not_checked:
        where = _where(report, skipped.graph)
        title = Segment("not checked: ", "quiet")
        yield line(title, f"{name(skipped.rule)}: {where}{clean(skipped.reason)}")
    if report.deselected:
        yield line(Segment("not run: ", "quiet"), deselection(report))


def _run_lines(report: Report) -> Iterator[Line]:
    """What kept the run from a verdict, and what it warns of."""
    for failure in report.failures:
        title = "INTERNAL ERROR" if failure.internal else "ERROR"
        where = f"{name(failure.graph)}: " if failure.graph else ""
        yield line(Segment(title, "error"), f": {where}{clean(failure.message)}")
    for warning in report.warnings:
        yield line(Segment("WARNING", "warning"), f": {clean(warning)}")


def _where(report: Report, graph: str) -> str:
    return f"{name(graph)}: " if graph and len(report.graphs) > 1 else ""
