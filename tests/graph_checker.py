"""A slow, plain checker of whole graphs, sharing no code with mkcov or with the graph builder.

It reads both artifacts of every rank with json.load and a few regular expressions, follows what the
runtime does with events, and compares every pair of accesses byte by byte: for small graphs only.
Each function returns what is wrong, in words; an empty list is a clean graph.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

INVALID = 0x7FFFFFFFFFFFFFFE
TAG = 0x1E00000000000000
ITEMSIZE = {930: 1, 940: 2, 941: 2, 950: 4, 955: 4, 956: 4, 965: 8}

TASK_KEYS = {
    "dependent_event",
    "expert_offset",
    "inputs",
    "kv_idx",
    "merge_task_offset",
    "outputs",
    "request_id",
    "task_offset",
    "task_type",
    "trigger_event",
    "variant_id",
}
TENSOR_KEYS = {"base_ptr", "data_type", "dims", "offset", "strides"}
EVENT_KEYS = {"event_type", "first_task_id", "last_task_id", "num_triggers"}

PUT, REDUCE, ALL_REDUCE = "NVSHMEM_ALLGATHER_STRIDED_PUT", "REDUCE", "NVSHMEM_TILE_ALLREDUCE"
WRITTEN_INPUTS = {
    "MLA_KV_GATHER_SM100": {2: "rw", 3: "w"},
    "ATTN_SM100": {1: "rw", 2: "rw"},
    "PAGED_ATTENTION_HOPPER": {1: "rw", 2: "rw"},
}
SHARES_TILES = {"MLA_KV_GATHER_SM100", "MLA_MTP_DECODE_SM100", "MLA_MTP_REDUCE_SM100", "ATTN_SM100"}
"""Types whose tasks find their part of a common tile at run time."""

Node = tuple[int, int]
"""A rank and a task id."""


@dataclass
class Rank:
    """One rank's artifacts: the kernel's text and the task graph as json.load gives it."""

    kernel: str
    graph: dict[str, Any]

    @property
    def rank(self) -> int:
        return int(self.tasks[1]["trigger_event"]) >> 32

    @property
    def tasks(self) -> list[dict[str, Any]]:
        tasks: list[dict[str, Any]] = self.graph["all_tasks"]
        return tasks

    @property
    def events(self) -> list[dict[str, int]]:
        events: list[dict[str, int]] = self.graph["all_events"]
        return events

    @cached_property
    def declared(self) -> set[str]:
        return set(re.findall(r'all_tensors\["([^"]+)"\] = ', self.kernel)) - {"nullptr"}

    @cached_property
    def allocated(self) -> dict[str, int]:
        """Bytes of what the kernel allocates; of model tensors it does not know them."""
        pairs = re.findall(r"cudaMalloc\(&(\w+), (\d+)\)|void \*(\w+) = nvshmem_malloc\((\d+)\)", self.kernel)
        return {a or b: int(c or d) for a, c, b, d in pairs}

    @cached_property
    def uninitialised(self) -> set[str]:
        """Scratch and symmetric memory; shuffled weights are filled at start."""
        return {name for name in self.allocated if f"void *{name}" in self.kernel}

    @cached_property
    def branches(self) -> dict[tuple[str, int], str]:
        pattern = r"task_type == (\w+) && task_desc->variant_id == (\d+)\) \{\n(.*?)\n\n  \}"
        found = re.findall(pattern, self.kernel, re.DOTALL)
        return {(label, int(variant)): body for label, variant, body in found}

    @cached_property
    def names(self) -> dict[int, str]:
        """Numbers to names: the dispatcher lists its types in ascending order of their numbers."""
        labels = list(dict.fromkeys(label for label, _ in self.branches))
        numbers = sorted({task["task_type"] for task in self.tasks[2:]})
        return {number: label.removeprefix("TASK_") for number, label in zip(numbers, labels, strict=True)}

    def body(self, task: dict[str, Any]) -> str:
        name = self.names[task["task_type"]]
        return self.branches[name if name.isdigit() else f"TASK_{name}", task["variant_id"]]

    def slots(self, task: dict[str, Any]) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """The slots that the task's body names and that hold a tensor."""
        for side in ("input", "output"):
            used = re.findall(rf"task_desc->{side}(?:_tma_desc)?_ptrs\[(\d+)\]", self.body(task))
            for slot in sorted({int(index) for index in used}):
                tensor = task[f"{side}s"][slot]
                if tensor["base_ptr"] != "nullptr":
                    yield side, slot, tensor


