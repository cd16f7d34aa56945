"""Cases of the memory rules (MK308, MK401 to MK404, MK406)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools.rule_cases.case import Small, case

# --- MK308 edge-blind-operator and MK402 unordered-read -------------------------------------------


def gathered(*, ordered: bool) -> Small:
    """A gather of the KV cache, which has no outputs, and the attention that reads what it gathers."""
    graph = Small()
    latent, key = graph.scratch("c_latent", (2, 16)), graph.scratch("k_pe", (2, 16))
    first = graph.operators[0]
    one = graph.operator("TASK_IDENTITY", [graph.x], [latent], waits_for=first)
    both = graph.operator("TASK_IDENTITY", [latent], [key], waits_for=one)
    cache = graph.model("layer_0_paged_cache", (2, 4, 32))
    contiguous = graph.scratch("contiguous_kv", (4, 32))
    gather = graph.operator(
        "TASK_MLA_KV_GATHER_SM100", [latent, key, cache, contiguous], [], grid=2, waits_for=both
    )
    query = graph.scratch("query", (2, 16))
    asked = graph.operator("TASK_IDENTITY", [graph.x], [query], waits_for=gather if ordered else both)
    partial, sums = graph.scratch("partial", (2, 16), "fp32"), graph.scratch("sums", (2, 1), "fp32")
    graph.operator("TASK_MLA_DECODE_SM100", [query, contiguous], [partial, sums], waits_for=asked)
    graph.operator("TASK_MLA_REDUCE_SM100", [partial, sums], [graph.y])
    return graph.head()


@case("edge-blind-operator", "bad", "--ignore", "unordered-read")  # of which it is the cause
@case("unordered-read", "bad")
def gather_without_edge(out: Path) -> None:
    gathered(ordered=False).write(out)


@case("edge-blind-operator", "ok")
@case("unordered-read", "ok")
def gather_before_the_query(out: Path) -> None:
    """Nothing waits for the gather for its own sake, but the way to its reader leads past it."""
    gathered(ordered=True).write(out)


# --- MK401 out-of-bounds --------------------------------------------------------------------------


@case("out-of-bounds", "bad")
def smaller_allocation(out: Path) -> None:
    graph = Small.whole()
    graph.patch_kernel(lambda text: text.replace("cudaMalloc(&hidden, 64)", "cudaMalloc(&hidden, 48)"))
    graph.write(out)


@case("out-of-bounds", "ok")
def whole_buffer(out: Path) -> None:
    Small.whole().write(out)


# --- MK406 misaligned-access ----------------------------------------------------------------------


def _shifted(out: Path, by: int, type_name: str) -> None:
    """A layer whose weight tiles begin some bytes behind where they should."""
    graph = Small()
    weight = graph.model("layer_0_proj", (16, 32))
    graph.operator(type_name, [graph.x, weight], [graph.y], grid=2)

    def change(data: dict[str, Any]) -> None:
        for task in data["all_tasks"]:
            for tensor in task["inputs"] or ():
                if tensor["base_ptr"] == "layer_0_proj":
                    tensor["offset"] += by

    graph.patch_graph(change)
    graph.head().write(out)


@case("misaligned-access", "bad")
def tile_in_the_middle_of_a_row(out: Path) -> None:
    _shifted(out, 4, "TASK_LINEAR_SM100")


@case("misaligned-access", "ok")
def aligned_tile(out: Path) -> None:
    _shifted(out, 16, "TASK_LINEAR_SM100")


@case("misaligned-access", "ok")
def slot_without_a_descriptor(out: Path) -> None:
    _shifted(out, 4, "TASK_LINEAR")


# --- MK403 data-race ------------------------------------------------------------------------------


def reused(*, ordered: bool) -> Small:
    """A scratch buffer that a longer branch uses again, after the shorter one or while it may still read."""
    graph = Small()
    first = graph.operators[0]
    shared = graph.scratch("shared", (2, 16))
    left, right = graph.scratch("left", (2, 16)), graph.scratch("right", (2, 16))
    weights = [graph.model(f"layer_0_{side}", (16, 16)) for side in ("left", "right")]
    wrote = graph.operator("TASK_LINEAR_SM100", [graph.x, weights[0]], [shared], waits_for=first)
    read = graph.operator("TASK_IDENTITY", [shared], [left], waits_for=wrote)
    source, last = graph.x, read if ordered else first
    for step in range(3):
        copied = graph.scratch(f"copied_{step}", (2, 16))
        last = graph.operator("TASK_IDENTITY", [source], [copied], waits_for=last)
        source = copied
    last = graph.operator("TASK_LINEAR_SM100", [source, weights[1]], [shared], waits_for=last)
    last = graph.operator("TASK_IDENTITY", [shared], [right], waits_for=last)
    joined = last if ordered else [read, last]
    graph.operator("TASK_ELEMENTWISE_ADD_SM100", [left, right], [graph.y], waits_for=joined)
    return graph.head()


@case("data-race", "bad")
def used_again_too_early(out: Path) -> None:
    reused(ordered=False).write(out)


@case("data-race", "ok")
def used_again_after_its_reader(out: Path) -> None:
    reused(ordered=True).write(out)


@case("data-race", "bad")
def tiles_that_overlap(out: Path) -> None:
    """The first task of a linear layer also writes columns of the second one's tile."""
    graph = Small.whole()

    def widen(data: dict[str, Any]) -> None:
        wide, _ = (
            tensor
            for task in data["all_tasks"]
            for tensor in task["outputs"] or ()
            if tensor["base_ptr"] == "hidden"
        )
        wide["dims"] = [2, 12]

    graph.patch_graph(widen)
    graph.write(out)


