"""Cases of the dispatch rules (MK201 to MK205)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools.rule_cases.case import Small, case

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
