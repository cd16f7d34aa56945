"""Accesses and what is unordered among them: the same as task by task, and those of real graphs."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mkcov_action.analyses import byte_ranges
from mkcov_action.analyses.accesses import Accesses, Precision, TileAccess, accesses_of, region_of
from mkcov_action.analyses.byte_ranges import EVERYTHING, MOST_RUNS, Bytes, Region, gaps, overlaps, union
from mkcov_action.analyses.byte_ranges import _without_shared_loops as without_shared_loops
from mkcov_action.analyses.consumption import consumption_of
from mkcov_action.analyses.events import EventGraph, events_of, joined
from mkcov_action.analyses.happens_before import HappensBefore, happens_before_of
from mkcov_action.analyses.operators import Operators, operators_of
from mkcov_action.analyses.unordered import Memory, members, memories_across, memory_of
from mkcov_action.artifacts import RankFiles
from mkcov_action.finding import Operator
from mkcov_action.kernel_source import Branch, Declaration, Dispatcher, KernelSource, Origin
from mkcov_action.megakernel import Rank
from mkcov_action.task_graph import NULL_TENSOR, Operand, TaskGraph
from mkcov_action.task_types import PUTS, Extent
from tests.small_worlds import (
    INVALID,
    PUT,
    Node,
    SmallRank,
    SmallTask,
    Truth,
    World,
    many_worlds,
    position,
    worlds,
)
from tests.some_ranks import QWEN, TWO_RANKS, rank_of
from tests.test_happens_before import closure

TYPES = {
    0: "TASK_TERMINATE",
    10: "TASK_BEGIN_TASK_GRAPH",
    101: "TASK_EMBEDDING",
    120: "TASK_LINEAR",
    163: "TASK_SPLITK_LINEAR_SWAPAB_HOPPER",
    262: "TASK_TENSOR_INIT",
    275: "TASK_QUANTIZE_FP8_SM100",
    278: "TASK_MLA_KV_GATHER_SM100",
    296: "TYPE_296",  # a fork's
    PUT: "TASK_NVSHMEM_ALLGATHER_STRIDED_PUT",
}
UNKNOWN = 296

# What tasks do through each slot, by hand: access, extent, and whether a role entry says so.
What = tuple[str, str, bool]
READ, WRITE = ("read", "exact", True), ("write", "exact", True)
SLOTS: dict[int, tuple[list[What | None], list[What | None]]] = {
    101: ([READ, ("read", "superset", True)], [WRITE]),
    120: ([READ, READ], [WRITE]),
    163: ([READ, READ], [("accumulate", "exact", True)]),
    262: ([WRITE, None], [None]),
    275: ([("read", "superset", True)], [("write", "superset", True)] * 2),
    278: (
        [
            ("read", "superset", True),
            ("read", "superset", True),
            ("update", "superset", True),
            ("write", "superset", True),
        ],
        [],
    ),
    PUT: ([READ], [("write", "slice", True)]),
}
WRITING = {"write", "update", "accumulate"}
NO_ROLE = {"input": ("maybe-write", "exact", False), "output": ("write", "exact", False)}

FORMS = [  # data type, dims, strides
    (930, (8,), (1,)),
    (930, (4, 4), (8, 1)),
    (930, (4, 4), (8, 1)),
    (941, (2, 2), (8, 1)),
    (941, (2, 4), (1, 8)),  # column-major
    (930, (2, 2, 4), (16, 4, 1)),
    (930, (3, 4), (3, 2)),  # overlaps itself
    (930, (2, 4, 2), (8, 1, 16)),  # strides in no order
    (930, (8, 0), (8, 1)),  # nothing
    (925, (8,), (1,)),  # elements of no whole size
    (941, (8,), (1, 1)),  # a broken tile
    (930, (4,), (-1,)),  # another
]
OPERANDS = (
    *(
        Operand(tensor, offset, *form)
        for tensor in ("x", "y", "cache")
        for offset in (0, 4, 20)
        for form in FORMS
    ),
    Operand(NULL_TENSOR, 0, 999, (), ()),
)


@dataclass(frozen=True)
class TaskAccess:
    """One slot of one task."""

    tensor: str
    side: str
    index: int
    what: What
    operand: int
    task: int


def slots_by_hand(number: int, side: str, index: int) -> What | None:
    sides = SLOTS.get(number)
    if sides is None:
        return NO_ROLE[side]
    slots = sides[side == "output"]
    return slots[index] if index < len(slots) else NO_ROLE[side]


def by_task(rank: Rank, skipped: set[int], unnamed: set[tuple[int, str, int]]) -> Iterator[TaskAccess]:
    """Every access of every task to tensors that some task surely writes.

    Tasks of the `skipped` types have no code; the bodies of types do not name the `unnamed` slots.
    """
    graph = rank.graph
    found = []
    for task in range(2, len(graph)):
        number = graph.task_type[task]
        for side, column in (("input", graph.inputs), ("output", graph.outputs)):
            for index, operand in enumerate(graph.operand_lists[column[task]]):
                what = slots_by_hand(number, side, index)
                tensor = graph.operands[operand].tensor
                silent = number in skipped or (number, side, index) in unnamed
                if what and tensor != NULL_TENSOR and not silent:
                    found.append(TaskAccess(tensor, side, index, what, operand, task))
    written = {one.tensor for one in found if one.what[0] in WRITING}
    return (one for one in found if one.tensor in written)


def bytes_by_hand(operand: int, extent: str) -> set[int] | None:
    """The bytes that an access may touch; None where nobody knows."""
    _, offset, data_type, dims, strides = OPERANDS[operand]
    if data_type == 925 or len(dims) != len(strides) or min(strides) < 0:
        return None
    size = {930: 1, 941: 2}[data_type]
    if extent == "slice":
        dims, strides = dims[1:], strides[1:]
    starts = [offset]
    for dim, stride in zip(dims, strides, strict=True):
        starts = [start + step * stride * size for start in starts for step in range(dim)]
    found = {start + byte for start in starts for byte in range(size)}
    odd = len(set(starts)) < len(starts) or list(strides) not in (sorted(strides), sorted(strides)[::-1])
    if extent == "superset" and odd and found:
        return set(range(min(found), max(found) + 1))
    return found


def bytes_of(region: Region) -> set[int] | None:
    if region == EVERYTHING:
        return None
    found = union([region])
    assert isinstance(found, Bytes)
    return {byte for run in found.first(1000) for byte in range(*run)}


def with_operands(
    graph: TaskGraph, lists: Sequence[tuple[int, ...]], inputs: Sequence[int], outputs: Sequence[int]
) -> TaskGraph:
    names = [tuple(OPERANDS[operand].tensor for operand in operands) for operands in lists]
    distinct = list(dict.fromkeys(names))
    return replace(
        graph,
        operands=OPERANDS,
        operand_lists=tuple(lists),
        tensor_lists=tuple(distinct),
        tensor_list_of=array("I", map(distinct.index, names)),
        inputs=array("I", inputs),
        outputs=array("I", outputs),
    )


def rank_with(number: int, graph: TaskGraph, dispatcher: Dispatcher | None = None) -> Rank:
    declarations = {name: Declaration(name, Origin.SCRATCH, 1) for name in ("x", "y", "cache")}
    return Rank(
        number=number,
        files=RankFiles(rank=number),
        kernel=KernelSource(declarations, dispatcher, None),
        task_graph=graph,
        type_names=TYPES,
    )


@dataclass(frozen=True)
class Analysed:
    rank: Rank
    operators: Operators
    events: EventGraph
    accesses: Accesses


def analysed(rank: Rank, put_types: set[int] | None) -> Analysed:
    operators, events = operators_of(rank), events_of(rank.graph, rank.number, put_types=put_types)
    return Analysed(rank, operators, events, accesses_of(rank, consumption_of(rank), operators, events))


Key = tuple[str, str, int, What, int, int, int]
"""Tensor, side, index, what, operand, call and pair."""


def collapsed(one: Analysed, tasks: Iterator[TaskAccess]) -> dict[Key, list[int]]:
    """The tasks of each access, by the definition of one."""
    found: defaultdict[Key, list[int]] = defaultdict(list)
    pairs = one.events.pair_of[one.rank.number]
    for access in tasks:
        place = one.operators.operator_of[access.task], pairs[access.task]
        found[access.tensor, access.side, access.index, access.what, access.operand, *place].append(
            access.task
        )
    return found


def keys_of(one: Analysed, tensor: str) -> list[Key]:
    """The accesses to a tensor as the analysis has them."""
    keys = []
    for access in one.accesses.tensors[tensor].accesses:
        slot = one.accesses.slot(access)
        assert slot.slot.operator == one.operators.calls[access.call].operator
        what = str(slot.access), str(slot.extent), slot.certain
        keys.append(
            (tensor, str(slot.slot.side), slot.slot.index, what, access.operand, access.call, access.pair)
        )
    return keys


LISTS = st.lists(st.lists(st.integers(0, len(OPERANDS) - 1), max_size=4).map(tuple), min_size=3, max_size=4)
TASKS = st.lists(
    st.tuples(
        st.sampled_from([101, 120, 120, 163, 262, 275, 278, PUT, UNKNOWN]),
        st.integers(0, 2),
        st.integers(0, 2),
        st.sampled_from([2, 3, INVALID]),
        st.sampled_from([3, 4]),
        st.integers(1, 3),  # how often
    ),
    max_size=8,
)
UNNAMED = st.sets(
    st.tuples(st.sampled_from([120, 275, UNKNOWN]), st.sampled_from(["input", "output"]), st.integers(0, 1)),
    max_size=2,
)


@given(LISTS, TASKS, st.sets(st.sampled_from([120, 163, 278]), max_size=1), UNNAMED)
@many_worlds
def test_accesses_are_those_of_the_tasks(
    lists: list[tuple[int, ...]],
    tasks: list[tuple[int, int, int, int, int, int]],
    skipped: set[int],
    unnamed: set[tuple[int, str, int]],
) -> None:
    rows = [row for *row, times in tasks for _ in range(times)]
    small = [SmallTask(0, INVALID, INVALID), SmallTask(10, INVALID, 1)]
    small += [SmallTask(number, dependent, trigger) for number, _, _, dependent, trigger in rows]
    graph = SmallRank(0, small, [0] * 5, (2, len(small)), []).graph()
    inputs, outputs = ([0, 0, *(row[place] for row in rows)] for place in (1, 2))
    dispatcher = dispatcher_of({row[0] for row in rows} - skipped, unnamed)
    one = analysed(rank_with(0, with_operands(graph, lists, inputs, outputs), dispatcher), {PUT})
    expected = collapsed(one, by_task(one.rank, skipped, unnamed))
    assert {key[0] for key in expected} == set(one.accesses.tensors)
    for tensor, found in one.accesses.tensors.items():
        keys = keys_of(one, tensor)
        assert sorted(keys) == sorted(key for key in expected if key[0] == tensor)
        assert [(access.first, key[1:3]) for access, key in zip(found.accesses, keys, strict=True)] == sorted(
            (expected[key][0], key[1:3]) for key in keys
        )
        assert len(set(zip(found.regions, found.precision, strict=True))) == len(found.regions)
        for access, key in zip(found.accesses, keys, strict=True):
            members = expected[key]
            assert (access.tasks, access.first, access.last) == (len(members), members[0], members[-1])
            check_region(key, found.regions[access.region], found.precision[access.region])
    event(f"{min(sum(len(found.accesses) for found in one.accesses.tensors.values()), 9)} accesses")


def check_region(key: Key, region: Region, precision: Precision) -> None:
    extent = key[3][1]
    truth = bytes_by_hand(key[4], extent)
    assert bytes_of(region) == truth
    assert precision == ("unknown" if truth is None else "superset" if extent == "superset" else "exact")


def dispatcher_of(numbers: set[int], unnamed: set[tuple[int, str, int]]) -> Dispatcher:
    """Branches for types, whose bodies name all slots but some."""
    branches = {}
    for number in sorted(numbers):
        operator = Operator(TYPES[number], 0)
        inputs, outputs = (
            frozenset(index for index in range(9) if (number, side, index) not in unnamed)
            for side in ("input", "output")
        )
        branches[operator] = Branch(operator, 1, inputs, outputs)
    every = [Operator(name, 1) for name in TYPES.values()]  # no type lacks a branch for want of a name
    return Dispatcher(1, branches | {operator: Branch(operator, 1, None, None) for operator in every})


# --- order ----------------------------------------------------------------------------------------

POOL = (0, 1, 3, 4, 5, 11, 12, 22)  # operands of x: bytes that meet here and there
_NUMBERS = st.integers(0, 1 << 40)


@dataclass(frozen=True, eq=False)
class Placed:
    """An access with its tasks, its bytes, and the rank in whose memory these are."""

    key: Key
    rank: int
    tasks: list[Node]
    lands_on: int
    touched: set[int] | None


def populated(small: SmallRank, world: World, seed: int) -> Analysed:
    """A rank of a world whose tasks hold tiles of few tensors, as the seed says."""
    graph = small.graph()
    lists: list[tuple[int, ...]] = [()]
    inputs, outputs = [0, 0], [0, 0]
    kinds = [120, 120, 120, 163, 262, 275, UNKNOWN]
    for task in range(2, len(graph)):
        seed, choice = divmod(seed, 343)
        if graph.task_type[task] != PUT:
            graph.task_type[task] = kinds[choice % 7]
        seed, one = divmod(seed, len(POOL))
        seed, other = divmod(seed, len(POOL))
        inputs.append(len(lists))
        outputs.append(len(lists) + 1)
        lists += [(POOL[one],), (POOL[other],)]
        seed = seed * 2654435761 % (1 << 40) + choice
    return analysed(
        rank_with(small.rank, with_operands(graph, lists, inputs, outputs)), {PUT} if world.typed else None
    )


def placed(one: Analysed, *, together: bool) -> list[Placed]:
    found = []
    number = one.rank.number
    for key, tasks in collapsed(one, by_task(one.rank, set(), set())).items():
        lands_on = number
        if together and key[3][1] == "slice":
            lands_on = (one.rank.graph.trigger_event[tasks[0]] >> 32) % (1 << 16)
        nodes = [(number, task) for task in tasks]
        found.append(Placed(key, number, nodes, lands_on, bytes_by_hand(key[4], key[3][1])))
    return found


def entries_by_hand(memory: Memory, ranks: dict[int, Analysed], every: list[Placed]) -> list[Placed]:
    """The accesses of a memory as the definition has them, in its order."""
    keys: dict[tuple[int, TileAccess], Key] = {}
    for number, one in ranks.items():
        if memory.tensor in one.accesses.tensors:
            own = one.accesses.tensors[memory.tensor].accesses
            keys |= {
                (number, access): key for access, key in zip(own, keys_of(one, memory.tensor), strict=True)
            }
    by_key = {(one.rank, one.key): one for one in every}
    found = [by_key[entry.rank, keys[entry.rank, entry.access]] for entry in memory.entries]
    here = [one for one in every if one.lands_on == memory.rank and one.key[0] == memory.tensor]
    assert sorted(id(one) for one in found) == sorted(id(one) for one in here)
    assert [(one.tasks[0][1], one.rank) for one in found] == sorted(
        (one.tasks[0][1], one.rank) for one in found
    )
    return found


def share(one: Placed, other: Placed) -> bool:
    if one.touched is None or other.touched is None:
        return one.touched != set() != other.touched
    return not one.touched.isdisjoint(other.touched)


def compare(memory: Memory, entries: list[Placed], past: dict[Node, set[Node]]) -> None:
    def those(accesses: int) -> list[Placed]:
        return [entries[index] for index in members(accesses)]

    def writes(one: Placed) -> bool:
        return one.key[3][0] in WRITING

    def apart(one: Placed, other: Placed) -> bool:
        return any(a != b and a not in past[b] and b not in past[a] for a in one.tasks for b in other.tasks)

    assert memory.everything == (1 << len(entries)) - 1
    assert those(memory.writing) == [one for one in entries if writes(one)]
    assert those(memory.reading) == [
        one for one in entries if one.key[3][0] in {"read", "update", "maybe-write"}
    ]
    assert those(memory.remote) == [one for one in entries if one.key[3][1] == "slice"]
    for index, one in enumerate(entries):
        before = [other for other in entries if all(past[a].issuperset(other.tasks) for a in one.tasks)]
        after = [other for other in entries if all(past[b].issuperset(one.tasks) for b in other.tasks)]
        assert those(memory.before(index)) == before
        assert those(memory.after(index)) == after
        unordered = [other for other in entries if apart(one, other)]
        assert those(memory.unordered(index)) == unordered
        assert those(memory.overlapping(index)) == [other for other in entries if share(one, other)]
        assert those(memory.conflicting(index)) == [
            other for other in unordered if share(one, other) and (writes(one) or writes(other))
        ]
        assert those(memory.last_writes(index)) == last_writes(index, entries)
        assert those(memory.earlier(index)) == [
            other for other in entries if other.tasks[0][1] < one.tasks[-1][1]
        ]


def straighten(world: World) -> None:
    """No task waits for what it triggers, or for later events: as a rule there is an order then."""
    for small in world.ranks:
        for task in small.tasks:
            if INVALID not in (task.dependent, task.trigger) and position(task.trigger) <= position(
                task.dependent
            ):
                task.dependent = INVALID


def last_writes(index: int, entries: list[Placed]) -> list[Placed]:
    """The writes before an access, call by call from the last on, that reach what no later call reached."""
    one = entries[index]
    calls: dict[object, list[Placed]] = {}
    for other in entries:
        earlier = other.tasks[0][1] < one.tasks[-1][1] and other.key[3][0] in WRITING
        another = (other.rank, other.key[5]) != (one.rank, one.key[5])
        if earlier and another and share(one, other):
            calls.setdefault((other.rank, other.key[5]), []).append(other)
    everything = set(range(-1, 200))  # stands for all bytes that there can be
    left = everything if one.touched is None else set(one.touched)
    found: list[Placed] = []
    for writes in sorted(calls.values(), key=lambda own: entries.index(own[-1]), reverse=True):
        reached = set().union(*(write.touched or () for write in writes))
        if left & reached or (left and any(write.touched is None for write in writes)):
            found += writes
        left -= reached
    return sorted(found, key=entries.index)


@given(worlds(broken=False), _NUMBERS)
@many_worlds
def test_what_is_unordered_is_what_is_so_task_by_task(world: World, seed: int) -> None:
    straighten(world)
    ranks = {small.rank: populated(small, world, seed + small.rank * (seed % 3)) for small in world.ranks}
    truth = Truth(world)
    events = [one.events for one in ranks.values()]
    order = happens_before_of(joined(events) if world.together else events[0])
    if not isinstance(order, HappensBefore):
        event("no order")
        return
    early = {place for place, wanted in truth.num_triggers.items() if truth.triggers[place] > wanted}
    past = closure(truth, early)
    every = [each for one in ranks.values() for each in placed(one, together=world.together)]
    conflicts = 0
    for tensor in sorted({tensor for one in ranks.values() for tensor in one.accesses.tensors}):
        if world.together:
            memories = memories_across([one.accesses for one in ranks.values()], tensor, order)
            assert [memory.rank for memory in memories] == list(ranks)
        else:
            ((_, one),) = ranks.items()
            memories = (memory_of(one.accesses, tensor, order),)
        for memory in memories:
            compare(memory, entries_by_hand(memory, ranks, every), past)
            conflicts += sum(bool(memory.conflicting(index)) for index in range(len(memory.entries)))
    event(f"together: {world.together}, conflicts: {conflicts > 0}")


def test_two_slots_of_one_task_are_not_unordered_but_those_of_twins_are() -> None:
    """A task that reads what it writes does not race with itself; two such tasks race."""
    for times in (1, 2):
        tasks = [SmallTask(0, INVALID, INVALID), SmallTask(10, INVALID, 1)]
        tasks += [SmallTask(120, INVALID, 2)] * times
        graph = SmallRank(0, tasks, [1, 1, times], (2, len(tasks)), []).graph()
        one = analysed(
            rank_with(0, with_operands(graph, [(), (0,)], [0, 0] + [1] * times, [0, 0] + [1] * times)), None
        )
        order = happens_before_of(one.events)
        assert isinstance(order, HappensBefore)
        memory = memory_of(one.accesses, "x", order)
        assert [entry.access.tasks for entry in memory.entries] == [times, times]
        assert memory.conflicting(0) == (0b10 if times == 2 else 0)
        assert memory.conflicting(1) == (0b11 if times == 2 else 0)


def test_where_regions_are_too_hard_to_compare_the_runs_around_them_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And where there are too many regions, any two may overlap."""
    rows = [SmallTask(120, INVALID, 2)] * 3
    tasks = [SmallTask(0, INVALID, INVALID), SmallTask(10, INVALID, 1), *rows]
    graph = SmallRank(0, tasks, [1, 1, 3], (2, 5), []).graph()
    rows_of_four = [OPERANDS.index(Operand("x", offset, 930, (4, 4), (8, 1))) for offset in (0, 4)]
    far = OPERANDS.index(Operand("x", 20, 930, (8,), (1,)))  # in the hull of the first two, over the second's
    lists = [(), *((operand,) for operand in (*rows_of_four, far))]
    one = analysed(rank_with(0, with_operands(graph, lists, [0] * 5, [0, 0, 1, 2, 3])), None)
    order = happens_before_of(one.events)
    assert isinstance(order, HappensBefore)
    memory = memory_of(one.accesses, "x", order)
    assert [memory.overlapping(index) for index in range(3)] == [0b101, 0b110, 0b111]
    assert memory.exact
    monkeypatch.setattr(byte_ranges, "MOST_RUNS", 4)
    monkeypatch.setattr(byte_ranges, "_MOST_PAIRS", 0)
    memory = memory_of(one.accesses, "x", order)
    assert [memory.overlapping(index) for index in range(3)] == [0b111] * 3
    assert not memory.exact
    monkeypatch.setattr(byte_ranges, "MOST_BITS", 8)
    memory = memory_of(one.accesses, "x", order)
    assert [memory.overlapping(index) for index in range(3)] == [0b111] * 3
    assert not memory.exact


