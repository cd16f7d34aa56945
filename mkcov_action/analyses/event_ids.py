"""Event ids: their parts, and what about one cannot be right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from mkcov_action.task_graph import INVALID_EVENT

_TAG = 0x1E00


class EventId(NamedTuple):
    """The three parts of an event id: 16 bits of tag, 16 of rank, 32 of position.

    Source: mirage include/mirage/persistent_kernel/runtime_header.h, "EVENT: nvshmem_tag: 16,
    owner_node: 16, event_idx: 32"; persistent_kernel.cuh, get_event_gpu_id.
    """

    tag: int
    rank: int
    position: int

    @property
    def tagged(self) -> bool:
        """Whether a put of another rank triggers the event (EVENT_NVSHMEM_TAG)."""
        return self.tag == _TAG


def decode(event_id: int) -> EventId | None:
    """The parts of an event id; None for the id that stands for no event.

    That one first: its bits hold the tag's.
    """
    if event_id == INVALID_EVENT:
        return None
    return EventId(event_id >> 48, event_id >> 32 & 0xFFFF, event_id & 0xFFFFFFFF)


class Side(StrEnum):
    """Which of a task's two events is meant, as the task graph spells it."""

    DEPENDENT = "dependent_event"
    TRIGGER = "trigger_event"


class Fault(StrEnum):
    """Why an event id cannot be right."""

    MISSING = "missing"  # none, where there must be one; the only fault that leaves order a meaning
    MALFORMED_TAG = "malformed-tag"  # tag bits that are neither the tag nor nothing
    LOST_TAG = "lost-tag"  # a put's trigger, or what waits for puts, without the tag
    STRAY_TAG = "stray-tag"  # the tag on what no put triggers
    OUT_OF_RANGE = "out-of-range"  # no such position in the event table
    WRONG_RANK = "wrong-rank"  # another rank's event where it must be one's own, or the reverse


def is_tagged(event_id: int) -> bool:
    """Whether an id stands for an event that puts of other ranks trigger."""
    parts = decode(event_id)
    return parts is not None and parts.tagged


class Judge:
    """Tells what is wrong with the event ids of one rank.

    `triggers` are the rank's trigger ids and whether the tasks that name them put. `sizes` are the
    lengths of the event tables by rank: `together` of all ranks, else of this one, which knows of the
    others only that their tables are as long as its own.
    """

    def __init__(
        self, rank: int, triggers: Iterable[tuple[bool, int]], sizes: Mapping[int, int], *, together: bool
    ) -> None:
        self._rank = rank
        self._sizes = sizes
        self._together = together
        decoded = [(put, decode(event_id)) for put, event_id in triggers]
        remote = {parts.position for put, parts in decoded if put and parts}
        local = {
            parts.position
            for put, parts in decoded
            if not put and parts and self._fault_of_trigger(parts, put=put) is None
        }
        # The ranks' tables are alike: the positions that this rank puts to are put to here, too.
        self._only_remote = remote - local
        self._only_local = local - remote

    def owner(self, parts: EventId) -> int:
        """The rank whose event stands for a faultless id."""
        return parts.rank if self._together else self._rank

    def fault_of(self, parts: EventId, side: Side, *, put: bool) -> Fault | None:
        """What is wrong with an id that stands on this side of tasks that put or do not."""
        if side is Side.TRIGGER:
            return self._fault_of_trigger(parts, put=put)
        return self._fault_of_dependent(parts)

    def _fault_of_trigger(self, parts: EventId, *, put: bool) -> Fault | None:
        if parts.tag not in {0, _TAG}:
            return Fault.MALFORMED_TAG
        if put != parts.tagged:
            return Fault.LOST_TAG if put else Fault.STRAY_TAG
        if not put:
            return self._fault_of_own(parts)
        if parts.rank == self._rank or (self._together and parts.rank not in self._sizes):
            return Fault.WRONG_RANK
        return None if parts.position < self._sizes[self.owner(parts)] else Fault.OUT_OF_RANGE

    def _fault_of_dependent(self, parts: EventId) -> Fault | None:
        if parts.tag not in {0, _TAG}:
            return Fault.MALFORMED_TAG
        if parts.tagged and parts.position in self._only_local:
            return Fault.STRAY_TAG
        if not parts.tagged and parts.position in self._only_remote:
            return Fault.LOST_TAG
        return self._fault_of_own(parts)

    def _fault_of_own(self, parts: EventId) -> Fault | None:
        if parts.rank != self._rank:
            return Fault.WRONG_RANK
        return None if parts.position < self._sizes[self._rank] else Fault.OUT_OF_RANGE
