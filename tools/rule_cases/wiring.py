"""Cases of the wiring rules (MK101 to MK112)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.builder import Tensor
from tools.rule_cases.case import Small, case

LAYERS = range(3)


def norms(graph: Small, *, unread: tuple[int, ...] = ()) -> None:
    """A norm a layer, whose weight some layers attach and do not take."""
    source = graph.x
    shared = graph.model("first_norm", (16,))
    graph.operator("TASK_RMS_NORM_HOPPER", [source, shared], [graph.y])
    for layer in LAYERS:
        weight = graph.model(f"layer_{layer}_norm", (16,))
        result = graph.scratch(f"layer_{layer}_normed", (2, 16))
        graph.operator("TASK_RMS_NORM_HOPPER", [source, shared if layer in unread else weight], [result])
        source = result
    graph.linear("last_proj", source, graph.y)


def residual(graph: Small, tensor: Tensor, result: Tensor | None = None, *, ignored: bool) -> None:
    """A linear layer with a residual that its body takes or leaves out."""
    weight = graph.model("layer_0_proj", (16, 16))
    graph.operator(
        "TASK_LINEAR_WITH_RESIDUAL_SM100",
        [graph.x, weight, tensor],
        [result or graph.y],
        grid=2,
        ignores=["i2"] if ignored else [],
    )


def attention(
    graph: Small, layer: int, without: Sequence[str] = (), *, qk_norm: bool = True, rope: bool = True
) -> None:
    """Attention with the body's flags as given; `without` names the tensors that it is not passed."""
    caches = [graph.model(f"layer_{layer}_{part}_cache", (2, 4, 2, 8)) for part in "kv"]
    norms = [f"layer_{layer}_{part}_norm" for part in "qk"] if qk_norm else ["", ""]
    tables = ["cos_position_embedding", "sin_position_embedding"]
    shapes = {**dict.fromkeys(norms, (8,)), **dict.fromkeys(tables, (16, 8))}
    slots = [
        None if not name or name in without else graph.attached(name, shapes[name])
        for name in (*norms, *(tables if rope else ["", ""]))
    ]
    for name in without:
        graph.attached(name, shapes.get(name, (8,)))
    flags = {"qk_norm": qk_norm, "rope": rope}
    graph.operator("TASK_PAGED_ATTENTION_HOPPER", [graph.x, *caches, *slots], [graph.y], flags=flags)


# --- MK101 missing-wiring -------------------------------------------------------------------------


@case("missing-wiring", "bad")
def unread(out: Path) -> None:
    graph = Small()
    graph.model("rope_cos", (16, 8))
    graph.model("cos_position_embedding", (16, 8))
    graph.linear("layer_0_proj", graph.x, graph.y)
    graph.head().write(out)


@case("missing-wiring", "bad")
def only_in_an_ignored_slot(out: Path) -> None:
    graph = Small()
    residual(graph, graph.model("rope_sin", (2, 16)), ignored=True)
    graph.head().write(out)


@case("missing-wiring", "bad")
def on_one_rank(out: Path) -> None:
    for rank in range(2):
        graph = Small(rank, 2)
        table = graph.model("rope_cos", (2, 16))
        residual(graph, table if rank == 0 else graph.x, ignored=False)
        graph.head().write(out)


@case("missing-wiring", "bad", "--critical", "+layer_*_gate")
def in_every_layer(out: Path) -> None:
    graph = Small()
    for layer in LAYERS:
        graph.model(f"layer_{layer}_gate", (16,))
    graph.linear("layer_0_proj", graph.x, graph.y)
    graph.head().write(out)


@case("missing-wiring", "ok")
def read(out: Path) -> None:
    graph = Small()
    residual(graph, graph.model("rope_cos", (2, 16)), ignored=False)
    graph.head().write(out)


# --- MK102 unconsumed-tensor ----------------------------------------------------------------------


@case("unconsumed-tensor", "bad")
def one_layer(out: Path) -> None:
    graph = Small()
    norms(graph, unread=(1,))
    graph.head().write(out)


