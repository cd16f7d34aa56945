"""What can start: as a simulation task by task has it, with whatever keeps the rest from it."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import event, given

from mkcov_action.analyses.events import EventGraph, events_of, joined
from mkcov_action.analyses.startable import CauseKind, Startable, startable_of
from tests.small_worlds import INVALID, Node, Place, SmallRank, SmallTask, Truth, World, many_worlds, worlds
from tests.some_ranks import QWEN, TWO_RANKS, built_graphs, rank_of
from tools.builder.decoder import AllReduce

Cause = tuple[str, object]


class Simulation:
    """Runs a world: whatever can start does, until nothing more can."""

    def __init__(self, truth: Truth, needs: dict[Place, int]) -> None:
        self.truth = truth
        self.needs = needs
        self.ran: set[Node] = set()
        while True:
            more = {node for node in truth.tasks.keys() - self.ran if self.can_start(node)}
            if not more:
                break
            self.ran |= more
        self.never = truth.tasks.keys() - self.ran
        self.silent = {place for place in truth.num_triggers if not self.fires(place)}

    def fires(self, place: Place) -> bool:
        return sum(self.truth.fires.get(node) == place for node in self.ran) >= self.needs[place]

    def can_start(self, node: Node) -> bool:
        return not self.blocked(node) and all(map(self.fires, self.awaited(node)))

    def awaited(self, node: Node) -> list[Place]:
        """The events that a task needs: the one that it waits for, and the one that launches it."""
        events = [self.truth.waits[node]] if node in self.truth.waits else []
        if node[1] > 1 and self.truth.launched(node):
            events.append((node[0], 1))
        return events

    def blocked(self, node: Node) -> list[Cause]:
        """What keeps a task from starting whatever fires."""
        causes: list[Cause] = []
        if self.truth.faults.get((node, "dependent_event"), "missing") != "missing":
            causes.append(("invalid", (node[0], self.truth.tasks[node].dependent)))
        if node[1] > 1 and not self.truth.launched(node):
            causes.append(("unlaunched", node[0]))
        return causes

    def next_to(self, place: Place) -> set[Place]:
        """The silent events that tasks which never run would trigger, had this one fired."""
        waiting = [node for node in self.never if place in self.awaited(node)]
        return {self.truth.fires[node] for node in waiting if node in self.truth.fires} & self.silent

    def knots(self) -> set[frozenset[Place]]:
        """The silent events that wait for each other."""
        reached = {}
        for place in self.silent:
            reached[place] = self.next_to(place)
            while more := set().union(*map(self.next_to, reached[place])) - reached[place]:
                reached[place] |= more
        return {
            frozenset({place, *(other for other in reached[place] if place in reached[other])})
            for place in self.silent
            if place in reached[place]
        }

    def causes(self) -> dict[Cause, set[Node]]:
        """Each cause with the tasks, but task 1, that never run behind it."""
        starved: list[Cause] = [
            ("starved", place)
            for place in self.silent
            if self.truth.triggers[place] < self.needs[place]
            and (place[1] or place in self.truth.waits.values())
        ]
        knots: list[Cause] = [("cycle", knot) for knot in self.knots()]
        blocked = {cause for node in self.never for cause in self.blocked(node)}
        behind = {}
        for cause in (*starved, *knots, *blocked):
            kind, what = cause
            events = {what} if kind == "starved" else set(what) if kind == "cycle" else set()  # type: ignore[call-overload]
            found: set[Node] = set()
            while True:
                more = {
                    node
                    for node in self.never - found
                    if cause in self.blocked(node) or events.intersection(self.awaited(node))
                }
                if not more:
                    break
                found |= more
                events |= {self.truth.fires[node] for node in more if node in self.truth.fires} & self.silent
            behind[cause] = {node for node in found if node[1] > 1}
        return behind


def compare(events: EventGraph, truth: Truth, found: Startable, needs: dict[Place, int]) -> None:
    places = [events.place(number) for number in range(len(events))]
    run = Simulation(truth, needs)
    counted = {node for node in truth.tasks if node[1] > 1}
    asleep = {(rank, task) for rank, ranges in found.never_run.items() for ids in ranges for task in ids}
    assert asleep == run.never & counted
    assert (found.tasks, found.blocked, found.running) == (
        len(counted),
        len(run.never & counted),
        len(run.ran & counted),
    )
    assert {places[number] for number, fires in enumerate(found.fires) if not fires} == run.silent
    named: dict[Cause, int] = {}
    for cause in found.causes:
        if cause.kind is CauseKind.CYCLE:
            knot = frozenset(places[number] for number in cause.cycle_events)
            named["cycle", knot] = cause.behind
            check_cycle(run, cause.cycle, knot)
            assert cause.event is not None
            assert (cause.rank, places[cause.event]) == (
                cause.cycle[0][0],
                awaited_in(run, cause.cycle[0], knot),
            )
        elif cause.kind is CauseKind.STARVED:
            assert cause.event is not None
            assert places[cause.event][0] == cause.rank
            named["starved", places[cause.event]] = cause.behind
        elif cause.kind is CauseKind.INVALID:
            named["invalid", (cause.rank, cause.event_id)] = cause.behind
        else:
            named["unlaunched", cause.rank] = cause.behind
    assert len(named) == len(found.causes)
    behind = run.causes()
    assert named == {cause: len(tasks) for cause, tasks in behind.items()}
    assert set().union(*behind.values()) == run.never & counted
    for kind in {cause.kind for cause in found.causes}:
        event(kind.value)


def awaited_in(run: Simulation, node: Node, knot: frozenset[Place]) -> Place:
    return min(place for place in run.awaited(node) if place in knot)


def check_cycle(run: Simulation, cycle: tuple[Node, ...], knot: frozenset[Place]) -> None:
    """It goes round, starts at the smallest task of all in the knot, and no shorter one does."""
    inside = [
        node
        for node in run.never
        if knot.intersection(run.awaited(node)) and run.truth.fires.get(node) in knot
    ]
    assert cycle[0] == min(inside)
    for node, following in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
        assert run.truth.fires[node] in run.awaited(following)
    steps, reached = 1, {run.truth.fires[cycle[0]]}
    while not reached.intersection(run.awaited(cycle[0])):
        steps += 1
        reached |= {run.truth.fires[node] for node in inside if reached.intersection(run.awaited(node))}
    assert len(cycle) == steps


@given(worlds())
@many_worlds
def test_what_starts_and_what_keeps_the_rest_from_it_is_what_a_simulation_says(world: World) -> None:
    """Once as it is, once with the events forgiven that get too few triggers."""
    truth, events = Truth(world), world.events()
    compare(events, truth, startable_of(events), truth.num_triggers)
    if events.too_few:
        fewer = {place: min(wanted, truth.triggers[place]) for place, wanted in truth.num_triggers.items()}
        compare(events, truth, startable_of(events, forgiven=events.too_few), fewer)


def chain(length: int, *, closed: bool = False) -> SmallRank:
    """Task n waits for event n and triggers the next; `closed`: the last triggers the first's event."""
    tasks = [SmallTask(0, INVALID, INVALID), SmallTask(10, INVALID, 1)]
    tasks += [SmallTask(120, number, number + 1) for number in range(2, length + 2)]
    if closed:
        tasks[-1].trigger = 2
    else:
        tasks[2].dependent = INVALID
    counts = [1, 1, 1 if closed else 0, *[1] * (length - closed)]
    return SmallRank(0, tasks, counts, (2, length + 2), [])


