"""The longest chain of tasks in which each waits, through an event, for the one before it."""

from __future__ import annotations

from mkcov_action.analyses.cycles import Link, components
from mkcov_action.analyses.events import EventGraph

_LAUNCHER = 1  # the task that launches all others is no part of a chain


def longest_chain(events: EventGraph) -> tuple[int, ...] | None:
    """The pairs of events along a longest chain, in order; None if events wait for each other.

    A task of an operator waits for no other task of it, so that pairs stand for operators. Trigger
    counts do not matter here, only who triggers what.
    """
    pairs = [
        (index, pair)
        for index, pair in enumerate(events.pairs)
        if pair.first > _LAUNCHER or pair.last > _LAUNCHER
    ]
    links = [
        Link((pair.rank, pair.first), pair.dependent, pair.trigger)
        for _, pair in pairs
        if pair.dependent >= 0 and pair.trigger >= 0
    ]
    parts = components(range(len(events)), links)
    if any(part.within for part in parts):
        return None
    place = {event: number for number, part in enumerate(parts) for event in part.events}
    length = [0] * len(events)  # of the longest chain that ends in a trigger of the event
    last: dict[int, int] = {}
    longest, end = 0, -1
    # A pair comes when all that trigger its event have come; without an event it waits for nothing.
    for index, pair in sorted(pairs, key=lambda item: place.get(item[1].dependent, -1)):
        so_far = length[pair.dependent] + 1 if pair.dependent >= 0 else 1
        if so_far > longest:
            longest, end = so_far, index
        if pair.trigger >= 0 and so_far > length[pair.trigger]:
            length[pair.trigger] = so_far
            last[pair.trigger] = index
    chain = []
    while end >= 0:
        chain.append(end)
        end = last.get(events.pairs[end].dependent, -1)
    return tuple(reversed(chain))
