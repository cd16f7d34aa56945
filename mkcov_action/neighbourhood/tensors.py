"""The view of a tensor: where it is declared, and what each layer call does to it."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.analyses.consumption import Side, SlotKey
from mkcov_action.analyses.spans import hull, span_of
from mkcov_action.kernel_source import Declaration
from mkcov_action.neighbourhood.model import TensorAccess, TensorView
from mkcov_action.neighbourhood.operands import data_type_name
from mkcov_action.neighbourhood.sight import Sight
from mkcov_action.task_graph import NULL_TENSOR


def tensors_of(sight: Sight) -> list[str]:
    """Every tensor of a rank: the declared in the order of the kernel, then those only tasks name."""
    used = (name for names in sight.graph.tensor_lists for name in names if name != NULL_TENSOR)
    return list(dict.fromkeys((*sight.rank.declarations, *used)))


def tensor_view(sight: Sight, name: str) -> TensorView:
    """The view of a tensor that the rank declares or a task names."""
    declaration = sight.rank.declarations.get(name)
    usage = sight.consumption.of(name)
    return TensorView(
        name=name,
        origin=declaration.origin if declaration else None,
        bytes=declaration.bytes if declaration else None,
        declared=sight.kernel_line(declaration.line) if declaration else None,
        sources=_sources(declaration),
        input_refs=usage.input_refs,
        output_refs=usage.output_refs,
        read=sight.consumption.is_read(name),
        written=sight.consumption.is_written(name),
        accesses=tuple(_accesses(sight, name)),
    )


def _sources(declaration: Declaration | None) -> tuple[str | None, ...]:
    return tuple(copy.source for copy in declaration.copies) if declaration else ()


def _accesses(sight: Sight, name: str) -> Iterator[TensorAccess]:
    for index, call in enumerate(sight.operators.calls):
        for side, names in ((Side.INPUT, call.inputs), (Side.OUTPUT, call.outputs)):
            for slot, tensor in enumerate(names):
                if tensor == name:
                    yield _access(sight, index, SlotKey(call.operator, side, slot))


def _access(sight: Sight, index: int, slot: SlotKey) -> TensorAccess:
    graph = sight.graph
    lists = graph.inputs if slot.side is Side.INPUT else graph.outputs
    found = dict.fromkeys(map(lists.__getitem__, sight.tasks_of(index)))
    tiles = dict.fromkeys(graph.operands[graph.operand_lists[which][slot.index]] for which in found)
    span = hull(map(span_of, tiles))
    return TensorAccess(
        call=sight.call(index),
        side=slot.side,
        slot=slot.index,
        role=slot.role.name if slot.role else None,
        access=sight.consumption.accesses[slot],
        extent=slot.role.extent if slot.role else None,
        start=span[0] if span else None,
        stop=span[1] if span else None,
        tiles=len(tiles),
        data_types=tuple(dict.fromkeys(data_type_name(tile.data_type) for tile in tiles)),
    )
