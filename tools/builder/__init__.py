"""Builds task graphs in the grammar of Mirage's MPK generator, for fixtures, tests and benchmarks."""

from tools.builder.decoder import decoder
from tools.builder.errors import BuilderError
from tools.builder.graph import GraphBuilder
from tools.builder.operators import Operator
from tools.builder.tensors import Tensor, Tile
from tools.builder.writing import Compression, Naming, write_ranks

__all__ = [
    "BuilderError",
    "Compression",
    "GraphBuilder",
    "Naming",
    "Operator",
    "Tensor",
    "Tile",
    "decoder",
    "write_ranks",
]
