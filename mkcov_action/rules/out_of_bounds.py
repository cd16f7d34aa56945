"""MK401: a tile that ends behind its tensor's memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from mkcov_action.analyses.accesses import Precision, region_of
from mkcov_action.analyses.consumption import Access, Side, SlotKey
from mkcov_action.finding import Operator, Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed, plural
from mkcov_action.task_types import Extent


@rule(id="MK401", name="out-of-bounds", severity=Severity.ERROR, stage=Stage.MEMORY, since="0.1.0")
def out_of_bounds(context: Context) -> Iterator[Result]:
    """A task's tile ends behind the memory that its tensor has.

    ## What it finds
    The offset and extent of every tile whose bytes are exactly what the kernel accesses, against the
    bytes that the kernel allocates for the tensor: scratch, symmetric memory and fused weights. The
    size of attached tensors is not known from the two files.

    ## Why it matters
    The task reads or writes its neighbour's memory. Nothing faults as long as something lies there.

    ## Example
    A buffer was allocated for a batch of 8 and the graph generated for 16.

    ## How to fix it
    Allocate what the layers use, and generate both files in one run.
    """
    for rank in context.ranks:
        groups: defaultdict[str, list[_Excess]] = defaultdict(list)
        for excess in _excesses(context, rank):
            groups[excess.tensor].append(excess)
        for tensor, found in groups.items():
            worst = max(found, key=lambda excess: excess.stop)
            tasks = sum(excess.tasks for excess in found)
            operators = sorted({excess.slot.operator for excess in found})
            size = rank.declarations[tensor].bytes or 0
            yield out_of_bounds.finding(
                tensor=tensor,
                ranks=(rank.number,),
                tasks=tasks,
                message=f"{plural(tasks, 'task')} of {listed(operators)} {'goes' if tasks == 1 else 'go'} past the end of"
                f" {tensor} ({plural(size, 'byte')}): {worst.slot} ends at byte {worst.stop:,}",
                consequence="the kernel reads or writes what lies behind the buffer",
                fix="allocate the size that the layers use, and generate both files in one run",
            )


@dataclass(frozen=True, slots=True)
class _Excess:
    """Tasks that go past the end of a tensor through one slot, and the byte behind their tile."""

    tensor: str
    slot: SlotKey
    stop: int
    tasks: int


def _excesses(context: Context, rank: Rank) -> Iterator[_Excess]:
    graph = rank.graph
    sizes = {name: item.bytes for name, item in rank.declarations.items() if item.bytes is not None}
    extents: dict[tuple[object, ...], int] = {}  # tiles of one form are equally long: few forms, many tiles
    suspects = set()
    for place, tile in enumerate(graph.operands):
        if tile.tensor in sizes:
            form = tile[2:]
            if form not in extents:
                extents[form] = region_of(tile._replace(offset=0), Extent.EXACT)[0].stop
            if extents[form] and tile.offset + extents[form] > sizes[tile.tensor]:
                suspects.add(place)
    if not suspects:
        return
    accesses = context.consumption(rank).accesses
    lists = [any(operand in suspects for operand in operands) for operands in graph.operand_lists]
    counts: defaultdict[tuple[int, int, Side, int], int] = defaultdict(int)
    for task, (inputs, outputs) in enumerate(zip(graph.inputs, graph.outputs, strict=True)):
        for side, operands in ((Side.INPUT, inputs), (Side.OUTPUT, outputs)):
            if lists[operands]:
                counts[graph.task_type[task], graph.variant_id[task], side, operands] += 1
    for (number, variant, side, operands), tasks in counts.items():
        operator = Operator(rank.type_name(number), variant)
        for index, operand in enumerate(graph.operand_lists[operands]):
            slot = SlotKey(operator, side, index)
            unused = accesses[slot] in (Access.IGNORED, Access.DUMMY, Access.SKIPPED)
            if operand not in suspects or unused or slot.role is None or slot.role.extent is Extent.SUPERSET:
                continue
            tensor = graph.operands[operand].tensor
            region, precision = region_of(graph.operands[operand], slot.role.extent)
            if precision is Precision.EXACT and region.stop > (sizes[tensor] or 0):
                yield _Excess(tensor, slot, region.stop, tasks)
