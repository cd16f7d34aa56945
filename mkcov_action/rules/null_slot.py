"""MK106: nullptr where a tensor must be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mkcov_action.analyses.consumption import SlotKey, branch_of
from mkcov_action.analyses.null_slots import Occupancy, step_flags, step_slots
from mkcov_action.finding import Finding, Operator, Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural


@rule(id="MK106", name="null-slot", severity=Severity.ERROR, stage=Stage.WIRING, since="0.1.0")
def null_slot(context: Context) -> Iterator[Result]:
    """A slot holds nullptr that may not, or not alone.

    ## What it finds
    Only attention may leave slots null: its two norms, and its two rotary tables, each pair together.
    Reported are nullptr in any other slot that the kernel uses; one of a pair null and the other not;
    a pair that is null although the kernel's flag takes the step; and tables that are given although
    the flag leaves the step out.

    ## Why it matters
    The kernel dereferences what the flag promises: a null pointer then ends the process or, worse,
    reads what lies at the start of memory. Tables that are given and not used are a step that the
    model lost in silence.

    ## Example
    `layer_1_q_norm` is passed to the attention of layer 1 and `layer_1_k_norm` is not.

    ## How to fix it
    Pass both tensors of the pair, or none, and generate again.
    """
    for rank in context.ranks:
        found: Counter[_Defect] = Counter()
        for occupancy, tasks in context.occupancies(rank).items():
            for defect in _defects(rank, occupancy):
                found[defect] += tasks
        for defect, tasks in found.items():
            yield _finding(rank, defect, tasks)
        for operator in sorted({occupancy.operator for occupancy in context.occupancies(rank)}):
            if step_slots(operator) and not step_flags(branch_of(rank, operator)):
                yield null_slot.not_checked(
                    f"{operator}: its body does not tell whether it takes its optional steps"
                )
        for slot in sorted({slot for occupancy in context.occupancies(rank) for slot in occupancy.nulls}):
            if slot.role is None:
                yield null_slot.not_checked(f"{slot} is nullptr, and what that slot is for is not known")


@dataclass(frozen=True, slots=True)
class _Defect:
    """What is wrong with an operator's slots; `nulls` are those that should hold a tensor."""

    operator: Operator
    kind: str
    message: str
    nulls: tuple[SlotKey, ...] = ()


def _finding(rank: Rank, defect: _Defect, tasks: int) -> Finding:
    given = not defect.nulls
    return null_slot.finding(
        operator=defect.operator,
        ranks=(rank.number,),
        kind=defect.kind,
        tasks=tasks,
        slots=tuple((slot.side.value, slot.index) for slot in defect.nulls),
        message=f"{defect.message} in {plural(tasks, 'task')}",
        consequence="the model computes without this step, although its tensors are there"
        if given
        else "the kernel reads through a null pointer",
        fix="let the layer's flags and its tensors agree, and generate again"
        if given
        else "pass the tensor to the layer in the model builder, and generate again",
    )


def _defects(rank: Rank, occupancy: Occupancy) -> Iterator[_Defect]:
    operator = occupancy.operator
    flags = step_flags(branch_of(rank, operator))
    steps = step_slots(operator)
    for step, slots in steps.items():
        nulls = tuple(slot for slot in slots if slot in occupancy.nulls)
        if nulls and len(nulls) < len(slots):
            others = _names([slot for slot in slots if slot not in nulls])
            message = f"{nulls[0]} is nullptr and its other half ({others}) is not"
            yield _Defect(operator, f"half {step}", message, nulls)
        elif nulls and flags.get(step) is True:
            message = f"{_names(slots)} of {operator} are nullptr and its body takes the {step} step"
            yield _Defect(operator, f"null {step}", message, nulls)
        elif not nulls and flags.get(step) is False:
            message = f"{_names(slots)} of {operator} are given and its body skips the {step} step"
            yield _Defect(operator, f"unused {step}", message)
    optional = {slot for slots in steps.values() for slot in slots}
    for slot in sorted(occupancy.nulls - optional):
        if slot.role is not None and not slot.role.nullable:
            yield _Defect(operator, f"{slot.side} {slot.index}", f"{slot} is nullptr", (slot,))


def _names(slots: Sequence[SlotKey]) -> str:
    return " and ".join(slot.role.name for slot in slots if slot.role)