def load(kernel: str, graph: str) -> Rank:
    return Rank(kernel, json.loads(graph))


# --- one rank: form and events --------------------------------------------------------------------


def form_faults(rank: Rank) -> list[str]:
    """Keys, bodies, names and the metadata that share eight bytes."""
    faults = []
    for number, task in enumerate(rank.tasks):
        if set(task) != TASK_KEYS:
            faults.append(f"task {number}: keys {sorted(task)}")
        for tensor in [*(task["inputs"] or []), *(task["outputs"] or [])]:
            if set(tensor) != TENSOR_KEYS or len(tensor["dims"]) != len(tensor["strides"]):
                faults.append(f"task {number}: tensor {tensor}")
            if tensor["base_ptr"] not in rank.declared | {"nullptr"}:
                faults.append(f"task {number}: {tensor['base_ptr']} is not declared")
        if [] in (task["inputs"], task["outputs"]):
            faults.append(f"task {number}: an empty list should be null")
        if number >= 2:
            word = (task["kv_idx"] << 16 | task["request_id"] & 0xFFFF) & 0xFFFFFFFF
            if not word == task["task_offset"] & 0xFFFFFFFF == task["expert_offset"] & 0xFFFFFFFF:
                faults.append(f"task {number}: metadata {word:#x}")
    faults += [f"event keys {sorted(event)}" for event in rank.events if set(event) != EVENT_KEYS]
    used = {(rank.names[task["task_type"]], task["variant_id"]) for task in rank.tasks[2:]}
    known = {(label.removeprefix("TASK_"), variant) for label, variant in rank.branches}
    return faults + [f"dispatcher and tasks differ: {used ^ known}"] * (used != known)


def skeleton_faults(rank: Rank) -> list[str]:
    """What every generated graph has in common: the runtime's own tasks and events, ids, ranges."""
    tasks, events = rank.tasks, rank.events
    faults = []
    own = [(task["task_type"], task["dependent_event"], task["trigger_event"]) for task in tasks[:2]]
    if own != [(0, INVALID, INVALID), (10, INVALID, rank.rank << 32 | 1)]:
        faults.append(f"tasks 0 and 1: {own}")
    table = [(e["event_type"], e["num_triggers"], e["first_task_id"], e["last_task_id"]) for e in events]
    if table[:2] != [(911, 1, 0, 0), (903, 1, 2, len(tasks))] or table[-1][::2] != (910, 0):
        faults.append(f"events 0, 1 and last: {table[:2]}, {table[-1]}")
    consumers: dict[int, list[int]] = defaultdict(list)
    for number, task in enumerate(tasks[2:], 2):
        if task["dependent_event"] != INVALID:
            consumers[task["dependent_event"] & 0xFFFFFFFF].append(number)
            faults += _gpu_faults(rank, number, task["dependent_event"])
    for position, (kind, _, first, last) in enumerate(table[2:-1], 2):
        if kind != 900 or consumers[position] != list(range(first, last)) or first == last:
            faults.append(f"event {position}: {first} to {last}, consumers {consumers[position]}")
    first_tasks = [n for n, task in enumerate(tasks[2:], 2) if task["dependent_event"] == INVALID]
    if rank.graph["first_tasks"] != first_tasks:
        faults.append(f"first tasks {rank.graph['first_tasks']}, not {first_tasks}")
    return faults


def _gpu_faults(rank: Rank, number: int, event: int) -> list[str]:
    gpu = (event & ~TAG) >> 32
    return [] if gpu == rank.rank else [f"task {number} waits for an event of rank {gpu}"]


# --- all ranks: order and memory ------------------------------------------------------------------


@dataclass
class Access:
    """Bytes that a task reads or writes. `after`: the tasks known to have ended before that."""

    node: Node
    call: int
    writes: bool
    data: frozenset[int]
    after: set[Node]
    exact: bool


