"""MK202: a body that takes a slot which its task does not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from mkcov_action.analyses.consumption import Side, SlotKey, branch_of
from mkcov_action.finding import Operator, Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed, plural, verb


@rule(id="MK202", name="slot-out-of-range", severity=Severity.ERROR, stage=Stage.DISPATCH, since="0.1.0")
def slot_out_of_range(context: Context) -> Iterator[Result]:
    """A kernel's body takes a slot that its tasks do not have.

    ## What it finds
    Each slot that a dispatch branch names (`input_ptrs[2]`, `output_ptrs[0]`) must exist in every task
    of its type and variant.

    ## Why it matters
    The descriptor on the device copies only as many pointers as the task has. A slot behind them is no
    null pointer, it is whatever the memory held: the kernel reads or writes at a random address.

    ## Example
    A body names `input_ptrs[2]` for the residual, and its tasks have two inputs.

    ## How to fix it
    Give the operator all the tensors that its kernel takes, and generate both files in one run.
    """
    for rank in context.ranks:
        for short, tasks in sorted(_short(rank).items(), key=lambda item: item[0].operator):
            slots = short.slots
            have = plural(short.count, short.side.value)
            yield slot_out_of_range.finding(
                operator=short.operator,
                tasks=tasks,
                ranks=(rank.number,),
                kind=f"{short.side} {short.count}",
                slots=tuple((slot.side.value, slot.index) for slot in slots),
                message=f"{plural(tasks, 'task')} of {short.operator} {verb(tasks)} {have},"
                f" and the body takes {listed([_named(slot) for slot in slots])}",
                consequence="the kernel follows an uninitialised pointer",
                fix="pass all the tensors that the kernel takes, and generate both files in one run",
            )


@dataclass(frozen=True, slots=True)
class _Short:
    """Tasks of one operator with the same number of inputs or outputs, and the slots that they lack."""

    operator: Operator
    side: Side
    count: int
    slots: tuple[SlotKey, ...]


def _short(rank: Rank) -> Counter[_Short]:
    found: Counter[_Short] = Counter()
    lists = rank.graph.tensor_lists
    for (number, variant, inputs, outputs), tasks in rank.graph.classes().items():
        operator = Operator(rank.type_name(number), variant)
        branch = branch_of(rank, operator)
        if branch is None:
            continue
        for side, used, names in (
            (Side.INPUT, branch.inputs, inputs),
            (Side.OUTPUT, branch.outputs, outputs),
        ):
            count = len(lists[names])
            lacking = sorted(index for index in used or () if index >= count)
            if lacking:
                slots = tuple(SlotKey(operator, side, index) for index in lacking)
                found[_Short(operator, side, count, slots)] += tasks
    return found


def _named(slot: SlotKey) -> str:
    role = f" ({slot.role.name})" if slot.role else ""
    return f"{slot.side} {slot.index}{role}"
