"""MK109: a buffer that is written and never read."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.analyses.consumption import Access
from mkcov_action.finding import Severity
from mkcov_action.kernel_source import Origin
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import readers


@rule(id="MK109", name="write-only-tensor", severity=Severity.WARNING, stage=Stage.WIRING, since="0.1.0")
def write_only_tensor(context: Context) -> Iterator[Result]:
    """A buffer is written and no task reads it.

    ## What it finds
    Scratch or symmetric memory that tasks write and no task reads. A model tensor that is written
    and not read is a result of the model, such as `output_token`, and only a note.

    ## Why it matters
    Work whose result nobody takes is a reader that looks at another buffer, or an operator that
    should not be there.

    ## Example
    A fused residual goes to `layer_3_mlp_fused`, and the next norm reads the buffer of layer 2.

    ## How to fix it
    Let the next operator read this buffer, or drop the operator that writes it.
    """
    for rank in context.ranks:
        consumption = context.consumption(rank)
        for name, declaration in rank.declarations.items():
            if declaration.origin is Origin.UNKNOWN:
                continue
            if consumption.is_read(name) or not consumption.is_written(name):
                continue
            result = declaration.origin in (Origin.MODEL, Origin.SHUFFLED)
            writers = readers(consumption.slots(name, Access.WRITE, Access.UPDATE, Access.ACCUMULATE))
            yield write_only_tensor.finding(
                severity=Severity.NOTE if result else Severity.WARNING,
                tensor=name,
                ranks=(rank.number,),
                kind="result" if result else "",
                message=f"{name} is written by {writers} and no task reads it",
                consequence="harmless if it is a result of the model, as attached tensors usually are"
                if result
                else "its values are computed and lost: the task that should read them reads something else",
                fix="if a layer should read the tensor, pass it there"
                if result
                else "let the next operator read the buffer, or drop the one that writes it",
            )
