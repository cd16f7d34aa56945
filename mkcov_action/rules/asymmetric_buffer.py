"""MK503: communication on memory that only one rank knows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from mkcov_action.analyses.consumption import Side
from mkcov_action.finding import Severity
from mkcov_action.kernel_source import Origin
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural
from mkcov_action.task_types import ALL_REDUCES, PUTS


@rule(id="MK503", name="asymmetric-buffer", severity=Severity.ERROR, stage=Stage.RANKS, since="0.1.0")
def asymmetric_buffer(context: Context) -> Iterator[Result]:
    """A buffer that other ranks reach into is not symmetric memory.

    ## What it finds
    The input of a tile all-reduce, which all ranks read, and the output of a put, which lies on
    another rank, must come from `nvshmem_malloc`. And all ranks must allocate the same symmetric buffers,
    of the same sizes and in the same order: their places in the heap follow from that.

    ## Why it matters
    Other ranks find the buffer by its place in the symmetric heap. A `cudaMalloc` pointer has none:
    the access faults, or reads and writes somewhere else.

    ## Example
    A split-K linear writes its partial sums into `embed_out`, and the all-reduce takes it from there.

    ## How to fix it
    Make the buffer with `new_tensor(..., io_category="nvshmem_tensor")`.
    """
    yield from _heaps(context)
    for rank in context.ranks:
        for tensor, usage in context.consumption(rank).usages.items():
            declaration = rank.declarations.get(tensor)
            if declaration is None or declaration.origin in (Origin.SYMMETRIC, Origin.UNKNOWN):
                continue
            for slot in sorted(usage.slots):
                name = slot.operator.type_name
                if (name in ALL_REDUCES and slot.side is Side.INPUT) or (
                    name in PUTS and slot.side is Side.OUTPUT
                ):
                    does = "takes its input from" if slot.side is Side.INPUT else "writes to another rank's"
                    yield asymmetric_buffer.finding(
                        tensor=tensor,
                        operator=slot.operator,
                        tasks=usage.slots[slot],
                        ranks=(rank.number,),
                        message=f"{slot.operator} {does} {tensor}, which is {_origin(declaration.origin)} and not symmetric",
                        consequence="other ranks do not find the buffer: the access faults or goes elsewhere",
                        fix="allocate the buffer as symmetric memory (io_category nvshmem_tensor)",
                    )


def _heaps(context: Context) -> Iterator[Result]:
    """Ranks whose symmetric heaps are laid out in different ways."""
    heaps = {
        rank.number: [
            (name, item.bytes) for name, item in rank.declarations.items() if item.origin is Origin.SYMMETRIC
        ]
        for rank in context.ranks
    }
    reference, *others = heaps or [0]
    for other in others:
        if heaps[other] == heaps[reference]:
            continue
        pairs = zip_longest(heaps[reference], heaps[other], fillvalue=("no buffer", None))
        one, two = next(pair for pair in pairs if pair[0] != pair[1])
        yield asymmetric_buffer.finding(
            tensor=two[0] if two[1] is not None else None,
            ranks=(other,),
            kind="heap",
            message=f"rank {other} allocates {_sized(two)} in symmetric memory where rank {reference} allocates {_sized(one)}",
            consequence="a buffer lies elsewhere on this rank: what others put into it lands in another one",
            fix="let all ranks allocate the same buffers, of the same sizes and in the same order",
        )


def _sized(buffer: tuple[str, int | None]) -> str:
    name, size = buffer
    return name if size is None else f"{name} ({plural(size, 'byte')})"


def _origin(origin: Origin) -> str:
    return {
        Origin.SCRATCH: "memory of this rank alone",
        Origin.MODEL: "an attached tensor",
        Origin.SHUFFLED: "a fused weight",
    }[origin]
