"""MK103: a buffer that is read and never written."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.analyses.consumption import Access
from mkcov_action.finding import Severity
from mkcov_action.kernel_source import Origin
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import readers


@rule(id="MK103", name="uninitialised-read", severity=Severity.ERROR, stage=Stage.WIRING, since="0.1.0")
def uninitialised_read(context: Context) -> Iterator[Result]:
    """A buffer is read and no task writes it.

    ## What it finds
    Scratch (`cudaMalloc`) or symmetric (`nvshmem_malloc`) memory that a task reads and that no task
    writes, in-place writers and writers on other ranks included. Where a task type without a known
    role may be the writer, or a statement that fills the memory when the kernel starts, the tensor is
    listed as not checked.

    ## Why it matters
    Such memory holds whatever was there before: yesterday's activations, zeros on a good day. The
    result changes from run to run, or looks right until the allocator hands out another page.

    ## Example
    `mtp_target_token_ids` is allocated and read by the verifier; the layer that fills it was dropped.

    ## How to fix it
    Let the operator that should produce the tensor write it, or point the reader at the buffer that
    is really written.
    """
    for rank in context.ranks:
        consumption = context.consumption(rank)
        for type_name in consumption.types_without_role:
            yield uninitialised_read.not_checked(
                f"{type_name}: the role of its slots is not known; its inputs count as read, its outputs as written"
            )
        for name, declaration in rank.declarations.items():
            if declaration.origin not in (Origin.SCRATCH, Origin.SYMMETRIC):
                continue
            if consumption.is_written(name) or not consumption.is_read(name):
                continue
            if suspects := consumption.slots(name, Access.MAYBE_WRITE):
                yield uninitialised_read.not_checked(
                    f"{name}: nothing surely writes it, but {suspects[0]} may (its role is not known)"
                )
                continue
            if not declaration.copies_known:
                yield uninitialised_read.not_checked(
                    f"{name}: no task writes it, but a statement of unknown form fills it at start"
                )
                continue
            slots = consumption.slots(name, Access.READ)
            yield uninitialised_read.finding(
                tensor=name,
                ranks=(rank.number,),
                message=f"{name} is read by {readers(slots)} and no task writes it",
                consequence="the kernel computes with whatever the memory held before",
                fix="let an operator write the buffer, or point its reader at the one that is written",
            )
