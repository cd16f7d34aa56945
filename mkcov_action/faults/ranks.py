"""Faults between ranks: one that differs from its peers, signals that do not add up, memory that is not shared."""

from __future__ import annotations

import re
from itertools import pairwise

from mkcov_action.faults._fault import fault
from mkcov_action.faults.artifacts import RankArtifacts, Site, Task

_FIELDS = ("request_id", "kv_idx", "expert_offset", "task_offset")
_REDUCED = re.compile(r"TASK_NVSHMEM_TILE_ALLREDUCE")


@fault("MK501")
def metadata_of_one_rank(site: Site) -> str | None:
    """One rank's task is for another request than its peers'."""
    task = site.one_of(site.rank.tasks[2:]) if len(site.ranks) > 1 else None
    if task is None or not all(field in task for field in _FIELDS):
        return None
    _give(task, (task["request_id"] & 0xFFFF) + 1)
    return "request_id differs between ranks"


@fault("MK501", also=("MK306", "MK402", "MK504"))
def put_of_one_rank_dropped(site: Site) -> str | None:
    """One rank does not send one of its tiles."""
    place = site.one_of(index for index, task in enumerate(site.rank.tasks) if index > 1 and _is_put(task))
    if place is None:
        return None
    site.rank.drop_task(place)
    return "a put is missing on one rank"


@fault("MK501", also=("MK504",))
def puts_of_one_rank_swapped(site: Site) -> str | None:
    """One rank puts two of its tiles each where the other one belongs."""
    puts = [task for task in site.rank.tasks[2:] if _is_put(task) and task["outputs"]]
    pairs = [
        (one, other)
        for one, other in pairwise(puts)
        if one["outputs"][0]["base_ptr"] == other["outputs"][0]["base_ptr"]
        and one["outputs"] != other["outputs"]
    ]
    pair = site.one_of(pairs)
    if pair is None:
        return None
    pair[0]["outputs"], pair[1]["outputs"] = pair[1]["outputs"], pair[0]["outputs"]
    return f"two tiles of {pair[0]['outputs'][0]['base_ptr']} are put in each other's place by one rank"


@fault("MK503")
def symmetric_buffer_of_one_rank_larger(site: Site) -> str | None:
    """One rank allocates more symmetric memory for a buffer than its peers."""
    name = site.one_of(re.findall(r"void \*(\w+) = nvshmem_malloc\(", site.rank.kernel))
    if name is None or len(site.ranks) < 2:
        return None
    site.rank.kernel = re.sub(
        rf"(void \*{name} = nvshmem_malloc\()(\d+)",
        lambda found: f"{found[1]}{2 * int(found[2])}",
        site.rank.kernel,
    )
    return f"{name} is larger on one rank"


@fault("MK502")
def signals_counted_twice(site: Site) -> str | None:
    """On all ranks an event waits for one signal more than the other ranks send."""
    events = {task["trigger_event"] & 0xFFFFFFFF for task in site.rank.tasks[2:] if _is_put(task)}
    event = site.one_of(sorted(event for event in events if all(event < len(r.events) for r in site.ranks)))
    if event is None:
        return None
    for rank in site.ranks:
        rank.events[event]["num_triggers"] += 1
    return f"event {event} waits for a signal that nobody sends"


@fault("MK503")
def buffer_out_of_symmetric_memory(site: Site) -> str | None:
    """On all ranks a buffer that others reach into is ordinary memory."""
    name = site.one_of(re.findall(r"void \*(\w+) = nvshmem_malloc\(", site.rank.kernel))
    if name is None or not _reaches(site.rank, name):
        return None
    pattern = rf"void \*{name} = nvshmem_malloc\((\d+)\);"
    for rank in site.ranks:
        rank.kernel = re.sub(pattern, rf"void *{name};\n  CUDA_CHECK(cudaMalloc(&{name}, \1));", rank.kernel)
    return f"{name} is no symmetric memory"


@fault("MK505")
def one_team_for_all_tiles(site: Site) -> str | None:
    """On all ranks the all-reduces of a layer use one team, though nothing orders its tiles."""
    number = _reduce_number(site.rank)
    if number is None:
        return None
    for rank in site.ranks:
        for task in rank.tasks:
            if task["task_type"] == number:
                _give(task, 0)
    return "all tiles are reduced by one team"


def _give(task: Task, request: int) -> None:
    """Sets the fields that share their bytes so that they agree."""
    word = task["kv_idx"] << 16 | request & 0xFFFF
    signed = word - (1 << 32) if word >= 1 << 31 else word
    task.update(request_id=request, expert_offset=signed, task_offset=signed)


def _is_put(task: Task) -> bool:
    return bool(task["trigger_event"] >> 48)


def _reduce_number(rank: RankArtifacts) -> int | None:
    """The type number of all-reduces: branches stand in the order of the numbers."""
    names = list(dict.fromkeys(type_name for type_name, _, _, _ in rank.branches()))
    numbers = sorted({task["task_type"] for task in rank.tasks[2:]})
    of = dict(zip(names, numbers, strict=False)) if len(names) == len(numbers) else {}
    return next((number for name, number in of.items() if _REDUCED.fullmatch(name)), None)


def _reaches(rank: RankArtifacts, name: str) -> bool:
    """Whether a put writes the buffer, or an all-reduce reads it."""
    number = _reduce_number(rank)
    reached = [tensor for task in rank.tasks[2:] if _is_put(task) for tensor in task["outputs"] or ()]
    reached += [
        tensor for task in rank.tasks[2:] if task["task_type"] == number for tensor in task["inputs"] or ()
    ]
    return any(tensor["base_ptr"] == name for tensor in reached)