# --- real graphs ----------------------------------------------------------------------------------

DEEPSEEK = ("deepseek-v3-2layers", "deepseek-v3-2layers-tp2")


@cache
def real(graph: str, number: int = 0) -> Analysed:
    rank = rank_of(graph, number)
    return analysed(rank, {number for number, name in (rank.type_names or {}).items() if name in PUTS})


def memories(one: Analysed) -> list[Memory]:
    order = happens_before_of(one.events, forgiven=one.events.too_many)
    assert isinstance(order, HappensBefore)
    return [memory_of(one.accesses, tensor, order) for tensor in one.accesses.tensors]


@pytest.mark.parametrize(
    "graph, tensors, accesses, regions",
    [
        ("qwen3-8b-hopper-2layers", 16, 2_344, 1_551),
        ("qwen3-8b-blackwell-2layers", 14, 2_356, 1_381),
        ("qwen3-0.6b-hopper", 68, 13_036, 1_191),
        ("qwen3-30b-a3b-moe-blackwell", 113, 11_686, 970),
        (TWO_RANKS, 19, 3_836, 1_783),
        ("deepseek-v3-2layers", 43, 2_743, 2_203),
        ("deepseek-v3-2layers-tp2", 44, 2_191, 1_935),
    ],
)
def test_real_graphs_come_to_few_accesses_and_regions(
    graph: str, tensors: int, accesses: int, regions: int
) -> None:
    found = real(graph).accesses.tensors.values()
    assert len(found) == tensors
    assert sum(len(one.accesses) for one in found) == accesses
    assert sum(len(one.regions) for one in found) == regions
    for one in found:
        assert isinstance(overlaps(one.regions), tuple)
        _, inner = without_shared_loops([region for region in one.regions if region])
        assert sum(region.runs for region in inner) <= MOST_RUNS >> 7


