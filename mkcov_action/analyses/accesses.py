"""Accesses: which bytes of each tensor are read and written, by which layer calls, between which events.

Tasks that do the same to the same tile between the same events are one access: 163,891 tasks of a
61-layer graph come to some tens of thousands. Only tensors that a task writes have any: what is
never written can neither race nor be read too early.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from mkcov_action.analyses.byte_ranges import EVERYTHING, Region, tile
from mkcov_action.analyses.consumption import Access, Consumption, Side, SlotKey
from mkcov_action.analyses.events import EventGraph
from mkcov_action.analyses.operators import OperatorCall, Operators
from mkcov_action.analyses.runs import runs_of
from mkcov_action.megakernel import Rank
from mkcov_action.task_graph import Operand
from mkcov_action.task_types import DATA_TYPE_BYTES, Extent

_FIRST = 2  # tasks 0 and 1 are the runtime's own
_NO_ACCESS = frozenset({Access.IGNORED, Access.DUMMY, Access.SKIPPED})


class Precision(StrEnum):
    """How the bytes that are accessed relate to the region of an access."""

    EXACT = "exact"  # they are the region
    SUPERSET = "superset"  # a part of it that metadata or data choose at run time
    HULL = "hull"  # a part of it, the run around a tile of no array, that the kernel's own arithmetic finds
    UNKNOWN = "unknown"  # nothing is known, as the element's size: the region is EVERYTHING


@dataclass(frozen=True, slots=True)
class SlotAccess:
    """What the tasks of one operator do through one slot.

    `remote`: the bytes are in the memory of the rank that the task's trigger event names.
    `certain` is False for a slot without a role entry: its tile is taken as exact, an input as
    read and perhaps written, an output as written.
    """

    slot: SlotKey
    access: Access
    extent: Extent
    certain: bool

    @property
    def remote(self) -> bool:
        """Whether a put writes through the slot, into another rank's memory."""
        return self.extent is Extent.SLICE

    @property
    def reads(self) -> bool:
        """Whether the tile's bytes are read (an accumulation reads only to write)."""
        return self.access.reads

    @property
    def writes(self) -> bool:
        """Whether the tile's bytes are surely written."""
        return self.access.writes


class TileAccess(NamedTuple):
    """Tasks of one layer call that do the same to the same tile between the same events.

    `slot` is an index in Accesses.slots, `operand` in the graph's operands, `region` in the
    regions of the tensor, `call` in Operators.calls, `pair` in the rank's pairs of an EventGraph.
    `first` and `last` are the smallest and the largest id of the `tasks` tasks.
    """

    slot: int
    operand: int
    region: int
    call: int
    pair: int
    tasks: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class TensorAccesses:
    """The accesses to one tensor in the order of their first tasks; of one task, inputs first.

    `regions` are the distinct ones. `precision` tells of each what the accesses to it know.
    """

    tensor: str
    accesses: tuple[TileAccess, ...]
    regions: tuple[Region, ...]
    precision: tuple[Precision, ...]


@dataclass(frozen=True, slots=True)
class Accesses:
    """The accesses of one rank to every tensor that a task surely writes, by its name.

    Without slots that the body never names, slots that only draw an edge, and tasks without code.
    """

    rank: int
    slots: tuple[SlotAccess, ...]
    tensors: Mapping[str, TensorAccesses]

    def slot(self, access: TileAccess) -> SlotAccess:
        """What an access does."""
        return self.slots[access.slot]


def accesses_of(rank: Rank, consumption: Consumption, operators: Operators, events: EventGraph) -> Accesses:
    """The accesses of an audited rank; the events are those of this rank, or of all ranks."""
    return _Reader(rank, consumption).read(operators, events.pair_of[rank.number])


def region_of(operand: Operand, extent: Extent) -> tuple[Region, Precision]:
    """The region of a tile and how well it tells what is accessed.

    What is accessed of a superset lies within the tile, unless that is of no array: where a tile
    overlaps itself or its strides are in no order (split-KV partials, [32, 1, 512]), kernels find
    their part by an arithmetic of their own. Of these, the run around the tile.
    """
    size = DATA_TYPE_BYTES.get(operand.data_type)
    if size is None or len(operand.dims) != len(operand.strides) or min(operand.strides, default=0) < 0:
        return EVERYTHING, Precision.UNKNOWN
    skipped = 1 if extent is Extent.SLICE else 0
    region = tile(operand.offset, operand.dims[skipped:], operand.strides[skipped:], size)
    if extent is Extent.SUPERSET:
        regular = region.nested and sorted(operand.strides) in _both_ways(operand.strides)
        return (region, Precision.SUPERSET) if regular else (region.hull, Precision.HULL)
    return region, Precision.EXACT


def _both_ways(strides: tuple[int, ...]) -> tuple[list[int], list[int]]:
    return list(strides), list(reversed(strides))


