"""How findings of dispatch and order speak of layer calls: by type and layer, a few examples, members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mkcov_action.analyses.operators import OperatorCall
from mkcov_action.finding import ranges
from mkcov_action.megakernel import Rank
from mkcov_action.rules._context import Context
from mkcov_action.rules._wording import listed


def calls_of(context: Context, rank: Rank, tasks: Iterable[int]) -> list[OperatorCall]:
    """The layer calls that some tasks belong to, in order; tasks 0 and 1 belong to none."""
    operators = context.operators(rank)
    return [
        operators.calls[index] for index in sorted({operators.operator_of[task] for task in tasks} - {-1})
    ]


def named(call: OperatorCall) -> str:
    """`TASK_LINEAR variant 2 of layer 3`."""
    return f"{call.operator}{'' if call.layer is None else f' of layer {call.layer}'}"


def types(calls: Iterable[OperatorCall]) -> str:
    """The types of some calls, each once."""
    return listed(list(dict.fromkeys(call.operator.type_name for call in calls)))


def layers(calls: Iterable[OperatorCall]) -> str:
    """` in layers 3-60`; nothing where no call has one."""
    found = sorted({call.layer for call in calls if call.layer is not None})
    return f" in layer{'' if len(found) == 1 else 's'} {ranges(found)}" if found else ""


def members(calls: Sequence[OperatorCall]) -> tuple[str, ...]:
    """What repeats, by layer: `layer 3`, with the first task where a layer repeats it or has no number."""
    names = [f"task {call.first}" if call.layer is None else f"layer {call.layer}" for call in calls]
    return tuple(
        name if names.count(name) == 1 else f"{name}, task {call.first}"
        for name, call in zip(names, calls, strict=True)
    )
