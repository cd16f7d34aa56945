"""Happens-before: the closure of what each task waits for, task by task."""

from __future__ import annotations

import random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mkcov_action.analyses.events import EventGraph, events_of, joined
from mkcov_action.analyses.happens_before import HappensBefore, NoOrder, happens_before_of, mended
from tests.small_worlds import INVALID, Node, Place, SmallRank, SmallTask, Truth, World, many_worlds, worlds
from tests.some_ranks import QWEN, TWO_RANKS, built_graphs, rank_of


def closure(truth: Truth, early: set[Place]) -> dict[Node, set[Node]]:
    """For each task all that are surely over before it starts.

    A task waits for all that trigger its event, unless that fires early, and for all that those
    waited for.
    """
    past = {
        node: {
            other
            for other, place in truth.fires.items()
            if place == truth.waits.get(node) and place not in early
        }
        for node in truth.tasks
    }
    grown = True
    while grown:
        grown = False
        for known in past.values():
            size = len(known)
            known.update(*(past[node] for node in list(known)))
            grown |= len(known) > size
    return past


def compare(events: EventGraph, truth: Truth, early: set[Place], found: HappensBefore | NoOrder) -> None:
    if truth.orderless:
        assert isinstance(found, NoOrder)
        assert found.cycles == ()
        assert len(found.invalid) == len([item for item in events.invalid if item.fault != "missing"]) > 0
        event("invalid")
        return
    past = closure(truth, early)
    if any(node in past[node] for node in past):
        assert isinstance(found, NoOrder)
        assert found.invalid == ()
        check_cycles(truth, past, found.cycles)
        event("cycle")
        return
    assert isinstance(found, HappensBefore)
    for node in truth.tasks:
        assert {other for other in truth.tasks if found.before(other, node)} == past[node]
    count = len(events)
    for one in range(count):
        for other in range(count):
            assert found.ancestors[one] >> other & 1 == found.reach[other] >> one & 1
    check_end(events, truth, early, past, found)
    event("order")


def check_cycles(truth: Truth, past: dict[Node, set[Node]], cycles: tuple[tuple[Node, ...], ...]) -> None:
    """Each goes round from its smallest task, and every knot of tasks has one."""
    knots = {
        frozenset(other for other in past[node] if node in past[other]) for node in past if node in past[node]
    }
    found = [next(knot for knot in knots if cycle[0] in knot) for cycle in cycles]
    assert len(found) == len(set(found)) == len(knots)
    for cycle, knot in zip(cycles, found, strict=True):
        assert cycle[0] == min(knot)
        for node, following in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
            assert truth.fires[node] == truth.waits[following]


def check_end(
    events: EventGraph, truth: Truth, early: set[Place], past: dict[Node, set[Node]], found: HappensBefore
) -> None:
    ends = {(rank.rank, len(rank.num_triggers) - 1) for rank in truth.world.ranks}
    last = {node for node, place in truth.fires.items() if place in ends - early}
    awaited = last.union(*(past[node] for node in last))
    assert {node for node in truth.tasks if found.is_awaited(node)} == awaited
    assert {events.place(end) for end in events.ends} == ends


@given(worlds())
@many_worlds
def test_order_is_the_closure_of_what_tasks_wait_for(world: World) -> None:
    """Once with events that fire early, which order nothing, and once with these forgiven."""
    events, truth = world.events(), Truth(world)
    early = {place for place, wanted in truth.num_triggers.items() if truth.triggers[place] > wanted}
    compare(events, truth, early, happens_before_of(events))
    if early:
        compare(events, truth, set(), happens_before_of(events, forgiven=events.too_many))