class _Found(NamedTuple):
    """An access as the columns tell it."""

    slot: int
    operand: int
    call: int
    pair: int
    tasks: int
    first: int
    last: int


_Place = tuple[int, int, str]
"""An index of a slot on its side, its index in Accesses.slots, and the tensor."""


class _Reader:
    """One pass over the tasks by runs of equal calls and events."""

    def __init__(self, rank: Rank, consumption: Consumption) -> None:
        self._rank = rank
        self._graph = rank.graph
        self._consumption = consumption
        self._written = {tensor for tensor in consumption.usages if consumption.is_written(tensor)}
        self._slots: dict[SlotAccess, int] = {}
        self._slot_of: dict[tuple[int, int, Side, int], int | None] = {}
        self._columns: dict[int, Sequence[int]] = {}

    def read(self, operators: Operators, pair_of: array[int]) -> Accesses:
        groups: defaultdict[tuple[int, int], list[range]] = defaultdict(list)
        for run in runs_of(operators.operator_of, pair_of, first=_FIRST):
            groups[operators.operator_of[run.start], pair_of[run.start]].append(run)
        places = [self._places(call) for call in operators.calls]
        found: defaultdict[str, list[_Found]] = defaultdict(list)
        for (call, pair), runs in groups.items():
            for column, wanted in zip((self._graph.inputs, self._graph.outputs), places[call], strict=True):
                if wanted:
                    lists = list(chain.from_iterable(column[run.start : run.stop] for run in runs))
                    tasks = list(chain.from_iterable(runs))
                    for index, slot, tensor in wanted:
                        operands = list(map(self._operand_at(index).__getitem__, lists))
                        found[tensor] += _collapsed(operands, tasks, slot, call, pair)
        slots = tuple(self._slots)
        return Accesses(
            self._rank.number,
            slots,
            {
                tensor: self._described(tensor, own, slots)
                for tensor, own in sorted(found.items())
                if any(slots[access.slot].writes for access in own)  # else the runtime's own tasks claim to
            },
        )

    def _places(self, call: OperatorCall) -> tuple[list[_Place], list[_Place]]:
        """The inputs and outputs through which a call accesses tensors that are written."""
        inputs, outputs = (
            [
                (index, slot, tensor)
                for index, tensor in enumerate(names)
                if tensor in self._written and (slot := self._slot(call, side, index)) is not None
            ]
            for side, names in ((Side.INPUT, call.inputs), (Side.OUTPUT, call.outputs))
        )
        return inputs, outputs

    def _slot(self, call: OperatorCall, side: Side, index: int) -> int | None:
        """The index of a slot among those that access something; None if it does not."""
        place = call.type_number, call.operator.variant, side, index
        if place not in self._slot_of:
            slot = SlotKey(call.operator, side, index)
            access, role = self._consumption.accesses[slot], slot.role
            self._slot_of[place] = None
            if access not in _NO_ACCESS:
                extent = role.extent if role else Extent.EXACT
                described = SlotAccess(slot, access, extent, role is not None)
                self._slot_of[place] = self._slots.setdefault(described, len(self._slots))
        return self._slot_of[place]

    def _operand_at(self, index: int) -> Sequence[int]:
        """For each operand list the operand at an index; -1 where it is shorter."""
        if index not in self._columns:
            self._columns[index] = array(
                "i",
                [operands[index] if index < len(operands) else -1 for operands in self._graph.operand_lists],
            )
        return self._columns[index]

    def _described(self, tensor: str, found: list[_Found], slots: Sequence[SlotAccess]) -> TensorAccesses:
        regions: dict[tuple[Region, Precision], int] = {}
        known: dict[tuple[int, Extent], int] = {}
        accesses = []
        for slot, operand, *rest in sorted(found, key=_first):
            key = operand, slots[slot].extent
            if key not in known:
                region = region_of(self._graph.operands[operand], key[1])
                known[key] = regions.setdefault(region, len(regions))
            accesses.append(TileAccess(slot, operand, known[key], *rest))
        return TensorAccesses(
            tensor,
            tuple(accesses),
            tuple(region for region, _ in regions),
            tuple(precision for _, precision in regions),
        )


def _first(found: _Found) -> int:
    return found.first


def _collapsed(
    operands: Sequence[int], tasks: Sequence[int], slot: int, call: int, pair: int
) -> Iterable[_Found]:
    """What the tasks of a group do through one slot: for each tile of the slot one access."""
    if operands.count(operands[0]) == len(operands):
        yield _Found(slot, operands[0], call, pair, len(tasks), min(tasks), max(tasks))
        return
    last = dict(zip(operands, tasks, strict=True))
    first = dict(zip(reversed(operands), reversed(tasks), strict=True))
    for operand, number in Counter(operands).items():
        yield _Found(slot, operand, call, pair, number, first[operand], last[operand])
