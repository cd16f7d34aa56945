"""Faults of tiles: two that are one, shifted or widened ones, other strides, grids that leave a part out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from mkcov_action.analyses.accesses import region_of
from mkcov_action.analyses.byte_ranges import Region, overlap
from mkcov_action.faults._fault import fault
from mkcov_action.faults.artifacts import RankArtifacts, Site, Tensor
from mkcov_action.faults.memory import allocations
from mkcov_action.task_graph import Operand
from mkcov_action.task_types import DATA_TYPE_BYTES, TASK_TYPE_NUMBERS, TASK_TYPES, Extent, SlotUse

_ALIGNMENT = 16  # what a TMA descriptor asks for, in bytes
_POSITION = 0xFFFFFFFF
_SIDES = ("inputs", "outputs")


@fault("MK403", also=("MK402", "MK404"))
def two_tiles_the_same(site: Site) -> str | None:
    """On all ranks a task writes its neighbour's tile instead of its own."""
    return _edited(site, lambda mine, neighbour: mine.update(offset=neighbour["offset"]), "its neighbour's")


@fault("MK403", also=("MK402", "MK404"))
def tile_shifted(site: Site) -> str | None:
    """On all ranks a task writes a tile that begins where half of its neighbour's does."""

    def shift(mine: Tensor, neighbour: Tensor) -> None:
        half = (neighbour["offset"] + mine["offset"]) // 2
        mine["offset"] = half - half % _ALIGNMENT

    return _edited(site, shift, "half of its neighbour's", least=2 * _ALIGNMENT)


@fault("MK403", also=("MK402",))
def tile_widened(site: Site) -> str | None:
    """On all ranks a task writes twice the columns that it should, of which half are its neighbour's."""
    return _edited(
        site, lambda mine, _: mine["dims"].append(2 * mine["dims"].pop()), "its neighbour's as well"
    )


@fault("MK403", also=("MK402", "MK404"))
def stride_changed(site: Site) -> str | None:
    """On all ranks a task writes rows that are half as far apart as the buffer's."""
    rank = site.rank
    choices = [
        one
        for _, tasks in _calls(rank)
        for one, other in pairwise(tasks)
        if _are_neighbours(rank, one, other) and _has_rows(rank.tasks[one]["outputs"][0], len(tasks))
    ]
    chosen = site.one_of(choices)
    if chosen is None:
        return None
    for each in site.ranks:
        each.tasks[chosen]["outputs"][0]["strides"][-2] //= 2
    return f"the rows of a tile of {rank.tasks[chosen]['outputs'][0]['base_ptr']} are half as far apart"


def _has_rows(tile: Tensor, tiles: int) -> bool:
    """Whether a tile has rows of which half the distance is another tile's, and a valid one for descriptors."""
    if len(tile["dims"]) < 2 or tile["dims"][-2] < 2:
        return False
    row: int = tile["strides"][-2] * DATA_TYPE_BYTES[tile["data_type"]]
    return row % (2 * _ALIGNMENT) == 0 and tiles * _width(tile) == row


@fault("MK404")
def grid_shrunk(site: Site) -> str | None:
    """On all ranks an operator's last task is missing, and its event does not count it: the grid is one short."""
    rank = site.rank
    choices = [
        tasks[-1]
        for name, tasks in _calls(rank)
        if len(tasks) > 1 and _are_others_like(rank, name, tasks) and _is_wanted(rank, name, tasks[-1])
    ]
    chosen = site.one_of([task for task in choices if _is_one_of_many(rank, task)])
    if chosen is None:
        return None
    name = rank.tasks[chosen]["outputs"][0]["base_ptr"]
    for each in site.ranks:
        each.events[each.tasks[chosen]["trigger_event"] & _POSITION]["num_triggers"] -= 1
        each.drop_task(chosen)
    return f"a tile of {name} has no task"


def _edited(site: Site, change: Callable[[Tensor, Tensor], object], what: str, least: int = 1) -> str | None:
    """Changes the tile that one of two neighbouring tasks writes, whose columns are `least` bytes wide at least."""
    rank = site.rank
    pairs = [
        (one, other)
        for _, tasks in _calls(rank)
        for one, other in pairwise(tasks)
        if _are_neighbours(rank, one, other) and _width(rank.tasks[one]["outputs"][0]) >= least
    ]
    pair = site.one_of(pairs)
    if pair is None:
        return None
    for each in site.ranks:
        mine, neighbour = (each.tasks[task]["outputs"][0] for task in pair)
        change(mine, neighbour)
    return f"a tile of {rank.tasks[pair[0]]['outputs'][0]['base_ptr']} is {what}"


