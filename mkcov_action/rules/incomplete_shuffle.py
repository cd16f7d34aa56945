"""MK112: the copies into a fused weight do not fill it."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import Place, Severity
from mkcov_action.kernel_source import Copy, Declaration, Origin
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural

_MOST_ROWS = 1_000_000  # real ones have a few dozen; beyond this the arithmetic would stall


@rule(id="MK112", name="incomplete-shuffle", severity=Severity.ERROR, stage=Stage.WIRING, since="0.1.0")
def incomplete_shuffle(context: Context) -> Iterator[Result]:
    """The copies into a shuffled tensor do not fill it exactly once.

    ## What it finds
    A fused weight is allocated and filled by strided copies from its sources when the kernel starts.
    Their rows must cover every byte of the allocation once: a hole, an overlap, a copy past the end
    or a sum that differs from the size is reported.

    ## Why it matters
    Bytes that no copy fills are uninitialised weights; bytes that two copies fill belong to the
    wrong matrix. A division of rows into groups that does not come out even loses the last rows.

    ## Example
    `layer_0_qkv_proj` has 25,165,824 bytes and its three copies bring 25,165,312.

    ## How to fix it
    Check the shapes and the number of groups that the weights are shuffled with.
    """
    for rank in context.ranks:
        for name, declaration in rank.declarations.items():
            if declaration.origin is not Origin.SHUFFLED:
                continue
            if declaration.bytes is None:
                yield incomplete_shuffle.not_checked(f"{name}: its size is no number in the kernel")
                continue
            rows = sum(copy.height for copy in declaration.copies)
            if not declaration.copies_known or rows > _MOST_ROWS:
                reason = (
                    "is too finely divided" if rows > _MOST_ROWS else "is filled in a form that is not known"
                )
                yield incomplete_shuffle.not_checked(f"{name} {reason}")
                continue
            if defect := _defect(declaration, declaration.bytes):
                yield incomplete_shuffle.finding(
                    tensor=name,
                    ranks=(rank.number,),
                    message=f"{name} ({plural(declaration.bytes, 'byte')}): {defect}",
                    consequence="part of this weight is uninitialised or belongs to another matrix",
                    fix="check the shapes and the number of groups that these weights are shuffled with",
                    mentions=tuple(_mention(rank.number, copy) for copy in declaration.copies),
                )


def _mention(rank: int, copy: Copy) -> Place:
    return Place(rank=rank, line=copy.line, text=f"the copy of {copy.source or 'a source'}")


def _defect(declaration: Declaration, size: int) -> str | None:
    """What is wrong with the copies of a tensor of `size` bytes; None if they fill it once."""
    copied = sum(copy.width * copy.height for copy in declaration.copies)
    rows = sorted(
        (copy.offset + row * copy.pitch, copy.width)
        for copy in declaration.copies
        for row in range(copy.height)
    )
    end = 0
    for start, width in rows:
        if start < end:
            return f"two copies overlap at byte {start:,}"
        if start > end:
            return f"its copies bring {plural(copied, 'byte')} and leave a hole at byte {end:,}"
        end = start + width
    if end < size:
        return f"its copies bring {plural(copied, 'byte')} and leave a hole at byte {end:,}"
    return f"its copies bring {plural(copied, 'byte')}, past its end" if end > size else None