# --- MK404 uncovered-bytes ------------------------------------------------------------------------


def cut(tiles: int) -> Small:
    """A linear layer whose result of 16 columns is cut into some tiles; its reader takes all of it."""
    graph = Small()
    part = graph.scratch("part", (2, 16))
    weight = graph.model("layer_0_proj", (16, 16))
    graph.operator("TASK_LINEAR", [graph.x, weight], [part], grid=tiles)
    graph.operator("TASK_IDENTITY", [part], [graph.y])
    return graph.head()


@case("uncovered-bytes", "bad")
def grid_that_does_not_divide(out: Path) -> None:
    cut(5).write(out)


@case("uncovered-bytes", "ok")
def grid_that_divides(out: Path) -> None:
    cut(8).write(out)


def halves(*layers: int) -> Small:
    """Layers that share a buffer of two halves, of which each writes so many, and all of which it reads."""
    graph = Small()
    shared, source = graph.scratch("shared", (2, 16)), graph.x
    for layer, written in enumerate(layers):
        half = graph.model(f"layer_{layer}_proj", (8, 16))
        for start in range(written):
            tile = shared.tile(offset=16 * start, dims=(2, 8))
            graph.operator("TASK_LINEAR_SM100", [source, half], [tile])
        last = layer == len(layers) - 1
        source = graph.y if last else graph.scratch(f"copied_{layer}", (2, 16))
        graph.operator("TASK_IDENTITY", [shared], [source])
    return graph.head()


@case("uncovered-bytes", "bad")
def half_left_from_another_layer(out: Path) -> None:
    halves(2, 2, 1).write(out)


@case("uncovered-bytes", "ok")
def halves_by_two_operators(out: Path) -> None:
    halves(2, 2, 2).write(out)


@case("uncovered-bytes", "bad")
def tail_that_is_never_read(out: Path) -> None:
    """An argmax of three tiles takes 30 of 32 columns."""
    graph = Small()
    logits = graph.scratch("logits", (2, 32))
    graph.operator("TASK_LINEAR_SM100", [graph.x, graph.model("lm_head", (32, 16))], [logits], grid=2)
    graph.y = logits
    graph.head(tiles=3).write(out)
