"""MK405: one tensor under two data types."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from mkcov_action.analyses.consumption import Access, Side, SlotKey
from mkcov_action.finding import Operator, Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed
from mkcov_action.task_graph import NULL_TENSOR
from mkcov_action.task_types import DATA_TYPE_NAMES


@rule(id="MK405", name="inconsistent-type", severity=Severity.WARNING, stage=Stage.MEMORY, since="0.1.0")
def inconsistent_type(context: Context) -> Iterator[Result]:
    """A tensor has one data type in some tasks and another one in others.

    ## What it finds
    Tasks that name the same tensor with different `data_type`, through slots that their kernels use.

    ## Why it matters
    The bytes are the same. A kernel that takes them for bf16 where another wrote fp8 computes noise,
    and its tiles lie at other offsets than it thinks.

    ## Example
    A linear reads the scales of a quantized input as bf16, and the quantize kernel writes fp32.

    ## How to fix it
    Attach or allocate the tensor once with its type, and let every layer take that.
    """
    for rank in context.ranks:
        for tensor, types in _mixed(rank).items():
            users = _users(context, rank, tensor)
            if len(users) < 2:
                continue  # the other types stand in slots that no kernel uses
            shown = [f"{_name(number)} by {listed(sorted(users[number]))}" for number in sorted(users)]
            yield inconsistent_type.finding(
                tensor=tensor,
                ranks=(rank.number,),
                kind=" ".join(map(_name, sorted(types))),
                message=f"{tensor} is used as {' and as '.join(shown)}",
                consequence="one of them takes the bytes for something that they are not",
                fix="let every layer take the tensor with the type that it was made with",
            )


def _name(number: int) -> str:
    return DATA_TYPE_NAMES.get(number, f"type {number}")


def _mixed(rank: Rank) -> dict[str, set[int]]:
    """The tensors that are named with several types, anywhere."""
    types: defaultdict[str, set[int]] = defaultdict(set)
    for tensor, data_type in {(operand.tensor, operand.data_type) for operand in rank.graph.operands}:
        types[tensor].add(data_type)
    return {tensor: found for tensor, found in types.items() if len(found) > 1 and tensor != NULL_TENSOR}


def _users(context: Context, rank: Rank, tensor: str) -> dict[int, set[Operator]]:
    """The operators that use the tensor, by the type under which they do."""
    graph, accesses = rank.graph, context.consumption(rank).accesses
    places = [
        [
            (index, graph.operands[operand].data_type)
            for index, operand in enumerate(operands)
            if graph.operands[operand].tensor == tensor
        ]
        for operands in graph.operand_lists
    ]
    users: defaultdict[int, set[Operator]] = defaultdict(set)
    kinds = set(zip(graph.task_type, graph.variant_id, graph.inputs, graph.outputs, strict=True))
    for number, variant, inputs, outputs in kinds:
        operator = Operator(rank.type_name(number), variant)
        for side, operands in ((Side.INPUT, inputs), (Side.OUTPUT, outputs)):
            for index, data_type in places[operands]:
                access = accesses[SlotKey(operator, side, index)]
                if access not in (Access.IGNORED, Access.DUMMY, Access.SKIPPED):
                    users[data_type].add(operator)
    return users
