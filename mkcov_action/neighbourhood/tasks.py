"""The view of a task: what it works on, what it waits for, who waits for it, and whether it runs."""

from __future__ import annotations

from mkcov_action.analyses.events import Side, decode
from mkcov_action.finding import Operator
from mkcov_action.kernel_source import Branch
from mkcov_action.neighbourhood.model import EventSide, MetadataField, TaskView
from mkcov_action.neighbourhood.operands import slots_of
from mkcov_action.neighbourhood.sight import Sight

_TERMINATE = 0  # the task that ends the kernel: no part of an iteration


def task_view(sight: Sight, task: int) -> TaskView:
    """The view of a task of the rank's graph."""
    graph = sight.graph
    operator = Operator(sight.rank.type_name(graph.task_type[task]), graph.variant_id[task])
    branch, place = sight.branch(operator)
    index = sight.operators.operator_of[task]
    runs = sight.runs(task)
    return TaskView(
        task=task,
        operator=str(operator),
        task_type=operator.type_name,
        task_type_number=graph.task_type[task],
        variant=operator.variant,
        call=sight.call(index) if index >= 0 else None,
        dispatch=sight.dispatch(operator),
        branch=place,
        slots=tuple(slots_of(sight, task, operator)),
        metadata=_metadata(sight, task, branch),
        config=tuple(sorted(branch.config)) if branch else (),
        waits_for=_side(sight, Side.DEPENDENT, graph.dependent_event[task]),
        triggers=_side(sight, Side.TRIGGER, graph.trigger_event[task]),
        runs=runs,
        behind=()
        if runs or task == _TERMINATE
        else sight.reasons(sight.behind.of_task((sight.rank.number, task))),
    )


def _metadata(sight: Sight, task: int, branch: Branch | None) -> tuple[MetadataField, ...]:
    return tuple(
        MetadataField(
            name=name,
            value=column[task],
            read=None if branch is None else name in branch.metadata or "raw_payload" in branch.metadata,
        )
        for name, column in sight.graph.metadata.items()
    )


def _side(sight: Sight, side: Side, event_id: int) -> EventSide | None:
    """An event with what is on its other side; of another rank's event the own rank's counterpart is told."""
    parts = decode(event_id)
    if parts is None:
        return None
    event = sight.event_ref(side, event_id)
    if event.fault is not None:
        return EventSide(event=event, waits=None, gets=None, others=())
    others = sight.producers if side is Side.DEPENDENT else sight.consumers
    return EventSide(
        event=event,
        waits=sight.events.num_triggers[parts.position],
        gets=sight.events.triggers[parts.position],
        others=others(parts.position),
    )