@given(worlds(broken=False), st.integers(0, 2**32))
@many_worlds
def test_mended_edges_order_as_if_they_were_there(world: World, seed: int) -> None:
    events, truth = world.events(), Truth(world)
    order = happens_before_of(events, forgiven=events.too_many)
    if not isinstance(order, HappensBefore) or not events.pairs:
        return
    dice = random.Random(seed)  # noqa: S311
    wanted = {(dice.randrange(len(events.pairs)), dice.randrange(len(events))) for _ in range(3)}
    found = mended(order, wanted)
    past = closure(truth, set())
    tasks = {
        index: [node for node in truth.tasks if events.pair(node) is pair]
        for index, pair in enumerate(events.pairs)
    }
    for index, place in sorted(wanted):
        before = set(tasks[index]).union(*(past[node] for node in tasks[index]))
        waiters = [node for node in truth.tasks if truth.waits.get(node) == events.place(place)]
        if before.isdisjoint(waiters):  # else it would close a cycle
            for node, known in past.items():
                if node in waiters or not known.isdisjoint(waiters):
                    known.update(before)
    for node in truth.tasks:
        assert {other for other in truth.tasks if found.before(other, node)} == past[node]
    for one in range(len(found.ancestors)):
        for other in range(len(found.ancestors)):
            assert found.ancestors[one] >> other & 1 == found.reach[other] >> one & 1
    event(f"changed: {found.ancestors[: len(events)] != order.ancestors}")


def chain(*ids: tuple[int, int], num_triggers: tuple[int, ...]) -> World:
    tasks = [SmallTask(0, INVALID, INVALID), SmallTask(10, INVALID, 1)]
    tasks += [SmallTask(120, dependent, trigger) for dependent, trigger in ids]
    return World([SmallRank(0, tasks, list(num_triggers), (2, len(tasks)), [])])


def test_too_few_triggers_order_and_too_many_do_not() -> None:
    ids = (INVALID, 2), (INVALID, 2), (2, 3)
    for wanted, ordered in ((1, False), (2, True), (3, True)):
        found = happens_before_of(chain(*ids, num_triggers=(1, 1, wanted, 1)).events())
        assert isinstance(found, HappensBefore)
        assert found.before((0, 2), (0, 4)) == found.is_awaited((0, 2)) == ordered
        assert found.is_awaited((0, 4))
        assert not found.before((0, 4), (0, 2))


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_end_awaits_every_task_of_a_built_decoder(ranks: int) -> None:
    events = [events_of(graph, rank) for rank, graph in enumerate(built_graphs(ranks, "put"))]
    for graph in (*events, joined(events)):
        found = happens_before_of(graph)
        assert isinstance(found, HappensBefore)
        for rank in graph.ranks:
            assert all(found.is_awaited((rank, task)) for task in range(2, graph.tasks[rank]))


# --- real graphs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [*QWEN, TWO_RANKS, "deepseek-v3-2layers", "deepseek-v3-2layers-tp2"])
def test_the_end_awaits_every_task_of_a_real_graph(graph: str) -> None:
    rank = rank_of(graph)
    found = happens_before_of(events_of(rank.graph, rank.number))
    assert isinstance(found, HappensBefore)
    assert all(found.is_awaited((0, task)) for task in range(2, len(rank.graph)))


def test_a_reduction_of_qwen_is_not_after_its_own_rank_s_producer_but_after_its_peer_s() -> None:
    """A put tells its target only; of one rank alone that cannot be seen."""
    ranks = [rank_of(TWO_RANKS, number) for number in (0, 1)]
    events = [events_of(rank.graph, rank.number) for rank in ranks]
    alone, together = happens_before_of(events[0]), happens_before_of(joined(events))
    assert isinstance(alone, HappensBefore)
    assert isinstance(together, HappensBefore)
    graph = ranks[0].graph
    types = {name: number for number, name in (ranks[0].type_names or {}).items()}
    reduces = [task for task, number in enumerate(graph.task_type) if number == types["TASK_REDUCE"]]
    assert len(reduces) == 256
    for reduce in reduces:
        tile = graph.operand_lists[graph.inputs[reduce]][0]  # of the partial sum
        (producer,) = [
            task
            for task in range(reduce - 1, 1, -1)
            if graph.operand_lists[graph.outputs[task]]
            and graph.outputs[task] != graph.outputs[reduce]
            and graph.operands[graph.operand_lists[graph.outputs[task]][0]][:2] == graph.operands[tile][:2]
        ][:1]
        assert not together.before((0, producer), (0, reduce))
        assert together.before((1, producer), (0, reduce))
        assert alone.before((0, producer), (0, reduce))