@case("unconsumed-tensor", "bad")
def several_layers(out: Path) -> None:
    graph = Small()
    norms(graph, unread=(0, 2))
    graph.head().write(out)


@case("unconsumed-tensor", "bad")
def shuffled_weight(out: Path) -> None:
    graph = Small()
    graph.shuffled("layer_0_gatedup_proj", {"gate": (16, 16), "up": (16, 16)}, groups=2)
    graph.linear("layer_0_proj", graph.x, graph.y)
    graph.head().write(out)


@case("unconsumed-tensor", "bad")
def weight_in_an_ignored_slot(out: Path) -> None:
    graph = Small()
    residual(graph, graph.model("layer_0_bias", (2, 16)), ignored=True)
    graph.head().write(out)


@case("unconsumed-tensor", "bad")
def carried_by_the_runtime(out: Path) -> None:
    """A note: the runtime hands the steps to the kernels by itself."""
    graph = Small()
    graph.model("step", (1,), "int32")
    graph.linear("layer_0_proj", graph.x, graph.y)
    graph.head().write(out)


@case("unconsumed-tensor", "ok")
def every_layer(out: Path) -> None:
    graph = Small()
    norms(graph)
    graph.head().write(out)


# --- MK103 uninitialised-read ---------------------------------------------------------------------


@case("uninitialised-read", "bad")
def never_written(out: Path) -> None:
    graph = Small()
    residual(graph, graph.scratch("residual", (2, 16)), ignored=False)
    graph.head().write(out)


@case("uninitialised-read", "bad")
def in_place_of_a_weight(out: Path) -> None:
    """The layer's own norm is then read by nobody, and that is no finding of its own."""
    graph = Small()
    source = graph.x
    for layer in LAYERS:
        weight = graph.model(f"layer_{layer}_norm", (16,))
        taken = graph.scratch("forgotten", (16,)) if layer == 1 else weight
        result = graph.scratch(f"layer_{layer}_normed", (2, 16))
        graph.operator("TASK_RMS_NORM_HOPPER", [source, taken], [result])
        source = result
    graph.linear("last_proj", source, graph.y)
    graph.head().write(out)


@case("uninitialised-read", "bad")
def in_place_of_a_buffer(out: Path) -> None:
    """The buffer that was meant is written and then read by nobody: one cause, one finding."""
    graph = Small()
    meant, taken = graph.scratch("mlp_out", (2, 16)), graph.scratch("mlp_final", (2, 16))
    graph.linear("layer_0_proj", graph.x, meant)
    graph.linear("layer_1_proj", taken, graph.y)
    graph.head().write(out)


@case("uninitialised-read", "ok")
def written_in_place(out: Path) -> None:
    graph = Small()
    sums = graph.scratch("sums", (2, 16))
    graph.operator("TASK_TENSOR_INIT", [sums, graph.x], [graph.x])
    graph.operator("TASK_SPLITK_LINEAR_SM100", [graph.x, graph.model("layer_0_proj", (16, 16))], [sums])
    graph.linear("layer_1_proj", sums, graph.y)
    graph.head().write(out)


@case("uninitialised-read", "ok")
def perhaps_written_by_a_forks_type(out: Path) -> None:
    graph = Small()
    buffer = graph.scratch("buffer", (2, 16))
    graph.operator("TASK_FORK_FILL", [graph.x, buffer], number=197)
    graph.linear("layer_0_proj", buffer, graph.y)
    graph.head().write(out)


@case("uninitialised-read", "ok")
def cleared_when_the_kernel_starts(out: Path) -> None:
    graph = Small()
    residual(graph, graph.scratch("zeros", (2, 16)), ignored=False)
    table = '  all_tensors["zeros"]'
    graph.patch_kernel(lambda text: text.replace(table, f"  CUDA_CHECK(cudaMemset(zeros, 0, 64));\n{table}"))
    graph.head().write(out)


# --- MK104 undeclared-tensor ----------------------------------------------------------------------


@case("undeclared-tensor", "bad")
def another_run(out: Path) -> None:
    graph = Small()
    for layer in LAYERS:
        graph.linear(graph.undeclared(f"layer_{layer}_proj", (16, 16)), graph.x, graph.y)
    graph.head().write(out)


