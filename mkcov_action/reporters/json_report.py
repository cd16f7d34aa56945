"""The JSON report, version 1: mkcov_action/schema/report.schema.json describes every key."""

from __future__ import annotations

from typing import Any

from mkcov_action import __version__
from mkcov_action.finding import Finding, Location
from mkcov_action.report import GraphReport, RankReport, Report, TensorReport, TypeRefs
from mkcov_action.reporters.ascii_json import dumps

VERSION = 1
"""The report's version: it changes when a key changes its meaning or goes away."""

_Object = dict[str, Any]


def render(report: Report) -> str:
    """The report as JSON text with a final newline."""
    return dumps(_report(report))


def _report(report: Report) -> _Object:
    return {
        "version": VERSION,
        "tool": {"name": "mkcov", "version": __version__},
        "verdict": report.verdict.value,
        "exit_code": report.exit_code,
        "graphs": [_graph(graph) for graph in report.graphs],
        "tensors": [_tensor(tensor) for tensor in report.tensors],
        "findings": [_finding(finding) for finding in report.findings],
        "not_checked": [
            {"graph": skipped.graph, "rule": skipped.rule, "reason": skipped.reason}
            for skipped in report.not_checked
        ],
        "deselected": list(report.deselected),
        "errors": [{"graph": failure.graph, "message": failure.message} for failure in report.failures],
        "warnings": list(report.warnings),
    }


def _graph(graph: GraphReport) -> _Object:
    return {
        "graph": graph.graph,
        "world_size": graph.world_size,
        "ranks": [_rank(rank) for rank in graph.ranks],
    }


def _rank(rank: RankReport) -> _Object:
    coverage = rank.coverage
    return {
        "rank": rank.rank,
        "kernel": rank.kernel,
        "task_graph": rank.task_graph,
        "tasks": rank.tasks,
        "events": rank.events,
        "coverage": {
            "declared": coverage.declared,
            "read": coverage.read,
            "written": coverage.written,
            "dead": coverage.dead,
            "model_tensors": coverage.model_tensors,
            "model_tensors_consumed": coverage.model_tensors_consumed,
            "dead_bytes": coverage.dead_bytes,
        },
        "audited": rank.audited,
    }


def _tensor(tensor: TensorReport) -> _Object:
    described: _Object = {
        "graph": tensor.graph,
        "name": tensor.name,
        "origin": tensor.origin,
        "bytes": tensor.bytes,
        "ranks": list(tensor.ranks),
        "input_refs": tensor.input_refs,
        "output_refs": tensor.output_refs,
        "consumers": [_type_refs(refs) for refs in tensor.consumers],
        "producers": [_type_refs(refs) for refs in tensor.producers],
        "critical": tensor.critical,
        "status": tensor.status.value,
    }
    if tensor.by_rank:
        described["by_rank"] = [
            {
                "rank": refs.rank,
                "input_refs": refs.input_refs,
                "output_refs": refs.output_refs,
                "status": refs.status.value,
            }
            for refs in tensor.by_rank
        ]
    return described


def _type_refs(refs: TypeRefs) -> _Object:
    return {"task_type": refs.task_type, "name": refs.name, "refs": refs.refs}


def _finding(finding: Finding) -> _Object:
    return {
        "graph": finding.graph,
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity.label,
        "confidence": finding.confidence.value,
        "message": finding.message,
        "consequence": finding.consequence,
        "fix": finding.fix,
        "tensor": finding.tensor,
        "operator": None if finding.operator is None else str(finding.operator),
        "members": list(finding.members),
        "ranks": list(finding.ranks),
        "location": None if finding.location is None else _location(finding.location),
        "related": [{**_location(related), "text": related.text} for related in finding.related],
        "fingerprint": finding.fingerprint,
    }


def _location(location: Location) -> _Object:
    described: _Object = {"uri": location.uri, "line": location.line}
    if location.column is not None:
        described["column"] = location.column
    return described
