"""Byte ranges: the same answers as sets of single bytes give, and the tiles of real graphs."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import or_

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from mkcov_action.analyses import byte_ranges
from mkcov_action.analyses.byte_ranges import (
    EMPTY,
    Bytes,
    Region,
    TooCostly,
    covers,
    gaps,
    missing,
    overlap,
    overlaps,
    tile,
    union,
)

Tile = tuple[int, tuple[int, ...], tuple[int, ...], int]
"""An offset, dims, strides and the size of an element."""

many_tiles = settings(
    max_examples=2000, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def bytes_of(one: Tile) -> int:
    """The definition, to the letter: bit n stands for byte n."""
    offset, dims, strides, size = one
    members = ((1 << size) - 1) << offset
    for dim, stride in zip(dims, strides, strict=True):
        members = reduce(or_, (members << index * stride * size for index in range(dim)), 0)
    return members


def expanded(found: Bytes | TooCostly) -> int:
    """All bytes of a set of them, whose runs must be apart, in order and as long as can be."""
    assert isinstance(found, Bytes)
    runs = found.first(1 << 20)
    assert all(start < stop for start, stop in runs)
    assert all(one[1] < other[0] for one, other in pairwise(runs))
    members = sum((1 << stop) - (1 << start) for start, stop in runs)
    assert found.total == members.bit_count()
    assert found.stop == members.bit_length()
    assert bool(found) == bool(members)
    return members


STRIDES = st.sampled_from([0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 16, 24, 32, 48, 64])
SIZES = st.integers(1, 8)


@st.composite
def tiles(draw: st.DrawFn) -> Tile:
    """Any tile of up to four axes; often of the strides that an array has, in some order."""
    number = draw(st.integers(0, 4))
    dims = tuple(draw(st.sampled_from([0, 1, 1, 2, 2, 3, 3, 4, 5, 6])) for _ in range(number))
    if draw(st.booleans()):
        strides = tuple(draw(STRIDES) for _ in range(number))
    else:
        full = [1]
        for dim in reversed(dims[1:]):
            full.append(full[-1] * draw(st.sampled_from([dim or 1, 4, 6])))
        strides = tuple(draw(st.permutations(full[::-1]))) if number else ()
    return draw(st.integers(0, 70)), dims, strides, draw(SIZES)


@st.composite
def grids(draw: st.DrawFn) -> list[Tile]:
    """Tiles of one tensor, as the generator cuts them: equal strides, offsets and dims by the grid."""
    rows, columns, size = draw(st.integers(1, 6)), draw(st.sampled_from([4, 6, 8, 12])), draw(SIZES)
    depth = draw(st.integers(1, 3))
    found: list[Tile] = []
    for _ in range(draw(st.integers(1, 5))):
        dims, offset = [], 0
        for extent, stride in ((depth, rows * columns), (rows, columns), (columns, 1)):
            parts = draw(st.sampled_from([1, 1, 1, 2, 3, 4]))
            dims.append(extent // parts)
            offset += draw(st.integers(0, parts - 1)) * (extent // parts) * stride
        found.append((offset * size, tuple(dims), (rows * columns, columns, 1), size))
    return found


def region_of(one: Tile) -> Region:
    return tile(*one)


@given(tiles())
@many_tiles
def test_a_region_holds_the_bytes_of_its_tile(one: Tile) -> None:
    members, region = bytes_of(one), region_of(one)
    assert expanded(union([region])) == members
    assert bool(region) == bool(members)
    assert region.stop == members.bit_length()
    first = (members & -members).bit_length() - 1
    assert region.start == first if members else region == EMPTY
    assert expanded(union([region.hull])) == ((1 << region.stop) - (1 << first) if members else 0)
    assert not region.nested or members.bit_count() == region.runs * region.width
    event(f"{len(region.loops)} loops, nested: {region.nested}")


@pytest.mark.parametrize("stride, nested", [(7, False), (9, True), (10, True)])
def test_a_region_is_nested_where_each_period_holds_all_of_the_one_within(stride: int, nested: bool) -> None:
    region = tile(0, (2, 3), (stride, 4), 3)
    assert region == Region(0, 3, ((3, 12), (2, stride * 3)))
    assert region.nested is nested


@given(tiles(), tiles())
@many_tiles
def test_two_regions_overlap_where_their_bytes_do(one: Tile, other: Tile) -> None:
    shared = bool(bytes_of(one) & bytes_of(other))
    assert overlap(region_of(one), region_of(other)) is shared
    assert overlap(region_of(other), region_of(one)) is shared
    event(f"{shared}")


@given(st.one_of(st.lists(tiles(), max_size=6), grids()), st.integers(0, 400), st.integers(0, 6))
@many_tiles
def test_unions_gaps_cover_and_the_sweep_are_those_of_the_bytes(
    some: list[Tile], size: int, cut: int
) -> None:
    sets, regions = [bytes_of(one) for one in some], [region_of(one) for one in some]
    everything, whole = reduce(or_, sets, 0), (1 << size) - 1
    assert expanded(union(regions)) == everything
    assert expanded(gaps(regions, size)) == whole & ~everything
    first, second = reduce(or_, sets[:cut], 0), reduce(or_, sets[cut:], 0)
    assert expanded(missing(regions[:cut], regions[cut:])) == first & ~second
    for region, members in zip(regions, sets, strict=True):
        assert covers(regions[:cut], region) is (not members & ~first)
    by_pairs = tuple(sum(1 << place for place, other in enumerate(sets) if one & other) for one in sets)
    assert overlaps(regions) == by_pairs == byte_ranges._compared(regions)
    event(f"complete: {not whole & ~everything}")


some_tiles = settings(many_tiles, max_examples=500)
LOOPS = st.tuples(st.integers(1, 9), st.integers(2, 60))


@given(st.lists(LOOPS, max_size=5), st.integers(-60, 600), st.integers(1, 70))
@some_tiles
def test_the_search_finds_a_sum_of_loops_where_there_is_one(
    loops: list[tuple[int, int]], low: int, width: int
) -> None:
    sums = {0}
    for count, stride in loops:
        sums = {known + step * stride for known in sums for step in range(count)}
    _, *merged = byte_ranges._merged(loops)
    found = byte_ranges._Search().hits(merged, low, low + width - 1)
    assert found is any(low + by in sums for by in range(width))
    event(f"{found}, {len(merged)} loops")


@given(tiles(), st.integers(1, 4), st.permutations(range(5)))
@some_tiles
def test_the_form_is_the_same_for_every_way_to_write_a_tile(one: Tile, parts: int, order: list[int]) -> None:
    """The order of the axes does not matter, nor whether one is written as two, nor an axis of one."""
    offset, dims, strides, size = one
    axes = [*zip(dims, strides, strict=True), (1, 77)]
    dim, stride = axes[0]
    if dim % parts == 0:
        axes = [(parts, dim // parts * stride), (dim // parts, stride), *axes[1:]]
    shuffled = [axes[place] for place in order if place < len(axes)]
    shuffled += axes[len(order) :]
    new_dims, new_strides = zip(*shuffled, strict=True)
    assert tile(offset, new_dims, new_strides, size) == region_of(one)


# --- bounds ---------------------------------------------------------------------------------------

CACHE = (16, 4096, 1, 128), (4194304, 1024, 128, 1), 2  # a head of a cache of eight


def test_a_cache_costs_no_more_than_a_row() -> None:
    """128 MB, of which each head holds 65,536 runs."""
    heads = [tile(head * 256, *CACHE) for head in range(8)]
    assert heads[0].runs == 65_536
    whole = union(heads)
    assert isinstance(whole, Bytes)
    assert whole.runs == ((0, 2048),)
    assert whole.first() == ((0, 4194304 * 2 * 16),)
    assert gaps(heads, 4194304 * 2 * 16) == Bytes()
    holes = gaps(heads[:3] + heads[4:], 4194304 * 2 * 16)
    assert isinstance(holes, Bytes)
    assert holes.total == 65_536 * 256
    assert holes.first(2) == ((768, 1024), (768 + 2048, 1024 + 2048))
    assert overlaps(heads) == tuple(1 << head for head in range(8))


def test_regions_of_unequal_strides_are_compared_by_arithmetic() -> None:
    """Two runs that meet once in two billion steps."""
    one = tile(0, (1 << 30,), (1_000_003,), 1)
    other = tile(7, (1 << 30,), (1_000_033,), 1)
    meeting = (
        next(step for step in range(1_000_003) if (step * 1_000_033 + 7) % 1_000_003 == 0) * 1_000_033 + 7
    )
    assert overlap(one, other) is True
    assert overlap(one, tile(7, (meeting // 1_000_033,), (1_000_033,), 1)) is False
    assert overlap(one, tile(7, (meeting // 1_000_033 + 1,), (1_000_033,), 1)) is True
    assert overlaps([one, other]) == (3, 3)


def test_what_is_too_costly_is_not_decided() -> None:
    one = tile(0, (1 << 30,), (3,), 1)
    other = tile(1, (1 << 30,), (5,), 1)
    assert union([one, other]) == gaps([one, other], 1 << 40) == TooCostly(byte_ranges.MOST_RUNS)
    assert covers([one], other) == TooCostly(byte_ranges.MOST_RUNS)
    assert overlaps([one._replace(start=place) for place in range(64)] + [other]) == TooCostly(
        byte_ranges.MOST_RUNS
    )
    with pytest.raises(TypeError, match="neither true nor false"):
        assert not covers([one], other)


def test_a_search_among_many_unrelated_strides_ends() -> None:
    """Even strides never reach an odd byte, but only trying tells so much where axes are many."""
    strides = [2 * prime for prime in (10_007, 10_009, 10_037, 10_039, 10_061, 10_067)]
    one = tile(0, (64,) * 3, strides[:3], 1)
    other = tile(20_003, (64,) * 3, strides[3:], 1)
    assert overlap(one, other) == TooCostly(byte_ranges.MOST_STEPS)
    assert overlaps([one, one._replace(start=20_003)] + [other] * 2) != ()
