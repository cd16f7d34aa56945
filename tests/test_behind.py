"""What a task is behind, against the causes' own counts; the longest chain, against all chains."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import event, given

from mkcov_action.analyses.behind import Behind
from mkcov_action.analyses.chains import longest_chain
from mkcov_action.analyses.startable import startable_of
from tests.small_worlds import Node, Truth, World, many_worlds, worlds


@many_worlds
@given(worlds())
def test_as_many_tasks_are_behind_a_cause_as_it_says(world: World) -> None:
    events, truth = world.events(), Truth(world)
    startable = startable_of(events)
    behind = Behind(events, startable)
    never = {(rank, task) for rank, ids in startable.never_run.items() for each in ids for task in each}
    counted = [node for node in truth.tasks if node[1] > 1]
    found = {node: behind.of_task(node) for node in counted}
    assert {node for node in counted if found[node]} == never
    counts = Counter(cause for causes in found.values() for cause in causes)
    assert {cause: cause.behind for cause in startable.causes if cause.behind} == dict(counts)
    event(f"{min(len(counts), 3)} causes")


@many_worlds
@given(worlds())
def test_an_event_is_behind_something_unless_it_fires(world: World) -> None:
    events = world.events()
    startable = startable_of(events)
    behind = Behind(events, startable)
    for number, fires in enumerate(startable.fires):
        if events.place(number)[1]:  # event 0 of a rank is the runtime's own: it need not fire
            assert bool(behind.of_event(number)) != fires


@many_worlds
@given(worlds())
def test_the_longest_chain_is_as_long_as_any(world: World) -> None:
    events, truth = world.events(), Truth(world)
    chain = longest_chain(events)
    tasks = [node for node in truth.tasks if node[1] > 1]  # task 1 launches the others: no part of a chain
    followers = {
        node: [other for other in tasks if truth.waits.get(other, 0) == truth.fires.get(node)]
        for node in tasks
    }
    lengths: dict[Node, int] = {}
    while len(lengths) < len(tasks):
        ends = [
            node for node in tasks if node not in lengths and all(map(lengths.__contains__, followers[node]))
        ]
        if not ends:  # what is left goes round in circles
            assert chain is None
            event("cycle")
            return
        lengths |= {node: 1 + max(map(lengths.__getitem__, followers[node]), default=0) for node in ends}
    assert chain is not None
    assert len(chain) == max(lengths.values(), default=0)
    pairs = [events.pairs[index] for index in chain]
    assert all(one.trigger == other.dependent for one, other in pairwise(pairs))
    event(f"{len(chain)} tasks")