@case("undeclared-tensor", "ok")
def null_slots(out: Path) -> None:
    """Attention without norms, as Llama has it."""
    graph = Small()
    attention(graph, 0, qk_norm=False)
    graph.head().write(out)


# --- MK105 ignored-slot ---------------------------------------------------------------------------


@case("ignored-slot", "bad")
def ignored_residual(out: Path) -> None:
    graph = Small()
    residual(graph, graph.x, ignored=True)
    graph.head().write(out)


@case("ignored-slot", "ok")
def residual_of_rank_1(out: Path) -> None:
    """Only rank 0 adds the residual, once for the sum: the bodies of the others print nullptr for it."""
    for rank in range(2):
        graph = Small(rank, 2)
        partial = graph.symmetric("partial", (2, 16))
        residual(graph, graph.x, partial, ignored=rank > 0)
        graph.operator("TASK_NVSHMEM_TILE_ALLREDUCE", [partial], [graph.y])
        graph.head().write(out)


@case("ignored-slot", "ok")
def slots_that_only_order(out: Path) -> None:
    graph = Small()
    graph.operator("TASK_TENSOR_INIT", [graph.y, graph.x], [graph.x])
    graph.linear("layer_0_proj", graph.x, graph.y)
    graph.head().write(out)


# --- MK106 null-slot ------------------------------------------------------------------------------


@case("null-slot", "bad")
def half_a_pair(out: Path) -> None:
    graph = Small()
    for layer in LAYERS:
        attention(graph, layer, ["layer_1_k_norm"] if layer == 1 else ())
    graph.head().write(out)


@case("null-slot", "bad")
def step_without_its_tables(out: Path) -> None:
    graph = Small()
    attention(graph, 0, ["cos_position_embedding", "sin_position_embedding"])
    graph.head().write(out)


@case("null-slot", "bad")
def tables_without_their_step(out: Path) -> None:
    graph = Small()
    attention(graph, 0)
    graph.patch_kernel(lambda text: text.replace("true,\n      true,", "true,\n      false,", 1))
    graph.head().write(out)


@case("null-slot", "bad")
def no_weight(out: Path) -> None:
    graph = Small()
    graph.operator("TASK_LINEAR_SM100", [graph.x, None], [graph.y], grid=2)
    graph.head().write(out)


@case("null-slot", "ok")
def both_of_a_pair(out: Path) -> None:
    graph = Small()
    for layer in LAYERS:
        attention(graph, layer, qk_norm=layer > 0)
    graph.head().write(out)


@case("null-slot", "ok")
def residual_that_the_body_leaves_out(out: Path) -> None:
    graph = Small()
    weight = graph.model("layer_0_proj", (16, 16))
    graph.operator(
        "TASK_LINEAR_WITH_RESIDUAL_SM100", [graph.x, weight, None], [graph.y], grid=2, ignores=["i2"]
    )
    graph.head().write(out)


# --- MK107 position-blind-attention ---------------------------------------------------------------


@case("position-blind-attention", "bad")
def in_all_layers(out: Path) -> None:
    graph = Small()
    for layer in LAYERS:
        attention(graph, layer, rope=False)
    graph.head().write(out)


@case("position-blind-attention", "bad")
def in_one_of_the_layers(out: Path) -> None:
    graph = Small()
    for layer in LAYERS:
        attention(graph, layer, rope=layer != 1)
    graph.head().write(out)


@case("position-blind-attention", "ok")
def tables_in_all_layers(out: Path) -> None:
    graph = Small()
    for layer in LAYERS:
        attention(graph, layer)
    graph.head().write(out)


# --- MK108 partial-wiring -------------------------------------------------------------------------


