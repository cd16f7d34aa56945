"""A small decoder in the manner of Qwen and DeepSeek, on as many ranks, layers and tasks as wanted.

What it builds is meant to be clean under every rule. The model is a toy, but the wiring is not: every
tensor is read and written where a real decoder would, and each claim of order rests on events only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from tools.builder.errors import BuilderError
from tools.builder.graph import GraphBuilder
from tools.builder.operators import Operator
from tools.builder.tensors import Tensor

Attention = Literal["mla", "paged"]
"""Latent attention, whose task types take no rotary tables, or paged attention, which does."""

Rotary = Literal["operator", "gather", "none"]
"""Where latent attention applies the tables: in a fork's operator for query and key; in a fork's KV
gather with two more inputs for the key, and an unnamed operator for the query; nowhere.
"""

AllReduce = Literal["tile", "put"]
"""One multicast task a tile, or puts into the other ranks' buffers and a reduction behind them."""

UNIT = 8
"""Columns of a tile: sixteen bytes of bfloat16, what a TMA descriptor needs."""

SHARES = 64
"""Events that an edge between tiles is cut into at most; real graphs have about as many."""

ROTARY_NUMBER = 296
"""A number that Mirage leaves free and forks use for a rotary kernel of their own."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """`batch` rows; `tiles` column tiles a linear layer; `requests` and `splits` of the attention."""

    layers: int = 2
    batch: int = 2
    tiles: int = 2
    requests: int = 1
    splits: int = 2
    positions: int = 64

    @property
    def hidden(self) -> int:
        """Columns of the residual stream."""
        return self.tiles * UNIT


@dataclass(frozen=True, slots=True)
class Model:
    """What a decoder is made of."""

    sizes: Sizes
    ranks: int
    attention: Attention
    all_reduce: AllReduce
    rotary: Rotary


def decoder(
    *,
    layers: int = 2,
    ranks: int = 1,
    tasks: int | None = None,
    wired: bool = True,
    attention: Attention = "mla",
    all_reduce: AllReduce = "tile",
    rotary: Rotary = "operator",
    sizes: Sizes | None = None,
) -> list[GraphBuilder]:
    """Builds a decoder; returns a builder for each rank.

    `tasks` widens the linear layers until each rank has at least so many; `sizes` sets the rest.
    Unwired, the model still attaches `rope_cos` and `rope_sin` but attends without them: latent
    attention loses the operator that applies them, paged attention gets nullptr for them.
    """
    if layers < 1 or ranks < 1:
        raise BuilderError(f"a decoder needs a layer and a rank, not {layers} and {ranks}")
    chosen = replace(sizes or Sizes(), layers=layers)
    model = Model(chosen, ranks, attention, all_reduce, rotary if wired else "none")
    if tasks is not None:
        model = replace(model, sizes=replace(chosen, tiles=_tiles_for(tasks, model)))
    return [_Rank(model, rank).build() for rank in range(ranks)]


def _tiles_for(tasks: int, model: Model) -> int:
    """Task counts grow linearly with the tiles, so two small decoders tell how many it takes.

    Many tiles are rounded up to what cuts into shares.
    """
    one, two = (
        _Rank(replace(model, sizes=replace(model.sizes, tiles=tiles)), 0).build().plan().tasks
        for tiles in (1, 2)
    )
    tiles = max(1, 1 + ceil((tasks - one) / (two - one)))
    return tiles if tiles <= SHARES else SHARES * ceil(tiles / SHARES)


class _Rank:
    """Builds one rank. Shared scratch is declared first and reused by every layer, as upstream."""

    def __init__(self, model: Model, rank: int) -> None:
        self.model = model
        self.sizes = model.sizes
        self.graph = GraphBuilder(rank, model.ranks)
        graph, sizes = self.graph, self.sizes
        self.ids = graph.model("input_token", (sizes.batch, 1), "int64")
        self.tables = [graph.model(name, (sizes.positions, 2 * UNIT)) for name in ("rope_cos", "rope_sin")]
        self.hidden = graph.scratch("embed_out", (sizes.batch, sizes.hidden))
        self.normed = graph.scratch("rmsnorm_out", (sizes.batch, sizes.hidden))
        self.attended = graph.scratch("attn_out", (sizes.batch, sizes.hidden))
        self.middle = graph.scratch("attn_proj_out", (sizes.batch, sizes.hidden))
        self.gated = graph.scratch("mlp_mid", (sizes.batch, 2 * sizes.hidden))
        self.activated = graph.scratch("silu_mul_out", (sizes.batch, sizes.hidden))
        if model.ranks > 1:
            self.local = graph.scratch("local_sum", (sizes.batch, sizes.hidden))
        if model.ranks > 1 and model.all_reduce == "put":
            self.zeros = graph.model("zeros", (sizes.batch, sizes.hidden))
        self._declare_attention()

    def _declare_attention(self) -> None:
        graph, sizes = self.graph, self.sizes
        if self.model.attention == "paged":
            self.qkv = graph.scratch("attn_in", (sizes.batch, 3 * sizes.hidden))
            return
        self.query = graph.scratch("q_nope_pe", (sizes.batch, sizes.hidden))
        self.latent = graph.scratch("c_latent_out", (sizes.batch, sizes.hidden))
        self.key = graph.scratch("k_pe_out", (sizes.batch, 2 * UNIT))
        if self.model.rotary != "none":
            self.rotated_query = graph.scratch("q_rotated", (sizes.batch, sizes.hidden))
        if self.model.rotary == "operator":
            self.rotated_key = graph.scratch("k_pe_rotated", (sizes.batch, 2 * UNIT))
        self.gathered = graph.scratch("contiguous_kv", (sizes.positions, sizes.hidden + 2 * UNIT))
        rows = sizes.splits * sizes.batch
        self.partial = graph.scratch("mla_partial_o", (rows, sizes.hidden))
        self.lse = graph.scratch("mla_partial_lse", (rows, UNIT), "fp32")

    def build(self) -> GraphBuilder:
        embedding = self.graph.model("embed_tokens", (self.sizes.tiles * UNIT, self.sizes.hidden))
        self.graph.operator("TASK_EMBEDDING", [self.ids, embedding], [self.hidden], waits_for=())
        for layer in range(self.sizes.layers):
            self._layer(f"layer_{layer}")
        self._head()
        return self.graph

    def _layer(self, name: str) -> None:
        norm = self._norm(self.hidden, f"{name}_input_layernorm")
        if self.model.attention == "paged":
            self._paged_attention(name)
        else:
            self._latent_attention(name, norm)
        self._project(f"{name}_o_proj", self.attended, residual=self.hidden, result=self.middle)
        self._norm(self.middle, f"{name}_post_attn_layernorm")
        self._mlp(name)
        self._project(f"{name}_down_proj", self.activated, residual=self.middle, result=self.hidden)

    # --- pieces -----------------------------------------------------------------------------------

    def _norm(self, source: Tensor, weight: str) -> Operator:
        scale = self.graph.model(weight, (self.sizes.hidden,))
        return self.graph.operator(
            "TASK_RMS_NORM_HOPPER", [source, scale], [self.normed], grid=self.sizes.batch
        )

    def _linear(
        self, weight: str, result: Tensor, *, grid: int, waits_for: Operator | None = None
    ) -> Operator:
        matrix = self.graph.model(weight, (result.shape[1], self.sizes.hidden))
        return self.graph.operator(
            "TASK_LINEAR_SM100", [self.normed, matrix], [result], grid=grid, waits_for=waits_for
        )

    def _project(self, weight: str, source: Tensor, *, residual: Tensor, result: Tensor) -> None:
        """A linear layer that returns to the residual stream; over several ranks it gives partial sums."""
        graph, sizes = self.graph, self.sizes
        matrix = graph.model(weight, (sizes.hidden, sizes.hidden))
        if self.model.ranks == 1:
            graph.operator(
                "TASK_LINEAR_WITH_RESIDUAL_SM100", [source, matrix, residual], [result], grid=sizes.tiles
            )
        elif self.model.all_reduce == "tile":
            self._reduce_tiles(weight, source, matrix, residual, result)
        else:
            self._put_and_reduce(weight, source, matrix, residual, result)

    def _reduce_tiles(
        self, name: str, source: Tensor, matrix: Tensor, residual: Tensor, result: Tensor
    ) -> None:
        """Each all-reduce has a partial sum of its own: other ranks read it until they are done."""
        graph, sizes = self.graph, self.sizes
        partial = graph.symmetric(f"{name}_partial", (sizes.batch, sizes.hidden))
        graph.operator("TASK_LINEAR_SM100", [source, matrix], [partial], grid=sizes.tiles)
        graph.operator(
            "TASK_NVSHMEM_TILE_ALLREDUCE", [partial], [self.local], grid=sizes.tiles, shares=SHARES
        )
        graph.operator("TASK_ELEMENTWISE_ADD_SM100", [residual, self.local], [result], grid=sizes.batch)

    def _put_and_reduce(
        self, name: str, source: Tensor, matrix: Tensor, residual: Tensor, result: Tensor
    ) -> None:
        """Sums what the others put here, and joins it with what this rank holds itself.

        A put tells its target and nobody else, so an operator behind it knows nothing of its own
        rank's partial sum. The reduction therefore takes zeros for that, and the partial sum comes
        in by a local edge, together with the residual. Every all-reduce has buffers of its own: a
        put may still be reading, or the next one arrive, when this rank has long gone on.
        """
        graph, sizes = self.graph, self.sizes
        shape = (sizes.batch, sizes.hidden)
        partial = graph.scratch(f"{name}_partial", shape)
        buffer = graph.symmetric(f"{name}_buffer", (self.model.ranks, *shape))
        others = graph.scratch(f"{name}_others", shape)
        linear = graph.operator("TASK_LINEAR_SM100", [source, matrix], [partial], grid=sizes.tiles)
        put = graph.operator(
            "TASK_NVSHMEM_ALLGATHER_STRIDED_PUT", [partial], [buffer], grid=sizes.tiles, waits_for=linear
        )
        local = graph.operator(
            "TASK_ELEMENTWISE_ADD_SM100",
            [partial, residual],
            [self.local],
            grid=sizes.batch,
            waits_for=linear,
        )
        remote = graph.operator(
            "TASK_REDUCE",
            [self.zeros, buffer],
            [others],
            grid=sizes.tiles,
            waits_for=put,
            shares=SHARES,
        )
        graph.operator(
            "TASK_ELEMENTWISE_ADD_SM100",
            [self.local, others],
            [result],
            grid=sizes.batch,
            waits_for=(local, remote),
        )

    def _mlp(self, name: str) -> None:
        graph, sizes = self.graph, self.sizes
        shape = (sizes.hidden, sizes.hidden)
        weight = graph.shuffled(
            f"{name}_gatedup_proj", {f"{name}_gate_proj": shape, f"{name}_up_proj": shape}, groups=sizes.tiles
        )
        graph.operator("TASK_LINEAR_SM100", [self.normed, weight], [self.gated], grid=2 * sizes.tiles)
        graph.operator("TASK_SILU_MUL", [self.gated], [self.activated], grid=sizes.tiles, shares=SHARES)

    def _paged_attention(self, name: str) -> None:
        graph, sizes = self.graph, self.sizes
        shape = (sizes.hidden, sizes.hidden)
        weight = graph.shuffled(
            f"{name}_qkv_proj", {f"{name}_{part}_proj": shape for part in "qkv"}, groups=sizes.tiles
        )
        head = 2 * UNIT
        norms = [graph.model(f"{name}_{part}_norm", (head,)) for part in "qk"]
        pages = (sizes.positions // UNIT, UNIT, sizes.tiles, head)
        caches = [graph.model(f"{name}_{part}_cache", pages) for part in "kv"]
        tables = [None, None] if self.model.rotary == "none" else self.tables
        graph.operator("TASK_LINEAR_SM100", [self.normed, weight], [self.qkv], grid=3 * sizes.tiles)
        graph.operator(
            "TASK_ATTN_SM100",
            [self.qkv, *caches, *norms, *tables],
            [self.attended],
            grid=(sizes.requests, sizes.tiles),
            shares=SHARES if sizes.requests == 1 else 1,
        )

    def _latent_attention(self, name: str, norm: Operator) -> None:
        graph, sizes = self.graph, self.sizes
        projections = [
            self._linear(f"{name}_q_proj", self.query, grid=sizes.tiles, waits_for=norm),
            self._linear(f"{name}_kv_a_latent", self.latent, grid=sizes.tiles, waits_for=norm),
            self._linear(f"{name}_kv_a_rope", self.key, grid=1, waits_for=norm),
        ]
        query, key, tables = self.query, self.key, list[Tensor]()
        if self.model.rotary != "none":
            projections = [self._rotate(projections)]
            query = self.rotated_query
        if self.model.rotary == "operator":
            key = self.rotated_key
        elif self.model.rotary == "gather":
            tables = self.tables
        cache = graph.model(f"{name}_kv_cache", (sizes.positions // UNIT, UNIT, self.gathered.shape[1]))
        graph.operator(
            "TASK_MLA_KV_GATHER_SM100",
            [self.latent, key, cache, self.gathered, *tables],
            grid=sizes.requests,
            waits_for=projections,
        )
        graph.operator(
            "TASK_MLA_MTP_DECODE_SM100",
            [query, self.gathered],
            [self.partial, self.lse],
            grid=(sizes.splits, 1, sizes.requests),
        )
        graph.operator(
            "TASK_MLA_MTP_REDUCE_SM100",
            [self.partial, self.lse],
            [self.attended],
            grid=(sizes.splits, 1, sizes.requests),
        )

    def _rotate(self, projections: Sequence[Operator]) -> Operator:
        """The operator that the unwired model lacks."""
        if self.model.rotary == "gather":
            return self.graph.operator(
                ROTARY_NUMBER, [self.query, *self.tables], [self.rotated_query], waits_for=projections
            )
        return self.graph.operator(
            "TASK_ROTARY_EMBEDDING_SM100",
            [self.query, self.key, *self.tables],
            [self.rotated_query, self.rotated_key],
            number=ROTARY_NUMBER,
            waits_for=projections,
        )

    def _head(self) -> None:
        graph, sizes = self.graph, self.sizes
        self._norm(self.hidden, "model_norm_weight")
        logits = graph.scratch("argmax_in", (sizes.batch, sizes.hidden))
        values = graph.scratch("argmax_part_value", (sizes.batch, sizes.tiles))
        indices = graph.scratch("argmax_part_index", (sizes.batch, sizes.tiles), "int64")
        token = graph.model("output_token", (sizes.batch, 1), "int64")
        self._linear("lm_head", logits, grid=sizes.tiles)
        graph.operator(
            "TASK_ARGMAX_PARTIAL_SM100", [logits], [values, indices], grid=sizes.tiles, shares=SHARES
        )
        graph.operator("TASK_ARGMAX_REDUCE_SM100", [values, indices], [token])
