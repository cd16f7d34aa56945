"""Uncovered bytes: what is read of a buffer and not written, or was written for an earlier use of it.

Layer calls are compared as sets of regions, each pair of sets once: layers repeat each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from mkcov_action.analyses.accesses import Accesses, Precision, TensorAccesses, TileAccess
from mkcov_action.analyses.byte_ranges import Bytes, Region, Run, TooCostly, gaps, missing, overlap
from mkcov_action.analyses.consumption import Access
from mkcov_action.analyses.events import EventGraph
from mkcov_action.analyses.operators import OperatorCall
from mkcov_action.task_graph import Operand
from mkcov_action.task_types import DATA_TYPE_BYTES

_MOST_RUNS = 1 << 10  # so many runs of a tail are looked at: one a row

Tiles = frozenset[int]
"""Tiles of a tensor: indices in its regions."""

_NONE: Tiles = frozenset()


class Lack(StrEnum):
    """What is wrong with bytes of a buffer."""

    UNWRITTEN = "unwritten"  # no task writes them
    STALE = "stale"  # the last writer leaves out what another call of its type wrote for another reader
    UNREAD = "unread"  # the tiles of a grid that does not divide leave them out


class Doubt(StrEnum):
    """Why it cannot be told which bytes of a tensor are written."""

    ROLE = "a task without a known role may write there"
    PUT = "other ranks put tiles there"
    CHOSEN = "a kernel finds by its own arithmetic which it writes"
    MISSING = "a task that touches them may be missing, as its event says"
    COSTLY = "there are too many tiles to compare"


@dataclass(frozen=True, slots=True)
class Uncovered:
    """Bytes of a tensor that `writer` leaves out and `reader` needs; unread ones, that `reader` leaves out.

    `reader` and `writer` are indices of calls, the writer the last one before the reader. `older` is, for
    stale bytes, the call that wrote them. `total` counts the bytes and `first` is their first run. Not
    `certain` where it is chosen at run time whether the reader reaches them.
    """

    lack: Lack
    tensor: str
    reader: int
    writer: int
    total: int
    first: Run
    older: int | None = None
    certain: bool = True


@dataclass(frozen=True, slots=True)
class UncoveredReport:
    """What is uncovered in the memory of one rank, and why nothing is said of other tensors, by name."""

    found: tuple[Uncovered, ...]
    undecided: Mapping[str, Doubt]


def uncovered_report(
    accesses: Accesses,
    calls: Sequence[OperatorCall],
    operands: Sequence[Operand],
    sizes: Mapping[str, int],
    events: EventGraph,
) -> UncoveredReport:
    """The uncovered bytes of the tensors in `sizes` (bytes by name), which start without values.

    The operands are the graph's, the events the rank's own. Where an event before or behind a task that
    touches a tensor gets fewer triggers than it waits for, a task may be missing: that is said of the event.
    """
    found: list[Uncovered] = []
    undecided: dict[str, Doubt] = {}
    too_few = events.too_few
    short = frozenset(
        index
        for index, pair in enumerate(events.pairs_of(accesses.rank))
        if pair.trigger in too_few or pair.dependent in too_few
    )
    for name in sorted(accesses.tensors.keys() & sizes.keys()):
        uses = _Uses(accesses, accesses.tensors[name], calls, operands)
        if not uses.of(reads=True):
            continue
        doubt = uses.doubt
        if doubt is None:
            own = list(uses.uncovered(sizes[name]))
            doubt = (
                Doubt.COSTLY if uses.costly else Doubt.MISSING if own and uses.are_incomplete(short) else None
            )
            found += () if doubt else own
        if doubt is not None:
            undecided[name] = doubt
    return UncoveredReport(tuple(found), undecided)


class _Uses:
    """The calls that use one tensor, and through which tiles."""

    def __init__(
        self,
        accesses: Accesses,
        tensor: TensorAccesses,
        calls: Sequence[OperatorCall],
        operands: Sequence[Operand],
    ) -> None:
        self.costly = False
        """Whether an answer was too costly: then nothing that was found holds."""
        self._slot = accesses.slot
        self._tensor = tensor
        self._calls = calls
        self._operands = operands
        self._left_of: dict[tuple[Tiles, Tiles], Bytes] = {}

    def of(self, *, reads: bool, precisely: bool = False) -> dict[int, Tiles]:
        """The calls that read (or write) the tensor, in order, and their tiles; of exact bytes, if `precisely`."""
        found: defaultdict[int, set[int]] = defaultdict(set)
        for access in self._tensor.accesses:
            slot = self._slot(access)
            if (slot.reads if reads else slot.writes) and (not precisely or self._is_exact(access)):
                found[access.call].add(access.region)
        return {call: frozenset(found[call]) for call in sorted(found)}

    @cached_property
    def _writing(self) -> dict[int, Tiles]:
        return self.of(reads=False)

    @cached_property
    def _filling(self) -> dict[int, Tiles]:
        """The calls that write, and their tiles but those that they update: an update needs a value to be there."""
        found: defaultdict[int, set[int]] = defaultdict(set)
        for access in self._tensor.accesses:
            slot = self._slot(access)
            if slot.writes and not (slot.access is Access.UPDATE and self._is_exact(access)):
                found[access.call].add(access.region)
        return {call: frozenset(found[call]) for call in sorted(found)}

    @cached_property
    def _reading(self) -> dict[int, Tiles]:
        return self.of(reads=True)

    @cached_property
    def _written(self) -> Tiles:
        """All tiles that are written."""
        return frozenset().union(*self._writing.values())

    def _is_exact(self, access: TileAccess) -> bool:
        return self._tensor.precision[access.region] is Precision.EXACT

    @property
    def doubt(self) -> Doubt | None:
        """Why it cannot be told which bytes are written; None where it can."""
        slots = [self._slot(access) for access in self._tensor.accesses]
        if any(slot.remote for slot in slots):
            return Doubt.PUT
        if not all(slot.certain for slot in slots):
            return Doubt.ROLE
        precision = {self._tensor.precision[region] for region in self._written}
        return None if precision <= {Precision.EXACT, Precision.SUPERSET} else Doubt.CHOSEN

    def are_incomplete(self, short: frozenset[int]) -> bool:
        """Whether a task is missing of a call, as one of these pairs of events says."""
        return any(access.pair in short for access in self._tensor.accesses)

    def uncovered(self, size: int) -> Iterator[Uncovered]:
        """What is uncovered of the tensor, of `size` bytes."""
        found = [
            lack
            for reader, wanted in self.of(reads=True, precisely=True).items()
            if (lack := self._lacking(reader, wanted)) is not None
        ]
        yield from found
        if all(lack.lack is not Lack.UNWRITTEN for lack in found):
            yield from self._gaps(size)
        yield from self._unread()

    # --- bytes that a call reads ---

    def _lacking(self, reader: int, wanted: Tiles) -> Uncovered | None:
        """What is lacking of the bytes that a call reads through exact slots.

        Several operators may fill a buffer together, and an iteration finds what the one before it left. So
        the walk goes back over all calls that write, and what comes from an older one is stale only where
        a call of the same type, which writes to the same end, has since been used instead of it.
        """
        before = [call for call in self._filling if call < reader]
        if not before:
            return None  # of what the last iteration left, or of a write that follows: of order, not of bytes
        writer = before[-1]
        walked: list[int] = []
        left = self._left(wanted, _NONE)
        for call in (*reversed(before), *(call for call in reversed(self._filling) if call >= reader)):
            rest = self._left(wanted, self._tiles_of([*walked, call]))
            if rest.total < left.total:
                newer = next((one for one in walked if self._replaces(one, call, wanted)), None)
                if newer is not None:
                    return self._lack(Lack.STALE, reader, newer, left, call)
                if left.total == self._left(wanted, _NONE).total and call < reader:
                    writer = call  # the last one that writes of what is wanted
                left = rest
            if not left:
                return None
            walked.append(call)
        return self._lack(Lack.UNWRITTEN, reader, writer, left)

    def _tiles_of(self, calls: Sequence[int]) -> Tiles:
        return frozenset().union(*(self._filling[call] for call in calls))

    def _replaces(self, newer: int, older: int, wanted: Tiles) -> bool:
        """Whether a call is the next of its type to write what is wanted: anew, not on top of what is there."""
        one, other = self._calls[newer], self._calls[older]
        if one.operator.type_name != other.operator.type_name or not {newer, older} <= self._plain.keys():
            return False
        used = (older < call < newer if older < newer else not newer < call < older for call in self._reading)
        if not any(used):
            return False
        parts = [self._left(wanted, self._writing[call]).total for call in (newer, older)]
        both = self._left(wanted, self._writing[newer] | self._writing[older]).total
        return sum(parts) < both + self._left(wanted, _NONE).total  # they share bytes of it

    @cached_property
    def _plain(self) -> Mapping[int, Tiles]:
        """The calls that only write, and exactly their tiles."""
        other = set(self._reading) | {
            access.call
            for access in self._tensor.accesses
            if self._slot(access).writes
            and not (self._slot(access).access is Access.WRITE and self._is_exact(access))
        }
        return {call: tiles for call, tiles in self._writing.items() if call not in other}

    def _lack(
        self,
        lack: Lack,
        reader: int,
        writer: int,
        left: Bytes,
        older: int | None = None,
        *,
        certain: bool = True,
    ) -> Uncovered:
        name = self._tensor.tensor
        return Uncovered(lack, name, reader, writer, left.total, left.first()[0], older, certain)

    def _left(self, wanted: Tiles, given: Tiles) -> Bytes:
        """The bytes of some tiles that others do not hold."""
        key = wanted, given
        if key not in self._left_of:
            regions = self._tensor.regions
            self._left_of[key] = self._paid(
                missing((regions[tile] for tile in wanted), (regions[tile] for tile in given))
            )
        return self._left_of[key]

    def _paid(self, found: Bytes | TooCostly) -> Bytes:
        if isinstance(found, TooCostly):
            self.costly = True
            return Bytes()
        return found

    # --- bytes of the whole buffer ---

    def _gaps(self, size: int) -> Iterator[Uncovered]:
        """The bytes of the buffer that no task writes, if a task may read them or a grid leaves them out."""
        left = self._paid(gaps((self._tensor.regions[tile] for tile in self._written), size))
        if not left:
            return
        runs = left.first(_MOST_RUNS)
        for reader, tiles in self._reading.items():
            reached = {tile for tile in tiles if self._shares(self._tensor.regions[tile], runs)}
            if reached:
                certain = any(self._tensor.precision[tile] is Precision.EXACT for tile in reached)
                yield self._lack(Lack.UNWRITTEN, reader, self._last_before(reader), left, certain=certain)
                return
        writer = next((call for call in self._writing if self._leaves(call, runs, reads=False)), None)
        if writer is not None:
            reader = next((call for call in self._reading if call > writer), next(iter(self._reading)))
            yield self._lack(Lack.UNWRITTEN, reader, writer, left)

    def _shares(self, region: Region, runs: Sequence[Run]) -> bool:
        return any(overlap(region, Region(start, stop - start)) is True for start, stop in runs)

    def _last_before(self, reader: int) -> int:
        """The last call that writes before another one, or at all."""
        return max((call for call in self._writing if call < reader), default=max(self._writing))

    def _unread(self) -> Iterator[Uncovered]:
        """The bytes that are written and never read, if a grid leaves them out."""
        if self._reading != self.of(reads=True, precisely=True):
            return
        left = self._left(self._written, frozenset().union(*self._reading.values()))
        runs = left.first(_MOST_RUNS)
        reader = next((call for call in self._reading if self._leaves(call, runs, reads=True)), None)
        if reader is not None:
            yield self._lack(Lack.UNREAD, reader, self._last_before(reader), left, certain=False)

    def _leaves(self, call: int, runs: Sequence[Run], *, reads: bool) -> bool:
        """Whether runs are what the tiles of a call leave along an axis whose size their number does not divide.

        The generator rounds down: of n tiles along an axis less than n steps of it are left behind the last.
        """
        tiles = {
            self._operands[access.operand]
            for access in self._tensor.accesses
            if access.call == call
            and (self._slot(access).reads if reads else self._slot(access).writes)
            and self._is_exact(access)
        }
        if not runs or len({tile._replace(offset=0) for tile in tiles}) != 1:
            return False
        offsets, some = {tile.offset for tile in tiles}, next(iter(tiles))
        size = DATA_TYPE_BYTES[some.data_type]
        for dim, stride in zip(some.dims, some.strides, strict=True):
            step, number = stride * size, 1
            while step and dim and min(offsets) + number * dim * step in offsets:
                number += 1
            if step and all(
                (stop - start) % step == 0 and (stop - start) // step < number for start, stop in runs
            ):
                return True
        return False
