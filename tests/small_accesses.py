"""Small ranks whose tasks hold tiles, what each of their tasks accesses by hand, and real ranks analysed.

For tests of accesses and their order. What is done by hand shares no code with the analyses.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from operator import mul

from mkcov_action.analyses.accesses import Accesses, accesses_of
from mkcov_action.analyses.byte_ranges import EVERYTHING, Bytes, Region, union
from mkcov_action.analyses.consumption import consumption_of
from mkcov_action.analyses.events import EventGraph, events_of
from mkcov_action.analyses.operators import Operators, operators_of
from mkcov_action.artifacts import RankFiles
from mkcov_action.kernel_source import Declaration, Dispatcher, KernelSource, Origin
from mkcov_action.megakernel import Rank
from mkcov_action.task_graph import NULL_TENSOR, Operand, TaskGraph
from mkcov_action.task_types import PUTS
from tests.small_worlds import PUT
from tests.some_ranks import rank_of

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
    if is_chosen(operand, extent) and found:
        return set(range(min(found), max(found) + 1))
    return found


def is_chosen(operand: int, extent: str) -> bool:
    """Whether the kernel finds its part of a tile by an arithmetic of its own: the tile is of no array."""
    _, _, _, dims, strides = OPERANDS[operand]
    steps = [sum(map(mul, strides, place)) for place in product(*map(range, dims))]
    odd = len(set(steps)) < len(steps) or list(strides) not in (sorted(strides), sorted(strides)[::-1])
    return extent == "superset" and odd


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


DEEPSEEK = ("deepseek-v3-2layers", "deepseek-v3-2layers-tp2")


@cache
def real(graph: str, number: int = 0) -> Analysed:
    rank = rank_of(graph, number)
    return analysed(rank, {number for number, name in (rank.type_names or {}).items() if name in PUTS})
