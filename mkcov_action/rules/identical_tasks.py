"""MK205: tasks that do the same work on the same bytes."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

from mkcov_action.analyses.consumption import branch_of
from mkcov_action.analyses.runs import runs_of
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


@dataclass(frozen=True, slots=True)
class _Group:
    """The tasks of an operator that are not alone: how many, of how many sorts, and the largest sort."""

    tasks: int
    distinct: int
    most: int
    example: int
    tensor: str


def _groups(rank: Rank) -> dict[Operator, _Group]:
    graph = rank.graph
    runs: defaultdict[tuple[int, int], list[range]] = defaultdict(list)
    for run in runs_of(graph.task_type, graph.variant_id, first=0):
        runs[graph.task_type[run.start], graph.variant_id[run.start]].append(run)
    groups: dict[Operator, _Group] = {}
    for (number, variant), mine in runs.items():
        operator = Operator(rank.type_name(number), variant)
        branch = branch_of(rank, operator)
        fields = sorted(graph.metadata.keys() & branch.metadata) if branch else []
        columns = [
            graph.inputs,
            graph.outputs,
            graph.dependent_event,
            graph.trigger_event,
            *(graph.metadata[field] for field in fields),
        ]
        rows = [zip(*(column[run.start : run.stop] for column in columns), strict=True) for run in mine]
        alike = {sort: tasks for sort, tasks in Counter(chain.from_iterable(rows)).items() if tasks > 1}
        if alike:
            groups[operator] = _group(rank, alike, mine, columns)
    return groups


def _group(
    rank: Rank, alike: Mapping[_Sort, int], runs: Sequence[range], columns: Sequence[array[int]]
) -> _Group:
    sort, most = max(alike.items(), key=itemgetter(1))
    example = next(
        task for task in chain.from_iterable(runs) if tuple(column[task] for column in columns) == sort
    )
    outputs = rank.graph.tensor_lists[rank.graph.tensor_list_of[rank.graph.outputs[example]]]
    return _Group(sum(alike.values()), len(alike), most, example, outputs[0] if outputs else "in place")


_Sort = tuple[int, ...]
"""What tasks of one type and variant are alike in: operand lists, events, and the metadata that the body reads."""
