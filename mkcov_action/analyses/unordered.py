"""Which accesses to the same bytes are ordered, and which are not: sets of accesses, as bitsets.

Order is a relation of events, so accesses are looked up by the events that they wait for and
trigger, once for each event; tasks are never compared with tasks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from itertools import accumulate
from operator import or_
from typing import NamedTuple

from mkcov_action.analyses.accesses import Accesses, Precision, SlotAccess, TileAccess
from mkcov_action.analyses.byte_ranges import Bytes, Region, TooCostly, missing, overlaps, union
from mkcov_action.analyses.events import decode
from mkcov_action.analyses.happens_before import HappensBefore, members


class Entry(NamedTuple):
    """An access to a tensor in some rank's memory.

    `rank` is the one whose tasks make it. `dependent` and `trigger` are events of the order's
    EventGraph, NO_EVENT or UNRESOLVED.
    """

    rank: int
    access: TileAccess
    slot: SlotAccess
    region: Region
    precision: Precision
    dependent: int
    trigger: int


def _those(flags: Iterable[bool]) -> int:
    return int("".join("1" if flag else "0" for flag in flags)[::-1] or "0", 2)


class Comparison:
    """What accesses to a tensor do, and which share bytes: the same under every order, and worked out once.

    `exact` is False where there were more runs of bytes than can be compared: then accesses overlap
    where the runs around them do.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.exact = True
        self.reading = _those(entry.slot.reads for entry in entries)
        self.writing = _those(entry.slot.writes for entry in entries)
        self.remote = _those(entry.slot.remote for entry in entries)
        self.of_call: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.of_task: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._entries = entries
        self._overlapping: Mapping[Region, int] | None = None
        self._last: dict[tuple[Region, int], int] = {}
        self._rests: dict[tuple[Region, frozenset[Region]], Bytes | TooCostly] = {}
        for index, entry in enumerate(entries):
            self.of_call[entry.rank, entry.access.call] |= 1 << index
            if entry.access.tasks == 1:
                self.of_task[entry.rank, entry.access.first] |= 1 << index

    def overlapping(self, region: Region) -> int:
        """The accesses whose region shares a byte with this one of theirs."""
        if self._overlapping is None:
            self._overlapping = self._compare()
        return self._overlapping[region]

    def last(self, region: Region, writes: int) -> int:
        """Of some writes to a region those of calls that later ones do not hide."""
        key = region, writes
        if key not in self._last:
            self._last[key] = self._leaving(*key)
        return self._last[key]

    def _leaving(self, region: Region, writes: int) -> int:
        whole = union([region])
        left = whole if isinstance(whole, TooCostly) else whole.total
        hiding: set[Region] = set()
        found = 0
        while writes and left != 0:
            if isinstance(left, TooCostly):
                self.exact = False
                return found | writes
            last = self._entries[writes.bit_length() - 1]
            own = writes & self.of_call[last.rank, last.access.call]
            writes ^= own
            entries = [self._entries[index] for index in members(own)]
            new = {entry.region for entry in entries if entry.precision is not Precision.UNKNOWN} - hiding
            reached = any(entry.precision is Precision.UNKNOWN for entry in entries)
            if new:
                hiding |= new
                rest = self._rest(region, frozenset(hiding))
                reached |= isinstance(rest, TooCostly) or rest.total < left
                left = rest if isinstance(rest, TooCostly) else rest.total
            if reached:
                found |= own
        return found

    def _rest(self, region: Region, hiding: frozenset[Region]) -> Bytes | TooCostly:
        """What some regions leave of another: layers repeat each other."""
        key = region, hiding
        if key not in self._rests:
            self._rests[key] = missing([region], hiding)
        return self._rests[key]

    def _compare(self) -> Mapping[Region, int]:
        own: defaultdict[Region, int] = defaultdict(int)
        for index, entry in enumerate(self._entries):
            own[entry.region] |= 1 << index
        regions = list(own)
        found = overlaps(regions)
        if isinstance(found, TooCostly):
            self.exact = False
            found = overlaps([region.hull for region in regions])
        if isinstance(found, TooCostly):  # very many regions: any two may overlap
            return dict.fromkeys(regions, (1 << len(self._entries)) - 1)
        return {
            region: reduce(or_, (own[regions[other]] for other in members(shared)), 0)
            for region, shared in zip(regions, found, strict=True)
        }


