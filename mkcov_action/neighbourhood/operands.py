"""The slots of one task, as its view shows them."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.analyses.consumption import Access, Side, SlotKey, branch_of
from mkcov_action.analyses.spans import span_of
from mkcov_action.finding import Operator
from mkcov_action.neighbourhood.model import SlotView
from mkcov_action.neighbourhood.sight import Sight
from mkcov_action.task_graph import NULL_TENSOR, Operand
from mkcov_action.task_types import DATA_TYPE_NAMES, Slot


def data_type_name(number: int) -> str:
    """The name of a `data_type`, `dtype <n>` where none is known."""
    return DATA_TYPE_NAMES.get(number, f"dtype {number}")


def slots_of(sight: Sight, task: int, operator: Operator) -> Iterator[SlotView]:
    """A task's slots, inputs first; on each side then those that its body names and it does not have."""
    graph = sight.graph
    branch = branch_of(sight.rank, operator)
    named_by_body = {Side.INPUT: branch and branch.inputs, Side.OUTPUT: branch and branch.outputs}
    lists = {Side.INPUT: graph.inputs[task], Side.OUTPUT: graph.outputs[task]}
    for side, which in lists.items():
        for index, place in enumerate(graph.operand_lists[which]):
            yield _present(sight, SlotKey(operator, side, index), graph.operands[place])
        has = len(graph.operand_lists[which])
        named = named_by_body[side]
        yield from (_absent(SlotKey(operator, side, index)) for index in sorted(named or ()) if index >= has)


def _present(sight: Sight, slot: SlotKey, tile: Operand) -> SlotView:
    null = tile.tensor == NULL_TENSOR
    span = None if null else span_of(tile)
    return SlotView(
        side=slot.side,
        slot=slot.index,
        role=_role_name(slot.role),
        access=sight.consumption.accesses[slot],
        extent=slot.role.extent if slot.role else None,
        present=True,
        tensor=None if null else tile.tensor,
        offset=None if null else tile.offset,
        bytes=span[1] - span[0] if span else None,
        data_type=None if null else data_type_name(tile.data_type),
        dims=tile.dims,
        strides=tile.strides,
    )


def _absent(slot: SlotKey) -> SlotView:
    """A slot past the end of the task's list: the body finds whatever the memory holds there."""
    return SlotView(
        side=slot.side,
        slot=slot.index,
        role=_role_name(slot.role),
        access=Access.READ if slot.side is Side.INPUT else Access.WRITE,
        extent=None,
        present=False,
        tensor=None,
        offset=None,
        bytes=None,
        data_type=None,
        dims=(),
        strides=(),
    )


def _role_name(role: Slot | None) -> str | None:
    return role.name if role else None
