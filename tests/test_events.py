"""Events: ids mean what the definitions say, and pairs count what a count of tasks counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkcov_action.analyses.events import NO_EVENT, UNRESOLVED, EventGraph, Fault, Side, decode, events_of
from tests.small_worlds import INVALID, PUT, TAG, SmallRank, SmallTask, Truth, World, many_worlds, worlds
from tests.some_ranks import QWEN, TWO_RANKS, rank_of


def meant(events: EventGraph, event: int, fault: str | None) -> tuple[int, int] | None:
    """The place of an event of the analysis; None for none, which must be so for a known reason."""
    if event >= 0:
        return events.place(event)
    assert event == (UNRESOLVED if fault not in {None, "missing"} else NO_EVENT)
    return None


@given(worlds())
@many_worlds
def test_events_are_what_a_reading_task_by_task_makes_of_them(world: World) -> None:
    events, truth = world.events(), Truth(world)
    each_id_means_what_the_definitions_say(events, truth)
    invalid_ids_are_named_with_their_tasks(events, truth)
    counts_are_those_of_a_count_of_tasks(events, truth)
    pairs_are_the_distinct_pairs_of_ids_with_their_tasks(events, truth)


def each_id_means_what_the_definitions_say(events: EventGraph, truth: Truth) -> None:
    for node in truth.tasks:
        pair = events.pair(node)
        awaited = meant(events, pair.dependent, truth.faults.get((node, "dependent_event")))
        triggered = meant(events, pair.trigger, truth.faults.get((node, "trigger_event")))
        assert (awaited, triggered) == (truth.waits.get(node), truth.fires.get(node))
        assert pair.put == truth.puts(node)


def invalid_ids_are_named_with_their_tasks(events: EventGraph, truth: Truth) -> None:
    expected: dict[tuple[int, str, int, str], list[int]] = {}
    for (node, side), fault in truth.faults.items():
        event = truth.tasks[node].dependent if side == "dependent_event" else truth.tasks[node].trigger
        expected.setdefault((node[0], side, event, fault), []).append(node[1])
    found = {
        (item.rank, item.side.value, item.event_id, item.fault.value): (item.tasks, item.first, item.last)
        for item in events.invalid
    }
    assert len(found) == len(events.invalid)
    assert found == {what: (len(tasks), min(tasks), max(tasks)) for what, tasks in expected.items()}
    order = [(events.ranks.index(item.rank), item.side, item.first) for item in events.invalid]
    assert order == sorted(order)


def counts_are_those_of_a_count_of_tasks(events: EventGraph, truth: Truth) -> None:
    places = [events.place(event) for event in range(len(events))]
    assert places == list(truth.num_triggers)
    assert list(events.num_triggers) == list(truth.num_triggers.values())
    assert list(events.triggers) == list(truth.triggers.values())
    wrong = {event: truth.triggers[place] - truth.num_triggers[place] for event, place in enumerate(places)}
    assert events.too_few == {event for event, excess in wrong.items() if excess < 0}
    assert events.too_many == {event for event, excess in wrong.items() if excess > 0}
    tagged = [place for node, place in truth.fires.items() if truth.puts(node)]
    tagged += [place for node, place in truth.waits.items() if truth.tasks[node].dependent & TAG]
    assert {places[event] for event in events.tagged} == set(tagged)
    puts = Counter(
        (node[0], truth.tasks[node].trigger >> 32 & 0xFFFF, place[1])
        for node, place in truth.fires.items()
        if truth.puts(node)
    )
    assert events.puts == puts


def pairs_are_the_distinct_pairs_of_ids_with_their_tasks(events: EventGraph, truth: Truth) -> None:
    groups: dict[tuple[int, int, int, bool], list[int]] = {}
    for node, task in truth.tasks.items():
        groups.setdefault((node[0], task.dependent, task.trigger, truth.puts(node)), []).append(node[1])
    found = {
        (pair.rank, pair.dependent_id, pair.trigger_id, pair.put): (pair.tasks, pair.first, pair.last)
        for pair in events.pairs
    }
    assert len(found) == len(events.pairs)
    assert found == {key: (len(tasks), tasks[0], tasks[-1]) for key, tasks in groups.items()}
    for event in range(len(events)):
        producers = [index for index, pair in enumerate(events.pairs) if pair.trigger == event]
        consumers = [index for index, pair in enumerate(events.pairs) if pair.dependent == event]
        assert (list(events.producers[event]), list(events.consumers[event])) == (producers, consumers)
    for rank in events.ranks:
        assert [pair.rank for pair in events.pairs_of(rank)] == [rank] * len(events.pairs_of(rank))
        assert [pair.first for pair in events.pairs_of(rank)] == sorted(
            pair.first for pair in events.pairs if pair.rank == rank
        )


@given(st.integers(0, 2**64 - 1))
def test_an_id_is_the_sum_of_its_parts(event_id: int) -> None:
    parts = decode(event_id)
    if parts is None:
        assert event_id == INVALID
    else:
        assert event_id == (parts.tag << 48) + (parts.rank << 32) + parts.position
        assert parts.tagged == (parts.tag == 0x1E00)


def test_no_event_is_not_taken_for_a_tagged_one() -> None:
    assert INVALID & TAG
    assert decode(INVALID) is None


def small(*tasks: SmallTask, num_triggers: tuple[int, ...] = (1, 1, 1, 1)) -> SmallRank:
    skeleton = [SmallTask(0, INVALID, INVALID), SmallTask(10, INVALID, 1)]
    return SmallRank(0, [*skeleton, *tasks], list(num_triggers), (2, 2 + len(tasks)), [2])


def test_graphs_without_events_or_tasks_have_none() -> None:
    nothing = SmallRank(3, [], [], (0, 0), [])
    for rank in (nothing, replace(nothing, tasks=[SmallTask(0, INVALID, INVALID)])):
        events = World([rank]).events()
        assert (len(events), events.pairs, events.ends) == (0, (), ())
        assert events.launch(3) == UNRESOLVED


def test_task_0_belongs_to_no_pair() -> None:
    events = World([small()]).events()
    with pytest.raises(IndexError):
        events.pair((0, 0))


def test_a_put_without_its_tag_is_named_for_the_tag_and_what_waits_for_it_is_right() -> None:
    rank = small(
        SmallTask(PUT, INVALID, TAG | 1 << 32 | 2),
        SmallTask(PUT, TAG | 2, 1 << 32 | 2),
        SmallTask(107, TAG | 2, 3),
    )
    (lost,) = World([rank]).events().invalid
    assert (lost.side, lost.fault, lost.tasks, lost.first) == (Side.TRIGGER, Fault.LOST_TAG, 1, 3)
    (elsewhere,) = World([rank], typed=False).events().invalid
    assert (elsewhere.side, elsewhere.fault) == (Side.TRIGGER, Fault.WRONG_RANK)


# --- real graphs ----------------------------------------------------------------------------------


def test_the_join_event_of_deepseek_waits_for_18_triggers_and_gets_9() -> None:
    rank = rank_of("deepseek-v3-2layers")
    events = events_of(rank.graph, rank.number)
    (event,) = events.too_few - {0}
    assert (events.num_triggers[event], events.triggers[event]) == (18, 9)
    assert {rank.type_name(rank.graph.task_type[events.pairs[p].first]) for p in events.consumers[event]} == {
        "TASK_MOE_W13_FP8_SM100"
    }
    assert not events.too_many
    assert not events.invalid


@pytest.mark.parametrize("graph", [*QWEN, TWO_RANKS])
def test_counts_and_ids_of_qwen_are_right(graph: str) -> None:
    rank = rank_of(graph)
    puts = {number for number, name in (rank.type_names or {}).items() if name.endswith("_PUT")}
    for put_types in (puts, None):
        events = events_of(rank.graph, rank.number, put_types=put_types)
        assert (events.too_few, events.too_many, events.invalid) == ({0}, frozenset(), ())


def test_puts_of_qwen_go_to_the_other_rank_and_are_awaited_under_a_tag() -> None:
    for number in (0, 1):
        rank = rank_of(TWO_RANKS, number)
        events = events_of(rank.graph, number)
        assert set(events.puts.values()) == {1}
        assert {target for _, target, _ in events.puts} == {1 - number}
        assert len(events.puts) == len(events.tagged) == 256
