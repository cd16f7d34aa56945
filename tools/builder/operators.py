"""An operator: one layer call of a model, which becomes one task for each block of its grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from tools.builder.errors import BuilderError
from tools.builder.forms import PUT
from tools.builder.tensors import WHOLE, Axes, Tensor, Tile

Grid = tuple[int, int, int]

Slot = Tensor | Tile | None
"""What a slot may be given: a tensor, a tile of one, or None for nullptr."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A slot of an operator: `step` is what each grid dimension adds to the offset, in bytes."""

    tensor: Tensor | None
    dims: tuple[int, ...] = ()
    offset: int = 0
    step: Grid = (0, 0, 0)


@dataclass(eq=False, slots=True)
class Operator:
    """One layer call. `tiles` is its grid's size.

    `waits_for` are the operators that all end before it starts; with `shares` above one, a task
    waits only for its share of their tiles. `targets` are the ranks that a put writes to, with a task for each.
    """

    type_name: str
    number: int
    variant: int
    inputs: tuple[Placed, ...]
    outputs: tuple[Placed, ...]
    grid: Grid
    metadata: str
    waits_for: tuple[Operator, ...]
    shares: int
    targets: tuple[int, ...]
    tiles: int = field(init=False)

    def __post_init__(self) -> None:
        self.tiles = prod(self.grid)

    def __str__(self) -> str:
        names = [slot.tensor.name if slot.tensor else "nullptr" for slot in (*self.inputs, *self.outputs)]
        return f"{self.type_name}({', '.join(names)})"

    @property
    def is_put(self) -> bool:
        """Whether it writes to other ranks and tells them, not this one."""
        return self.type_name == PUT

    @property
    def tasks_per_tile(self) -> int:
        """A put has one for each other rank, every other operator just one."""
        return len(self.targets) if self.is_put else 1

    @property
    def tasks(self) -> int:
        """How many tasks the graph holds of it."""
        return self.tiles * self.tasks_per_tile

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, Grid]]:
        """The tiles numbered `start` to `stop` with their blocks, x slowest as the generator counts."""
        _, height, depth = self.grid
        for tile in range(start, stop):
            x, rest = divmod(tile, height * depth)
            yield tile, (x, rest // depth, rest % depth)


def place_all(slots: Sequence[Slot], divisions: Sequence[Axes], grid: Grid) -> tuple[Placed, ...]:
    """Divides each slot's tensor by the grid; slots beyond the divisions stay whole."""
    more = [WHOLE] * (len(slots) - len(divisions))
    return tuple(
        _place(slot, divided, grid) for slot, divided in zip(slots, [*divisions, *more], strict=False)
    )


def _place(slot: Slot, divided: Axes, grid: Grid) -> Placed:
    """What does not divide evenly is left out at the end, as the generator leaves it."""
    if slot is None:
        return Placed(None)
    tile = slot if isinstance(slot, Tile) else Tile(slot)
    tensor, dims, step = tile.tensor, list(tile.tensor.shape), [0, 0, 0]
    for dimension, axis in enumerate(divided if tile.axes is None else tile.axes):
        if axis is None:
            continue
        if axis >= len(dims):
            raise BuilderError(f"{tensor.name} has no axis {axis} to divide; its shape is {tensor.shape}")
        dims[axis] //= grid[dimension]
        step[dimension] = dims[axis] * tensor.strides[axis] * tensor.itemsize
    extent = tuple(dims) if tile.dims is None else tile.dims
    return Placed(tensor, extent, tile.offset, (step[0], step[1], step[2]))
