"""Findings in the job summary: the worst in the open, told with their remedy, and all of them folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from mkcov_action.finding import Confidence, Finding, Location, Severity, ranges
from mkcov_action.report import Report
from mkcov_action.reporters.clean import MESSAGE_LIMIT
from mkcov_action.reporters.finding_words import path_of, told
from mkcov_action.reporters.markdown import code, folded, prose, span
from mkcov_action.reporters.summary_page import Row, Section
from mkcov_action.reporters.wording import count, ranks_of

SIGNS = {Severity.ERROR: "❌", Severity.WARNING: "⚠️", Severity.NOTE: "📝"}

# What a person reads in a minute; the rest is folded.
_CAUSES = 10
_OF_A_CAUSE = 8
_MESSAGE = 400
_MEMBERS = 12
_RELATED = 5
_PATH_LIMIT = 300

_RanksOfGraphs = Mapping[str, frozenset[int]]


def worst_sections(report: Report) -> Iterator[Section]:
    """Errors, then warnings: one cause after the other, with the tensors, the effect and the fix."""
    ranks = _ranks_of_graphs(report)
    for severity in (Severity.ERROR, Severity.WARNING):
        findings = [finding for finding in report.findings if finding.severity is severity]
        causes = _causes(findings)
        yield Section(
            rank=1,
            opening=f"### {SIGNS[severity]} {count(len(findings), severity.label)}\n",
            rows=(Row("".join(_cause(cause, ranks))) for cause in causes[:_CAUSES]),
            closing=_more_causes(causes),
            total=len(causes[:_CAUSES]),
            noun=f"{severity.label} group",
        )


def _more_causes(causes: Sequence[Sequence[Finding]]) -> str:
    rest = sum(map(len, causes[_CAUSES:]))
    return f"\n… and {rest:,} more, see all findings below\n" if rest else ""


def _causes(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Neighbours of one rule with the same effect and fix, which are then said once."""
    return [list(group) for _, group in groupby(findings, _sameness)]


def _sameness(finding: Finding) -> tuple[str, int, str, str]:
    return finding.rule, finding.severity, finding.consequence, finding.fix


def _cause(findings: Sequence[Finding], ranks: _RanksOfGraphs) -> Iterator[str]:
    first = findings[0]
    yield f"\n**{code(first.rule)} {prose(first.name)}**\n\n"
    for finding in findings[:_OF_A_CAUSE]:
        notes = _notes(finding, ranks)
        yield f"- {_message(finding, _MESSAGE)}{notes} · {_place(finding.location, finding.graph)}\n"
    if len(findings) > _OF_A_CAUSE:
        yield f"- … and {len(findings) - _OF_A_CAUSE:,} more like these, see all findings below\n"
    advice = _advice(findings)
    yield "\n" + "<br>\n".join(advice) + "\n" if advice else ""


def _message(finding: Finding, limit: int) -> str:
    message, tensor = told(finding)
    return prose(message, limit, name=tensor)


def _notes(finding: Finding, ranks: _RanksOfGraphs) -> str:
    notes = ["possible"] if finding.confidence is Confidence.POSSIBLE else []
    graph_ranks = ranks.get(finding.graph, frozenset())
    if finding.ranks and graph_ranks - set(finding.ranks):
        notes.append(f"{ranks_of(finding.ranks)} of {ranges(graph_ranks)}")
    return f" ({', '.join(notes)})" if notes else ""


def _place(location: Location | None, graph: str) -> str:
    if location is None:
        return code(graph)
    column = f":{location.column}" if location.column is not None else ""
    return span(f"{path_of(location, _PATH_LIMIT)}:{location.line}{column}")


def _advice(findings: Sequence[Finding]) -> list[str]:
    """What the findings of one cause have in common."""
    each = f" (each of these {len(findings):,})" if len(findings) > 1 else ""
    said = ((f"Effect{each}", findings[0].consequence), ("Fix", findings[0].fix))
    return [f"**{title}:** {prose(text, _MESSAGE)}" for title, text in said if text]


def all_findings_section(report: Report) -> Section:
    """Every finding with members and related places, in the order of the report."""
    total = len(report.findings)
    opening, closing = folded(f"All {total:,} findings" if total > 1 else "The finding in full")
    return Section(rank=9, opening=opening, closing=closing, rows=_rows(report), total=total, noun="finding")


def _rows(report: Report) -> Iterator[Row]:
    ranks = _ranks_of_graphs(report)
    for cause in _causes(report.findings):
        for finding in cause:
            advice = _advice(cause) if finding is cause[-1] else []
            yield Row("".join((*_full(finding, ranks), *(f"  - {line}\n" for line in advice))))


def _full(finding: Finding, ranks: _RanksOfGraphs) -> Iterator[str]:
    head = f"{SIGNS[finding.severity]} {finding.severity.label} {code(finding.rule)} {prose(finding.name)}"
    place = _place(finding.location, finding.graph)
    yield f"- {head}{_notes(finding, ranks)} {place}: {_message(finding, MESSAGE_LIMIT)}\n"
    if finding.members:
        members = ", ".join(code(member) for member in finding.members[:_MEMBERS])
        more = len(finding.members) - _MEMBERS
        yield f"  - {count(len(finding.members), 'member')}: {members}{f' and {more:,} more' if more > 0 else ''}\n"
    for related in finding.related[:_RELATED]:
        yield f"  - see {_place(related, '')}{f': {prose(related.text)}' if related.text else ''}\n"
    if len(finding.related) > _RELATED:
        yield f"  - and {count(len(finding.related) - _RELATED, 'more place')}\n"


def _ranks_of_graphs(report: Report) -> _RanksOfGraphs:
    return {graph.graph: frozenset(rank.rank for rank in graph.ranks) for graph in report.graphs}
