"""Byte ranges: the bytes of a tile, whatever its strides, and exact questions about them.

Nothing here walks over single bytes, and loops that regions share are looked at once, so that a cache
of gigabytes costs no more than one of its rows. Questions that are hard even so (strides of several
axes that are no multiples of each other, runs beyond a bound) have a bound and an answer of their own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import NamedTuple

MOST_RUNS = 1 << 18
"""So many runs are laid out at most (in less than a second); no tensor of the known graphs needs 2,000."""

MOST_STEPS = 1 << 12
"""So many combinations of loops two regions are compared in at most; tiles of the known graphs need none:
of up to two loops that are left, arithmetic tells."""

MOST_BITS = 1 << 28
"""So many bits the sets of one sweep have at most, runs times regions: 64 MB with their unions."""

_MOST_PAIRS = 1 << 12  # so many pairs of regions are compared one by one where there are too many runs

Loop = tuple[int, int]
"""How often something repeats, and after how many bytes each time."""

Run = tuple[int, int]
"""Bytes in a row: the first and the one behind the last."""


@dataclass(frozen=True, slots=True)
class TooCostly:
    """The answer to a question that would pass `bound`: nothing was decided."""

    bound: int

    def __bool__(self) -> bool:
        raise TypeError("what was too costly to decide is neither true nor false")


class Region(NamedTuple):
    """The bytes start + Σ i·stride + b, for 0 ≤ i < count of each loop (count, stride), 0 ≤ b < width.

    In the form that `tile` gives them: loops by stride, no two that make one. Regions of equal form
    hold equal bytes. A region without bytes is EMPTY.
    """

    start: int
    width: int
    loops: tuple[Loop, ...] = ()

    @property
    def stop(self) -> int:
        """The byte behind the last one; 0 if there is none."""
        return self.start + self.width + _span(self.loops)

    @property
    def runs(self) -> int:
        """How many runs of bytes there are; those of unusual strides may touch or overlap."""
        return prod(count for count, _ in self.loops) if self.width else 0

    @property
    def nested(self) -> bool:
        """Whether each loop steps over all that the loops before it hold, so that no byte is held twice."""
        held = self.width
        for count, stride in self.loops:
            if stride < held:
                return False
            held += (count - 1) * stride
        return True

    @property
    def hull(self) -> Region:
        """The smallest run that holds all of it."""
        return Region(self.start, self.stop - self.start)

    def __bool__(self) -> bool:
        return self.width > 0


EMPTY = Region(0, 0)
"""What a tile with a zero dimension covers."""

EVERYTHING = Region(0, 1 << 64)
"""All bytes that there can be: what is accessed where nothing is known."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """Any set of bytes: `runs`, apart and in order, repeated by `loops` (count, stride), disjointly."""

    runs: tuple[Run, ...] = ()
    loops: tuple[Loop, ...] = ()

    @property
    def total(self) -> int:
        """How many bytes there are."""
        return sum(stop - start for start, stop in self.runs) * prod(count for count, _ in self.loops)

    @property
    def stop(self) -> int:
        """The byte behind the last one; 0 if there is none."""
        return self.runs[-1][1] + _span(self.loops) if self.runs else 0

    def first(self, number: int = 1) -> tuple[Run, ...]:
        """The first runs, in order; those that touch are one."""
        return tuple(islice(_joined(self._in_order(self.loops)), number))

    def _in_order(self, loops: tuple[Loop, ...]) -> Iterator[Run]:
        if not loops:
            yield from self.runs
            return
        count, stride = loops[-1]
        for by in range(0, count * stride, stride):
            yield from ((start + by, stop + by) for start, stop in self._in_order(loops[:-1]))

    def __bool__(self) -> bool:
        return bool(self.runs)


# --- regions --------------------------------------------------------------------------------------


def tile(offset: int, dims: Sequence[int], strides: Sequence[int], size: int) -> Region:
    """The bytes of a tile: `offset` and the `size` of an element in bytes, the rest in elements.

    Source: mirage src/kernel/runtime.cc, print_task_graph. Nothing may be negative, and dims and
    strides are equally many. Strides may be 0, overlap and stand in any order.
    """
    if size == 0 or 0 in dims:
        return EMPTY
    scaled = [(dim, stride * size) for dim, stride in zip(dims, strides, strict=True)]
    (width, _), *loops = _merged([(size, 1), *scaled])
    return Region(offset, width, tuple(loops))


def _merged(loops: Iterable[Loop]) -> list[Loop]:
    """The same sums with as few loops as can be, by stride.

    A loop of c steps of s and one of d steps of k·s, k ≤ c, leave no step out: they are one.
    """
    found: list[Loop] = []
    left = sorted((stride, count) for count, stride in loops if stride and count > 1)
    if not left or left[0][0] > 1:
        found.append((1, 1))  # a single byte: of width 1 and no loop of bytes
    for stride, count in left:
        for place, (inner, step) in enumerate(found):
            times, rest = divmod(stride, step)
            if not rest and times <= inner:
                found[place] = (inner + times * (count - 1), step)
                break
        else:
            found.append((count, stride))
    return found


def _span(loops: Iterable[Loop]) -> int:
    return sum((count - 1) * stride for count, stride in loops)


# --- two regions ----------------------------------------------------------------------------------


def overlap(one: Region, other: Region) -> bool | TooCostly:
    """Whether two regions share a byte, whatever the strides of both.

    They do if some Σ i·s - Σ j·t of their loops lies where their widths meet. Counting the j down
    makes that a sum of loops alone: those of equal strides are one, so that regions of one tensor
    leave a choice of two or three steps at each axis.
    """
    if not one or not other or one.stop <= other.start or other.stop <= one.start:
        return False
    low = other.start - one.start + _span(other.loops) - one.width + 1
    _, *loops = _merged([*one.loops, *other.loops])
    return _Search().hits(loops, low, low + one.width + other.width - 2)


class _Search:
    """Looks for a sum of loops between two bounds."""

    def __init__(self) -> None:
        self._steps = MOST_STEPS

    def hits(self, loops: Sequence[Loop], low: int, high: int) -> bool | TooCostly:
        """Whether some Σ i·stride lies in low..high (inclusive)."""
        while loops and high - low + 1 >= loops[0][1]:  # the steps of this loop leave nothing out
            low -= (loops[0][0] - 1) * loops[0][1]
            loops = loops[1:]
        if not loops:
            return low <= 0 <= high
        if len(loops) <= 2:
            return _two_hit(loops[0], loops[1] if len(loops) == 2 else (1, 1), low, high)
        *inner, (count, stride) = loops
        first = max(0, -((_span(inner) - low) // stride))
        for step in range(first, min(count - 1, high // stride) + 1):
            if self._steps == 0:
                return TooCostly(MOST_STEPS)
            self._steps -= 1
            found = self.hits(inner, low - step * stride, high - step * stride)
            if isinstance(found, TooCostly) or found:
                return found
        return False


def _two_hit(inner: Loop, outer: Loop, low: int, high: int) -> bool:
    """The same for two loops, of which the inner's stride is above high - low.

    For each step of the outer one, the largest step of the inner one that does not pass `high` must
    not fall below `low`: a question about remainders, which sums of quotients answer.
    """
    (steps, stride), (count, outer_stride) = inner, outer
    first = max(0, (high - steps * stride) // outer_stride + 1)
    number = min(count - 1, high // outer_stride) - first + 1
    if number <= 0:
        return False
    # The steps counted down, so that what is divided grows.
    least = high - (first + number - 1) * outer_stride
    quotients = _sum_of_quotients(number, stride, outer_stride, least)
    return quotients > _sum_of_quotients(number, stride, outer_stride, least - (high - low + 1))


def _sum_of_quotients(number: int, divisor: int, step: int, start: int) -> int:
    """Σ (start + i·step) // divisor over 0 ≤ i < number: Euclid's algorithm on the points below a line."""
    total = 0
    while True:
        quotient, step = divmod(step, divisor)
        total += number * (number - 1) // 2 * quotient
        quotient, start = divmod(start, divisor)
        total += number * quotient
        number, start = divmod(start + number * step, divisor)
        if number == 0:
            return total
        divisor, step = step, divisor


