"""Which bytes of a tensor a tile lies in."""

from __future__ import annotations

from collections.abc import Iterable

from mkcov_action.task_graph import Operand
from mkcov_action.task_types import DATA_TYPE_BYTES

Span = tuple[int, int]
"""A half-open range of bytes, counted from the tensor's start."""


def span_of(operand: Operand) -> Span | None:
    """From the first byte of a tile to behind its last one; None where the element has no known size.

    What lies between may belong to other tiles: rows of a column tile are apart.
    """
    size = DATA_TYPE_BYTES.get(operand.data_type)
    if size is None or len(operand.dims) != len(operand.strides):
        return None
    if 0 in operand.dims:
        return operand.offset, operand.offset
    steps = zip(operand.dims, operand.strides, strict=True)
    last = sum((dim - 1) * stride for dim, stride in steps)  # in elements
    return operand.offset, operand.offset + (last + 1) * size


def hull(spans: Iterable[Span | None]) -> Span | None:
    """The smallest range that holds all spans; None if one is unknown or there is none."""
    found = list(spans)
    known = [span for span in found if span is not None]
    if not known or len(known) < len(found):
        return None
    return min(start for start, _ in known), max(stop for _, stop in known)
