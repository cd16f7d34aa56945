"""Races: accesses to the same bytes that nothing orders, by tensor and layer calls.

Accesses are compared as sets, by event classes, never task by task: order between tasks is order
between events, so all accesses that wait for one event have the same ones surely before them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from mkcov_action.analyses.accesses import Accesses, Precision, TileAccess
from mkcov_action.analyses.consumption import Access
from mkcov_action.analyses.happens_before import HappensBefore, members, mended
from mkcov_action.analyses.operators import OperatorCall
from mkcov_action.analyses.unordered import Comparison, Memory, memory_of
from mkcov_action.task_types import INITIALISERS

Bits = int
"""A set of accesses to one tensor; bit i stands for the i-th."""


class RaceKind(StrEnum):
    """How two accesses that nothing orders touch the same bytes."""

    READ_OF_LAST_WRITE = "read of the last write"  # the reader needs what the writer may not have written yet
    WRITE_AFTER_READ = "write after read"  # the buffer is used again while it may still be read
    WRITE_AFTER_WRITE = "write after write"


@dataclass(frozen=True, slots=True)
class Race:
    """Two layer calls that touch the same bytes of a tensor without order, or two tasks of one that write them.

    `earlier` and `later` are indices of calls, by their first tasks; `tasks` is one task of each (or two of
    the one), `pairs` how many pairs of accesses there are. Not `certain` where what is accessed of a tile is
    chosen at run time, or where a slot's role is not known.
    """

    kind: RaceKind
    tensor: str
    earlier: int
    later: int
    tasks: tuple[int, int]
    pairs: int
    certain: bool


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


def race_report(accesses: Accesses, calls: Sequence[OperatorCall], order: HappensBefore) -> RaceReport:
    """The races in the memory of one rank; `calls` are its layer calls, the order is its own or that of all ranks.

    Looks for causes first: an operator without outputs gets no edge, and much follows from that.
    """
    plain = _Search(accesses, calls, order, _Rewrites(accesses, calls))
    reads = plain.reads()
    blind = [race for race in reads if not calls[race.earlier].outputs]
    search = plain
    if blind:
        search = plain.mended(blind)
        reads = search.reads()
    if reads:
        search = plain.mended([*blind, *reads])
    return RaceReport(
        (*blind, *reads),
        _without_echoes(search.conflicts()),
        _following(plain, search) if search is not plain else {},
        plain.undecided,
    )


def _following(plain: _Search, search: _Search) -> dict[str, int]:
    before, after = plain.unordered(), search.unordered()
    return {name: pairs - after[name] for name, pairs in before.items() if pairs > after[name]}


def _without_echoes(races: Sequence[Race]) -> tuple[Race, ...]:
    """Without writes over a write where the same writer comes before a reader in between is over: one cause."""
    readers = {(race.tensor, race.later) for race in races if race.kind is RaceKind.WRITE_AFTER_READ}
    return tuple(
        race
        for race in races
        if race.kind is not RaceKind.WRITE_AFTER_WRITE
        or race.earlier == race.later
        or (race.tensor, race.later) not in readers
    )


@dataclass(frozen=True)
class _Search:
    """The accesses of one rank under one order, by tensor."""

    accesses: Accesses
    calls: Sequence[OperatorCall]
    order: HappensBefore
    rewrites: _Rewrites
    comparisons: dict[str, Comparison] = field(default_factory=dict)

    def memories(self) -> Iterator[Memory]:
        """Of each tensor, one at a time: a memory holds far more than what is found in it."""
        for name in self.accesses.tensors:
            memory = memory_of(self.accesses, name, self.order, self.comparisons.get(name))
            self.comparisons[name] = memory.comparison
            yield memory

    def mended(self, races: Iterable[Race]) -> _Search:
        """The same, were the edges there that these reads lack: from the writing calls to the reading ones."""
        pairs = self._pairs_of_calls
        edges = {
            (pair, self.order.events.pairs[reading].dependent)
            for race in races
            for pair in pairs[race.earlier]
            for reading in pairs[race.later]
        }
        return replace(self, order=mended(self.order, {(pair, event) for pair, event in edges if event >= 0}))

    @cached_property
    def _pairs_of_calls(self) -> Mapping[int, set[int]]:
        found: defaultdict[int, set[int]] = defaultdict(set)
        start = self.order.events.first_pair[self.accesses.rank]
        for tensor in self.accesses.tensors.values():
            for access in tensor.accesses:
                found[access.call].add(start + access.pair)
        return found

    def reads(self) -> list[Race]:
        """The reads of bytes whose last write before them, by task number, is not surely over."""
        return self._decided(_reads)

    def conflicts(self) -> list[Race]:
        """All other unordered uses of the same bytes, one of which writes."""
        return self._decided(_conflicts)

    def _decided(self, look: Callable[[Memory, _Rewrites], Iterator[Race]]) -> list[Race]:
        races: list[Race] = []
        for memory in self.memories():
            found = list(look(memory, self.rewrites))
            if memory.comparison.exact:  # which shows when it is looked at
                races += found
        return sorted(races, key=lambda race: (race.kind, race.tensor, race.earlier, race.later))

    def unordered(self) -> dict[str, int]:
        """How many pairs of accesses, one of which writes, nothing orders, by tensor: counted, not looked at."""
        return {memory.tensor: _unordered_pairs(memory) for memory in self.memories()}

    @property
    def undecided(self) -> tuple[str, ...]:
        """The tensors whose bytes were too costly to compare: to be asked last."""
        return tuple(name for name, comparison in self.comparisons.items() if not comparison.exact)


def _loose(memory: Memory, index: int) -> Bits:
    """The accesses of other calls to the bytes of a write, in the same memory, that nothing orders with it."""
    return memory.conflicting(index) & ~memory.of_call(index) & ~memory.remote


def _unordered_pairs(memory: Memory) -> int:
    pairs = 0
    for index in members(memory.writing & ~memory.remote):
        loose = _loose(memory, index)
        later = loose & memory.writing & ~((2 << index) - 1)
        pairs += (loose & ~memory.writing).bit_count() + later.bit_count()
    return pairs


def _is_certain(memory: Memory, *indices: int) -> bool:
    entries = [memory.entries[index] for index in indices]
    return all(entry.slot.certain and entry.precision is Precision.EXACT for entry in entries)


def _are_ordered(memory: Memory, one: int, other: int) -> bool:
    """Whether any access of the call of one is ordered with any of the call of the other."""
    theirs = memory.of_call(other)
    return any(
        (memory.before(index) | memory.after(index)) & theirs for index in members(memory.of_call(one))
    )


class _Rewrites:
    """Whether a call wrote what another one of its kind had written already: the same values."""

    def __init__(self, accesses: Accesses, calls: Sequence[OperatorCall]) -> None:
        self._calls = calls
        self._known: dict[int, list[int]] = {}
        self._twins: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        for index, call in enumerate(calls):
            self._twins[call.operator, call.inputs, call.outputs].append(index)
        self._writers: defaultdict[str, list[int]] = defaultdict(list)
        for name, tensor in accesses.tensors.items():
            writing = {access.call for access in tensor.accesses if accesses.slot(access).writes}
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


def _reads(memory: Memory, rewrites: _Rewrites) -> Iterator[Race]:
    own = memory.writing & ~memory.remote
    found: dict[tuple[int, int], _Group] = {}
    for index in members(memory.reading):
        over = memory.before(index)
        earlier = own & memory.earlier(index) & ~memory.of_call(index) & ~over
        if not earlier or not earlier & memory.overlapping(index):
            continue  # asked for every read: the last writes are looked for only where one may be loose
        read = memory.entries[index].access
        for writer in members(memory.last_writes(index) & earlier):
            write = memory.entries[writer].access
            if any(
                memory.entries[done].access.call in rewrites.twins(write.call)
                for done in members(over & own & memory.overlapping(index))
            ):
                continue
            certain = _is_certain(memory, index, writer)
            if certain or not _are_ordered(memory, writer, index):
                found.setdefault((write.call, read.call), _Group()).add(
                    write.first, read.first, certain=certain
                )
    for (one, other), group in found.items():
        yield group.race(RaceKind.READ_OF_LAST_WRITE, memory.tensor, one, other)


def _conflicts(memory: Memory, rewrites: _Rewrites) -> Iterator[Race]:
    found: dict[tuple[RaceKind, int, int], _Group] = {}
    for index in members(memory.writing & ~memory.remote):
        for other in _same_of_own_call(memory, index):
            one, two = memory.entries[index].access, memory.entries[other].access
            group = found.setdefault((RaceKind.WRITE_AFTER_WRITE, one.call, two.call), _Group())
            group.add(one.first, two.last if one is two else two.first, certain=True)
        for other in members(_loose(memory, index)):
            kind = _kind(memory, index, other, rewrites)
            if kind is None:
                continue
            certain = _is_certain(memory, index, other)
            if not certain and _are_ordered(memory, index, other):
                continue
            first, second = sorted((memory.entries[place].access for place in (index, other)), key=_call)
            group = found.setdefault((kind, first.call, second.call), _Group())
            group.add(first.first, second.first, certain=certain)
    for (kind, *pair), group in found.items():
        yield group.race(kind, memory.tensor, *pair)


def _same_of_own_call(memory: Memory, index: int) -> Iterator[int]:
    """The writes of other tasks of a write's own call to the same bytes, from this one on; itself, if several do it.

    Tasks of a call share its work, so no byte is meant for two. Only where bytes are certain: kernels
    that choose at run time share a tile, and sums are added into one.
    """
    if not _is_plain(memory, index):
        return
    own = memory.of_call(index) & memory.writing & ~((1 << index) - 1)
    others = own & memory.overlapping(index)
    if memory.entries[index].access.tasks > 1 or others & (others - 1):
        yield from (other for other in members(others & memory.unordered(index)) if _is_plain(memory, other))


def _is_plain(memory: Memory, index: int) -> bool:
    """Whether a write replaces exactly the bytes of its tile, by values of its own: no sum, and no zeros."""
    slot = memory.entries[index].slot
    zeros = slot.slot.operator.type_name in INITIALISERS
    return _is_certain(memory, index) and slot.access is not Access.ACCUMULATE and not zeros


def _call(access: TileAccess) -> int:
    return access.call


def _kind(memory: Memory, write: int, other: int, rewrites: _Rewrites) -> RaceKind | None:
    """What an unordered pair is; None where it is none, or is met from the other side."""
    mine, theirs = memory.entries[write], memory.entries[other]
    if not memory.writing >> other & 1:
        # A read behind the write: if it needs it, it is a read of the last write.
        return RaceKind.WRITE_AFTER_READ if theirs.access.call < mine.access.call else None
    sums = mine.slot.access is theirs.slot.access is Access.ACCUMULATE
    one, two = sorted((mine.access.call, theirs.access.call))
    if other < write or sums or one in rewrites.twins(two):
        return None
    return RaceKind.WRITE_AFTER_WRITE


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
