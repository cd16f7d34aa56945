"""Uncovered bytes: the same as byte by byte, grids that do not divide, and what cannot be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from mkcov_action.analyses.accesses import Accesses, SlotAccess, TensorAccesses, TileAccess, region_of
from mkcov_action.analyses.consumption import Access, Side, SlotKey
from mkcov_action.analyses.events import events_of
from mkcov_action.analyses.operators import OperatorCall
from mkcov_action.analyses.uncovered import Doubt, Lack, Uncovered, UncoveredReport, uncovered_report
from mkcov_action.finding import Operator
from mkcov_action.task_graph import Operand
from mkcov_action.task_types import Extent
from tests.small_worlds import SmallRank, SmallTask, many_worlds

SIZE = 24
BYTE = 930

Tile = tuple[int, tuple[int, ...], tuple[int, ...]]
"""Offset, dims and strides of a tile of bytes."""


@dataclass(frozen=True)
class Use:
    """A call does something to some tiles of the one tensor."""

    access: Access
    extent: Extent
    tiles: tuple[Tile, ...]
    certain: bool = True

    @property
    def bytes(self) -> set[int]:
        """The bytes of the tiles."""
        return {
            offset + sum(stride * step for stride, step in zip(strides, place, strict=True))
            for offset, dims, strides in self.tiles
            for place in product(*map(range, dims))
        }

    @property
    def reads(self) -> bool:
        """Whether values are taken from the tiles, not only to add to them."""
        return self.access in (Access.READ, Access.UPDATE)

    @property
    def writes(self) -> bool:
        """Whether the tiles are written."""
        return self.access in (Access.WRITE, Access.UPDATE, Access.ACCUMULATE)

    @property
    def fills(self) -> bool:
        """Whether the tiles are written without a value having to be there, as far as can be told."""
        return self.writes and not (self.access is Access.UPDATE and self.extent is Extent.EXACT)


@dataclass(frozen=True)
class Call:
    """A layer call: its type and its uses of the tensor."""

    type_name: str
    uses: tuple[Use, ...]

    def read(self, *, exactly: bool = False) -> set[int]:
        """The bytes that are read."""
        return {
            byte
            for use in self.uses
            if use.reads and (use.extent is Extent.EXACT or not exactly)
            for byte in use.bytes
        }

    @property
    def written(self) -> set[int]:
        """The bytes that are written."""
        return {byte for use in self.uses if use.writes for byte in use.bytes}

    @property
    def filled(self) -> set[int]:
        """The bytes that are written without a value having to be there."""
        return {byte for use in self.uses if use.fills for byte in use.bytes}

    @property
    def is_plain(self) -> bool:
        """Whether the tensor is written, and nothing else, and exactly."""
        return all(use.access is Access.WRITE and use.extent is Extent.EXACT for use in self.uses)


def report_of(calls: Sequence[Call], size: int = SIZE) -> UncoveredReport:
    slots: list[SlotAccess] = []
    operands: list[Operand] = []
    accesses: list[TileAccess] = []
    regions = []
    task = 2
    for index, call in enumerate(calls):
        for place, use in enumerate(call.uses):
            key = SlotKey(Operator(call.type_name, 0), Side.INPUT, place)
            slots.append(SlotAccess(key, use.access, use.extent, use.certain))
            for offset, dims, strides in use.tiles:
                operands.append(Operand("x", offset, BYTE, dims, strides))
                regions.append(region_of(operands[-1], use.extent))
                here = len(operands) - 1
                accesses.append(TileAccess(len(slots) - 1, here, here, index, 0, 1, task, task))
                task += 1
    tensor = TensorAccesses(
        "x", tuple(accesses), tuple(region for region, _ in regions), tuple(known for _, known in regions)
    )
    rank = SmallRank(0, [SmallTask(0, 0, 0), SmallTask(10, 0, 0)], [0, 0], (2, 2), [])
    described = [
        OperatorCall(Operator(call.type_name, 0), 0, ("x",), (), place, 1, None, (), ())
        for place, call in enumerate(calls)
    ]
    return uncovered_report(
        Accesses(0, tuple(slots), {"x": tensor}),
        described,
        operands,
        {"x": size},
        events_of(rank.graph(), 0, put_types=set()),
    )


# --- the same, byte by byte -----------------------------------------------------------------------

TILES = st.one_of(
    st.tuples(st.integers(0, SIZE - 8), st.integers(0, 8).map(lambda n: (n,)), st.just((1,))),
    st.tuples(st.integers(0, 4), st.integers(1, 6).map(lambda n: (2, n)), st.just((8, 1))),
    st.sampled_from([(0, (SIZE,), (1,)), (0, (12,), (1,)), (12, (12,), (1,)), (0, (3, 4), (8, 1))]),
)
MANY_TILES = st.lists(TILES, min_size=1, max_size=3, unique=True).map(tuple)
EXACT, SUPERSET = Extent.EXACT, Extent.SUPERSET
USES = st.one_of(
    st.builds(Use, st.just(Access.WRITE), st.just(EXACT), MANY_TILES),
    st.builds(Use, st.just(Access.READ), st.just(EXACT), MANY_TILES),
    st.builds(
        Use,
        st.sampled_from([Access.READ, Access.WRITE, Access.UPDATE, Access.ACCUMULATE]),
        st.sampled_from([EXACT, EXACT, SUPERSET]),
        MANY_TILES,
    ),
)
CALLS = st.lists(
    st.builds(Call, st.sampled_from("AB"), st.lists(USES, min_size=1, max_size=2).map(tuple)),
    min_size=2,
    max_size=6,
)


@given(CALLS)
@many_worlds
def test_uncovered_bytes_are_those_that_no_byte_by_byte_look_finds_covered(calls: list[Call]) -> None:
    assume(any(use.writes for call in calls for use in call.uses))  # else it has no accesses
    found = report_of(calls)
    assert found.undecided == {}
    expected = [*lacking(calls), *unread(calls)]
    expected += gaps(calls, expected)
    assert sorted(map(seen, found.found), key=str) == sorted(expected, key=str)
    for lack in sorted({str(one.lack) for one in found.found}) or ["nothing"]:
        event(lack)


Seen = tuple[Lack, int, int, int, tuple[int, int], int | None, bool]


def seen(one: Uncovered) -> Seen:
    return one.lack, one.reader, one.writer, one.total, one.first, one.older, one.certain


def lack_of(
    lack: Lack, reader: int, writer: int, lost: set[int], older: int | None = None, *, certain: bool = True
) -> Seen:
    start = min(lost)
    stop = next(byte for byte in range(start, SIZE * 4) if byte not in lost)
    return lack, reader, writer, len(lost), (start, stop), older, certain


def lacking(calls: Sequence[Call]) -> list[Seen]:
    """For each wanted byte, who wrote it last: before the reader, or after it one iteration before."""
    writers = [index for index, call in enumerate(calls) if any(use.fills for use in call.uses)]
    found = []
    for reader, call in enumerate(calls):
        wanted = call.read(exactly=True)
        if not wanted or not any(writer < reader for writer in writers):
            continue
        back = sorted(writers, key=lambda writer: (writer >= reader, -writer))
        source = {
            byte: next((place for place, writer in enumerate(back) if byte in calls[writer].filled), None)
            for byte in wanted
        }
        stale = next(
            (
                (newer, older)
                for older in sorted({place for place in source.values() if place is not None})
                for newer in range(older)
                if replaces(calls, back[newer], back[older], wanted)
            ),
            None,
        )
        if stale is not None:
            newer, older = stale
            lost = {byte for byte, place in source.items() if place is None or place >= older}
            found.append(lack_of(Lack.STALE, reader, back[newer], lost, back[older]))
        elif None in source.values():
            lost = {byte for byte, place in source.items() if place is None}
            before = [writer for writer in back if writer < reader]
            last = next((writer for writer in before if calls[writer].filled & wanted), before[0])
            found.append(lack_of(Lack.UNWRITTEN, reader, last, lost))
    return found


def replaces(calls: Sequence[Call], newer: int, older: int, wanted: set[int]) -> bool:
    one, other = calls[newer], calls[older]
    between = range(older + 1, newer) if older < newer else [*range(older + 1, len(calls)), *range(newer)]
    return (
        one.type_name == other.type_name
        and one.is_plain
        and other.is_plain
        and bool(one.written & other.written & wanted)
        and any(any(use.reads for use in calls[place].uses) for place in between)
    )


def gaps(calls: Sequence[Call], others: Sequence[Seen]) -> list[Seen]:
    readers = [index for index, call in enumerate(calls) if any(use.reads for use in call.uses)]
    lost = set(range(SIZE)) - {byte for call in calls for byte in call.written}
    if not lost or not readers or any(lack is Lack.UNWRITTEN for lack, *_ in others):
        return []
    writers = [index for index, call in enumerate(calls) if any(use.writes for use in call.uses)]
    for reader in readers:
        if calls[reader].read() & lost:
            last = max((writer for writer in writers if writer < reader), default=writers[-1])
            certain = bool(calls[reader].read(exactly=True) & lost)
            return [lack_of(Lack.UNWRITTEN, reader, last, lost, certain=certain)]
    for writer in writers:
        if is_tail(calls[writer], lost, reads=False):
            reader = next((reader for reader in readers if reader > writer), readers[0])
            return [lack_of(Lack.UNWRITTEN, reader, writer, lost)]
    return []


def unread(calls: Sequence[Call]) -> list[Seen]:
    read = {byte for call in calls for byte in call.read()}
    lost = {byte for call in calls for byte in call.written} - read
    readers = [index for index, call in enumerate(calls) if any(use.reads for use in call.uses)]
    writers = [index for index, call in enumerate(calls) if any(use.writes for use in call.uses)]
    if not lost or any(use.reads and use.extent is SUPERSET for call in calls for use in call.uses):
        return []
    for reader in readers:
        if is_tail(calls[reader], lost, reads=True):
            last = max((writer for writer in writers if writer < reader), default=writers[-1])
            return [lack_of(Lack.UNREAD, reader, last, lost, certain=False)]
    return []


def is_tail(call: Call, lost: set[int], *, reads: bool) -> bool:
    """Whether along an axis of n tiles each run of lost bytes is less than n steps of it."""
    tiles = {
        tile
        for use in call.uses
        if use.extent is EXACT and (use.reads if reads else use.writes)
        for tile in use.tiles
    }
    if len({tile[1:] for tile in tiles}) != 1:
        return False
    first = min(tile[0] for tile in tiles)
    runs = [
        next(stop for stop in range(start, SIZE * 4) if stop not in lost) - start
        for start in lost
        if start - 1 not in lost
    ]
    dims, strides = next(iter(tiles))[1:]
    for dim, stride in zip(dims, strides, strict=True):
        along = [first + place * dim * stride for place in range(len(tiles))]
        number = next(
            (place for place, offset in enumerate(along) if (offset, dims, strides) not in tiles), len(along)
        )
        if dim and all(run % stride == 0 and run // stride < number for run in runs):
            return True
    return False


# --- grids ----------------------------------------------------------------------------------------


def grid(rows: int, columns: int, tiles: int, axis: int) -> tuple[Tile, ...]:
    """The tiles of a tensor as the generator cuts it: rounded down."""
    dims = [rows, columns]
    dims[axis] //= tiles
    step = dims[axis] * (columns if axis == 0 else 1)
    return tuple((place * step, (dims[0], dims[1]), (columns, 1)) for place in range(tiles))


@given(st.integers(1, 12), st.integers(2, 40), st.integers(2, 12), st.sampled_from([0, 1]), st.booleans())
@many_worlds
def test_a_grid_that_does_not_divide_leaves_a_tail(
    rows: int, columns: int, tiles: int, axis: int, writes: bool
) -> None:
    length = (rows, columns)[axis]
    assume(length >= tiles)
    size, whole = rows * columns, ((0, (rows, columns), (columns, 1)),)
    cut = grid(rows, columns, tiles, axis)
    written, read = (cut, whole) if writes else (whole, cut)
    calls = [Call("A", (Use(Access.WRITE, EXACT, written),)), Call("B", (Use(Access.READ, EXACT, read),))]
    found = report_of(calls, size).found
    left = length % tiles * (size // length)
    if not left:
        assert found == ()
        return
    (one,) = found
    assert (one.lack, one.total) == (Lack.UNWRITTEN if writes else Lack.UNREAD, left)
    assert (one.writer, one.reader, one.certain) == (0, 1, writes)
    both = [Call("A", (Use(Access.WRITE, EXACT, cut),)), Call("B", (Use(Access.READ, EXACT, cut),))]
    (one,) = report_of(both, size).found  # nobody reads the tail, and a grid leaves it to nobody
    assert (one.lack, one.total, one.writer) == (Lack.UNWRITTEN, left, 0)


def layers(*writes: tuple[Tile, ...]) -> list[Call]:
    """Layers that share a buffer: each writes tiles of it and reads all."""
    read = Call("B", (Use(Access.READ, EXACT, ((0, (SIZE,), (1,)),)),))
    return [call for tiles in writes for call in (Call("A", (Use(Access.WRITE, EXACT, tiles),)), read)]


HALVES = ((0, (12,), (1,)), (12, (12,), (1,)))


@pytest.mark.parametrize("short", range(3))
def test_a_layer_whose_grid_is_shrunk_reads_what_another_layer_wrote(short: int) -> None:
    """Also the first one: there it is what the last layer wrote in the step before."""
    found = report_of(layers(*(HALVES[: 1 if layer == short else 2] for layer in range(3)))).found
    older = 2 * ((short - 1) % 3)
    assert list(map(seen, found)) == [
        lack_of(Lack.STALE, 2 * short + 1, 2 * short, set(range(12, 24)), older)
    ]


def test_several_operators_may_fill_a_buffer_together() -> None:
    half = [Use(Access.WRITE, EXACT, (tile,)) for tile in HALVES]
    read = Call("B", (Use(Access.READ, EXACT, ((0, (SIZE,), (1,)),)),))
    layer = [Call("A", (half[0],)), Call("A", (half[1],)), read]
    assert report_of(layer * 3).found == ()


def test_an_update_in_place_fills_nothing() -> None:
    """As where a router's logits are scaled in place: what no tile of the layer before holds is no value."""
    half, whole = HALVES[:1], ((0, (SIZE,), (1,)),)
    route = Call("B", (Use(Access.UPDATE, EXACT, whole),))
    short = [Call("A", (Use(Access.WRITE, EXACT, half),)), route]
    (one,) = report_of(short).found
    assert seen(one) == lack_of(Lack.UNWRITTEN, 1, 0, set(range(12, 24)))
    full = [Call("A", (Use(Access.WRITE, EXACT, HALVES),)), route]
    assert report_of(full * 2).found == ()
    (one,) = report_of([*full, *short]).found
    assert seen(one) == lack_of(Lack.STALE, 3, 2, set(range(12, 24)), 0)


