"""MK506: a residual that one rank adds, and no sum over the ranks behind it."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.analyses.consumption import Access, Consumption, Side, SlotKey, branch_of
from mkcov_action.finding import Operator, Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed, plural
from mkcov_action.task_types import ALL_REDUCES, PUTS, OptionalUse


@rule(id="MK506", name="unreduced-partial", severity=Severity.WARNING, stage=Stage.RANKS, since="0.1.0")
def unreduced_partial(context: Context) -> Iterator[Result]:
    """Only one rank adds the residual, and the result is not summed over the ranks.

    ## What it finds
    Operators whose body leaves their residual out on ranks above 0 (it prints `nullptr` for it, or
    asks for the rank), and whose result no put and no all-reduce takes.

    ## Why it matters
    The residual is left out so that a sum over the ranks counts it once. Without the sum the other
    ranks go on without the residual stream, and each with a part of the product.

    ## Example
    The output projection of the attention is sharded over its inputs and goes straight into a norm.

    ## How to fix it
    Put an all-reduce behind the operator, or let every rank add the residual if it is not sharded.
    """
    size = context.megakernel.world_size
    if size is None or size < 2:
        return
    for rank in context.ranks:
        consumption = context.consumption(rank)
        reduced = _reduced(consumption)
        for slot in sorted(_left_out(rank, consumption)):
            results = _results(consumption, slot.operator)
            lost = [tensor for tensor in results if tensor not in reduced]
            if not lost:
                continue
            tasks = sum(usage.slots.get(slot, 0) for usage in consumption.usages.values())
            yield unreduced_partial.finding(
                operator=slot.operator,
                tasks=tasks,
                ranks=(rank.number,),
                message=f"{plural(tasks, 'task')} of {slot.operator} leave the residual to rank 0, and no all-reduce or put"
                f" takes {listed(lost)}",
                consequence=f"rank {rank.number} goes on without the residual, and each rank with a part of the sum",
                fix="put an all-reduce behind this operator, or let every rank add the residual if nothing is sharded",
            )


def _left_out(rank: Rank, consumption: Consumption) -> Iterator[SlotKey]:
    """The residual slots that this rank, not being rank 0, leaves out."""
    for slot, access in consumption.accesses.items():
        if rank.number == 0 or slot.role is None or slot.role.optional_use is not OptionalUse.RESIDUAL:
            continue
        branch = branch_of(rank, slot.operator)
        if access is Access.IGNORED or (branch is not None and "my_gpu_id" in branch.config):
            yield slot


def _results(consumption: Consumption, operator: Operator) -> list[str]:
    return sorted(
        tensor
        for tensor, usage in consumption.usages.items()
        if any(slot.operator == operator and slot.side is Side.OUTPUT for slot in usage.slots)
    )


def _reduced(consumption: Consumption) -> set[str]:
    """The tensors that a put or an all-reduce takes."""
    return {
        tensor
        for tensor, usage in consumption.usages.items()
        if any(
            slot.operator.type_name in ALL_REDUCES | PUTS and slot.side is Side.INPUT for slot in usage.slots
        )
    }