# --- many regions ---------------------------------------------------------------------------------


def union(regions: Iterable[Region]) -> Bytes | TooCostly:
    """The bytes that at least one of the regions holds."""
    return missing(regions, ())


def missing(wanted: Iterable[Region], given: Iterable[Region]) -> Bytes | TooCostly:
    """The bytes that some wanted region holds and none of the given ones."""
    apart = [[region for region in regions if region] for regions in (wanted, given)]
    laid = _laid_out([region for regions in apart for region in regions])
    if isinstance(laid, TooCostly):
        return laid
    loops, runs = laid
    first, second = (
        list(_joined(sorted(run for several in part for run in several)))
        for part in (runs[: len(apart[0])], runs[len(apart[0]) :])
    )
    left = tuple(_subtracted(first, second))
    return Bytes(left, loops if left else ())


def gaps(regions: Iterable[Region], size: int) -> Bytes | TooCostly:
    """The bytes of an allocation of `size` bytes that none of the regions holds."""
    return missing([Region(0, size)], regions)


def covers(given: Iterable[Region], wanted: Region) -> bool | TooCostly:
    """Whether the given regions together hold all of another one."""
    left = missing([wanted], given)
    return left if isinstance(left, TooCostly) else not left


def overlaps(regions: Sequence[Region]) -> tuple[int, ...] | TooCostly:
    """For each region the set of those that it shares a byte with: bit i stands for regions[i].

    One sweep over the regions' runs. A region overlaps itself if it has a byte.
    """
    places = [place for place, region in enumerate(regions) if region]
    laid = _laid_out([regions[place] for place in places])
    if isinstance(laid, TooCostly):
        return _compared(regions) if len(regions) ** 2 <= _MOST_PAIRS else laid
    _, several = laid
    if sum(map(len, several)) * len(regions) > MOST_BITS:
        return TooCostly(MOST_BITS)
    runs = sorted(
        (start, stop, place) for place, own in zip(places, several, strict=True) for start, stop in own
    )
    starts = [start for start, _, _ in runs]
    opened = _Ranges([1 << place for _, _, place in runs])
    ending = sorted((stop, place) for _, stop, place in runs)
    found = [0] * len(regions)
    active = ended = 0
    for index, (start, stop, place) in enumerate(runs):
        while ending[ended][0] <= start:
            active ^= 1 << ending[ended][1]
            ended += 1
        active |= 1 << place
        found[place] |= active | opened.union(index + 1, bisect_left(starts, stop))
    return tuple(found)