def test_an_update_in_place_of_a_part_makes_the_rest_not_stale() -> None:
    whole, part = Use(Access.WRITE, EXACT, HALVES), Use(Access.UPDATE, EXACT, HALVES[:1])
    read = Call("B", (Use(Access.READ, EXACT, ((0, (SIZE,), (1,)),)),))
    assert report_of([Call("A", (whole,)), Call("A", (part,)), read] * 2).found == ()


@pytest.mark.parametrize(
    "use, doubt",
    [
        (Use(Access.WRITE, Extent.SLICE, ((0, (1, 12), (24, 1)),)), Doubt.PUT),
        (Use(Access.WRITE, EXACT, HALVES[:1], certain=False), Doubt.ROLE),
        (Use(Access.WRITE, SUPERSET, ((0, (2, 1, 8), (1, 8, 1)),)), Doubt.CHOSEN),
        (Use(Access.WRITE, EXACT, ((0, (2, 2, 2), (-1, 3, 5)),)), Doubt.CHOSEN),
    ],
)
def test_what_cannot_be_told_is_said_to_be_so(use: Use, doubt: Doubt) -> None:
    read = Call("B", (Use(Access.READ, EXACT, ((0, (SIZE,), (1,)),)),))
    report = report_of([Call("A", (use,)), read])
    assert (report.found, report.undecided) == ((), {"x": doubt})
    assert report_of([Call("A", (use,)), Call("B", (use,))]).undecided == {}  # nobody reads it