class Memory:
    """All accesses to one tensor in the memory of one rank, in the order of task ids (then ranks).

    A set of them is an int: bit i stands for `entries[i]`. `reading`, `writing` and `remote` are the
    sets of those that read, surely write, and come by a put.
    """

    def __init__(
        self,
        tensor: str,
        rank: int,
        entries: Iterable[Entry],
        order: HappensBefore,
        comparison: Comparison | None = None,
    ) -> None:
        """`comparison` is that of the same entries under another order."""
        self.tensor = tensor
        self.rank = rank
        self.entries = tuple(entries)
        self.everything = (1 << len(self.entries)) - 1
        self.comparison = comparison or Comparison(self.entries)
        self.reading = self.comparison.reading
        self.writing = self.comparison.writing
        self.remote = self.comparison.remote
        self._order = order
        self._before: dict[int, int] = {}
        self._after: dict[int, int] = {}

    @cached_property
    def _triggering(self) -> _ByEvent:
        return _ByEvent(entry.trigger for entry in self.entries)

    @cached_property
    def _awaiting(self) -> _ByEvent:
        return _ByEvent(entry.dependent for entry in self.entries)

    def before(self, index: int) -> int:
        """The accesses that are surely over before an access starts."""
        event = self.entries[index].dependent
        if event not in self._before:
            past = self._order.ancestors[event] if event >= 0 else 0
            self._before[event] = self._triggering.union(past)
        return self._before[event]

    def after(self, index: int) -> int:
        """The accesses that surely start only when an access is over."""
        event = self.entries[index].trigger
        if event not in self._after:
            future = self._order.reach[event] if event >= 0 else 0
            self._after[event] = self._awaiting.union(future)
        return self._after[event]

    def unordered(self, index: int) -> int:
        """The accesses of which a task is unordered with another task of an access, whatever the bytes.

        The access itself is among them if it is made by several tasks. Slots of one and the same
        task are not unordered.
        """
        found = self.everything & ~self.before(index) & ~self.after(index)
        entry = self.entries[index]
        if entry.access.tasks == 1:
            found &= ~self.comparison.of_task[entry.rank, entry.access.first]
        return found

    def of_call(self, index: int) -> int:
        """The accesses of the layer call that an access is of."""
        entry = self.entries[index]
        return self.comparison.of_call[entry.rank, entry.access.call]

    def overlapping(self, index: int) -> int:
        """The accesses whose region shares a byte with that of an access; itself, too, if it has a byte."""
        return self.comparison.overlapping(self.entries[index].region)

    def conflicting(self, index: int) -> int:
        """The unordered accesses that share a byte with an access, where one of the two surely writes."""
        found = self.unordered(index)
        if not self.writing >> index & 1:
            found &= self.writing
        return found & self.overlapping(index) if found else 0

    def earlier(self, index: int) -> int:
        """The accesses with a task whose id is smaller than the largest of an access."""
        last = self.entries[index].access.last
        return (1 << bisect_left(self.entries, last, key=_first)) - 1

    def last_writes(self, index: int) -> int:
        """The writes that leave what an access finds in its bytes, if calls ran in the order of ids.

        From the last call before it backwards, those calls whose writes reach a byte of it that no later
        one reaches; of these calls all writes that share a byte with it. A call counts as before an
        access if a task of it has a smaller id; of one rank, the access's own call is none of them.
        What is chosen at run time counts as written whole: a full batch does. An accumulation
        counts as a write, too. Dearer than the other sets: ask for accesses that conflict with writes.
        """
        entry = self.entries[index]
        found = self.writing & self.earlier(index) & self.overlapping(index)
        return self.comparison.last(entry.region, found & ~self.of_call(index))


def _first(entry: Entry) -> int:
    return entry.access.first


class _ByEvent:
    """Sets of accesses by an event of each, and their unions over sets of events.

    Events mostly follow each other, and what is before or after one is then all events on one side of
    it: these unions are kept, and only events between are joined one by one.
    """

    def __init__(self, events: Iterable[int]) -> None:
        sets: defaultdict[int, int] = defaultdict(int)
        for index, event in enumerate(events):
            if event >= 0:
                sets[event] |= 1 << index
        self._events = sorted(sets)
        self._sets = sets
        self._mask = reduce(or_, (1 << event for event in self._events), 0)
        in_order = [sets[event] for event in self._events]
        self._below = list(accumulate(in_order, or_, initial=0))
        self._above = list(accumulate(reversed(in_order), or_, initial=0))[::-1]

    def union(self, events: int) -> int:
        """The accesses of these events."""
        missing = self._mask & ~events
        if not missing:
            return self._below[-1]
        lowest, highest = (missing & -missing).bit_length() - 1, missing.bit_length() - 1
        start, stop = bisect_left(self._events, lowest), bisect_right(self._events, highest)
        found = self._below[start] | self._above[stop]
        between = (events & self._mask) >> lowest & ((1 << (highest - lowest)) - 1)
        for event in members(between):
            found |= self._sets[event + lowest]
        return found


# --- where accesses land --------------------------------------------------------------------------


def memory_of(
    accesses: Accesses, tensor: str, order: HappensBefore, comparison: Comparison | None = None
) -> Memory:
    """The accesses of one rank by itself to a tensor that it writes.

    Its own puts are among them (`remote`), though they land in other ranks' memory: what lands in its
    own is not known.
    """
    return Memory(tensor, accesses.rank, _entries(accesses, tensor, order), order, comparison)


def memories_across(ranks: Sequence[Accesses], tensor: str, order: HappensBefore) -> tuple[Memory, ...]:
    """The memory of every rank for a tensor that some rank writes; the order is of all these ranks.

    A put's access is in the memory of the rank that its trigger event names; all others are in
    that of their own rank.
    """
    found: dict[int, list[Entry]] = {accesses.rank: [] for accesses in ranks}
    for accesses in ranks:
        for entry in _entries(accesses, tensor, order):
            found[_target(entry, order)].append(entry)
    return tuple(
        Memory(tensor, rank, sorted(entries, key=lambda entry: (entry.access.first, entry.rank)), order)
        for rank, entries in found.items()
    )


def _entries(accesses: Accesses, tensor: str, order: HappensBefore) -> Iterator[Entry]:
    own = accesses.tensors.get(tensor)
    if own is None:
        return
    start = order.events.first_pair[accesses.rank]
    for access in own.accesses:
        pair = start + access.pair
        yield Entry(
            accesses.rank,
            access,
            accesses.slots[access.slot],
            own.regions[access.region],
            own.precision[access.region],
            order.events.pairs[pair].dependent,
            order.trigger_of(pair),
        )


def _target(entry: Entry, order: HappensBefore) -> int:
    """The rank in whose memory an access is."""
    if not entry.slot.remote:
        return entry.rank
    parts = decode(order.events.pairs_of(entry.rank)[entry.access.pair].trigger_id)
    return parts.rank if parts else entry.rank
