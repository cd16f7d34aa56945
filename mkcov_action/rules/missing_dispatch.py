"""MK201: tasks for which no code runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mkcov_action.analyses.consumption import Access, Consumption, Side
from mkcov_action.analyses.dispatch import Dispatch, absences_of
from mkcov_action.finding import Operator, Place, Severity, natural
from mkcov_action.kernel_source import Dispatcher
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed, plural, verb
from mkcov_action.task_types import WORKER_LOOP


@rule(id="MK201", name="missing-dispatch", severity=Severity.ERROR, stage=Stage.DISPATCH, since="0.1.0")
def missing_dispatch(context: Context) -> Iterator[Result]:
    """Tasks have a type and variant that no branch of the dispatcher handles.

    ## What it finds
    Each task's type and variant must have a branch in the kernel's dispatcher. There is no final else:
    what no branch names is skipped in silence, and yet waits for its event and fires its event.
    Branches stand in the order of the type numbers: where more types of unknown name stand than
    branches, at least one of them has none.

    ## Why it matters
    The graph runs through, every event fires, and the operators behind read what their buffers held
    before: the layer is missing from the model.

    ## Example
    `TASK_ARGMAX` is registered without code: whoever takes its result reads an old one.

    ## How to fix it
    Register code for the task type and variant, and generate the kernel and the task graph in one run.
    """
    for rank in context.ranks:
        dispatcher = rank.kernel.dispatcher if rank.kernel else None
        if dispatcher is None:
            yield missing_dispatch.not_checked("the form of the dispatcher is not known")
            continue
        consumption = context.consumption(rank)
        tasks = _tasks(rank)
        if dispatcher.complete:
            yield from _crowded(rank, dispatcher)
        for operator, dispatch in sorted(consumption.dispatch.items()):
            if operator.type_name in WORKER_LOOP:
                continue  # no task of the model may be of these types, which the rule on the skeleton says
            if dispatch is Dispatch.UNKNOWN:
                yield missing_dispatch.not_checked(
                    f"{operator}: no branch has its name, but the dispatcher "
                    + (
                        "has branches that no other task type took"
                        if dispatcher.complete
                        else "is cut off, or has parts of another form"
                    )
                )
            elif dispatch is Dispatch.MISSING:
                yield missing_dispatch.finding(
                    operator=operator,
                    tasks=tasks[operator],
                    ranks=(rank.number,),
                    message=f"{plural(tasks[operator], 'task')} of {operator} {verb(tasks[operator])} no branch"
                    f" in the dispatcher: no code runs for {'it' if tasks[operator] == 1 else 'them'}"
                    f"{_stale(consumption, operator)}",
                    consequence="the tasks do nothing and fire their events all the same: what follows reads old values",
                    fix="register code for this task type and variant, and generate both files in one run",
                    mentions=_lost(rank, consumption, operator),
                )


def _crowded(rank: Rank, dispatcher: Dispatcher) -> Iterator[Result]:
    """Types of unclear name that are more than the branches which may be theirs."""
    for numbers, names in absences_of(rank, dispatcher).doubtful:
        if len(numbers) > len(names):
            types = listed([rank.type_name(number) for number in numbers], limit=len(numbers))
            yield missing_dispatch.finding(
                ranks=(rank.number,),
                kind="more types than branches",
                message=f"tasks are of {plural(len(numbers), 'type')} ({types}) where the dispatcher has code for"
                f" {len(names):,} ({listed(names)}): no code runs for at least {len(numbers) - len(names):,} of them",
                consequence="the tasks do nothing and fire their events all the same: what follows reads old values",
                fix="register code for these task types, and generate both files in one run;"
                " --task-types tells which is which",
            )


def _tasks(rank: Rank) -> Counter[Operator]:
    found: Counter[Operator] = Counter()
    for (number, variant, _, _), tasks in (rank.graph.classes() - rank.graph.own_classes()).items():
        found[Operator(rank.type_name(number), variant)] += tasks
    return found


def _skipped(consumption: Consumption, operator: Operator, side: Side) -> list[str]:
    """The tensors in the operator's slots of one side, in natural order."""
    return sorted(
        (
            tensor
            for tensor, usage in consumption.usages.items()
            if any(slot.operator == operator and slot.side is side for slot in usage.slots)
        ),
        key=natural,
    )


def _stale(consumption: Consumption, operator: Operator) -> str:
    """Which of its results others read, and who does."""
    results = [
        tensor for tensor in _skipped(consumption, operator, Side.OUTPUT) if consumption.is_read(tensor)
    ]
    readers = sorted(
        {
            slot.operator
            for tensor in results
            for slot in consumption.slots(tensor, Access.READ, Access.UPDATE, Access.MAYBE_WRITE)
        }
    )
    return (
        f"; {listed(readers)} {'reads' if len(readers) == 1 else 'read'} its stale {listed(results)}"
        if readers
        else ""
    )


def _lost(rank: Rank, consumption: Consumption, operator: Operator) -> tuple[Place, ...]:
    """The declarations of what only these tasks would have read."""
    return tuple(
        Place(rank=rank.number, tensor=tensor, text=f"{tensor}, which only these tasks would read")
        for tensor in _skipped(consumption, operator, Side.INPUT)
        if tensor in rank.declarations and not consumption.is_read(tensor)
    )
