"""Cases of the memory rules (MK308, MK401 to MK403, MK406)."""

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
