"""Cases of the rules across ranks (MK501 to MK507) and of data types (MK405)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tools.builder import GraphBuilder, decoder, write_ranks
from tools.builder.decoder import AllReduce
from tools.rule_cases.case import Small, case


def two_ranks(all_reduce: AllReduce = "tile") -> list[GraphBuilder]:
    """A decoder of one layer on two ranks."""
    return decoder(layers=1, ranks=2, attention="paged", all_reduce=all_reduce)


# --- MK405 inconsistent-type ----------------------------------------------------------------------


@case("inconsistent-type", "bad")
def read_as_another_type(out: Path) -> None:
    graph = Small()
    middle = graph.scratch("middle", (2, 16))
    graph.operator("TASK_IDENTITY", [graph.x], [middle])
    graph.operator("TASK_IDENTITY", [middle], [graph.y])

    def change(data: dict[str, Any]) -> None:
        for task in data["all_tasks"]:
            for tensor in task["inputs"] or ():
                if tensor["base_ptr"] == "middle":
                    tensor["data_type"] = 940

    graph.patch_graph(change)
    graph.head().write(out)


@case("inconsistent-type", "ok")
def other_type_in_a_slot_that_nobody_uses(out: Path) -> None:
    """The dummies of an initialiser only draw edges: no kernel looks at their bytes."""
    graph = Small()
    cleared = graph.scratch("cleared", (2, 16))
    graph.operator("TASK_TENSOR_INIT", [cleared, graph.x], [graph.x])
    graph.operator("TASK_ELEMENTWISE_ADD_SM100", [graph.x, cleared], [graph.y])

    def change(data: dict[str, Any]) -> None:
        for task in data["all_tasks"]:
            if len(task["inputs"] or ()) == 2 and task["inputs"][0]["base_ptr"] == "cleared":
                task["inputs"][1]["data_type"] = 940

    graph.patch_graph(change)
    graph.head().write(out)


# --- MK501 rank-divergence ------------------------------------------------------------------------


@case("rank-divergence", "bad")
def other_tile(out: Path) -> None:
    """One rank reads another row of its hidden state."""
    ranks = two_ranks()

    def change(data: dict[str, Any]) -> None:
        tensor = next(
            tensor
            for task in data["all_tasks"]
            for tensor in task["inputs"] or ()
            if tensor["base_ptr"] == "embed_out"
        )
        tensor["dims"][0] -= 1

    ranks[1].patch_graph(change)
    write_ranks(ranks, out)


@case("rank-divergence", "bad")
def other_grid(out: Path) -> None:
    """The ranks were generated from models of different sizes."""
    write_ranks([two_ranks()[0], decoder(layers=2, ranks=2, attention="paged")[1]], out)


@case("rank-divergence", "ok")
def alike(out: Path) -> None:
    write_ranks(two_ranks("put"), out)


# --- MK502 remote-trigger-mismatch ----------------------------------------------------------------


@case("remote-trigger-mismatch", "bad")
def signals_counted_twice(out: Path) -> None:
    """Every event that a put of the peer triggers waits for two of them, on both ranks."""
    ranks = two_ranks("put")

    def change(data: dict[str, Any]) -> None:
        tagged = {
            task["trigger_event"] & 0xFFFF_FFFF
            for task in data["all_tasks"][2:]
            if task["trigger_event"] >> 48
        }
        for event in tagged:
            data["all_events"][event]["num_triggers"] += 1

    for rank in ranks:
        rank.patch_graph(change)
    write_ranks(ranks, out)


@case("remote-trigger-mismatch", "ok")
def one_rank_of_two(out: Path) -> None:
    """What the other rank sends is not known: not checked."""
    write_ranks(two_ranks("put")[:1], out)


# --- MK503 asymmetric-buffer ----------------------------------------------------------------------


def _without_symmetry(ranks: list[GraphBuilder], out: Path) -> None:
    for rank in ranks:
        rank.patch_kernel(_allocated)
    write_ranks(ranks, out)


def _allocated(text: str) -> str:
    """The text with every nvshmem_malloc as a cudaMalloc."""
    return re.sub(
        r"void \*(\w+) = nvshmem_malloc\((\d+)\);",
        r"void *\1;\n  CUDA_CHECK(cudaMalloc(&\1, \2));",
        text,
    )


@case("asymmetric-buffer", "bad")
def put_into_scratch(out: Path) -> None:
    _without_symmetry(two_ranks("put"), out)


@case("asymmetric-buffer", "bad")
def all_reduce_of_scratch(out: Path) -> None:
    _without_symmetry(two_ranks("tile"), out)


@case("asymmetric-buffer", "bad")
def another_size_on_one_rank(out: Path) -> None:
    ranks = two_ranks("put")
    ranks[1].patch_kernel(
        lambda text: re.sub(
            r"nvshmem_malloc\((\d+)", lambda found: f"nvshmem_malloc({found[1]}0", text, count=1
        )
    )
    write_ranks(ranks, out)


@case("asymmetric-buffer", "ok")
def symmetric(out: Path) -> None:
    write_ranks(two_ranks("tile"), out)


# --- MK505 unordered-team -------------------------------------------------------------------------


def _reduced_twice(rank: int, *, ordered: bool) -> GraphBuilder:
    """Two all-reduces of one team, the second behind the first or beside it."""
    graph = Small(rank, 2)
    first = graph.operators[0]
    sums = []
    for name in ("left", "right"):
        partial, total = graph.symmetric(f"{name}_partial", (2, 16)), graph.scratch(name, (2, 16))
        weight = graph.model(f"layer_0_{name}", (16, 16))
        linear = graph.operator("TASK_LINEAR_SM100", [graph.x, weight], [partial], waits_for=first)
        reduced = graph.operator("TASK_NVSHMEM_TILE_ALLREDUCE", [partial], [total], waits_for=linear)
        sums.append((total, reduced))
        if ordered:
            first = reduced
    (left, one), (right, other) = sums
    joined = other if ordered else [one, other]
    graph.operator("TASK_ELEMENTWISE_ADD_SM100", [left, right], [graph.y], waits_for=joined)
    return graph.head()


@case("unordered-team", "bad")
def side_by_side(out: Path) -> None:
    write_ranks([_reduced_twice(rank, ordered=False) for rank in range(2)], out)


@case("unordered-team", "ok")
def one_after_the_other(out: Path) -> None:
    write_ranks([_reduced_twice(rank, ordered=True) for rank in range(2)], out)


# --- MK506 unreduced-partial ----------------------------------------------------------------------


def _residual_of_rank_0(rank: int, *, reduced: bool) -> GraphBuilder:
    """A projection whose residual only rank 0 adds, with or without a sum over the ranks behind it."""
    graph = Small(rank, 2)
    weight = graph.model("layer_0_o_proj", (16, 16))
    partial = graph.symmetric("partial", (2, 16)) if reduced else graph.y
    graph.operator(
        "TASK_LINEAR_WITH_RESIDUAL_SM100",
        [graph.x, weight, graph.x],
        [partial],
        grid=2,
        ignores=["i2"] if rank else [],
    )
    if reduced:
        graph.operator("TASK_NVSHMEM_TILE_ALLREDUCE", [partial], [graph.y])
    return graph.head()


@case("unreduced-partial", "bad")
def no_sum_behind_it(out: Path) -> None:
    write_ranks([_residual_of_rank_0(rank, reduced=False) for rank in range(2)], out)


@case("unreduced-partial", "ok")
def summed(out: Path) -> None:
    write_ranks([_residual_of_rank_0(rank, reduced=True) for rank in range(2)], out)


# --- MK507 multiplied-residual --------------------------------------------------------------------


def _split_k(rank: int, *, cleared: bool) -> GraphBuilder:
    """A split-K projection that adds into the residual stream, or into a buffer that is cleared first."""
    graph = Small(rank, 2)
    weight = graph.model("layer_0_o_proj", (16, 16))
    sums = graph.symmetric("sums", (2, 16))
    if cleared:
        graph.operator("TASK_TENSOR_INIT", [sums, graph.x], [graph.x])
    else:
        graph.operator("TASK_IDENTITY", [graph.x], [sums])
    graph.operator("TASK_SPLITK_LINEAR_SM100", [graph.x, weight], [sums], grid=2)
    graph.operator("TASK_NVSHMEM_TILE_ALLREDUCE", [sums], [graph.y])
    return graph.head()


@case("multiplied-residual", "bad")
def added_to_the_residual(out: Path) -> None:
    write_ranks([_split_k(rank, cleared=False) for rank in range(2)], out)


@case("multiplied-residual", "ok")
def added_to_zeros(out: Path) -> None:
    write_ranks([_split_k(rank, cleared=True) for rank in range(2)], out)


# --- MK504 cross-rank-race ------------------------------------------------------------------------


def _summed(rank: int, *, own_buffers: bool, waits: bool) -> GraphBuilder:
    """Two sums over the ranks, one after the other, into one buffer or into two.

    As upstream builds them, each waits for the peer's tile only; with `waits` it takes zeros for its own
    rank's part, which comes in by an edge of its own.
    """
    graph = Small(rank, 2)
    zeros = graph.model("zeros", (2, 16)) if waits else None
    source, last, shared = graph.x, graph.operators[0], None
    for layer in range(2):
        if shared is None or own_buffers:
            shared = graph.symmetric(f"layer_{layer}_buffer", (2, 2, 16))
        partial, total = (
            graph.scratch(f"layer_{layer}_partial", (2, 16)),
            graph.scratch(f"sum_{layer}", (2, 16)),
        )
        weight = graph.model(f"layer_{layer}_proj", (16, 16))
        linear = graph.operator("TASK_LINEAR_SM100", [source, weight], [partial], waits_for=last)
        put = graph.operator("TASK_NVSHMEM_ALLGATHER_STRIDED_PUT", [partial], [shared], waits_for=linear)
        last = graph.operator("TASK_REDUCE", [zeros or partial, shared], [total], waits_for=put)
        source = total
    graph.operator("TASK_IDENTITY", [source], [graph.y], waits_for=last)
    return graph.head()


@case("cross-rank-race", "bad")
def sum_before_its_own_tile(out: Path) -> None:
    write_ranks([_summed(rank, own_buffers=True, waits=False) for rank in range(2)], out)


@case("cross-rank-race", "bad")
def one_buffer_for_two_sums(out: Path) -> None:
    write_ranks([_summed(rank, own_buffers=False, waits=True) for rank in range(2)], out)


@case("cross-rank-race", "ok")
def zeros_and_a_buffer_each(out: Path) -> None:
    write_ranks([_summed(rank, own_buffers=True, waits=True) for rank in range(2)], out)


@case("cross-rank-race", "ok")
def one_rank_alone(out: Path) -> None:
    """What orders the ranks is not known: not checked."""
    write_ranks([_summed(0, own_buffers=False, waits=False)], out)
