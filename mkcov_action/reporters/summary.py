"""The job summary: GitHub-flavoured Markdown for a person who has a minute.

Verdict, what is wrong with the way to mend it, the figures of each rank and the map of the layers
come first and open; lists that one reads only when something is wrong are folded. GitHub drops a
summary that has one byte too many, so the page is made to a budget, from which folded details
fall first and the verdict never.
"""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.report import Report, Verdict
from mkcov_action.reporters.markdown import code, escape, folded, prose
from mkcov_action.reporters.styled import plain
from mkcov_action.reporters.summary_coverage import coverage_sections
from mkcov_action.reporters.summary_findings import all_findings_section, worst_sections
from mkcov_action.reporters.summary_page import Page, Row, Section, page, size
from mkcov_action.reporters.summary_ranks import difference_section, rank_section
from mkcov_action.reporters.verdict_line import verdict_line
from mkcov_action.reporters.wording import deselection

LEAST_BUDGET = 1_500
"""The smallest budget, in bytes, in which a verdict surely has room."""

_VERDICT_LIMIT = 1_000
_OPEN = 6


def render(report: Report, *, budget: int = 1_000_000) -> str:
    """The summary in at most `budget` bytes of UTF-8; GitHub takes 1,048,576 a step.

    ValueError if the budget is below LEAST_BUDGET.
    """
    return fitted(report, budget=budget).text


def fitted(report: Report, *, budget: int) -> Page:
    """The same, with the number of items that had to be left out."""
    if budget < LEAST_BUDGET:
        raise ValueError(f"a summary needs at least {LEAST_BUDGET} bytes, not {budget}")
    return page(_verdict(report), list(_sections(report)), budget)


def _verdict(report: Report) -> str:
    """`## ❌ mkcov: FAIL (exit 1): 2 errors; …`; without the reasons where these have no end."""
    told = plain([verdict_line(report)]).strip("\n").removeprefix("VERDICT: ")
    for words in (told, told.partition(": ")[0]):
        line = f"## {_sign(report)} mkcov: {escape(words)}\n"
        if size(line) <= _VERDICT_LIMIT:
            break
    return line


def _sign(report: Report) -> str:
    if report.verdict is Verdict.ERROR:
        return "⛔"
    if report.verdict is Verdict.FAIL:
        return "❌"
    return "✅" if report.audited else "⚠️"


def _sections(report: Report) -> Iterator[Section]:
    """In the order of the page; their ranks give the order in which they get their room."""
    yield _failures(report)
    yield from worst_sections(report)
    yield rank_section(report)
    yield from coverage_sections(report)
    yield _not_checked(report)
    yield _remarks(report)
    yield difference_section(report)
    yield all_findings_section(report)


def _failures(report: Report) -> Section:
    """What kept the run from a verdict."""
    rows = (
        Row(
            f"- {'**internal error:** ' if failure.internal else ''}"
            f"{f'{code(failure.graph)}: ' if failure.graph else ''}"
            f"{prose(failure.message)}\n"
        )
        for failure in sorted(report.failures, key=lambda failure: not failure.internal)
    )
    return Section(
        rank=0,
        opening="### ⛔ No verdict, because\n\n",
        rows=rows,
        total=len(report.failures),
        noun="failure",
    )


def _not_checked(report: Report) -> Section:
    total = len(report.not_checked)
    rows = (
        Row(f"- {code(skipped.rule)}: {_where(report, skipped.graph)}{prose(skipped.reason)}\n")
        for skipped in report.not_checked
    )
    title = "### Not checked\n\n"
    opening, closing = folded(f"{total:,} checks that were not made", "") if total > _OPEN else ("", "")
    return Section(
        rank=5, opening=title + opening, closing=closing, rows=rows, total=total, noun="omitted check"
    )


def _remarks(report: Report) -> Section:
    remarks = list(report.warnings)
    if report.deselected:
        remarks.append(f"not run: {deselection(report)}")
    rows = (Row(f"- {prose(remark)}\n") for remark in remarks)
    return Section(
        rank=6, opening="### Remarks on this run\n\n", rows=rows, total=len(remarks), noun="remark"
    )


def _where(report: Report, graph: str) -> str:
    return f"{code(graph)}: " if graph and len(report.graphs) > 1 else ""
