"""Ranks of real graphs, each read once, and graphs that the builder makes.

Tests that ask for a real one are skipped where they are not.
"""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import pytest

from mkcov_action.artifacts import discover
from mkcov_action.config import Config
from mkcov_action.loader import load
from mkcov_action.megakernel import Megakernel, Rank
from mkcov_action.task_graph import TaskGraph, read_task_graph
from tools.builder import decoder
from tools.builder.decoder import AllReduce

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
QWEN = (
    "qwen3-0.6b-hopper",
    "qwen3-30b-a3b-moe-blackwell",
    "qwen3-8b-blackwell-2layers",
    "qwen3-8b-hopper-2layers",
)
TWO_RANKS = "qwen3-8b-hopper-2layers-tp2"


def rank_of(graph: str, number: int = 0) -> Rank:
    """A rank of a real graph."""
    if not (CORPUS / graph).is_dir():
        pytest.skip("the corpus of real graphs (../shared/corpus) is not here")
    return _read(graph, number).rank(number)


@cache
def _read(graph: str, number: int) -> Megakernel:
    config = Config(paths=(str(CORPUS / graph),), root=CORPUS, ranks=(number,))
    (megakernel,) = load(discover(config).graphs, workers=1, wanted=config.ranks).megakernels
    return megakernel


@cache
def built_graphs(ranks: int, all_reduce: AllReduce) -> tuple[TaskGraph, ...]:
    """The ranks of a clean decoder of two layers."""
    graphs = []
    for builder in decoder(layers=2, ranks=ranks, all_reduce=all_reduce):
        text = builder.task_graph_text().encode()
        graph, problems = read_task_graph(lambda text=text: io.BytesIO(text))  # type: ignore[misc]
        assert graph, problems
        graphs.append(graph)
    return tuple(graphs)