def _compared(regions: Sequence[Region]) -> tuple[int, ...] | TooCostly:
    """The same one by one: for a few regions of very many runs."""
    found = [0] * len(regions)
    for place, one in enumerate(regions):
        for before, other in enumerate(regions[: place + 1]):
            shared = overlap(one, other)
            if isinstance(shared, TooCostly):
                return shared
            if shared:
                found[place] |= 1 << before
                found[before] |= 1 << place
    return tuple(found)


class _Ranges:
    """Unions of neighbouring sets, each of a logarithmic number of unions made before."""

    def __init__(self, sets: Sequence[int]) -> None:
        self._size = len(sets)
        self._tree = [0] * self._size + list(sets)
        for place in range(self._size - 1, 0, -1):
            self._tree[place] = self._tree[2 * place] | self._tree[2 * place + 1]

    def union(self, start: int, stop: int) -> int:
        """The union of sets start..stop - 1."""
        found = 0
        start += self._size
        stop += self._size
        while start < stop:
            if start & 1:
                found |= self._tree[start]
                start += 1
            if stop & 1:
                stop -= 1
                found |= self._tree[stop]
            start //= 2
            stop //= 2
        return found


# --- runs -----------------------------------------------------------------------------------------


def _laid_out(regions: Sequence[Region]) -> tuple[tuple[Loop, ...], list[list[Run]]] | TooCostly:
    """The runs of each region, apart and in order, within what the loops repeat."""
    loops, regions = _without_shared_loops(regions)
    if sum(region.runs for region in regions) > MOST_RUNS:
        return TooCostly(MOST_RUNS)
    return loops, [_runs_of(region) for region in regions]


def _without_shared_loops(regions: Sequence[Region]) -> tuple[tuple[Loop, ...], Sequence[Region]]:
    """What all regions repeat at the same distance, and what they hold within the first period."""
    loops: list[Loop] = []
    while regions:
        loop = max(regions, key=lambda region: region.runs).loops[-1:]
        inner = _first_period(regions, *loop) if loop else None
        if inner is None:
            break
        loops += loop
        regions = inner
    return tuple(reversed(loops)), regions


def _first_period(regions: Sequence[Region], loop: Loop) -> Sequence[Region] | None:
    """The regions' parts within one period, None unless all lie in the same period and repeat it.

    A run that fills all periods repeats, too.
    """
    count, stride = loop
    filling = {region.start for region in regions if not region.loops and region.width == count * stride}
    base = min(filling or (region.start for region in regions))
    inner = []
    for region in regions:
        if region.loops[-1:] == (loop,):
            inner.append(region._replace(loops=region.loops[:-1]))
        elif not region.loops and (region.start, region.width) == (base, count * stride):
            inner.append(Region(base, stride))
        else:
            return None
        if inner[-1].start < base or inner[-1].stop > base + stride:
            return None
    return inner


def _runs_of(region: Region) -> list[Run]:
    if not region.loops:
        return [(region.start, region.start + region.width)]
    starts = [region.start]
    for count, stride in reversed(region.loops):
        starts = [start + by for start in starts for by in range(0, count * stride, stride)]
    return list(_joined((start, start + region.width) for start in sorted(starts)))


def _joined(runs: Iterable[Run]) -> Iterator[Run]:
    """Runs in the order of their starts, those that touch or overlap as one."""
    start = stop = -1
    for first, last in runs:
        if first > stop:
            if stop > start:
                yield start, stop
            start = first
        stop = max(stop, last)
    if stop > start:
        yield start, stop


def _subtracted(runs: Sequence[Run], others: Sequence[Run]) -> Iterator[Run]:
    """What is left of runs without others; both apart and in order."""
    place = 0
    for start, stop in runs:
        while place < len(others) and others[place][1] <= start:
            place += 1
        rest, ahead = start, place
        while ahead < len(others) and others[ahead][0] < stop:
            first, last = others[ahead]
            if rest < first:
                yield rest, first
            rest = last
            ahead += 1
        if rest < stop:
            yield rest, stop
