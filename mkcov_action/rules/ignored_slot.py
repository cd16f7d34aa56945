"""MK105: a tensor in a slot that the kernel never uses."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.analyses.consumption import Access, SlotKey, branch_of
from mkcov_action.analyses.dispatch import Dispatch
from mkcov_action.finding import Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural


@rule(id="MK105", name="ignored-slot", severity=Severity.WARNING, stage=Stage.WIRING, since="0.1.0")
def ignored_slot(context: Context) -> Iterator[Result]:
    """A tensor sits in a slot that the kernel's body never names.

    ## What it finds
    A tensor that is read elsewhere and is also listed for tasks whose dispatch branch does not use
    that slot. Slots that exist only to order tasks, and the residual that ranks above 0 leave out,
    are not meant.

    ## Why it matters
    The task graph says that the task takes the tensor; the kernel ignores it. Whoever counts
    references sees a consumer that does not exist.

    ## Example
    A linear with a residual whose body prints `nullptr` for the residual.

    ## How to fix it
    Use the slot in the kernel's body, or drop the tensor from the layer's inputs.
    """
    for rank in context.ranks:
        if rank.kernel is None or rank.kernel.dispatcher is None:
            yield ignored_slot.not_checked(
                "the form of the dispatcher is not known: every slot is taken as used"
            )
            continue
        consumption = context.consumption(rank)
        for operator in sorted({slot.operator for slot in consumption.accesses}):
            branch = branch_of(rank, operator)
            if consumption.dispatch[operator] is Dispatch.MISSING:
                continue  # MK201 says so
            if branch is None:
                yield ignored_slot.not_checked(
                    f"{operator} has no branch in the dispatcher: its slots are taken as used"
                )
            elif branch.inputs is None or branch.outputs is None:
                yield ignored_slot.not_checked(
                    f"{operator}: which slots its body uses cannot be told: all are taken as used"
                )
        for name in rank.declarations:
            if not consumption.is_read(name):
                continue
            for slot in consumption.slots(name, Access.IGNORED):
                if _meant_so(rank, slot):
                    continue
                tasks = plural(consumption.of(name).slots[slot], "task")
                yield ignored_slot.finding(
                    tensor=name,
                    operator=slot.operator,
                    ranks=(rank.number,),
                    kind=f"{slot.side} {slot.index}",
                    message=f"{name} is {slot} in {tasks}, and the kernel never uses that slot",
                    consequence="the task graph promises a consumer that the kernel does not have",
                    fix="use the slot in the kernel's body, or drop the tensor from this layer",
                )


def _meant_so(rank: Rank, slot: SlotKey) -> bool:
    branch = branch_of(rank, slot.operator)
    return slot.role is not None and slot.role.may_be_unnamed(rank.number, branch.config if branch else ())