@dataclass
class World:
    """All ranks of one graph."""

    ranks: Sequence[Rank]
    producers: dict[Node, list[Node]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for rank in self.ranks:
            for number, task in enumerate(rank.tasks[2:], 2):
                event = task["trigger_event"]
                target = (event & ~TAG) >> 32 if event & TAG else rank.rank
                self.producers[target, event & 0xFFFFFFFF].append((rank.rank, number))

    def task(self, node: Node) -> dict[str, Any]:
        return self.ranks[node[0]].tasks[node[1]]

    def name(self, node: Node) -> str:
        return self.ranks[node[0]].names[self.task(node)["task_type"]]

    @cached_property
    def nodes(self) -> list[Node]:
        return [(rank.rank, number) for rank in self.ranks for number in range(2, len(rank.tasks))]

    @cached_property
    def order(self) -> tuple[dict[Node, set[Node]], dict[Node, set[Node]]]:
        """For each task, what has ended for sure when it starts, and when it ends.

        Runs the graph: a task starts when all producers of its event have ended, an all-reduce ends
        when its peers have started. What never runs is missing.
        """
        starts: dict[Node, set[Node]] = {}
        ends: dict[Node, set[Node]] = {}
        waiting = list(self.nodes)
        while waiting:
            for node in waiting:
                producers = self._producers_of(node)
                if all(producer in ends for producer in producers):
                    starts.setdefault(node, set().union(*(ends[producer] for producer in producers)))
                if all(peer in starts for peer in self.peers(node)):
                    ends[node] = {node}.union(*(starts[peer] for peer in self.peers(node)))
            left = [node for node in waiting if node not in ends]
            if len(left) == len(waiting):
                break
            waiting = left
        return starts, ends

    def _producers_of(self, node: Node) -> list[Node]:
        event = self.task(node)["dependent_event"]
        return [] if event == INVALID else self.producers[node[0], event & 0xFFFFFFFF]

    def peers(self, node: Node) -> list[Node]:
        """The tasks that a task meets half-way: all-reduces of a team meet in the order of their ids."""
        if self.name(node) != ALL_REDUCE:
            return [node]
        return [(rank.rank, node[1]) for rank in self.ranks]

    def accesses(self) -> Iterator[tuple[int, str, Access]]:
        """Each access with the rank and the tensor whose memory it is."""
        starts, ends = self.order
        for rank in self.ranks:
            call, key = 0, None
            for number, task in enumerate(rank.tasks[2:], 2):
                node = (rank.rank, number)
                tensors = [*(task["inputs"] or []), *(task["outputs"] or [])]
                new = (task["task_type"], task["variant_id"], *(t["base_ptr"] for t in tensors))
                call, key = call + (new != key), new
                exact = self.name(node) not in SHARES_TILES
                for where, tensor, writes, data in self._slots_of(rank, node):
                    after = starts[node] if where == rank.rank else ends[node]
                    yield where, tensor, Access(node, call, writes, data, after, exact)

    def _slots_of(self, rank: Rank, node: Node) -> Iterator[tuple[int, str, bool, frozenset[int]]]:
        task, name = self.task(node), self.name(node)
        for side, slot, tensor in rank.slots(task):
            modes = "w" if side == "output" else WRITTEN_INPUTS.get(name, {}).get(slot, "r")
            where, dims, skip = [rank.rank], slice(0, None), None
            if name == PUT and side == "output":
                where, dims = [(task["trigger_event"] & ~TAG) >> 32], slice(1, None)
            elif name == REDUCE and slot == 1 and side == "input":
                skip = rank.rank
            elif name == ALL_REDUCE and side == "input":
                where = [peer.rank for peer in self.ranks]
            data = _bytes(tensor, dims, skip)
            yield from ((owner, tensor["base_ptr"], mode == "w", data) for owner in where for mode in modes)


def _bytes(tensor: dict[str, Any], dims: slice, skip: int | None) -> frozenset[int]:
    """Every byte of a tile; `skip` leaves out one index of the first axis."""
    size = ITEMSIZE[tensor["data_type"]]
    axes = [range(extent) for extent in tensor["dims"][dims]]
    strides = tensor["strides"][dims]
    return frozenset(
        tensor["offset"] + sum(i * stride for i, stride in zip(index, strides, strict=True)) * size + byte
        for index in itertools.product(*axes)
        if skip is None or index[0] != skip
        for byte in range(size)
    )


def event_faults(world: World) -> list[str]:
    """Counts of triggers, order of ids, and whether everything runs and is waited for."""
    faults = []
    starts, ends = world.order
    faults += [f"{node} never ends" for node in world.nodes if node not in ends]
    for rank in world.ranks:
        for position, event in enumerate(rank.events[2:], 2):
            count = len(world.producers[rank.rank, position])
            if count != event["num_triggers"] or not count:
                faults.append(
                    f"rank {rank.rank} event {position}: {count} of {event['num_triggers']} triggers"
                )
    for node in world.nodes:
        remote = world.name(node) == PUT
        trigger = world.task(node)["trigger_event"]
        if trigger == INVALID or bool(trigger & TAG) != remote:
            faults.append(f"{node} triggers {trigger:#x}")
        late = [p for p in world._producers_of(node) if p[0] == node[0] and p[1] >= node[1]]
        faults += [f"{node} waits for a later {producer}" for producer in late]
    faults += _team_faults(world)
    finished: set[Node] = set()
    for rank in world.ranks:
        last = world.producers[rank.rank, len(rank.events) - 1]
        finished = finished.union(*(ends.get(node, set()) for node in last))
    return faults + [f"no end event waits for {node}" for node in starts if node not in finished]


def _team_faults(world: World) -> list[str]:
    """All-reduces of one team must follow each other on every rank."""
    starts, ends = world.order
    teams: dict[tuple[int, int], list[Node]] = defaultdict(list)
    for node in world.nodes:
        if world.name(node) == ALL_REDUCE and node in ends:
            teams[node[0], world.task(node)["task_offset"]].append(node)
    return [
        f"{one} and {two} share a team"
        for nodes in teams.values()
        for one, two in itertools.pairwise(nodes)
        if one not in starts[two]
    ]


def memory_faults(world: World) -> list[str]:
    """Bytes out of bounds, never written, read too early or raced for."""
    if len(world.order[1]) < len(world.nodes):
        return ["not all tasks run"]
    memory: dict[tuple[int, str], list[Access]] = defaultdict(list)
    for owner, tensor, access in world.accesses():
        memory[owner, tensor].append(access)
    faults: Counter[str] = Counter()
    for (owner, tensor), accesses in memory.items():
        rank = world.ranks[owner]
        whole = range(rank.allocated.get(tensor, 1 << 62))
        for access in accesses:
            if min(access.data, default=0) < 0 or max(access.data, default=0) >= len(whole):
                faults[f"{tensor} on rank {owner} is left"] += 1
            if tensor in rank.uninitialised and not access.writes:
                earlier = [a.data for a in accesses if a.writes and a.node in access.after]
                if access.data - frozenset().union(*earlier):
                    faults[f"{tensor} on rank {owner} is read before it is written"] += 1
        if tensor in rank.uninitialised:
            written = frozenset().union(*(access.data for access in accesses if access.writes))
            if len(written) < len(whole) - _own_slice(world, owner, tensor, len(whole)):
                faults[f"{tensor} on rank {owner} is not written whole"] += 1
        for one, two in itertools.combinations(accesses, 2):
            if _race(one, two):
                faults[f"{tensor} on rank {owner}: {world.name(one.node)} races {world.name(two.node)}"] += 1
    return [f"{fault} ({count})" for fault, count in faults.items()]


def _own_slice(world: World, owner: int, tensor: str, size: int) -> int:
    """The slice of a gather buffer that no other rank puts."""
    put = any(
        world.name(node) == PUT and world.task(node)["outputs"][0]["base_ptr"] == tensor
        for node in world.nodes
        if node[0] == owner
    )
    return size // len(world.ranks) if put else 0


def _race(one: Access, two: Access) -> bool:
    if one.node == two.node or not (one.writes or two.writes) or not one.data & two.data:
        return False
    if one.node[0] == two.node[0] and one.call == two.call and not one.exact:
        return False
    return one.node not in two.after and two.node not in one.after


def all_faults(ranks: Sequence[Rank]) -> list[str]:
    """Everything that is wrong with a graph."""
    faults = [fault for rank in ranks for fault in (*form_faults(rank), *skeleton_faults(rank))]
    world = World(ranks)
    return faults + event_faults(world) + memory_faults(world)