def stack(out: Path, layers: int, odd: Sequence[int]) -> None:
    """A norm and a linear layer each; the odd layers take the norm as their linear layer's residual."""
    graph = Small()
    source = graph.x
    first = graph.model("first_norm", (16,))
    for layer in range(layers):
        norm, weight = graph.model(f"layer_{layer}_norm", (16,)), graph.model(f"layer_{layer}_proj", (16, 16))
        normed, result = graph.scratch(f"normed_{layer}", (2, 16)), graph.scratch(f"result_{layer}", (2, 16))
        graph.operator("TASK_RMS_NORM_HOPPER", [source, first if layer in odd else norm], [normed])
        graph.operator(
            "TASK_LINEAR_WITH_RESIDUAL_SM100",
            [normed, weight, norm.whole() if layer in odd else source],
            [result],
        )
        source = result
    graph.operator("TASK_RMS_NORM_HOPPER", [source, first], [graph.y])
    graph.head().write(out)


@case("partial-wiring", "bad")
def one_of_six_layers(out: Path) -> None:
    stack(out, 6, [3])


@case("partial-wiring", "ok")
def first_and_last_layers(out: Path) -> None:
    stack(out, 7, [0, 6])


@case("partial-wiring", "ok")
def every_other_layer(out: Path) -> None:
    stack(out, 8, [1, 3, 5])


# --- MK109 write-only-tensor ----------------------------------------------------------------------


@case("write-only-tensor", "bad")
def result_of_a_layer(out: Path) -> None:
    graph = Small()
    graph.linear("layer_0_proj", graph.x, graph.scratch("layer_0_out", (2, 16)))
    graph.linear("layer_1_proj", graph.x, graph.y)
    graph.head().write(out)


@case("write-only-tensor", "ok")
def result_of_the_model(out: Path) -> None:
    graph = Small()
    graph.linear("layer_0_proj", graph.x, graph.y)
    graph.operator("TASK_IDENTITY", [graph.y], [graph.model("logits", (2, 16))])
    graph.head().write(out)


# --- MK110 dead-scratch ---------------------------------------------------------------------------


@case("dead-scratch", "bad")
def unused_buffer(out: Path) -> None:
    graph = Small.whole()
    graph.scratch("mlp_final", (2, 16))
    graph.symmetric("all_reduce_buf", (2, 16))
    graph.write(out)


@case("dead-scratch", "bad")
def ranks_that_never_exchange(out: Path) -> None:
    for rank in range(2):
        graph = Small.whole(rank, 2)
        graph.symmetric("all_reduce_buf", (2, 2, 16))
        graph.write(out)


@case("dead-scratch", "ok")
def every_buffer_is_used(out: Path) -> None:
    Small.whole().write(out)


# --- MK111 vacuous-critical -----------------------------------------------------------------------


@case("vacuous-critical", "bad", "--critical", "embed_tokens,rotary_*")
def renamed(out: Path) -> None:
    Small.whole().write(out)


@case("vacuous-critical", "ok", "--critical", "EMBED_*,layer_?_proj")
def matched(out: Path) -> None:
    Small.whole().write(out)


# --- MK112 incomplete-shuffle ---------------------------------------------------------------------


def shuffle(out: Path, old: str = "", new: str = "", groups: int = 2) -> None:
    """A fused weight of two parts, with one figure of its copies changed."""
    graph = Small()
    weight = graph.shuffled("layer_0_gatedup_proj", {"gate": (16, 16), "up": (16, 16)}, groups)
    wide = graph.scratch("gated", (2, 32))
    graph.operator("TASK_LINEAR_SM100", [graph.x, weight], [wide])
    graph.operator("TASK_LINEAR_SM100", [wide, graph.model("layer_0_proj", (16, 32))], [graph.y])
    graph.patch_kernel(lambda text: text.replace(old, new, 1))
    graph.head().write(out)


@case("incomplete-shuffle", "bad")
def rows_lost_by_a_division(out: Path) -> None:
    shuffle(out, groups=3)


@case("incomplete-shuffle", "bad")
def overlapping_copies(out: Path) -> None:
    shuffle(out, "layer_0_gatedup_proj + 256", "layer_0_gatedup_proj + 128")


@case("incomplete-shuffle", "bad")
def one_copy_missing(out: Path) -> None:
    shuffle(out, 'model_tensors.at("up"), 256, 256, 2', 'model_tensors.at("up"), 256, 256, 1')


@case("incomplete-shuffle", "ok")
def every_byte_once(out: Path) -> None:
    shuffle(out)
