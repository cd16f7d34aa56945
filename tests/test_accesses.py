"""Accesses: the same as task by task, and those of real graphs."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mkcov_action.analyses.accesses import Precision, region_of
from mkcov_action.analyses.byte_ranges import MOST_RUNS, Bytes, Region, gaps, overlaps
from mkcov_action.analyses.byte_ranges import _without_shared_loops as without_shared_loops
from mkcov_action.finding import Operator
from mkcov_action.kernel_source import Branch, Dispatcher, Origin
from mkcov_action.task_types import Extent
from tests.small_accesses import (
    DEEPSEEK,
    OPERANDS,
    TYPES,
    UNKNOWN,
    Key,
    analysed,
    by_task,
    bytes_by_hand,
    bytes_of,
    collapsed,
    is_chosen,
    keys_of,
    rank_with,
    real,
    with_operands,
)
from tests.small_worlds import INVALID, PUT, SmallRank, SmallTask, many_worlds
from tests.some_ranks import QWEN, TWO_RANKS

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
    known = "hull" if is_chosen(key[4], extent) else "superset" if extent == "superset" else "exact"
    assert precision == ("unknown" if truth is None else known)


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


# --- real graphs ----------------------------------------------------------------------------------


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
