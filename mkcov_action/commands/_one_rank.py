"""Reads one rank of one directory, and no other; what cannot be read is a usage error (exit 2)."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import click

from mkcov_action.artifacts import GraphFiles, RankFiles, discover
from mkcov_action.audit import header_of, nothing_in, spelled
from mkcov_action.config import Config
from mkcov_action.finding import Artifact, Failure, Problem
from mkcov_action.loader import load
from mkcov_action.megakernel import Rank


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the cyclic collector, which would only walk the millions of objects that a rank is made of."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def read_rank(config: Config, number: int | None) -> tuple[str, Rank]:
    """The rank of that number, else the lowest, of the directory that `config` names, and the graph's name."""
    discovery = discover(replace(config, ranks=None))
    failures = list(discovery.failures)
    header = header_of(config.task_types, failures)
    _fail(failures)
    (graph,) = discovery.graphs
    if graph.empty:
        _fail([nothing_in(*directory, graph) for directory in graph.empty.items()])
    files = _files(graph, number)
    loaded = load([replace(graph, ranks=(files,))], header=header, workers=1)
    _fail(loaded.failures)
    (rank,) = loaded.megakernels[0].ranks
    if number is not None and rank.number != number:  # only the file's content told
        raise click.ClickException(f"there is no rank {number} here, but {spelled([rank.number])}")
    if not rank.audited:
        reasons = [_told(rank, problem) for problem in rank.problems]
        raise click.ClickException(f"rank {rank.number} cannot be read: {'; '.join(reasons[:3])}")
    return graph.graph, rank


def _files(graph: GraphFiles, number: int | None) -> RankFiles:
    """The files of a rank; of those whose names tell no rank, the first."""
    if number is None:
        return graph.ranks[0]
    for files in graph.ranks:
        if files.rank == number:
            return files
    untold = [files for files in graph.ranks if files.rank is None]
    if untold:
        return untold[0]
    raise click.ClickException(f"there is no rank {number} here, but {spelled(graph.offered)}")


def _told(rank: Rank, problem: Problem) -> str:
    uri = problem.uri or rank.uri(problem.artifact)
    if uri is None:
        noun = "kernel" if problem.artifact is Artifact.KERNEL else "task graph"
        return problem.message if noun in problem.message else f"{noun}: {problem.message}"
    line = f":{problem.line}" if problem.line is not None else ""
    return f"{uri}{line}: {problem.message}"


def _fail(failures: list[Failure] | tuple[Failure, ...]) -> None:
    """Raises what stands in the way; an internal error is none of the user's."""
    for failure in failures:
        if failure.internal:
            raise RuntimeError(failure.message)
        raise click.ClickException(failure.message)
