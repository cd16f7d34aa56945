"""The views of operators and of layers: their calls in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mkcov_action.finding import Operator
from mkcov_action.neighbourhood.model import LayerView, OperatorView, SlotUseView, WiredCall
from mkcov_action.neighbourhood.sight import Sight
from mkcov_action.task_graph import NULL_TENSOR


def operators_of(sight: Sight) -> list[Operator]:
    """The operators of a rank in the order of their first calls."""
    return list(dict.fromkeys(call.operator for call in sight.operators.calls))


def layers_of(sight: Sight) -> list[int]:
    """The numbers of a rank's layers, ascending."""
    return sorted({call.layer for call in sight.operators.calls if call.layer is not None})


def operator_view(sight: Sight, operator: Operator) -> OperatorView:
    """The view of an operator of the rank."""
    branch, place = sight.branch(operator)
    calls = [(index, call) for index, call in enumerate(sight.operators.calls) if call.operator == operator]
    indices = [index for index, _ in calls]
    return OperatorView(
        operator=str(operator),
        task_type=operator.type_name,
        task_type_number=calls[0][1].type_number,
        variant=operator.variant,
        dispatch=sight.dispatch(operator),
        branch=place,
        slots=tuple(
            SlotUseView(
                side=slot.side, slot=slot.index, role=slot.role.name if slot.role else None, access=access
            )
            for slot, access in sight.slots(operator)
        ),
        metadata=tuple(sorted(branch.metadata)) if branch else (),
        config=tuple(sorted(branch.config)) if branch else (),
        tasks=sum(call.tasks for _, call in calls),
        never_run=_never_run(sight, indices),
        calls=tuple(wired(sight, index) for index in indices),
    )


def layer_view(sight: Sight, layer: int) -> LayerView:
    """The view of a layer of the rank."""
    calls = [index for index, call in enumerate(sight.operators.calls) if call.layer == layer]
    return LayerView(
        layer=layer,
        tasks=sum(sight.operators.calls[index].tasks for index in calls),
        never_run=_never_run(sight, calls),
        calls=tuple(wired(sight, index) for index in calls),
    )


def wired(sight: Sight, index: int) -> WiredCall:
    """A call with its tensors."""
    call = sight.operators.calls[index]
    return WiredCall(call=sight.call(index), inputs=_tensors(call.inputs), outputs=_tensors(call.outputs))


def _tensors(names: Sequence[str]) -> tuple[str | None, ...]:
    return tuple(None if name == NULL_TENSOR else name for name in names)


def _never_run(sight: Sight, calls: Iterable[int]) -> int:
    return sum(sight.never_run[index] for index in calls)
