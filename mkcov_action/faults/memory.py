"""Faults of memory: tiles past the end, buffers too small, readers and writers that nothing orders."""

from __future__ import annotations

import re

from mkcov_action.analyses.spans import span_of
from mkcov_action.faults._fault import fault
from mkcov_action.faults.artifacts import RankArtifacts, Site
from mkcov_action.task_graph import Operand
from mkcov_action.task_types import DATA_TYPE_BYTES


@fault("MK401")
def allocation_shrunk(site: Site) -> str | None:
    """On all ranks a buffer has three quarters of the bytes that its layers use."""
    found = {name: size for name, size in allocations(site.rank).items() if size in _ends(site.rank, name)}
    name = site.one_of(sorted(found))
    if name is None:
        return None
    for rank in site.ranks:
        rank.kernel = re.sub(
            rf"(cudaMalloc\(&{name}, |void \*{name} = nvshmem_malloc\()(\d+)",
            lambda match: f"{match[1]}{int(match[2]) * 3 // 4}",
            rank.kernel,
        )
    return f"{name} is too small"


@fault("MK401", also=("MK402", "MK403", "MK406"))
def offset_past_the_end(site: Site) -> str | None:
    """On all ranks a tile of a linear layer's output lies half behind its buffer."""
    rank = site.rank
    sizes = allocations(rank)
    tiles = [
        index
        for index, task in enumerate(rank.tasks)
        if len(task["outputs"] or ()) == 1
        and len(task["inputs"] or ()) == 2
        and any(_plain(tensor, sizes) for tensor in rank.exact(index, "outputs"))
    ]
    chosen = site.one_of(tiles)
    if chosen is None:
        return None
    for each in site.ranks:
        tensor = each.tasks[chosen]["outputs"][0]
        tensor["offset"] = sizes[tensor["base_ptr"]] - 2
    return f"a tile of {rank.tasks[chosen]['outputs'][0]['base_ptr']} ends behind it"


@fault("MK406", also=("MK401", "MK402"))
def tile_misaligned(site: Site) -> str | None:
    """On all ranks a tile that the kernel takes by a TMA descriptor begins two bytes late."""
    rank = site.rank
    slots = rank.slots_by_kind(r"input_tma_desc_ptrs\[(\d+)\]")
    places = [
        (index, slot)
        for index, task in enumerate(rank.tasks)
        if index > 1
        for slot in sorted(slots.get((task["task_type"], task["variant_id"]), ()))
        if slot < len(task["inputs"] or ()) and _tile(task["inputs"][slot])
    ]
    place = site.one_of(places)
    if place is None:
        return None
    task, slot = place
    for each in site.ranks:
        each.tasks[task]["inputs"][slot]["offset"] += 2
    return f"a tile of {rank.tasks[task]['inputs'][slot]['base_ptr']} begins two bytes late"


def _tile(tensor: dict[str, object]) -> bool:
    return tensor["data_type"] in DATA_TYPE_BYTES and tensor["base_ptr"] != "nullptr" and bool(tensor["dims"])


@fault("MK402", also=("MK403", "MK505"))
def edge_lost(site: Site) -> str | None:
    """On all ranks an operator waits for an earlier one than that whose result it reads."""
    rank = site.rank
    choices = []
    for event in range(3, len(rank.events) - 1):
        producers, consumers = rank.triggering(event), rank.waiting(event)
        if not producers or not consumers or not all(map(rank.is_known, (*producers, *consumers))):
            continue
        written = {t["base_ptr"] for task in producers for t in rank.exact(task, "outputs")}
        read = {t["base_ptr"] for task in consumers for t in rank.exact(task, "inputs")}
        earlier = rank.event_of(rank.tasks[producers[0]]["dependent_event"])
        if earlier is not None and written & read:
            choices.append((event, earlier))
    choice = site.one_of(choices)
    if choice is None:
        return None
    event, earlier = choice
    for each in site.ranks:
        end = len(each.events) - 1
        producers = each.triggering(event)
        for task in each.waiting(event):
            each.tasks[task]["dependent_event"] += earlier - event
        for task in producers:
            each.tasks[task]["trigger_event"] += end - event
        each.events[end]["num_triggers"] += len(producers)
        each.events[event]["num_triggers"] = 0
        each.state_ranges()
    return f"nothing leads from the producers of event {event} to its consumers"


def allocations(rank: RankArtifacts) -> dict[str, int]:
    """The bytes of scratch and symmetric memory."""
    found = re.findall(r"void \*(\w+);\s+CUDA_CHECK\(cudaMalloc\(&\1, (\d+)\)\)", rank.kernel)
    found += re.findall(r"void \*(\w+) = nvshmem_malloc\((\d+)\)", rank.kernel)
    return {name: int(size) for name, size in found}


def _ends(rank: RankArtifacts, name: str) -> set[int]:
    """Where the output tiles of known operators end in a buffer."""
    spans = (
        span_of(
            Operand(
                name, tensor["offset"], tensor["data_type"], tuple(tensor["dims"]), tuple(tensor["strides"])
            )
        )
        for index in range(len(rank.tasks))
        for tensor in rank.exact(index, "outputs")
        if tensor["base_ptr"] == name
    )
    return {stop for start, stop in filter(None, spans) if stop > start}


def _plain(tensor: dict[str, object], sizes: dict[str, int]) -> bool:
    return (
        tensor["base_ptr"] in sizes
        and tensor["data_type"] in DATA_TYPE_BYTES
        and tensor["base_ptr"] != "nullptr"
    )
