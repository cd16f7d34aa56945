"""Annotations: workflow commands that GitHub shows beside the lines of a change.

A step gets ten errors, ten warnings and ten notices; the runner drops what is over and cuts a
message at 4,096 characters (actions/runner ExecutionContext.cs). So the worst are annotated, and
where there are too many, the last place of a level tells how many more there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mkcov_action.finding import Confidence, Finding, Location, Severity, ranges
from mkcov_action.report import Report
from mkcov_action.reporters.clean import clean, name
from mkcov_action.reporters.finding_words import path_of, told
from mkcov_action.reporters.wording import count

LIMIT = 10
"""Annotations of one level that a step may show."""

MESSAGE_BYTES = 4_096
_TITLE_BYTES = 255

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(report: Report) -> str:
    """The commands, one a line, worst first; empty if there is nothing to say.

    Lines that a CI runner obeys, and nothing else: untrusted text is escaped twice, so that it is
    visible to people and inert to the runner.
    """
    return "".join(
        _line(_COMMANDS[severity], each)
        for severity in _COMMANDS
        for each in _within_limit(list(_annotations(report, severity)), severity)
    )


def is_cut(report: Report) -> bool:
    """Whether there is more to annotate than GitHub shows of one step."""
    return any(len(list(_annotations(report, severity))) > LIMIT for severity in _COMMANDS)


class _Annotation(NamedTuple):
    title: str
    message: str
    location: Location | None = None


def _annotations(report: Report, severity: Severity) -> Iterator[_Annotation]:
    """Failures of the run before errors, findings of that severity, warnings of the run last."""
    if severity is Severity.ERROR:
        for failure in sorted(report.failures, key=lambda failure: not failure.internal):
            title = "mkcov: internal error" if failure.internal else "mkcov: no verdict"
            where = "" if failure.graph in failure.message else f"{name(failure.graph)}: "
            yield _Annotation(title, where + clean(failure.message))
    ranks = {graph.graph: frozenset(rank.rank for rank in graph.ranks) for graph in report.graphs}
    for finding in report.findings:
        if finding.severity is severity:
            yield _Annotation(_title(finding), _message(finding, ranks), finding.location)
    if severity is Severity.WARNING:
        for warning in report.warnings:
            yield _Annotation("mkcov", clean(warning))


def _within_limit(annotations: list[_Annotation], severity: Severity) -> list[_Annotation]:
    if len(annotations) <= LIMIT:
        return annotations
    more = count(len(annotations) - LIMIT + 1, f"more {severity.label}")
    text = f"and {more}, more than GitHub shows of one step: the log and the job summary have them"
    return [*annotations[: LIMIT - 1], _Annotation(f"mkcov: {more}", text)]


def _title(finding: Finding) -> str:
    possible = " (possible)" if finding.confidence is Confidence.POSSIBLE else ""
    about = f": {name(finding.tensor)}" if finding.tensor else ""
    return f"{name(finding.rule)} {name(finding.name)}{possible}{about}"


def _message(finding: Finding, ranks_of_graph: Mapping[str, frozenset[int]]) -> str:
    """A first sentence that names the tensor and what its state does, then ranks and fix."""
    what = clean(told(finding)[0])
    lines = [f"{what}; effect: {clean(finding.consequence)}" if finding.consequence else what]
    graph_ranks = ranks_of_graph.get(finding.graph, frozenset())
    if finding.ranks and graph_ranks - set(finding.ranks):
        lines.append(f"Ranks: {ranges(finding.ranks)} of {ranges(graph_ranks)}")
    if finding.fix:
        lines.append(f"Fix: {clean(finding.fix)}")
    return "\n".join(lines)


def _line(command: str, annotation: _Annotation) -> str:
    """`::error file=gen/kernel_0.cu,line=9,title=MK101 …::rope_cos is declared …`."""
    properties: dict[str, str] = {}
    if annotation.location:
        properties |= {"file": path_of(annotation.location), "line": str(annotation.location.line)}
        if annotation.location.column is not None:
            properties["col"] = str(annotation.location.column)
    properties["title"] = _cut(annotation.title, _TITLE_BYTES)
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{command} {listed}::{_data(_cut(annotation.message, MESSAGE_BYTES))}\n"


def _cut(text: str, limit: int) -> str:
    """The text in at most `limit` bytes of UTF-8, which are no fewer than a runner's characters."""
    encoded = text.encode("utf-8")
    if len(encoded) <= limit:
        return text
    mark = "…"
    return encoded[: limit - len(mark.encode())].decode("utf-8", "ignore") + mark


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
