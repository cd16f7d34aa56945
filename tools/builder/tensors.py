"""Tensors, the tiles of them that slots hold, and their declarations in the kernel's text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from tools.builder.errors import BuilderError

# Number in the task graph and bytes an element (mirage include/mirage/type.h, src/kernel/data_type.cc).
DTYPES: Mapping[str, tuple[int, int]] = {
    "fp8": (930, 1),
    "int8": (935, 1),
    "uint8": (936, 1),
    "fp16": (940, 2),
    "bf16": (941, 2),
    "int16": (945, 2),
    "uint16": (946, 2),
    "fp32": (950, 4),
    "int32": (955, 4),
    "uint32": (956, 4),
    "fp64": (960, 8),
    "int64": (965, 8),
    "uint64": (966, 8),
}

Axes = tuple[int | None, int | None, int | None]
"""For each grid dimension the tensor axis that it divides, None where it divides none."""

WHOLE: Axes = (None, None, None)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named tensor. `shape` and `strides` are in elements; `bytes` is what an allocation takes."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "bf16"
    strides: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise BuilderError(f"{self.name}: unknown data type {self.dtype!r}; known: {', '.join(DTYPES)}")
        if not self.strides:
            row_major = tuple(prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))
            object.__setattr__(self, "strides", row_major)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return DTYPES[self.dtype][1]

    @property
    def bytes(self) -> int:
        """Bytes of the whole tensor, which must have no gaps."""
        return self.itemsize * prod(self.shape)

    def tile(self, *axes: int | None, offset: int = 0, dims: tuple[int, ...] | None = None) -> Tile:
        """This tensor in a slot: axis `axes[i]` is divided by grid dimension i.

        `offset` (bytes) is added to every task's own; `dims` replaces the tile's extent. Without
        `axes` the task type's own division applies, which `whole()` switches off.
        """
        x, y, z = (*axes, None, None, None)[:3]
        return Tile(self, (x, y, z) if axes else None, offset, dims)

    def whole(self) -> Tile:
        """All of this tensor in a slot, whatever the task type divides."""
        return Tile(self, WHOLE)

    def view(self, shape: tuple[int, ...], dtype: str = "", strides: tuple[int, ...] = ()) -> Tensor:
        """The same memory under another shape or data type; it is not declared again."""
        return replace(self, shape=shape, dtype=dtype or self.dtype, strides=strides)


@dataclass(frozen=True, slots=True)
class Tile:
    """What a slot holds: a tensor and how the grid divides it."""

    tensor: Tensor
    axes: Axes | None = None
    offset: int = 0
    dims: tuple[int, ...] | None = None


def declare_model(tensor: Tensor) -> list[str]:
    """Attached by Python: looked up by name when the kernel starts."""
    return [f'char *{tensor.name} = static_cast<char*>(model_tensors.at("{tensor.name}"));', _entry(tensor)]


def declare_scratch(tensor: Tensor) -> list[str]:
    """Device memory of this rank, uninitialised."""
    return [f"void *{tensor.name};", _allocate(tensor), _entry(tensor)]


def declare_symmetric(tensor: Tensor) -> list[str]:
    """Memory that the other ranks can address."""
    return [
        f"void *{tensor.name} = nvshmem_malloc({tensor.bytes});",
        f"assert({tensor.name} != nullptr);",
        _entry(tensor),
    ]


def declare_shuffled(tensor: Tensor, sources: Mapping[str, int], groups: int) -> list[str]:
    """A weight copied together from `sources` (name -> rows), `groups` interleaved runs of each.

    Divides as the generator does: rows that the groups do not divide are lost.
    """
    row = tensor.bytes // tensor.shape[0]
    widths = {name: row * rows // groups for name, rows in sources.items()}
    lines = [f"char *{tensor.name};", _allocate(tensor)]
    offset = 0
    for name, width in widths.items():
        target = f"reinterpret_cast<void *>({tensor.name} + {offset})"
        copy = f'{target}, {sum(widths.values())}, model_tensors.at("{name}"), {width}, {width}, {groups}'
        lines.append(f"CUDA_CHECK(cudaMemcpy2DAsync({copy}, cudaMemcpyDeviceToDevice));")
        offset += width
    return [*lines, _entry(tensor)]


def _allocate(tensor: Tensor) -> str:
    return f"CUDA_CHECK(cudaMalloc(&{tensor.name}, {tensor.bytes}));"


def _entry(tensor: Tensor) -> str:
    return f'all_tensors["{tensor.name}"] = {tensor.name};'