def _calls(rank: RankArtifacts) -> Iterator[tuple[str, list[int]]]:
    """The tasks of each layer call that writes exact tiles of one buffer, and the buffer's name."""
    sizes = allocations(rank)
    runs: list[tuple[tuple[object, ...], list[int]]] = []
    for index in range(2, len(rank.tasks)):
        task = rank.tasks[index]
        names = tuple(tensor["base_ptr"] for tensor in (*(task["inputs"] or ()), *(task["outputs"] or ())))
        key = task["task_type"], task["variant_id"], names
        if not runs or runs[-1][0] != key:
            runs.append((key, []))
        if _writes(rank, index, sizes):
            runs[-1][1].append(index)
    return ((rank.tasks[tasks[0]]["outputs"][0]["base_ptr"], tasks) for _, tasks in runs if tasks)


def _writes(rank: RankArtifacts, task: int, sizes: Mapping[str, int]) -> bool:
    """Whether a task writes one exact tile of an allocated buffer, and waits for and triggers events of its rank."""
    role = TASK_TYPES.get(TASK_TYPE_NUMBERS.get(rank.tasks[task]["task_type"], ""))
    outputs: list[Tensor] = rank.tasks[task]["outputs"] or []
    return (
        role is not None
        and len(outputs) == len(role.outputs) == 1
        and role.outputs[0].exact
        and role.outputs[0].use is SlotUse.WRITE
        and outputs[0]["base_ptr"] in sizes
        and outputs[0]["data_type"] in DATA_TYPE_BYTES
        and None
        not in {rank.event_of(rank.tasks[task][side]) for side in ("dependent_event", "trigger_event")}
    )


def _are_neighbours(rank: RankArtifacts, one: int, other: int) -> bool:
    """Whether the tile of one task ends, in each row, where that of the other begins; by different inputs."""
    (mine, theirs), (own, others) = ([rank.tasks[task][side] for task in (one, other)] for side in _SIDES)
    first, second = own[0], others[0]
    return (
        mine != theirs
        and (first["dims"], first["strides"]) == (second["dims"], second["strides"])
        and second["offset"] - first["offset"] == _width(first)
    )


def _width(tile: Tensor) -> int:
    """The bytes of a tile's row."""
    width: int = tile["dims"][-1] * tile["strides"][-1] * DATA_TYPE_BYTES[tile["data_type"]]
    return width


def _are_others_like(rank: RankArtifacts, name: str, tasks: list[int]) -> bool:
    """Whether all that write a buffer are of one type."""
    number = rank.tasks[tasks[0]]["task_type"]
    writing = [
        task for task in rank.tasks[2:] for tensor in task["outputs"] or () if tensor["base_ptr"] == name
    ]
    return all(task["task_type"] == number for task in writing)


def _is_wanted(rank: RankArtifacts, name: str, task: int) -> bool:
    """Whether the next to use the buffer reads a task's tile, and all of what it reads exactly."""
    tile = _region(rank.tasks[task]["outputs"][0])
    for index in range(task + 1, len(rank.tasks)):
        if any(tensor["base_ptr"] == name for tensor in rank.tasks[index]["outputs"] or ()):
            return False
        for tensor in rank.exact(index, "inputs"):
            if tensor["base_ptr"] == name and overlap(_region(tensor), tile) is True:
                return True
    return False


def _region(tensor: Tensor) -> Region:
    operand = Operand(
        tensor["base_ptr"],
        tensor["offset"],
        tensor["data_type"],
        tuple(tensor["dims"]),
        tuple(tensor["strides"]),
    )
    return region_of(operand, Extent.EXACT)[0]


def _is_one_of_many(rank: RankArtifacts, task: int) -> bool:
    """Whether others wait for and trigger the same events, so that no event loses its last task."""
    mine = rank.tasks[task]
    return all(
        sum(other[side] == mine[side] for other in rank.tasks[2:]) > 1
        for side in ("dependent_event", "trigger_event")
    )
