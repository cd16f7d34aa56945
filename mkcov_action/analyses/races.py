"""Races: accesses to the same bytes that nothing orders, by tensor and layer calls.

Accesses are compared as sets, by event classes, never task by task: order between tasks is order
between events, so all accesses that wait for one event have the same ones surely before them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, reduce
from operator import or_

from mkcov_action.analyses.accesses import Accesses, Precision, TensorAccesses
from mkcov_action.analyses.byte_ranges import TooCostly, covers, overlaps
from mkcov_action.analyses.consumption import Access
from mkcov_action.analyses.events import EventGraph
from mkcov_action.analyses.happens_before import HappensBefore
from mkcov_action.analyses.operators import OperatorCall

Bits = int
"""A set of accesses to one tensor; bit i stands for the i-th."""


class RaceKind(StrEnum):
    """How two accesses that nothing orders touch the same bytes."""

    READ_OF_LAST_WRITE = "read of the last write"  # the reader needs what the writer may not have written yet
    WRITE_AFTER_READ = "write after read"  # the buffer is used again while it may still be read
    WRITE_AFTER_WRITE = "write after write"


@dataclass(frozen=True, slots=True)
class Race:
    """Two layer calls that touch the same bytes of a tensor without order.

    `earlier` and `later` are indices of calls, by their first tasks; `tasks` is one task of each,
    `pairs` how many pairs of accesses there are. Not `certain` where what is accessed of a tile is chosen
    at run time, or where a slot's role is not known.
    """

    kind: RaceKind
    tensor: str
    earlier: int
    later: int
    tasks: tuple[int, int]
    pairs: int
    certain: bool


@dataclass(frozen=True, slots=True)
class Races:
    """All races of one rank, and the tensors whose bytes were too costly to compare."""

    races: tuple[Race, ...]
    undecided: tuple[str, ...]


@dataclass(frozen=True)
class Order:
    """The order of a rank's tasks, and layer calls that are taken to be over before others start besides.

    `mended` holds pairs of calls: what the order would be were the missing edge of each there. (An edge
    that would close a cycle is left out.)
    """

    accesses: Accesses
    before: HappensBefore
    calls: Sequence[OperatorCall]
    mended: Collection[tuple[int, int]] = ()
    _uses: dict[str, _Uses] = field(default_factory=dict)

    def with_edges(self, mended: Collection[tuple[int, int]]) -> Order:
        """The same order with more edges mended."""
        return Order(self.accesses, self.before, self.calls, {*self.mended, *mended}, self._uses)

    def tensor(self, name: str) -> _Tensor:
        """The accesses of a tensor under this order."""
        if name not in self._uses:
            self._uses[name] = _Uses(self.accesses.tensors[name], self.accesses, self.before.events)
        return _Tensor(self._uses[name], self)

    @cached_property
    def marks(self) -> Mapping[int, int]:
        """The bit behind those of the events that tells of each mended call that it is over."""
        events = len(self.before.events)
        return {call: events + place for place, call in enumerate(sorted({one for one, _ in self.mended}))}

    @cached_property
    def _mended_edges(self) -> tuple[list[int], list[tuple[int, int, int]]]:
        ancestors, edges = list(self.before.ancestors), []
        for one, other in sorted(self.mended):
            for start in self._waited_for(one):
                for end in self._waited_for(other):
                    if start != end and not ancestors[start] >> end & 1:
                        edges.append((start, end, one))
                        gained = ancestors[start] | 1 << self.marks[one]
                        for event, known in enumerate(ancestors):
                            if known >> end & 1:
                                ancestors[event] |= gained
        return ancestors, edges

    @property
    def ancestors(self) -> list[int]:
        """The ancestors of each event, and the marks of the mended calls that are over when it fires."""
        return self._mended_edges[0]

    @cached_property
    def edges(self) -> list[tuple[int, int, int]]:
        """What leads from event to event: waited for, triggered, and the mended call or -1; in topological order.

        Of an edge of a mended call, the one is what its tasks wait for, the other what the later call waits for.
        """
        ancestors = self.before.ancestors
        edges = [
            (pair.dependent, pair.trigger, -1)
            for pair in self.before.events.pairs
            if pair.dependent >= 0 and pair.trigger >= 0 and ancestors[pair.trigger]
        ]
        # What is before has fewer ancestors.
        return sorted([*edges, *self._mended_edges[1]], key=lambda edge: self.ancestors[edge[0]].bit_count())

    def _waited_for(self, call: int) -> list[int]:
        pairs = self.before.events.pairs
        return sorted({pairs[pair].dependent for pair in self._pairs_of_call.get(call, ())} - {-1, -2})

    @cached_property
    def _pairs_of_call(self) -> Mapping[int, set[int]]:
        found: defaultdict[int, set[int]] = defaultdict(set)
        start = self.before.events.first_pair[self.accesses.rank]
        for tensor in self.accesses.tensors.values():
            for access in tensor.accesses:
                found[access.call].add(start + access.pair)
        return found


class _Uses:
    """The accesses of one tensor as sets: what does not depend on order."""

    def __init__(self, own: TensorAccesses, accesses: Accesses, events: EventGraph) -> None:
        self.own = own
        start = events.first_pair[accesses.rank]
        pairs = [events.pairs[start + access.pair] for access in own.accesses]
        self.waits = [pair.dependent for pair in pairs]
        self.fires = [pair.trigger for pair in pairs]
        slots = [accesses.slot(access) for access in own.accesses]
        self.reads = _bits(slot.reads for slot in slots)
        self.writes = _bits(slot.writes and not slot.remote for slot in slots)
        self.adds = _bits(slot.access is Access.ACCUMULATE for slot in slots)
        self.clear = _bits(
            slot.certain and own.precision[access.region] is Precision.EXACT
            for slot, access in zip(slots, own.accesses, strict=True)
        )
        self.of_call = _sets(access.call for access in own.accesses)
        self.by_fire = _sets(self.fires)
        self.by_wait = _sets(self.waits)
        self.overlapping = self._overlapping()

    def _overlapping(self) -> list[Bits] | None:
        """For each region the accesses that share a byte with it; None where that is too costly."""
        found = overlaps(self.own.regions)
        if isinstance(found, TooCostly):
            return None
        of_region = _sets(access.region for access in self.own.accesses)
        return [reduce(or_, (of_region[other] for other in _members(shared)), 0) for shared in found]


class _Tensor:
    """The accesses of one tensor, and who is before whom."""

    def __init__(self, uses: _Uses, order: Order) -> None:
        self._order = order
        self._uses = uses
        self.own, self.overlapping = uses.own, uses.overlapping
        self.reads, self.writes, self.adds, self.clear = uses.reads, uses.writes, uses.adds, uses.clear
        self.of_call, self.waits, self.fires = uses.of_call, uses.waits, uses.fires

    @cached_property
    def _over(self) -> Mapping[int, Bits]:
        """The accesses that are over when an event fires: of few events each by itself, else along the edges."""
        order, uses = self._order, self._uses
        if self._is_small:
            return {wait: self._over_when(wait) for wait in uses.by_wait if wait >= 0}
        over = defaultdict(
            int,
            {
                event: bits
                for event, bits in uses.by_fire.items()
                if event >= 0 and order.before.ancestors[event]
            },
        )
        for start, end, mended in order.edges:
            gained = over[start] | (self.of_call.get(mended, 0) if mended >= 0 else 0)
            if gained:
                over[end] |= gained
        return over

    @property
    def _is_small(self) -> bool:
        return len(self._uses.by_fire) * len(self._uses.by_wait) < 4 * len(self._order.edges)

    def _over_when(self, event: int) -> Bits:
        ancestors = self._order.ancestors[event]
        found = reduce(
            or_,
            (bits for fire, bits in self._uses.by_fire.items() if fire >= 0 and ancestors >> fire & 1),
            0,
        )
        for call, mark in self._order.marks.items():
            if ancestors >> mark & 1:
                found |= self.of_call.get(call, 0)
        return found

    @cached_property
    def _later(self) -> Mapping[int, Bits]:
        """The accesses that start only when an event has fired."""
        order, uses = self._order, self._uses
        waits = {event: bits for event, bits in uses.by_wait.items() if event >= 0}
        if self._is_small:
            return {fire: self._later_than(fire) for fire in uses.by_fire if fire >= 0}
        later = defaultdict(int, waits)
        for start, end, _ in reversed(order.edges):
            if later[end]:
                later[start] |= later[end]
        return later

    def _later_than(self, mark: int) -> Bits:
        ancestors = self._order.ancestors
        waits = self._uses.by_wait.items()
        return reduce(or_, (bits for wait, bits in waits if wait >= 0 and ancestors[wait] >> mark & 1), 0)

    @cached_property
    def _behind_mended(self) -> Mapping[int, Bits]:
        """The accesses that start only when all tasks of a mended call are over."""
        return {
            call: self._later_than(mark) for call, mark in self._order.marks.items() if call in self.of_call
        }

    def before(self, index: int) -> Bits:
        """The accesses that are surely over when this one starts."""
        return self._over.get(self.waits[index], 0)

    def after(self, index: int) -> Bits:
        """The accesses that surely start only when this one is over."""
        fire = self.fires[index]
        ordered = fire >= 0 and self._order.before.ancestors[fire]
        later = self._later.get(fire, 0) if ordered else 0
        return later | self._behind_mended.get(self.own.accesses[index].call, 0)

    def loose(self, index: int) -> Bits:
        """The accesses of other calls to the bytes of this one that nothing orders with it."""
        access = self.own.accesses[index]
        shared = (self.overlapping or [])[access.region] & (self.reads | self.writes)
        return shared & ~self.of_call[access.call] & ~self.before(index) & ~self.after(index)

    def ordered(self, one: int, other: int) -> bool:
        """Whether any access of one call is ordered with any of the other."""
        theirs = self.of_call[other]
        return any((self.before(index) | self.after(index)) & theirs for index in _members(self.of_call[one]))


@dataclass(frozen=True, slots=True)
class RaceReport:
    """The races of one rank by cause.

    `reads` are those of unordered last writes, the causes first found: `conflicts` are what else is
    unordered even if the edges that these lack were there. `following` counts the pairs of accesses, by
    tensor, that those edges would order.
    """

    reads: tuple[Race, ...]
    conflicts: tuple[Race, ...]
    following: Mapping[str, int]
    undecided: tuple[str, ...]


def race_report(order: Order) -> RaceReport:
    """Looks for causes first: an operator without outputs gets no edge, and much follows from that."""
    found = unordered_reads(order)
    if not found.races:
        rest = conflicts(order)
        return RaceReport((), _without_echoes(rest.races), {}, found.undecided)
    blind = {(race.earlier, race.later) for race in found.races if not order.calls[race.earlier].outputs}
    reads = [race for race in found.races if (race.earlier, race.later) in blind]
    mended = order
    if blind:
        mended = order.with_edges(blind)
        found = unordered_reads(mended)
    reads += found.races
    mended = mended.with_edges({(race.earlier, race.later) for race in found.races})
    before, after = unordered(order), unordered(mended)
    rest = conflicts(mended)
    following = {
        name: pairs - after.get(name, 0) for name, pairs in before.items() if pairs > after.get(name, 0)
    }
    return RaceReport(tuple(reads), _without_echoes(rest.races), following, found.undecided)


def _without_echoes(races: Sequence[Race]) -> tuple[Race, ...]:
    """Without writes over a write where the same writer comes before a reader in between is over: one cause."""
    readers = {(race.tensor, race.later) for race in races if race.kind is RaceKind.WRITE_AFTER_READ}
    return tuple(
        race
        for race in races
        if race.kind is not RaceKind.WRITE_AFTER_WRITE or (race.tensor, race.later) not in readers
    )


def unordered_reads(order: Order) -> Races:
    """The reads of bytes whose last write before them, by task number, is not surely over."""
    rewrites = _Rewrites(order)
    return _collected(order, lambda tensor: _unordered_reads(tensor, rewrites))


def conflicts(order: Order, known: Collection[tuple[int, int]] = ()) -> Races:
    """All other unordered uses of the same bytes, one of which writes; pairs of calls that are known left out."""
    rewrites = _Rewrites(order)
    return _collected(order, lambda tensor: _conflicts(tensor, known, rewrites))


def unordered(order: Order) -> dict[str, int]:
    """How many pairs of accesses, one of which writes, nothing orders, by tensor: counted, not looked at."""
    counts = {}
    for name in order.accesses.tensors:
        tensor = order.tensor(name)
        if tensor.overlapping is None:
            continue
        pairs = 0
        for index in _members(tensor.writes):
            loose = tensor.loose(index)
            pairs += (loose & ~tensor.writes).bit_count() + (
                loose & tensor.writes & ~((2 << index) - 1)
            ).bit_count()
        if pairs:
            counts[name] = pairs
    return counts


def _collected(order: Order, look: Callable[[_Tensor], Iterable[Race]]) -> Races:
    races: list[Race] = []
    undecided = []
    for name in order.accesses.tensors:
        tensor = order.tensor(name)
        if tensor.overlapping is None:
            undecided.append(name)
        else:
            races += look(tensor)
    races.sort(key=lambda race: (race.kind, race.tensor, race.earlier, race.later))
    return Races(tuple(races), tuple(undecided))


class _Rewrites:
    """Whether a call wrote what another one of its kind had written already: the same values."""

    def __init__(self, order: Order) -> None:
        self._calls = order.calls
        self._known: dict[int, list[int]] = {}
        self._twins: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        for index, call in enumerate(order.calls):
            self._twins[call.operator, call.inputs, call.outputs].append(index)
        self._writers: defaultdict[str, list[int]] = defaultdict(list)
        for name, tensor in order.accesses.tensors.items():
            writing = {access.call for access in tensor.accesses if order.accesses.slot(access).writes}
            self._writers[name] = sorted(writing)

    def twins(self, call: int) -> list[int]:
        """The earlier calls that do the same; see `_found`."""
        if call not in self._known:
            self._known[call] = self._found(call)
        return self._known[call]

    def _found(self, call: int) -> list[int]:
        """The earlier calls that do the same from the same sources, not rewritten in between."""
        mine = self._calls[call]
        same = self._twins[mine.operator, mine.inputs, mine.outputs]
        return [
            twin
            for twin in same
            if twin < call
            and not any(
                writer not in same
                for source in mine.inputs
                if source not in mine.outputs
                for writer in self._between(source, twin, call)
            )
        ]

    def _between(self, source: str, one: int, other: int) -> list[int]:
        """The calls between two others that write a tensor."""
        writers = self._writers.get(source, [])
        return writers[bisect_right(writers, one) : bisect_left(writers, other)]


def _unordered_reads(tensor: _Tensor, rewrites: _Rewrites) -> Iterator[Race]:
    """Reads of bytes whose last write before them, by task number, is not surely over."""
    overlapping, accesses = tensor.overlapping or [], tensor.own.accesses
    found: dict[tuple[int, int], _Group] = {}
    for index in _members(tensor.reads & ~tensor.adds):
        access = accesses[index]
        earlier = (1 << index) - 1  # accesses stand in the order of their first tasks
        writes = tensor.writes & overlapping[access.region] & earlier & ~tensor.of_call[access.call]
        loose = writes & ~tensor.before(index)
        if not loose:
            continue
        for call, bits in _last_writers(tensor, index, writes):
            for writer in _members(bits & loose):
                over = tensor.before(index)
                if any(tensor.of_call.get(twin, 0) & over for twin in rewrites.twins(call)):
                    continue
                certain = bool(tensor.clear >> writer & 1 and tensor.clear >> index & 1)
                if not certain and tensor.ordered(call, access.call):
                    continue
                group = found.setdefault((call, access.call), _Group())
                group.add(accesses[writer].first, access.first, certain=certain)
    for (one, other), group in found.items():
        yield group.race(RaceKind.READ_OF_LAST_WRITE, tensor.own.tensor, one, other)


def _last_writers(tensor: _Tensor, index: int, writes: Bits) -> Iterator[tuple[int, Bits]]:
    """The writing calls from the last one back, until they have written all that is read."""
    accesses, regions = tensor.own.accesses, tensor.own.regions
    wanted = regions[accesses[index].region]
    written = []
    for call in sorted({accesses[place].call for place in _members(writes)}, reverse=True):
        bits = writes & tensor.of_call[call]
        yield call, bits
        # Of a tile of which a part is written the reader is taken to want that part.
        written += [regions[accesses[place].region] for place in _members(bits)]
        covered = covers(set(written), wanted)
        if isinstance(covered, TooCostly) or covered:
            return


def _conflicts(tensor: _Tensor, known: Collection[tuple[int, int]], rewrites: _Rewrites) -> Iterator[Race]:
    """Writes that nothing orders with a read or another write of the same bytes."""
    accesses = tensor.own.accesses
    found: dict[tuple[RaceKind, int, int], _Group] = {}
    for index in _members(tensor.writes):
        access = accesses[index]
        for other in _members(tensor.loose(index)):
            theirs = accesses[other]
            both_write = bool(tensor.writes >> other & 1)
            if both_write and other < index:
                continue  # met from the other side
            one, two = sorted((access.call, theirs.call))
            if (one, two) in known or (both_write and tensor.adds >> index & 1 and tensor.adds >> other & 1):
                continue
            if both_write and (one in rewrites.twins(two)):
                continue
            if not both_write and access.call < theirs.call:
                continue  # a read behind the write: if it needs it, it is said above
            certain = bool(tensor.clear >> index & 1 and tensor.clear >> other & 1)
            if not certain and tensor.ordered(access.call, theirs.call):
                continue
            kind = RaceKind.WRITE_AFTER_WRITE if both_write else RaceKind.WRITE_AFTER_READ
            first, second = sorted((access, theirs), key=lambda item: item.call)
            group = found.setdefault((kind, one, two), _Group())
            group.add(first.first, second.first, certain=certain)
    for (kind, one, two), group in found.items():
        yield group.race(kind, tensor.own.tensor, one, two)


@dataclass(slots=True)
class _Group:
    """The pairs of accesses of two calls."""

    tasks: tuple[int, int] | None = None
    pairs: int = 0
    certain: bool = False

    def add(self, one: int, other: int, *, certain: bool) -> None:
        self.tasks = self.tasks or (one, other)
        self.pairs += 1
        self.certain |= certain

    def race(self, kind: RaceKind, tensor: str, one: int, other: int) -> Race:
        return Race(kind, tensor, one, other, self.tasks or (0, 0), self.pairs, self.certain)


def _sets(keys: Iterable[int]) -> defaultdict[int, Bits]:
    """The places of each key."""
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        places[key].append(place)
    found: defaultdict[int, Bits] = defaultdict(int)
    for key, members in places.items():
        marks = bytearray((members[-1] >> 3) + 1)
        for place in members:
            marks[place >> 3] |= 1 << (place & 7)
        found[key] = int.from_bytes(marks, "little")
    return found


def _bits(flags: Iterable[bool]) -> Bits:
    text = "".join("1" if flag else "0" for flag in flags)
    return int(text[::-1] or "0", 2)


def _members(bits: Bits) -> Iterator[int]:
    """The places of the set bits, in order."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
