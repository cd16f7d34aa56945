"""Cases of the dispatch rules (MK201 to MK205)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools.rule_cases.case import Small, case
from tools.rule_cases.wiring import attention

# --- MK201 missing-dispatch -----------------------------------------------------------------------


@case("missing-dispatch", "bad")
def type_without_code(out: Path) -> None:
    graph = Small()
    norm = graph.model("layer_0_norm", (16,))
    graph.operator("TASK_RMS_NORM_HOPPER", [graph.x, norm], [graph.y], dispatch=False)
    graph.head().write(out)


@case("missing-dispatch", "bad")
def variant_without_code(out: Path) -> None:
    graph = Small()
    middle = graph.scratch("middle", (2, 16))
    graph.linear("layer_0_proj", graph.x, middle)
    weight = graph.model("layer_1_proj", (16, 16))
    graph.operator("TASK_LINEAR_SM100", [middle, weight], [graph.y], grid=2, variant=3, dispatch=False)
    graph.head().write(out)


@case("missing-dispatch", "bad")
def one_of_two_types(out: Path) -> None:
    """Two types that only a fork has, and code for one: which of them it is for cannot be told."""
    graph = Small()
    middle = graph.model("middle", (2, 16))
    graph.operator("TASK_OURS", [graph.x], [middle], number=296)
    graph.operator("TASK_OURS_TOO", [middle], [graph.y], number=303, dispatch=False)
    graph.head().write(out)


@case("missing-dispatch", "ok")
def types_of_a_fork(out: Path) -> None:
    """Branches in the order of the numbers, whatever their names are."""
    graph = Small()
    middle = graph.model("middle", (2, 16))
    graph.operator("TASK_OURS", [graph.x], [middle], number=296)
    graph.operator(303, [middle], [graph.y])
    graph.head().write(out)


@case("missing-dispatch", "ok")
def final_else(out: Path) -> None:
    """Something else may run what no branch names: not checked."""
    graph = Small.whole()
    kernel, _ = graph.write(out)
    text = kernel.read_text()
    start, end = text.rindex("  else if"), text.rindex("  }\n}")
    kernel.write_text(f"{text[:start]}  else {{\n    run_other(task_desc);\n{text[end:]}")


# --- MK202 slot-out-of-range ----------------------------------------------------------------------


@case("slot-out-of-range", "bad")
def residual_not_passed(out: Path) -> None:
    graph = Small()
    weight = graph.model("layer_0_proj", (16, 16))
    slots = ", ".join(f"task_desc->input_ptrs[{index}]" for index in range(3))
    body = f"linear({slots}, task_desc->output_ptrs[0]);"
    graph.operator("TASK_LINEAR_SM100", [graph.x, weight], [graph.y], grid=2, body=body)
    graph.head().write(out)


@case("slot-out-of-range", "bad")
def rotary_slots_cut_off(out: Path) -> None:
    """Attention loses the slots of its tables: these are the cause, and not the unread tables."""
    graph = Small()
    attention(graph, 0)
    graph.patch_graph(_without_tables)
    graph.head().write(out)


def _without_tables(data: dict[str, Any]) -> None:
    for task in data["all_tasks"]:
        if len(task["inputs"] or ()) == 7:
            del task["inputs"][5:]


@case("slot-out-of-range", "ok")
def computed_slot(out: Path) -> None:
    """Which slots a body takes by a computed index cannot be told."""
    graph = Small()
    graph.operator(
        "TASK_IDENTITY",
        [graph.x],
        [graph.y],
        body="copy(task_desc->input_ptrs[i], task_desc->output_ptrs[0]);",
    )
    graph.head().write(out)


# --- MK203 unused-variant -------------------------------------------------------------------------


@case("unused-variant", "bad")
def code_of_another_graph(out: Path) -> None:
    graph = Small.whole()
    graph.branch("TASK_LINEAR_SM100", "run(task_desc->input_ptrs[0], task_desc->output_ptrs[0]);", 1)
    graph.branch("TASK_SILU_MUL", "run(task_desc->input_ptrs[0], task_desc->output_ptrs[0]);", 0)
    graph.write(out)


@case("unused-variant", "ok")
def every_branch_taken(out: Path) -> None:
    Small.whole().write(out)


# --- MK204 inconsistent-metadata ------------------------------------------------------------------


@case("inconsistent-metadata", "bad")
def edited_request(out: Path) -> None:
    graph = Small.whole()
    graph.patch_graph(lambda data: data["all_tasks"][3].update(request_id=5))
    graph.write(out)


@case("inconsistent-metadata", "bad")
def edited_expert(out: Path) -> None:
    graph = Small.whole()
    graph.patch_graph(lambda data: [task.update(expert_offset=3) for task in data["all_tasks"][3:5]])
    graph.write(out)


@case("inconsistent-metadata", "ok")
def generation_without_task_offset(out: Path) -> None:
    graph = Small.whole()

    def older(data: dict[str, Any]) -> None:
        for task in data["all_tasks"]:
            del task["task_offset"], task["kv_idx"], task["merge_task_offset"]

    graph.patch_graph(older)
    graph.write(out)


@case("inconsistent-metadata", "ok")
def all_four_changed_together(out: Path) -> None:
    graph = Small.whole()
    agreed = {
        "request_id": -3,
        "kv_idx": 7,
        "expert_offset": 7 << 16 | 0xFFFD,
        "task_offset": 7 << 16 | 0xFFFD,
    }
    graph.patch_graph(lambda data: data["all_tasks"][3].update(agreed))
    graph.write(out)


# --- MK205 identical-tasks ------------------------------------------------------------------------


def _quantized(out: Path, metadata: str) -> None:
    """Eight rows, each of a task of its own if the body looks at the request that it is for."""
    graph = Small()
    quantized = graph.model("quantized", (2, 16), "fp8")
    scale = graph.model("scale", (2, 1), "fp32")
    body = (
        f"quantize(task_desc->input_ptrs[0], task_desc->output_ptrs[0], task_desc->output_ptrs[1]{metadata});"
    )
    graph.operator("TASK_QUANTIZE_FP8_SM100", [graph.x], [quantized, scale], grid=8, body=body)
    graph.linear("layer_0_proj", graph.x, graph.y)
    graph.head().write(out)


@case("identical-tasks", "bad")
def row_of_the_worker(out: Path) -> None:
    _quantized(out, "")


@case("identical-tasks", "ok")
def row_of_the_request(out: Path) -> None:
    _quantized(out, ", task_desc->task_metadata.request_id")
