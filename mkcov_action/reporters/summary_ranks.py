"""The figures of each rank in the job summary, and the tensors about which ranks differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from mkcov_action.finding import ranges
from mkcov_action.report import GraphReport, RankReport, Report, TensorReport
from mkcov_action.reporters.markdown import code, folded, row, table
from mkcov_action.reporters.summary_page import Row, Section
from mkcov_action.reporters.wording import count, ranks_of, size

_TITLES = (
    "Graph",
    "Rank",
    "Tasks",
    "Events",
    "Tensors",
    "Read",
    "Written",
    "Dead",
    "Model tensors consumed",
)


def rank_section(report: Report) -> Section:
    """One line for neighbouring ranks of a graph that have the same figures."""
    rows = [each for graph in report.graphs for each in _rows(graph)]
    return Section(
        rank=2,
        opening="### Ranks\n\n" + table(_TITLES, "llrrrrrrr"),
        rows=rows,
        total=sum(each.items for each in rows),
        noun="rank",
    )


def _rows(graph: GraphReport) -> Iterator[Row]:
    of = f" of {graph.world_size}" if graph.world_size is not None and graph.world_size > 1 else ""
    for _, group in groupby(graph.ranks, _figures):
        ranks = list(group)
        first = ranks[0]
        numbers = f"{ranges(rank.rank for rank in ranks)}{of}"
        if first.audited:
            cells = [numbers, *_cells(first)]
        else:
            cells = [f"{numbers} **not audited**: {_why_not_audited(first)}", *[""] * (len(_TITLES) - 2)]
        yield Row(row([code(graph.graph), *cells]), len(ranks))


def _figures(rank: RankReport) -> RankReport:
    """The rank without what tells it from its equals: its number and names; missing halves count."""
    return replace(rank, rank=0, kernel=rank.kernel and "kernel", task_graph=rank.task_graph and "task graph")


def _cells(rank: RankReport) -> Iterator[str]:
    coverage = rank.coverage
    yield from (
        f"{figure:,}"
        for figure in (rank.tasks, rank.events, coverage.declared, coverage.read, coverage.written)
    )
    wasted = f" ({size(coverage.dead_bytes)})" if coverage.dead_bytes else ""
    yield f"{coverage.dead:,}{wasted}"
    consumed = f"{coverage.model_tensors_consumed:,} of {coverage.model_tensors:,}"
    yield consumed if coverage.model_tensors_consumed == coverage.model_tensors else f"**{consumed}**"


def _why_not_audited(rank: RankReport) -> str:
    halves = (("kernel", rank.kernel), ("task graph", rank.task_graph))
    return " and ".join(f"no {half}" for half, file in halves if file is None) or "see the findings"


def difference_section(report: Report) -> Section:
    """The tensors whose counts or status differ between ranks, or that some ranks do not declare."""
    audited = {graph.graph: {rank.rank for rank in graph.ranks if rank.audited} for graph in report.graphs}
    differing = [
        tensor
        for tensor in report.tensors
        if tensor.by_rank or audited.get(tensor.graph, set()) - set(tensor.ranks)
    ]
    total = len(differing)
    opening, closing = folded(f"Ranks differ about {count(total, 'tensor')}")
    several = len(report.graphs) > 1
    return Section(
        rank=8,
        opening=opening + table(_DIFFERENCE_TITLES, "llrrl"),
        closing=closing,
        rows=(Row("".join(_difference(tensor, several=several))) for tensor in differing),
        total=total,
        noun="rank difference",
    )


_DIFFERENCE_TITLES = ("Tensor", "Ranks", "As an input", "As an output", "Status")


def _difference(tensor: TensorReport, *, several: bool) -> Iterator[str]:
    of = f" of {code(tensor.graph)}" if several else ""
    if not tensor.by_rank:
        where = f"declared on {ranks_of(tensor.ranks)} only" if tensor.ranks else "declared on no rank"
        yield row((code(tensor.name) + of, where, *_references(tensor), tensor.status))
    alike: dict[tuple[str, ...], list[int]] = {}
    for refs in tensor.by_rank:
        alike.setdefault((f"{refs.input_refs:,}", f"{refs.output_refs:,}", refs.status), []).append(refs.rank)
    for cells, ranks in alike.items():
        yield row((code(tensor.name) + of, ranges(ranks), *cells))


def _references(tensor: TensorReport) -> tuple[str, str]:
    return f"{tensor.input_refs:,}", f"{tensor.output_refs:,}"
