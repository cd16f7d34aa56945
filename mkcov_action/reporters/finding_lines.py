"""The findings half of the text report: what is wrong where, what that does, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from mkcov_action.finding import Confidence, Finding, Location, ranges
from mkcov_action.report import Report
from mkcov_action.reporters.clean import clean, name, naming
from mkcov_action.reporters.styled import BLANK, Line, Segment, line
from mkcov_action.reporters.wording import count, place, some

_MEMBERS = 6
_RELATED = 3


def finding_lines(report: Report) -> Iterator[Line]:
    """Every finding in the order given, a blank line after each group.

    Neighbours of one rule with the same effect and fix are a group, which says these once: sixty
    unread weights are sixty lines, not two hundred.
    """
    ranks_of_graph = {graph.graph: frozenset(rank.rank for rank in graph.ranks) for graph in report.graphs}
    for _, group in groupby(report.findings, _sameness):
        findings = list(group)
        for finding in findings:
            yield _head(finding)
            yield from _details(finding, ranks_of_graph.get(finding.graph, frozenset()))
        yield from _advice(findings)
        yield BLANK


def _sameness(finding: Finding) -> tuple[str, int, str, str]:
    return finding.rule, finding.severity, finding.consequence, finding.fix


def _head(finding: Finding) -> Line:
    """`error MK101 missing-wiring kernel_0.cu:110: rope_cos is declared and no task reads it`."""
    label = finding.severity.label
    possible = " (possible)" if finding.confidence is Confidence.POSSIBLE else ""
    where = place(finding.location) if finding.location else name(finding.graph)
    return line(
        Segment(label, label),
        f"{possible} {name(finding.rule)} ",
        Segment(name(finding.name), "strong"),
        f" {where}: {naming(finding.message, finding.tensor)}",
    )


def _details(finding: Finding, graph_ranks: frozenset[int]) -> Iterator[Line]:
    # A fixed word starts each line: runners skip blanks before they look for a command.
    if graph_ranks - set(finding.ranks) and finding.ranks:
        yield line(Segment("  ranks: ", "quiet"), f"{ranges(finding.ranks)} of {ranges(graph_ranks)}")
    if finding.members:
        members = some([name(member) for member in finding.members[:_MEMBERS]], _MEMBERS)
        more = len(finding.members) - _MEMBERS
        rest = f" and {more:,} more" if more > 0 else ""
        yield line(Segment(f"  members ({len(finding.members):,}): ", "quiet"), members, rest)
    for related in finding.related[:_RELATED]:
        yield _related(related)
    if len(finding.related) > _RELATED:
        yield line(Segment("  see also: ", "quiet"), count(len(finding.related) - _RELATED, "more place"))


def _related(location: Location) -> Line:
    text = f": {clean(location.text)}" if location.text else ""
    return line(Segment("  see: ", "quiet"), place(location), text)


def _advice(findings: list[Finding]) -> Iterator[Line]:
    first = findings[0]
    each = f" (each of these {len(findings):,})" if len(findings) > 1 else ""
    if first.consequence:
        yield line(Segment(f"  effect{each}: ", "quiet"), clean(first.consequence))
    if first.fix:
        yield line(Segment("  fix: ", "quiet"), clean(first.fix))
