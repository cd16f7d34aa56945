"""Faults of order: events that never fire or fire too early, edges that lead nowhere, back or in a ring."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.faults._fault import fault
from mkcov_action.faults.artifacts import TAG, RankArtifacts, Site
from mkcov_action.task_graph import INVALID_EVENT

_POSITION = 0xFFFFFFFF


@fault("MK302", also=("MK102", "MK103", "MK109", "MK402", "MK403"))
def task_dropped(site: Site) -> str | None:
    """A task is missing, and its event still counts it."""
    rank = site.rank
    task = site.one_of(_local(rank, "trigger_event"))
    if task is None:
        return None
    rank.drop_task(task)
    return "an event gets one trigger less than it waits for"


@fault("MK302")
def trigger_counted_twice(site: Site) -> str | None:
    """An event waits for twice the triggers that it gets."""
    event = site.one_of(_counted(site.rank))
    if event is None:
        return None
    site.rank.events[event]["num_triggers"] *= 2
    return f"event {event} waits for twice its triggers"


@fault("MK302")
def trigger_not_counted(site: Site) -> str | None:
    """An event waits for one trigger less than it gets."""
    event = site.one_of(_counted(site.rank))
    if event is None:
        return None
    site.rank.events[event]["num_triggers"] -= 1
    return f"event {event} fires too early"


@fault("MK301")
def trigger_lost(site: Site) -> str | None:
    """A task triggers no event."""
    task = site.one_of(_local(site.rank, "trigger_event"))
    if task is None:
        return None
    site.rank.tasks[task]["trigger_event"] = INVALID_EVENT
    return "a task triggers no event"


@fault("MK301")
def event_out_of_range(site: Site) -> str | None:
    """A task names an event behind the end of the table."""
    side = site.one_of(("trigger_event", "dependent_event"))
    task = site.one_of(_local(site.rank, side))
    if task is None:
        return None
    mine = site.rank.tasks[task]
    mine[side] = mine[side] - (mine[side] & _POSITION) + len(site.rank.events) + site.dice.randrange(100)
    return f"{side} is behind the table"


@fault("MK301")
def wrong_rank_bits(site: Site) -> str | None:
    """A task names the event of another rank where it must be its own."""
    side = site.one_of(("trigger_event", "dependent_event"))
    task = site.one_of(_local(site.rank, side))
    if task is None:
        return None
    mine = site.rank.tasks[task]
    mine[side] = (mine[side] & _POSITION) | (site.rank.number + 1 + site.dice.randrange(7)) << 32
    return f"{side} is of another rank"


@fault("MK301")
def tag_lost(site: Site) -> str | None:
    """A put triggers its event without the tag of signals between ranks."""
    task = site.one_of(
        index
        for index, task in enumerate(site.rank.tasks)
        if index > 1 and task["trigger_event"] >> 48 == TAG >> 48
    )
    if task is None:
        return None
    site.rank.tasks[task]["trigger_event"] &= ~TAG
    return "a put's trigger has no tag"


@fault("MK301")
def tag_strayed(site: Site) -> str | None:
    """A task that is no put triggers its event under the tag."""
    task = site.one_of(_local(site.rank, "trigger_event"))
    if task is None:
        return None
    site.rank.tasks[task]["trigger_event"] |= TAG
    return "a tag stands where no put is"


@fault("MK307", also=("MK306", "MK402", "MK403"))
def dependency_retargeted(site: Site) -> str | None:
    """A task waits for an earlier event than it should."""
    rank = site.rank
    choices = [
        task
        for task in _local(rank, "dependent_event")
        if (rank.tasks[task]["dependent_event"] & _POSITION) > 2
    ]
    task = site.one_of(choices)
    if task is None:
        return None
    own = rank.tasks[task]["dependent_event"]
    earlier = site.one_of(event for event in _counted(rank) if event < own & _POSITION)
    if earlier is None:
        return None
    rank.tasks[task]["dependent_event"] += earlier - (own & _POSITION)
    return "a task waits for an event that is not its own"


@fault("MK305")
def edge_reversed(site: Site) -> str | None:
    """Two operators change their places: each waits for what it should, but the producer comes last."""
    rank = site.rank
    swaps = [
        (producers, consumers)
        for event in range(2, len(rank.events) - 1)
        if (producers := _run(rank.triggering(event)))
        and (consumers := _run(rank.waiting(event)))
        and producers.stop == consumers.start
    ]
    swap = site.one_of(swaps)
    if swap is None:
        return None
    first, second = swap
    rank.tasks[first.start : second.stop] = [
        *rank.tasks[second.start : second.stop],
        *rank.tasks[first.start : first.stop],
    ]
    rank.state_ranges()
    _state_first(rank)
    return "a producer stands behind its consumer"


@fault("MK303")
def cycle_closed(site: Site) -> str | None:
    """A task waits for what one behind it triggers."""
    rank = site.rank
    chains = [
        (first, rank.tasks[second]["trigger_event"])
        for first in _local(rank, "dependent_event")
        if (event := rank.event_of(rank.tasks[first]["trigger_event"])) is not None
        and event < len(rank.events) - 1
        for second in rank.waiting(event)[:1]
        if rank.event_of(rank.tasks[second]["trigger_event"]) not in {None, len(rank.events) - 1}
    ]
    chain = site.one_of(chains)
    if chain is None:
        return None
    first, event_id = chain
    rank.tasks[first]["dependent_event"] = event_id
    return f"task {first} waits for itself"


@fault("MK304")
def launch_range_cut(site: Site) -> str | None:
    """Event 1 launches only some of the tasks."""
    rank = site.rank
    if len(rank.tasks) < 4:
        return None
    rank.events[1]["last_task_id"] = site.dice.randrange(3, len(rank.tasks))
    return "tasks are never launched"


@fault("MK304")
def waits_for_event_0(site: Site) -> str | None:
    """A task waits for event 0, which nothing triggers."""
    task = site.one_of(_local(site.rank, "dependent_event"))
    if task is None:
        return None
    site.rank.tasks[task]["dependent_event"] &= ~_POSITION
    return "a task waits for event 0"


@fault("MK306", also=("MK402", "MK403", "MK501"))
def leaf_misses_the_end(site: Site) -> str | None:
    """A task triggers an event of its own, for which nothing waits."""
    rank = site.rank
    end = len(rank.events) - 1
    choices = [
        task
        for task in _local(rank, "trigger_event")
        if rank.events[rank.tasks[task]["trigger_event"] & _POSITION]["num_triggers"] > 1
    ]
    chosen = site.one_of(choices)
    if chosen is None:
        return None
    rank.events[rank.tasks[chosen]["trigger_event"] & _POSITION]["num_triggers"] -= 1
    for task in rank.tasks[2:]:
        if rank.event_of(task["trigger_event"]) == end:
            task["trigger_event"] += 1
    rank.tasks[chosen]["trigger_event"] = rank.tasks[1]["trigger_event"] - 1 + end
    rank.events.insert(end, {"event_type": 900, "num_triggers": 1, "first_task_id": 0, "last_task_id": 0})
    return "nothing waits for a task"


@fault("MK307")
def consumer_range_shifted(site: Site) -> str | None:
    """An event states another range than that of the tasks that wait for it."""
    event = site.one_of(
        place
        for place, event in enumerate(site.rank.events)
        if 1 < place < len(site.rank.events) - 1 and event["last_task_id"]
    )
    if event is None:
        return None
    site.rank.events[event][site.one_of(("first_task_id", "last_task_id"))] += 1
    return f"event {event} states another range"


@fault("MK307")
def skeleton_broken(site: Site) -> str | None:
    """Task 0 or 1, or event 0, 1 or the last one, is not what the runtime takes it for."""
    rank = site.rank
    record = site.one_of([*rank.tasks[:2], *rank.events[:2], rank.events[-1]])
    record["task_type" if "task_type" in record else "event_type"] = 900
    return "the frame of the graph is broken"


def _local(rank: RankArtifacts, side: str) -> list[int]:
    """The tasks of the model whose event on one side is one of their own rank."""
    return [
        index for index, task in enumerate(rank.tasks) if index > 1 and rank.event_of(task[side]) is not None
    ]


def _counted(rank: RankArtifacts) -> Iterator[int]:
    """The events from 2 on that local tasks trigger."""
    return iter(
        sorted({rank.tasks[task]["trigger_event"] & _POSITION for task in _local(rank, "trigger_event")})
    )


def _run(tasks: list[int]) -> range | None:
    """The tasks as a range; None where others stand between them."""
    if not tasks or tasks[-1] - tasks[0] != len(tasks) - 1:
        return None
    return range(tasks[0], tasks[-1] + 1)


def _state_first(rank: RankArtifacts) -> None:
    first = [
        index
        for index, task in enumerate(rank.tasks)
        if index > 1 and task["dependent_event"] == INVALID_EVENT
    ]
    rank.document["first_tasks"] = first or rank.document["first_tasks"]
