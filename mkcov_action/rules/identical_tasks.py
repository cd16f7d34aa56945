"""MK205: tasks that do the same work on the same bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from mkcov_action.analyses.consumption import branch_of
from mkcov_action.finding import Operator, Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural
from mkcov_action.task_types import TASK_TYPES, WORKER_LOOP


@rule(id="MK205", name="identical-tasks", severity=Severity.WARNING, stage=Stage.DISPATCH, since="0.1.0")
def identical_tasks(context: Context) -> Iterator[Result]:
    """Several tasks are the same in everything that their kernel looks at.

    ## What it finds
    Two or more tasks of one type and variant with equal tensors and tiles, equal events, and equal
    values in every metadata field that the body reads. Puts to different ranks are not equal.

    ## Why it matters
    Either the same work is done several times, and its results race with themselves; or the tasks
    should have shared the work, and the part that was meant for the others is never done.

    ## Example
    A quantize kernel takes its row from `blockIdx.x`, which in a megakernel is the worker's number:
    its eight tasks for eight rows are one and the same.

    ## How to fix it
    Let the kernel take its share from the task's metadata, or register one task instead of many.
    """
    for rank in context.ranks:
        for operator, group in sorted(_groups(rank).items()):
            branch = branch_of(rank, operator)
            if operator.type_name in WORKER_LOOP:
                continue
            if branch is None or operator.type_name not in TASK_TYPES:
                reason = "has no branch that was read" if branch is None else "is of a type that is not known"
                yield identical_tasks.not_checked(
                    f"{operator} {reason}: its tasks may differ in what they look at"
                )
                continue
            yield identical_tasks.finding(
                operator=operator,
                tasks=group.tasks,
                ranks=(rank.number,),
                message=f"{plural(group.tasks, 'task')} of {operator} do the work of {group.distinct:,}:"
                f" up to {group.most:,} of them are equal in tensors, events and all that the body reads"
                f" (such as task {group.example:,}, which writes {group.tensor})",
                consequence="the same work is done again and races with itself, or a share of it is never done",
                fix="let the kernel take its share from the task's metadata, or register one task",
            )


@dataclass(slots=True)
class _Group:
    """The tasks of an operator that are not alone: how many, of how many sorts, and the largest sort."""

    tasks: int = 0
    distinct: int = 0
    most: int = 0
    example: int = 0
    tensor: str = ""


def _groups(rank: Rank) -> dict[Operator, _Group]:
    graph = rank.graph
    columns = (
        graph.task_type,
        graph.variant_id,
        graph.inputs,
        graph.outputs,
        graph.dependent_event,
        graph.trigger_event,
    )
    rows = list(zip(*columns, strict=True))
    alike = {row for row, tasks in Counter(rows).items() if tasks > 1}
    sorts: dict[tuple[object, ...], list[int]] = {}
    fields: dict[tuple[int, int], list[str]] = {}
    for task, row in enumerate(rows):
        if row in alike:
            kind = row[:2]
            if kind not in fields:
                branch = branch_of(rank, Operator(rank.type_name(kind[0]), kind[1]))
                fields[kind] = sorted(graph.metadata.keys() & branch.metadata) if branch else []
            sort = (*row, *(graph.metadata[field][task] for field in fields[kind]))
            sorts.setdefault(sort, []).append(task)
    groups: dict[Operator, _Group] = {}
    for tasks in sorts.values():
        if len(tasks) < 2:
            continue
        first = tasks[0]
        operator = Operator(rank.type_name(graph.task_type[first]), graph.variant_id[first])
        group = groups.setdefault(operator, _Group())
        group.tasks += len(tasks)
        group.distinct += 1
        if len(tasks) > group.most:
            names = graph.tensor_lists[graph.tensor_list_of[graph.outputs[first]]]
            group.most, group.example = len(tasks), first
            group.tensor = names[0] if names else "in place"
    return groups
