"""GraphBuilder: one rank's kernel and task graph, built from tensors and operators."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from tools.builder.errors import BuilderError
from tools.builder.forms import PUT, form_of
from tools.builder.kernel_text import Dispatcher, write_body, write_kernel
from tools.builder.metadata import read_rule
from tools.builder.operators import Grid, Operator, Placed, Slot, place_all
from tools.builder.plan import Plan, plan
from tools.builder.task_graph_text import task_graph_pieces
from tools.builder.tensors import (
    Tensor,
    declare_model,
    declare_scratch,
    declare_shuffled,
    declare_symmetric,
)
from tools.builder.writing import Compression, Naming, write_rank

Graph = dict[str, Any]


class GraphBuilder:
    """Builds both artifacts of one rank.

    Tensors are declared and operators called in the order of the calls, as in a model's Python. Each
    operator waits for the one before it unless told otherwise, so a graph whose calls are in an
    order that makes sense has no races.
    """

    def __init__(self, rank: int = 0, world_size: int = 1) -> None:
        if not 0 <= rank < world_size:
            raise BuilderError(f"rank {rank} is not one of {world_size}")
        self.rank = rank
        self.world_size = world_size
        self.operators: list[Operator] = []
        self._declarations: dict[str, list[str]] = {}
        self._raw_lines = 0
        self._dispatcher = Dispatcher()
        self._graph_patches: list[Callable[[Graph], object]] = []
        self._kernel_patches: list[Callable[[str], str]] = []

    # --- tensors ----------------------------------------------------------------------------------

    def model(self, name: str, shape: Sequence[int], dtype: str = "bf16") -> Tensor:
        """A tensor that Python attaches: a weight, a table, a cache, a token."""
        tensor = Tensor(name, tuple(shape), dtype)
        return self._declare(tensor, declare_model(tensor))

    def scratch(self, name: str, shape: Sequence[int], dtype: str = "bf16") -> Tensor:
        """Uninitialised memory of this rank."""
        tensor = Tensor(name, tuple(shape), dtype)
        return self._declare(tensor, declare_scratch(tensor))

    def symmetric(self, name: str, shape: Sequence[int], dtype: str = "bf16") -> Tensor:
        """Uninitialised memory that the other ranks write to and read from."""
        tensor = Tensor(name, tuple(shape), dtype)
        return self._declare(tensor, declare_symmetric(tensor))

    def shuffled(
        self, name: str, sources: Mapping[str, tuple[int, int]], groups: int, dtype: str = "bf16"
    ) -> Tensor:
        """A weight that the kernel copies together from `sources` (name -> shape), interleaved."""
        rows = {source: shape[0] for source, shape in sources.items()}
        columns = {shape[1] for shape in sources.values()}
        if len(columns) != 1:
            raise BuilderError(f"{name}: its sources have different widths: {sorted(columns)}")
        tensor = Tensor(name, (sum(rows.values()), columns.pop()), dtype)
        return self._declare(tensor, declare_shuffled(tensor, rows, groups))

    def undeclared(self, name: str, shape: Sequence[int], dtype: str = "bf16") -> Tensor:
        """A tensor that tasks may name although the kernel never declares it."""
        return Tensor(name, tuple(shape), dtype)

    def raw_declaration(self, *lines: str) -> None:
        """Puts lines of any kind among the declarations."""
        self._raw_lines += 1
        self._declarations[f"raw lines {self._raw_lines}"] = list(lines)

    def _declare(self, tensor: Tensor, lines: list[str]) -> Tensor:
        if tensor.name in self._declarations:
            raise BuilderError(f"{tensor.name} is declared twice")
        self._declarations[tensor.name] = lines
        return tensor

    # --- operators --------------------------------------------------------------------------------

    def operator(
        self,
        type_name: str | int,
        inputs: Sequence[Slot],
        outputs: Sequence[Slot] = (),
        *,
        grid: int | tuple[int, ...] = 1,
        waits_for: Operator | Sequence[Operator] | None = None,
        shares: int = 1,
        number: int | None = None,
        metadata: str = "",
        arguments: str = "",
        ignores: Sequence[str] = (),
        flags: Mapping[str, bool] | None = None,
        body: str = "",
        variant: int | None = None,
        dispatch: bool = True,
    ) -> Operator:
        """Calls a layer.

        `type_name` is one of Mirage's TASK_ names, a fork's with its `number`, or a bare number, with
        which the dispatcher then compares. How the grid divides each tensor, the metadata and the
        body follow from the type; a `Tile`, `metadata`, `arguments` (see `Form`) or `body` (raw
        text) say otherwise. `ignores` names slots that the body leaves out (`"i2"`), `flags` sets its
        `qk_norm` and `rope`.

        `waits_for` is the operator before unless given; `()` makes a first operator. With `shares`
        the edge is cut into up to so many events, each from an equal share of the producers' tiles to
        the like share of the consumer's, which is right where both divide the same axis in order.
        `dispatch=False` leaves out the dispatcher's branch, `variant`
        fixes its number.
        """
        literal = isinstance(type_name, int)
        name = f"TYPE_{type_name}" if literal else str(type_name)
        form = form_of(name, int(type_name) if literal else number, (len(inputs), len(outputs)))
        size = _grid(grid)
        read_rule(metadata or form.metadata, size)  # says now what is wrong with it
        sources = place_all(inputs, form.inputs, size)
        targets = self._shift_put(name, sources, place_all(outputs, form.outputs, size))
        text = body or write_body(
            name, arguments or form.arguments, (sources, targets), flags=flags or {}, ignores=ignores
        )
        result = Operator(
            type_name=name,
            number=form.number,
            variant=self._dispatcher.add(form.number, str(type_name), text, variant, dispatch=dispatch),
            inputs=sources,
            outputs=targets,
            grid=size,
            metadata=metadata or form.metadata,
            waits_for=self._producers(waits_for),
            shares=shares,
            targets=tuple(rank for rank in range(self.world_size) if rank != self.rank),
        )
        self.operators.append(result)
        return result

    def branch(self, type_name: str, body: str, variant: int, number: int | None = None) -> None:
        """Adds a branch to the dispatcher that no operator uses."""
        form = form_of(type_name, number, (0, 0))
        self._dispatcher.add(form.number, type_name, body, variant)

    def _shift_put(
        self, name: str, sources: tuple[Placed, ...], targets: tuple[Placed, ...]
    ) -> tuple[Placed, ...]:
        """A put writes the slice of the target's buffer that belongs to this rank."""
        if name != PUT or not sources or sources[0].tensor is None:
            return targets
        elements = prod(sources[0].tensor.shape)
        return tuple(
            replace(slot, offset=slot.offset + self.rank * elements * slot.tensor.itemsize)
            if slot.tensor
            else slot
            for slot in targets
        )

    def _producers(self, waits_for: Operator | Sequence[Operator] | None) -> tuple[Operator, ...]:
        if waits_for is None:
            return tuple(self.operators[-1:])
        return (waits_for,) if isinstance(waits_for, Operator) else tuple(waits_for)

    # --- oddities ---------------------------------------------------------------------------------

    def patch_graph(self, change: Callable[[Graph], object]) -> None:
        """Has `change` edit the task graph, as json.load gives it, before it is written."""
        self._graph_patches.append(change)

    def patch_kernel(self, change: Callable[[str], str]) -> None:
        """Has `change` rewrite the kernel's text before it is written."""
        self._kernel_patches.append(change)

    # --- results ----------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """The numbering of tasks and events, without patches."""
        return plan(self.operators, self.rank)

    def task_ids(self, operator: Operator) -> list[int]:
        """The ids of an operator's tasks, in the order of its tiles."""
        return [
            task
            for segment in self.plan().segments
            if segment.operator is operator
            for task in range(segment.first_task, segment.stop_task)
        ]

    def kernel_text(self) -> str:
        """The kernel's text, patched."""
        lines = [line for declaration in self._declarations.values() for line in declaration]
        text = write_kernel(self.world_size, lines, self._dispatcher)
        for change in self._kernel_patches:
            text = change(text)
        return text

    def task_graph_pieces(self) -> Iterable[str]:
        """The task graph's text in pieces; only a patched one is ever whole in memory."""
        pieces = task_graph_pieces(self.plan())
        if not self._graph_patches:
            return pieces
        graph: Graph = json.loads("".join(pieces))
        for change in self._graph_patches:
            change(graph)
        return [json.dumps(graph, indent=2, sort_keys=True, ensure_ascii=False)]

    def task_graph_text(self) -> str:
        """The task graph's text, patched."""
        return "".join(self.task_graph_pieces())

    def task_graph(self) -> Graph:
        """The task graph as json.load would give it."""
        graph: Graph = json.loads(self.task_graph_text())
        return graph

    def write(
        self,
        directory: Path,
        naming: Naming = "kernel",
        compress: Compression | None = None,
        compress_kernel: Compression | None = None,
    ) -> tuple[Path, Path]:
        """Writes the kernel and the task graph into `directory`; returns their paths."""
        return write_rank(self, directory, naming, compress, compress_kernel)


def _grid(grid: int | tuple[int, ...]) -> Grid:
    x, y, z = (*((grid,) if isinstance(grid, int) else grid), 1, 1)[:3]
    if min(x, y, z) < 1:
        raise BuilderError(f"a grid of {grid} has no block")
    return x, y, z
