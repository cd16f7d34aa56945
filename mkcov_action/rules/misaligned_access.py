"""MK406: tiles that a TMA descriptor cannot describe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mkcov_action.analyses.consumption import Side, SlotKey, branch_of
from mkcov_action.finding import Operator, Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural
from mkcov_action.task_graph import NULL_TENSOR, Operand
from mkcov_action.task_types import DATA_TYPE_BYTES

_ALIGNMENT = 16  # bytes: CUDA's cuTensorMapEncodeTiled asks it of the address and of all strides


@rule(id="MK406", name="misaligned-access", severity=Severity.WARNING, stage=Stage.MEMORY, since="0.1.0")
def misaligned_access(context: Context) -> Iterator[Result]:
    """A tile that the kernel takes by a TMA descriptor is not aligned to 16 bytes.

    ## What it finds
    Slots of which the body takes the TMA descriptor, and tiles in them whose byte offset, or whose
    stride along an axis of more than one element that is not the innermost, is no multiple of 16 bytes.

    ## Why it matters
    The loader only prints a warning when it cannot make such a descriptor. The kernel then loads
    through an invalid one: it faults later, or reads zeros.

    ## Example
    A tile of a bf16 matrix begins at column 4, byte 8.

    ## How to fix it
    Choose a grid whose tiles begin at multiples of 16 bytes, or pad the rows.
    """
    for rank in context.ranks:
        for (slot, tensor), (tasks, what) in _misaligned(rank).items():
            yield misaligned_access.finding(
                tensor=tensor,
                operator=slot.operator,
                tasks=tasks,
                ranks=(rank.number,),
                kind=f"{slot.side} {slot.index}",
                slots=((slot.side.value, slot.index),),
                message=f"{plural(tasks, 'task')} of {slot.operator} {'takes' if tasks == 1 else 'take'} {tensor} as"
                f" {slot.side} {slot.index} by a TMA descriptor, and {what}, no multiple of {_ALIGNMENT}",
                consequence="no valid descriptor can be made: the kernel faults, or loads something else",
                fix="choose a grid whose tiles begin at multiples of 16 bytes, or pad the rows",
            )


def _misaligned(rank: Rank) -> dict[tuple[SlotKey, str], tuple[int, str]]:
    """How many tasks of each slot and tensor are misaligned, and how the first of them is."""
    graph = rank.graph
    forms: dict[tuple[object, ...], str] = {}  # few forms, many tiles
    reasons = []
    for operand in graph.operands:
        form = operand[2:]
        if form not in forms:
            forms[form] = _reason(operand._replace(offset=0, tensor=""))
        shifted = operand.offset % _ALIGNMENT and operand.tensor != NULL_TENSOR
        reasons.append(_reason(operand) if shifted else forms[form])
    if not any(reasons):
        return {}
    found: dict[tuple[SlotKey, str], tuple[int, str]] = {}
    rows = Counter(zip(graph.task_type, graph.variant_id, graph.inputs, graph.outputs, strict=True))
    for (number, variant, inputs, outputs), tasks in rows.items():
        operator = Operator(rank.type_name(number), variant)
        branch = branch_of(rank, operator)
        for side, index in sorted(branch.tma) if branch else ():
            operands = graph.operand_lists[inputs if side == "input" else outputs]
            if index < len(operands) and (reason := reasons[operands[index]]):
                key = SlotKey(operator, Side(side), index), graph.operands[operands[index]].tensor
                known = found.get(key, (0, reason))
                found[key] = known[0] + tasks, known[1]
    return found


def _reason(operand: Operand) -> str:
    """What of a tile is misaligned; nothing where it is aligned or cannot be told."""
    size = DATA_TYPE_BYTES.get(operand.data_type)
    if size is None or operand.tensor == NULL_TENSOR or 0 in operand.dims:
        return ""
    if operand.offset % _ALIGNMENT:
        return f"a tile begins at byte {operand.offset:,}"
    for dim, stride in zip(operand.dims, operand.strides, strict=False):
        if dim > 1 and stride > 1 and stride * size % _ALIGNMENT:
            return f"a stride is {stride * size:,} bytes"
    return ""
