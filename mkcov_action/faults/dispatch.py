"""Faults of dispatch: tasks without code, slots that are not there, metadata that contradicts itself."""

from __future__ import annotations

import copy

from mkcov_action.faults._fault import fault
from mkcov_action.faults.artifacts import RankArtifacts, Site, Task


@fault("MK201")
def branch_removed(site: Site) -> str | None:
    """The dispatcher loses a branch that tasks take."""
    rank = site.rank
    # The chain's first branch carries its `if`, the only one of a type its place in the order.
    branch = site.one_of(rank.branches()[1:])
    if branch is None:
        return None
    type_name, variant, start, end = branch
    rank.kernel = rank.kernel[:start] + rank.kernel[end:].lstrip("\n")
    return f"{type_name} variant {variant} has no branch"


@fault("MK201")
def variant_that_does_not_exist(site: Site) -> str | None:
    """An operator's tasks have a variant that the dispatcher does not know."""
    chosen = site.one_of(_models(site.rank))
    if chosen is None:
        return None
    event, number = chosen["trigger_event"], chosen["task_type"]
    for task in site.rank.tasks:
        if (task["trigger_event"], task["task_type"]) == (event, number):
            task["variant_id"] = 99
    return "variant 99 is nowhere dispatched"


@fault("MK202", also=("MK103", "MK109", "MK102", "MK101"))
def slot_dropped(site: Site) -> str | None:
    """An operator's tasks lose their last input, which its body takes."""
    rank = site.rank
    used = rank.slots_by_kind(r"input_(?:tma_desc_)?ptrs\[(\d+)\]")
    fitting = [
        (task["task_type"], task["variant_id"])
        for task in _models(rank)
        if len(task["inputs"] or ()) - 1 in used.get((task["task_type"], task["variant_id"]), ())
    ]
    kind = site.one_of(sorted(set(fitting)))
    if kind is None:
        return None
    for task in rank.tasks:
        if (task["task_type"], task["variant_id"]) == kind:
            task["inputs"] = task["inputs"][:-1] or None
    return "its body takes an input that it has no more"


@fault("MK204")
def metadata_edited(site: Site) -> str | None:
    """One of the fields that share their bytes is changed, and the others are not."""
    task = site.one_of(_models(site.rank))
    fields = [field for field in ("request_id", "expert_offset", "task_offset") if task and field in task]
    if len(fields) < 3:
        return None
    field = site.one_of(fields)
    task[field] = (task[field] + 1 + site.dice.randrange(1000)) & 0x7FFF
    return f"{field} is changed alone"


@fault("MK205")
def task_duplicated_and_counted(site: Site) -> str | None:
    """A task is in the graph twice, and its event counts both."""
    rank = site.rank
    place = site.one_of(
        index
        for index, task in enumerate(rank.tasks)
        if index > 1 and rank.is_known(index) and _is_between(rank, task)
    )
    if place is None:
        return None
    _duplicate(rank, place)
    rank.events[rank.tasks[place]["trigger_event"] & 0xFFFFFFFF]["num_triggers"] += 1
    return "two tasks are one and the same"


@fault("MK205", "MK302")
def task_duplicated(site: Site) -> str | None:
    """A task is in the graph twice, and its event counts it once."""
    rank = site.rank
    place = site.one_of(
        index
        for index, task in enumerate(rank.tasks)
        if index > 1 and rank.is_known(index) and _is_between(rank, task)
    )
    if place is None:
        return None
    _duplicate(rank, place)
    return "two tasks are one and the same, and trigger once too often"


def _is_between(rank: RankArtifacts, task: Task) -> bool:
    """Whether a task waits for and triggers an event of its own rank."""
    return None not in {rank.event_of(task[side]) for side in ("dependent_event", "trigger_event")}


def _duplicate(rank: RankArtifacts, place: int) -> None:
    rank.insert_task(place + 1, copy.deepcopy(rank.tasks[place]))


def _models(rank: RankArtifacts) -> list[Task]:
    return rank.tasks[2:]
