"""Cases of the order rules (MK301 to MK307)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools.rule_cases.case import Small, case

TAG = 0x1E00 << 48
NO_EVENT = 0x7FFF_FFFF_FFFF_FFFE


def layers(count: int = 3) -> Small:
    """A chain of linear layers, two tiles each."""
    graph = Small()
    source = graph.x
    for layer in range(count):
        result = graph.y if layer == count - 1 else graph.scratch(f"layer_{layer}_out", (2, 16))
        graph.linear(f"layer_{layer}_proj", source, result)
        source = result
    return graph.head()


def edited(out: Path, change: Any, graph: Small | None = None) -> None:
    """The layers with an edit of the task graph: `change` takes its tasks and its events."""
    graph = graph or layers()
    graph.patch_graph(lambda data: change(data["all_tasks"], data["all_events"]))
    graph.write(out)


# --- MK301 invalid-event --------------------------------------------------------------------------


@case("invalid-event", "bad")
def out_of_range(out: Path) -> None:
    edited(out, lambda tasks, events: tasks[5].update(trigger_event=len(events)))


@case("invalid-event", "bad")
def wrong_rank(out: Path) -> None:
    def change(tasks: Any, _: Any) -> None:
        for task in tasks[5:7]:
            task["dependent_event"] |= 1 << 32

    edited(out, change)


@case("invalid-event", "bad")
def stray_tag(out: Path) -> None:
    edited(out, lambda tasks, _: tasks[4].update(trigger_event=tasks[4]["trigger_event"] | TAG))


@case("invalid-event", "bad")
def no_trigger(out: Path) -> None:
    edited(out, lambda tasks, _: tasks[4].update(trigger_event=NO_EVENT))


@case("invalid-event", "ok")
def first_tasks_wait_for_nothing(out: Path) -> None:
    """The tasks that the graph begins with need no event, however many they are."""
    graph = Small()
    table = graph.model("layer_0_table", (2, 16))
    other = graph.scratch("other", (2, 16))
    first = graph.operators[0]
    second = graph.operator("TASK_IDENTITY", [table], [other], waits_for=())
    graph.operator("TASK_ELEMENTWISE_ADD_SM100", [graph.x, other], [graph.y], waits_for=[first, second])
    graph.head().write(out)


# --- MK302 trigger-count-mismatch -----------------------------------------------------------------


@case("trigger-count-mismatch", "bad")
def counted_twice(out: Path) -> None:
    """Every event between the layers waits for twice the triggers that it gets."""

    def change(tasks: Any, events: Any) -> None:
        del tasks
        for event in events[2:-1]:
            if event["num_triggers"] == 2:
                event["num_triggers"] = 4

    edited(out, change, layers(4))


@case("trigger-count-mismatch", "bad")
def counted_short(out: Path) -> None:
    edited(out, lambda _, events: events[3].update(num_triggers=1))


@case("trigger-count-mismatch", "bad")
def end_never_comes(out: Path) -> None:
    edited(out, lambda _, events: events[-1].update(num_triggers=5))


@case("trigger-count-mismatch", "ok")
def every_producer_once(out: Path) -> None:
    layers().write(out)


# --- MK303 dependency-cycle -----------------------------------------------------------------------


def _closed(tasks: Any, events: Any) -> None:
    """Layer 0 waits for what layer 1 triggers."""
    first, second = tasks[3], tasks[5]
    start = second["trigger_event"] & 0xFFFF_FFFF
    for task in tasks[3:5]:
        task["dependent_event"] = second["trigger_event"]
    events[start]["first_task_id"], events[start]["last_task_id"] = 3, 9
    assert first["trigger_event"] != second["trigger_event"]


@case("dependency-cycle", "bad")
def layers_wait_for_each_other(out: Path) -> None:
    edited(out, _closed)


@case("dependency-cycle", "bad")
def task_waits_for_itself(out: Path) -> None:
    edited(out, lambda tasks, _: tasks[3].update(dependent_event=tasks[3]["trigger_event"]))


@case("dependency-cycle", "ok")
def chain(out: Path) -> None:
    layers(8).write(out)


# --- MK304 unreachable-task -----------------------------------------------------------------------


@case("unreachable-task", "bad")
def not_launched(out: Path) -> None:
    edited(out, lambda _, events: events[1].update(last_task_id=7))


@case("unreachable-task", "bad")
def waits_for_the_end_of_the_kernel(out: Path) -> None:
    def change(tasks: Any, _: Any) -> None:
        for task in tasks[7:9]:
            task["dependent_event"] &= ~0xFFFF_FFFF

    edited(out, change)


@case("unreachable-task", "ok")
def all_launched(out: Path) -> None:
    layers().write(out)


# --- MK305 producer-after-consumer ----------------------------------------------------------------


def _swapped(tasks: Any, events: Any) -> None:
    """Layers 0 and 1 change places: every edge is kept, and one leads from a larger number to a smaller."""
    tasks[3:5], tasks[5:7] = tasks[5:7], tasks[3:5]
    for event in events[2:-1]:
        _state_range(tasks, events, event)


def _state_range(tasks: Any, events: Any, event: Any) -> None:
    """Writes the span of the tasks that wait for an event into it."""
    waiting = [
        index
        for index, task in enumerate(tasks)
        if task["dependent_event"] != NO_EVENT and events[task["dependent_event"] & 0xFFFF_FFFF] is event
    ]
    event["first_task_id"], event["last_task_id"] = waiting[0], waiting[-1] + 1


@case("producer-after-consumer", "bad")
def layers_out_of_order(out: Path) -> None:
    edited(out, _swapped)


@case("producer-after-consumer", "ok")
def topological_order(out: Path) -> None:
    layers(6).write(out)


# --- MK306 unawaited-task -------------------------------------------------------------------------


@case("unawaited-task", "bad")
def leaf_without_end(out: Path) -> None:
    """A result that nobody takes, whose task triggers an event of its own instead of the last one."""
    graph = Small()
    first = graph.operators[0]
    graph.operator("TASK_IDENTITY", [graph.x], [graph.model("result", (2, 16))], waits_for=first)
    weight = graph.model("layer_0_proj", (16, 16))
    graph.operator("TASK_LINEAR_SM100", [graph.x, weight], [graph.y], grid=2, waits_for=first)

    def change(tasks: Any, events: Any) -> None:
        end = len(events) - 1
        events[end]["num_triggers"] -= 1
        for task in tasks[2:]:
            if task["trigger_event"] == end and task["outputs"][0]["base_ptr"] != "result":
                task["trigger_event"] = end + 1
        events.insert(end, {"event_type": 900, "num_triggers": 1, "first_task_id": 0, "last_task_id": 0})

    edited(out, change, graph.head())


@case("unawaited-task", "ok")
def leaves_trigger_the_end(out: Path) -> None:
    """A result that nobody takes: its task triggers the last event, as the generator lets every leaf do."""
    graph = Small()
    first = graph.operators[0]
    graph.operator("TASK_IDENTITY", [graph.x], [graph.model("result", (2, 16))], waits_for=first)
    weight = graph.model("layer_0_proj", (16, 16))
    graph.operator("TASK_LINEAR_SM100", [graph.x, weight], [graph.y], grid=2, waits_for=first)
    graph.head().write(out)


# --- MK307 malformed-skeleton ---------------------------------------------------------------------


@case("malformed-skeleton", "bad")
def no_task_of_the_model(out: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        del data["all_tasks"][2:]

    graph = layers()
    graph.patch_graph(change)
    graph.write(out)


@case("malformed-skeleton", "bad")
def end_is_not_last(out: Path) -> None:
    edited(out, lambda _, events: events[-1].update(event_type=900))


@case("malformed-skeleton", "bad")
def ranges_of_another_graph(out: Path) -> None:
    def change(_: Any, events: Any) -> None:
        for event in events[2:4]:
            event["last_task_id"] += 1

    edited(out, change)


@case("malformed-skeleton", "bad")
def begins_elsewhere(out: Path) -> None:
    def change(tasks: Any, _: Any) -> None:
        tasks[1]["task_type"] = 0

    edited(out, change)


@case("malformed-skeleton", "bad")
def terminates_in_the_middle(out: Path) -> None:
    edited(out, lambda tasks, _: tasks[5].update(task_type=0))


@case("malformed-skeleton", "ok")
def interleaved_tasks(out: Path) -> None:
    """Two operators whose tasks stand in turn: the range of an event spans tasks that wait for another."""
    graph = Small()
    ends = []
    for side in ("left", "right"):
        middle, result = graph.scratch(f"{side}_middle", (2, 16)), graph.scratch(side, (2, 16))
        first = graph.operator("TASK_IDENTITY", [graph.x], [middle], waits_for=graph.operators[0])
        ends.append((graph.operator("TASK_IDENTITY", [middle], [result], grid=2, waits_for=first), result))
    (left, a), (right, b) = ends
    graph.operator("TASK_ELEMENTWISE_ADD_SM100", [a, b], [graph.y], waits_for=[left, right])

    def interleave(tasks: Any, events: Any) -> None:
        places = [index for index, task in enumerate(tasks) if task["inputs"] and _reads_middle(task)]
        mine = [tasks[index] for index in places]
        for place, task in zip(places, [mine[0], mine[2], mine[1], mine[3]], strict=True):
            tasks[place] = task
        for event in events[2:-1]:
            _state_range(tasks, events, event)

    edited(out, interleave, graph.head())


def _reads_middle(task: Any) -> bool:
    return str(task["inputs"][0]["base_ptr"]).endswith("_middle")
