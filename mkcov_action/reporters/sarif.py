"""The SARIF 2.1.0 report: what code scanning shows as alerts on the generated kernels.

One run, and only what code scanning reads. Left out because it takes them for something else are
`kind` (a pass becomes an alert), `baselineState` and `suppressions` (both become open alerts) and
`fixes`. Nothing in it depends on the time, the machine or where the checkout lies.
"""

from __future__ import annotations

from collections.abc import Iterator

from sarif_om import (
    ArtifactLocation,
    Invocation,
    Message,
    Notification,
    ReportingDescriptorReference,
    Run,
    RunAutomationDetails,
    SarifLog,
    Tool,
    ToolComponent,
)

from mkcov_action import __version__
from mkcov_action.finding import Failure, NotChecked
from mkcov_action.report import Report
from mkcov_action.reporters.clean import NAME_LIMIT, clean, name
from mkcov_action.reporters.sarif_json import dumps
from mkcov_action.reporters.sarif_results import ROOT_ID, identified, result
from mkcov_action.reporters.sarif_rules import INDEX, descriptors
from mkcov_action.reporters.sarif_text import literal, sentence
from mkcov_action.reporters.wording import count, deselection

MOST_RESULTS = 5_000
"""How many results are written: code scanning keeps the 5,000 most severe of a run."""

_MOST_NOTIFICATIONS = 100
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(report: Report, *, category: str | None = None) -> str:
    """The report as SARIF; `category` tells runs of one commit apart and overrides the upload's own."""
    return dumps(SarifLog(schema_uri=_SCHEMA, version="2.1.0", runs=[_run(report, category)]))


def _run(report: Report, category: str | None) -> Run:
    findings = identified(report.findings)
    ranks_of_graph = {graph.graph: len(graph.ranks) for graph in report.graphs}
    left_out = max(0, len(findings) - MOST_RESULTS)
    return Run(
        tool=Tool(driver=_driver()),
        invocations=[_invocation(report, left_out)],
        automation_details=RunAutomationDetails(id=_category(category)) if category else None,
        original_uri_base_ids={
            ROOT_ID: ArtifactLocation(description=Message(text="The root of the repository."))
        },
        column_kind="unicodeCodePoints",
        results=[result(item, ranks_of_graph) for item in findings[:MOST_RESULTS]],
        properties={"mkcov/findings": dict(report.counts()), "mkcov/resultsLeftOut": left_out},
    )


def _driver() -> ToolComponent:
    # No informationUri and no helpUri as long as there is no address to give: the help is whole in itself.
    return ToolComponent(name="mkcov", version=__version__, semantic_version=__version__, rules=descriptors())


def _category(category: str) -> str:
    """The id ends in a slash: without one, code scanning takes its last part for the run's own name."""
    return clean(category.rstrip("/"), NAME_LIMIT) + "/"


def _invocation(report: Report, left_out: int) -> Invocation:
    return Invocation(
        execution_successful=not any(failure.internal for failure in report.failures),
        exit_code=report.exit_code,
        tool_execution_notifications=_bounded([*_execution(report, left_out)]),
        tool_configuration_notifications=_bounded([*_configuration(report)]),
    )


def _execution(report: Report, left_out: int) -> Iterator[Notification]:
    """What went wrong in mkcov itself, what is not in this file, and what could not be decided."""
    yield from (_failed(failure) for failure in report.failures if failure.internal)
    if left_out:
        written = f"{MOST_RESULTS:,} of {count(len(report.findings), 'finding')}"
        text = f"Only the {written} are written, most severe first; the exit code counts all."
        yield Notification(level="warning", message=Message(text=text))
    yield from map(_undecided, report.not_checked)


def _configuration(report: Report) -> Iterator[Notification]:
    yield from (_failed(failure) for failure in report.failures if not failure.internal)
    yield from (Notification(level="warning", message=_message(text)) for text in report.warnings)
    if report.deselected:
        yield Notification(level="note", message=_message(f"not run: {deselection(report)}"))


def _failed(failure: Failure) -> Notification:
    # An error says that the run failed, which is true of our own failures only.
    return Notification(
        level="error" if failure.internal else "warning", message=_message(failure.message, failure.graph)
    )


def _undecided(skipped: NotChecked) -> Notification:
    return Notification(
        level="note",
        message=_message(f"not checked: {skipped.reason}", skipped.graph),
        associated_rule=ReportingDescriptorReference(id=skipped.rule, index=INDEX.get(skipped.rule, -1)),
    )


def _message(text: str, graph: str = "") -> Message:
    where = f"{name(graph)}: " if graph else ""
    return Message(text=sentence(literal(f"{where}{clean(text)}")))


def _bounded(notifications: list[Notification]) -> list[Notification] | None:
    left_out = len(notifications) - _MOST_NOTIFICATIONS
    if left_out <= 0:
        return notifications or None
    text = f"{left_out:,} more of these are left out here."
    return [*notifications[:_MOST_NOTIFICATIONS], Notification(level="note", message=Message(text=text))]
