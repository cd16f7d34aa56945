"""MK507: a residual that every rank adds before the ranks are summed."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.analyses.consumption import Access, SlotKey
from mkcov_action.finding import Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import readers
from mkcov_action.task_types import ALL_REDUCES, INITIALISERS, PUTS


@rule(id="MK507", name="multiplied-residual", severity=Severity.ERROR, stage=Stage.RANKS, since="0.1.0")
def multiplied_residual(context: Context) -> Iterator[Result]:
    """A partial sum is added into a buffer that already holds the residual, on every rank.

    ## What it finds
    The input of an all-reduce into which a split-K operator adds, and which another operator that is
    no initialiser writes as well, on every rank that was audited of several.

    ## Why it matters
    The all-reduce sums the buffers of all ranks. What each of them held before, the residual stream,
    is counted as often as there are ranks, and grows with every layer.

    ## Example
    The builder lets the split-K projection add into `x`, as it may on one rank, and reduces `x` over two.

    ## How to fix it
    Let split-K add into a buffer that TENSOR_INIT clears, and add the residual after the all-reduce
    or on rank 0 only.
    """
    size = context.megakernel.world_size
    if size is None or size < 2 or not context.ranks:
        return
    found = [_multiplied(context, rank) for rank in context.ranks]
    for tensor in found[0]:
        if all(tensor in of_rank for of_rank in found):
            adding, writing = found[0][tensor]
            yield multiplied_residual.finding(
                tensor=tensor,
                operator=adding[0].operator,
                ranks=tuple(rank.number for rank in context.ranks),
                message=f"{readers(adding)} adds into {tensor}, which {readers(writing)} writes as well, and the"
                f" all-reduce sums it over {size:,} ranks",
                consequence=f"what {tensor} held before is counted {size:,} times",
                fix="let the partial sums go into a cleared buffer, and add the residual once",
            )


def _multiplied(context: Context, rank: Rank) -> dict[str, tuple[list[SlotKey], list[SlotKey]]]:
    """The reduced tensors that are added into and written: the adding slots, and the writing ones."""
    consumption = context.consumption(rank)
    found = {}
    for tensor, usage in consumption.usages.items():
        if not any(
            slot.operator.type_name in ALL_REDUCES | PUTS and consumption.accesses[slot].reads
            for slot in usage.slots
        ):
            continue
        adding = consumption.slots(tensor, Access.ACCUMULATE)
        writing = [
            slot
            for slot in consumption.slots(tensor, Access.WRITE, Access.UPDATE)
            if slot.operator.type_name not in INITIALISERS | ALL_REDUCES
        ]
        if adding and writing:
            found[tensor] = adding, writing
    return found