def test_a_long_chain_is_no_matter_of_the_stack() -> None:
    runs = startable_of(World([chain(3000)]).events())
    assert (runs.running, runs.causes) == (3000, ())
    stuck = startable_of(World([chain(3000, closed=True)]).events())
    assert stuck.never_run == {0: (range(2, 3002),)}
    (cycle,) = stuck.causes
    assert cycle.cycle == tuple((0, task) for task in range(2, 3002))
    assert cycle.behind == 3000


def test_a_task_behind_two_starved_events_counts_for_each() -> None:
    rank = chain(4)
    rank.num_triggers[3] = rank.num_triggers[4] = 2
    found = startable_of(World([rank]).events())
    assert [(cause.event, cause.behind) for cause in found.causes] == [(3, 3), (4, 2)]
    assert (found.tasks, found.blocked) == (4, 3)
    assert startable_of(World([rank]).events(), forgiven={3, 4}).blocked == 0


def test_tasks_that_event_1_does_not_launch_never_run_nor_what_waits_for_them() -> None:
    rank = chain(5)
    rank.launched = (2, 4)
    found = startable_of(World([rank]).events())
    assert found.never_run == {0: (range(4, 7),)}
    assert [(cause.kind, cause.behind) for cause in found.causes] == [(CauseKind.UNLAUNCHED, 3)]


@pytest.mark.parametrize("all_reduce", get_args(AllReduce))
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_task_of_a_built_decoder_runs(ranks: int, all_reduce: AllReduce) -> None:
    events = [events_of(graph, rank) for rank, graph in enumerate(built_graphs(ranks, all_reduce))]
    for found in (*map(startable_of, events), startable_of(joined(events))):
        assert (found.blocked, found.causes) == (0, ())
        assert found.tasks


# --- real graphs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [*QWEN, TWO_RANKS])
def test_every_task_of_qwen_runs(graph: str) -> None:
    rank = rank_of(graph)
    found = startable_of(events_of(rank.graph, rank.number))
    assert (found.tasks, found.blocked, found.causes) == (len(rank.graph) - 2, 0, ())


def test_both_ranks_of_qwen_run_together() -> None:
    events = [events_of(rank_of(TWO_RANKS, number).graph, number) for number in (0, 1)]
    found = startable_of(joined(events))
    assert (found.tasks, found.blocked, found.causes) == (2 * 2026, 0, ())


def test_the_missing_triggers_of_deepseek_stop_what_is_behind_the_experts_join() -> None:
    rank = rank_of("deepseek-v3-2layers")
    events = events_of(rank.graph, rank.number)
    found = startable_of(events)
    assert (found.tasks, found.running) == (7240, 5430)
    (cause,) = found.causes
    assert (cause.kind, cause.event, cause.behind) == (CauseKind.STARVED, 51, 1810)
    assert startable_of(events, forgiven=events.too_few).blocked == 0


def test_of_deepseek_s_61_layers_58_events_starve_and_few_tasks_run() -> None:
    rank = rank_of("deepseek-v3-61layers-tp8")
    events = events_of(rank.graph, rank.number)
    found = startable_of(events)
    assert (found.tasks, found.running) == (163_889, 6_014)
    assert len(found.of(CauseKind.STARVED)) == len(found.causes) == 58
    assert found.causes[0].behind == found.blocked
    assert [cause.behind for cause in found.causes] == sorted(
        (cause.behind for cause in found.causes), reverse=True
    )
    assert startable_of(events, forgiven=events.too_few).blocked == 0