@pytest.mark.parametrize("graph", [*QWEN, TWO_RANKS, *DEEPSEEK])
def test_no_exact_tile_of_a_real_graph_passes_its_allocation(graph: str) -> None:
    """Nor one that is only read: shuffled tensors, too. A put's output counts without the ranks' axis."""
    rank = real(graph).rank
    checked = 0
    for tensor, found in real(graph).accesses.tensors.items():
        size = rank.declarations[tensor].bytes
        exact = [
            region
            for region, precision in zip(found.regions, found.precision, strict=True)
            if precision is Precision.EXACT
        ]
        checked += len(exact) if size else 0
        assert size is None or all(region.stop <= size for region in exact)
    assert checked > 500
    sizes = {name: item.bytes for name, item in rank.declarations.items() if item.origin is Origin.SHUFFLED}
    for operand in rank.graph.operands:
        size = sizes.get(operand.tensor)
        assert size is None or region_of(operand, Extent.EXACT)[0].stop <= size


@pytest.mark.parametrize("number", [0, 1])
def test_a_put_with_the_axis_of_ranks_would_pass_its_allocation(number: int) -> None:
    one = real(TWO_RANKS, number)
    buffer = one.rank.declarations["all_reduce_buf"].bytes
    puts = [
        access
        for access in one.accesses.tensors["all_reduce_buf"].accesses
        if one.accesses.slot(access).remote
    ]
    assert buffer
    assert len(puts) == 256
    stops = {
        extent: max(region_of(one.rank.graph.operands[put.operand], extent)[0].stop for put in puts)
        for extent in (Extent.SLICE, Extent.EXACT)
    }
    assert stops == {Extent.SLICE: buffer // 2 * (number + 1), Extent.EXACT: buffer // 2 * (number + 2)}


@pytest.mark.parametrize("graph", [*QWEN, TWO_RANKS, *DEEPSEEK])
def test_the_writes_of_a_real_graph_cover_its_allocations(graph: str) -> None:
    """But for the buffer that puts fill: of one rank alone, only its own slice is seen, in another's memory."""
    one, uncovered = real(graph), {}
    for tensor, found in one.accesses.tensors.items():
        size = one.rank.declarations[tensor].bytes
        written = [
            found.regions[access.region] for access in found.accesses if one.accesses.slot(access).writes
        ]
        left = gaps(written, size or 0)
        assert isinstance(left, Bytes)
        if left:
            uncovered[tensor] = left.first(2)
    assert uncovered == ({"all_reduce_buf": ((65_536, 131_072),)} if graph == TWO_RANKS else {})


@pytest.mark.parametrize("graph", QWEN)
def test_all_that_is_unordered_in_a_clean_graph_is_within_one_operator(graph: str) -> None:
    """The experts' tasks, which share tiles, and the tasks of a split sum."""
    found = {
        (
            str(entry.slot.slot),
            memory.entries[other].slot == entry.slot,
            memory.entries[other].access.call == entry.access.call,
        )
        for memory in memories(real(graph))
        for index, entry in enumerate(memory.entries)
        for other in members(memory.conflicting(index))
    }
    expected = {
        "qwen3-30b-a3b-moe-blackwell": {
            ("output 0 (out) of TASK_MOE_W13_LINEAR_SM100 variant 0", True, True),
            ("output 0 (out) of TASK_MOE_W2_LINEAR_SM100 variant 0", True, True),
        },
        "qwen3-8b-blackwell-2layers": {
            ("output 0 (out) of TASK_SPLITK_LINEAR_SM100 variant 0", True, True),
            ("output 0 (out) of TASK_SPLITK_LINEAR_SM100 variant 1", True, True),
        },
    }
    assert found == expected.get(graph, set())


def test_the_gather_of_deepseek_is_unordered_with_the_decode() -> None:
    (memory,) = [memory for memory in memories(real(DEEPSEEK[0])) if memory.tensor == "contiguous_kv"]
    kinds = {
        (memory.entries[one].slot.slot.operator.type_name, memory.entries[other].slot.slot.operator.type_name)
        for one in members(memory.writing)
        for other in members(memory.conflicting(one))
    }
    assert kinds == {
        ("TASK_MLA_KV_GATHER_SM100", "TASK_MLA_KV_GATHER_SM100"),
        ("TASK_MLA_KV_GATHER_SM100", "TASK_MLA_MTP_DECODE_SM100"),
    }


@pytest.mark.parametrize(
    "graph, reads",
    [
        *((graph, {}) for graph in (*QWEN, TWO_RANKS)),
        *(
            (graph, {"contiguous_kv": 2, "fp8_input_7168_shared": 4, "fp8_scale_7168_shared": 4})
            for graph in DEEPSEEK
        ),
    ],
)
def test_what_reads_may_find_unwritten(graph: str, reads: dict[str, int]) -> None:
    """The last write before them is unordered: the gather's, and what is quantized once more, to the same.

    That a reduction may come before its own rank's partial sum shows across ranks only.
    """
    found: Counter[str] = Counter()
    for memory in memories(real(graph)):
        for read in members(memory.reading):
            found[memory.tensor] += bool(memory.last_writes(read) & memory.unordered(read))
    assert +found == Counter(reads)


def test_across_ranks_puts_land_with_their_targets_and_overwrite_what_is_still_read() -> None:
    both = [real(TWO_RANKS, number) for number in (0, 1)]
    order = happens_before_of(joined([one.events for one in both]))
    assert isinstance(order, HappensBefore)
    for memory in memories_across([one.accesses for one in both], "all_reduce_buf", order):
        assert {memory.entries[put].rank for put in members(memory.remote)} == {1 - memory.rank}
        assert memory.remote == memory.writing
        assert memory.remote.bit_count() == 256
        overwritten = {
            (reader, put)
            for put in members(memory.writing)
            for reader in members(memory.conflicting(put) & memory.reading)
            if memory.entries[reader].access.first < memory.entries[put].access.first
        }
        assert len(overwritten) == 256
    (memory, _) = memories_across([one.accesses for one in both], "attn_proj_out", order)
    early = [
        (write, read)
        for write in members(memory.writing)
        for read in members(memory.conflicting(write) & memory.reading)
        if memory.entries[read].access.call == memory.entries[write].access.call + 2
    ]
    assert len(early) == 128  # as many again of mlp_out: the reductions that may read too early
    assert {memory.entries[read].slot.slot.operator.type_name for _, read in early} == {"TASK_REDUCE"}
