"""Faults of the wiring: tensors that are declared and not passed, or passed where they do not belong."""

from __future__ import annotations

import copy
import re

from mkcov_action.faults._fault import fault
from mkcov_action.faults.artifacts import RankArtifacts, Site, Task

_NULL = {"base_ptr": "nullptr", "data_type": 999, "dims": [], "offset": 0, "strides": []}


@fault("MK104")
def declaration_dropped(site: Site) -> str | None:
    """The kernel does not enter a tensor that tasks name into its table."""
    rank = site.rank
    used = rank.references("inputs")
    name = site.one_of(name for name in rank.declared("char") if used[name])
    if name is None:
        return None
    rank.kernel = re.sub(rf'\n  all_tensors\["{name}"\] = {name};', "", rank.kernel)
    return f"{name} is no longer declared"


@fault("MK102")
def neighbours_weight(site: Site) -> str | None:
    """A layer takes its neighbour's weight in all its tasks."""
    rank = site.rank
    used = rank.references("inputs")
    found = re.compile(r"layer_(\d+)_")
    pairs = []
    for mine in rank.declared("char"):
        match = found.search(mine)
        other = match and f"{mine[: match.start(1)]}{int(match[1]) - 1}{mine[match.end(1) :]}"
        if other and "cache" not in mine and used[mine] and used[other]:
            pairs.append((mine, other))
    pair = site.one_of(pairs)
    if pair is None:
        return None
    rank.rename(pair[0], pair[1], "inputs")
    return f"{pair[0]} is not passed, {pair[1]} is in its place"


@fault("MK103")
def reader_of_another_buffer(site: Site) -> str | None:
    """A buffer's readers are pointed at one that nothing writes."""
    rank = site.rank
    writes = rank.references("outputs")
    # A type of unknown role may write its inputs: what only such tasks read cannot be judged.
    readers = [task for index, task in enumerate(rank.tasks) if rank.is_known(index)]
    read = {tensor["base_ptr"] for task in readers for tensor in task["inputs"] or ()}
    others = {
        tensor["base_ptr"]
        for index, task in enumerate(rank.tasks)
        if not rank.is_known(index)
        for tensor in task["inputs"] or ()
    }
    old = site.one_of(name for name in rank.declared("void") if name in read - others and writes[name])
    size = re.search(rf"cudaMalloc\(&{old}, (\d+)\)", rank.kernel)
    if old is None or size is None:
        return None
    lines = f'  void *lost;\n  CUDA_CHECK(cudaMalloc(&lost, {size[1]}));\n  all_tensors["lost"] = lost;\n'
    rank.kernel = rank.kernel.replace(f"  void *{old};", f"{lines}  void *{old};")
    rank.rename(old, "lost", "inputs")
    return f"lost is read in place of {old}"


@fault("MK109", also=("MK402", "MK403", "MK404"))
def reader_dropped(site: Site) -> str | None:
    """One of a buffer's writers is pointed at a new buffer that nothing reads."""
    rank = site.rank
    reads = rank.references("inputs")
    buffers = re.findall(r"^  void \*(\w+);", rank.kernel, re.MULTILINE)
    writers = {name: _writers(rank, name) for name in buffers if reads[name]}
    old = site.one_of(name for name, tasks in writers.items() if len(tasks) > 1)
    if old is None:
        return None
    size = re.search(rf"cudaMalloc\(&{old}, (\d+)\)", rank.kernel)
    if size is None:
        return None
    lines = f'  void *lost;\n  CUDA_CHECK(cudaMalloc(&lost, {size[1]}));\n  all_tensors["lost"] = lost;\n'
    rank.kernel = rank.kernel.replace(f"  void *{old};", f"{lines}  void *{old};")
    for tensor in site.one_of(writers[old])["outputs"]:
        if tensor["base_ptr"] == old:
            tensor["base_ptr"] = "lost"
    return f"lost is written in place of {old} by one task"


def _writers(rank: RankArtifacts, name: str) -> list[Task]:
    return [
        task for task in rank.tasks if any(tensor["base_ptr"] == name for tensor in task["outputs"] or ())
    ]


@fault("MK106")
def slot_set_to_null(site: Site) -> str | None:
    """An operator's weight is nullptr in all its tasks."""
    rank = site.rank
    pairs = [task for task in rank.tasks if len(task["inputs"] or ()) == 2 and task["outputs"]]
    number = site.one_of(sorted({task["task_type"] for task in pairs}))
    if number is None:
        return None
    mine = [task for task in pairs if task["task_type"] == number]
    name: str = site.one_of(mine)["inputs"][1]["base_ptr"]
    for task in mine:
        if task["inputs"][1]["base_ptr"] == name:
            task["inputs"][1] = copy.deepcopy(_NULL)
    return f"nullptr stands in place of {name}"


@fault("MK112")
def copy_shortened(site: Site) -> str | None:
    """One of the copies that fill a fused weight loses its last row."""
    rank = site.rank
    copies = re.finditer(
        r"cudaMemcpy2DAsync\(reinterpret_cast<void \*>\((\w+) \+ \d+\), \d+, [^,]+, \d+, \d+, (\d+),",
        rank.kernel,
    )
    chosen = site.one_of(copies)
    if chosen is None:
        return None
    start, end = chosen.span(2)
    rank.kernel = f"{rank.kernel[:start]}{int(chosen[2]) - 1}{rank.kernel[end:]}"
    return f"a copy into {chosen[1]} is a row short"


@fault("MK108")
def two_norms_swapped_in_one_layer(site: Site) -> str | None:
    """One layer in the middle has the norms of its query and its key exchanged."""
    rank = site.rank
    layers = sorted({int(layer) for layer in re.findall(r"\*layer_(\d+)_q_norm", rank.kernel)})
    layer = site.one_of(layers[2:-2] if len(layers) >= 6 else ())
    if layer is None:
        return None
    one, two = f"layer_{layer}_q_norm", f"layer_{layer}_k_norm"
    for tensor in rank.operands():
        if tensor["base_ptr"] in (one, two):
            tensor["base_ptr"] = two if tensor["base_ptr"] == one else one
    return f"{one} and {two} are exchanged"


@fault("MK405")
def data_type_changed(site: Site) -> str | None:
    """On all ranks an operator reads a buffer as another type than it was written with."""
    reads, writes = site.rank.references("inputs"), site.rank.references("outputs")
    name = site.one_of(name for name in site.rank.declared("void") if reads[name] and writes[name])
    if name is None:
        return None
    for rank in site.ranks:
        for tensor in rank.operands("inputs"):
            if tensor["base_ptr"] == name:
                tensor["data_type"] = 940 if tensor["data_type"] != 940 else 941
    return f"{name} is read as another type"
