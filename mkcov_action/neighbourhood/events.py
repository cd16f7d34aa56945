"""The view of an event: who triggers it, who waits for it, and whether it fires."""

from __future__ import annotations

from mkcov_action.neighbourhood.model import EventView
from mkcov_action.neighbourhood.sight import Sight
from mkcov_action.task_graph import EVENT_TYPES


def event_type_name(number: int) -> str:
    """The name of an `event_type`, `EVENT_<n>` where none is known."""
    return EVENT_TYPES.get(number, f"EVENT_{number}")


def event_view(sight: Sight, event: int) -> EventView:
    """The view of the event at a position of the rank's table."""
    table, events = sight.graph.events, sight.events
    behind = sight.behind.of_event(event)
    return EventView(
        event=event,
        event_type=event_type_name(table.event_type[event]),
        event_type_number=table.event_type[event],
        waits=events.num_triggers[event],
        gets=events.triggers[event],
        tagged=event in events.tagged,
        ends_iteration=event in events.ends,
        first_task=table.first_task_id[event],
        stop_task=table.last_task_id[event],
        producers=sight.producers(event),
        consumers=sight.consumers(event),
        fires=sight.startable.fires[event],
        never_run_behind=max((cause.behind for cause in behind if cause.event == event), default=0),
        behind=sight.reasons(behind),
    )
