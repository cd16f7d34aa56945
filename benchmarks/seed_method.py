"""The method that mkcov replaces, to measure against: json.load and one pass over all tasks.

Stands alone on purpose (no import of mkcov) and reads one rank: `python seed_method.py KERNEL TASK_GRAPH`.
It prints how many declared tensors no task reads.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path


def main(kernel: str, task_graph: str) -> None:
    """Count each tensor's references and the types of the tasks that read it."""
    declared = set(re.findall(r'all_tensors\["([^"]+)"\]\s*=', Path(kernel).read_text(encoding="utf-8")))
    with Path(task_graph).open(encoding="utf-8") as file:
        graph = json.load(file)
    input_refs: Counter[str] = Counter()
    output_refs: Counter[str] = Counter()
    consumer_types: dict[str, set[int]] = {}
    for task in graph["all_tasks"]:
        for tensor in task["inputs"] or ():
            input_refs[tensor["base_ptr"]] += 1
            consumer_types.setdefault(tensor["base_ptr"], set()).add(task["task_type"])
        for tensor in task["outputs"] or ():
            output_refs[tensor["base_ptr"]] += 1
    print(f"{len(declared)} declared, {len(declared - set(input_refs))} never read")


if __name__ == "__main__":
    main(*sys.argv[1:])
