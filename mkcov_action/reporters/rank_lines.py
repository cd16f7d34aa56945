"""The figures of each rank in the text report."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.report import GraphReport, RankReport, Report
from mkcov_action.reporters.clean import name
from mkcov_action.reporters.styled import Line, Segment, line
from mkcov_action.reporters.wording import count, size


def rank_lines(report: Report) -> Iterator[Line]:
    """The figures of each rank of each graph, one line a rank."""
    for graph in report.graphs:
        for rank in graph.ranks:
            yield _rank_line(graph, rank)


def _rank_line(graph: GraphReport, rank: RankReport) -> Line:
    # The fixed first word keeps a directory's name from starting a line.
    of = f" of {graph.world_size}" if graph.world_size is not None and graph.world_size > 1 else ""
    head = f"graph {name(graph.graph)} rank {rank.rank}{of}: "
    if not rank.audited:
        return line(head, Segment("not audited", "error"), f": {_why_not_audited(rank)}")
    coverage = rank.coverage
    wasted = f" ({size(coverage.dead_bytes)})" if coverage.dead_bytes else ""
    return line(
        f"{head}{count(rank.tasks, 'task')}, {count(rank.events, 'event')}; "
        f"{count(coverage.declared, 'tensor')} declared, {coverage.read:,} read, "
        f"{coverage.written:,} written, {coverage.dead:,} dead{wasted}; ",
        Segment(
            f"{coverage.model_tensors_consumed:,} of {count(coverage.model_tensors, 'model tensor')} consumed",
            "warning" if coverage.model_tensors_consumed < coverage.model_tensors else "",
        ),
    )


def _why_not_audited(rank: RankReport) -> str:
    halves = (("kernel", rank.kernel), ("task graph", rank.task_graph))
    missing = [f"no {half}" for half, file in halves if file is None]
    return " and ".join(missing) or "a file could not be read, see the findings"
