"""Cycles among events: what waits, through tasks, for itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from mkcov_action.analyses.events import TaskKey


class Link(NamedTuple):
    """A task through which events hang together: it awaits one and triggers the other."""

    task: TaskKey
    awaited: int
    triggered: int


class Component(NamedTuple):
    """Events that all wait for each other, or one event by itself.

    `within` are the links among them, none unless they wait in a cycle; `successors` are the events
    outside that wait for them next.
    """

    events: Sequence[int]
    within: Sequence[Link]
    successors: Collection[int]


def components(events: Iterable[int], links: Iterable[Link]) -> list[Component]:
    """The strongly connected components of events, each behind all those that it waits for."""
    links = list(links)
    successors: dict[int, set[int]] = {event: set() for event in events}
    for link in links:
        successors[link.awaited].add(link.triggered)
    parts = _parts(successors)
    place = {event: number for number, part in enumerate(parts) for event in part}
    within: list[list[Link]] = [[] for _ in parts]
    for link in links:
        if place[link.awaited] == place[link.triggered]:
            within[place[link.awaited]].append(link)
    return [
        Component(part, inside, set().union(*(successors[event] for event in part)).difference(part))
        for part, inside in zip(parts, within, strict=True)
    ]


def _parts(successors: Mapping[int, Iterable[int]]) -> list[list[int]]:
    """Kosaraju's algorithm: from the node that a search left last, all that lead back to it."""
    predecessors: dict[int, list[int]] = {node: [] for node in successors}
    for node, following in successors.items():
        for successor in following:
            predecessors[successor].append(node)
    left = set(successors)
    found = []
    for root in reversed(_finished(successors)):
        if root not in left:
            continue
        left.remove(root)
        part = [root]
        for node in part:  # grows as it is walked
            for predecessor in predecessors[node]:
                if predecessor in left:
                    left.remove(predecessor)
                    part.append(predecessor)
        found.append(part)
    return found


def _finished(successors: Mapping[int, Iterable[int]]) -> list[int]:
    """The nodes in the order in which a depth-first search leaves them.

    With a path of its own: a chain of events is longer than Python's stack.
    """
    seen: set[int] = set()
    finished: list[int] = []
    for root in successors:
        if root in seen:
            continue
        seen.add(root)
        path = [(root, iter(successors[root]))]
        while path:
            node, left = path[-1]
            for following in left:
                if following not in seen:
                    seen.add(following)
                    path.append((following, iter(successors[following])))
                    break
            else:
                finished.append(node)
                path.pop()
    return finished


def shortest_cycle(links: Collection[Link]) -> tuple[TaskKey, ...]:
    """A shortest cycle through the smallest task of a component, given all links within it.

    Each task triggers what the next awaits, the last what the first awaits. Among links between the
    same events the one of the smallest task, so that the answer does not depend on their order.
    """
    start = min(links)
    closing = {link.awaited for link in links if link.task == start.task}  # its event, its launch
    leaving: dict[int, list[Link]] = {}
    for link in sorted(links):
        leaving.setdefault(link.awaited, []).append(link)
    came_by: dict[int, Link] = {start.triggered: start}
    reached = [start.triggered]
    for event in reached:  # grows as it is walked, until it comes round
        if event in closing:
            break
        for link in leaving[event]:
            if link.triggered not in came_by:
                came_by[link.triggered] = link
                reached.append(link.triggered)
    cycle = [came_by[event]]
    while cycle[-1] is not start:
        cycle.append(came_by[cycle[-1].awaited])
    return tuple(link.task for link in reversed(cycle))
