"""MK104: a task names a tensor that the kernel does not declare."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import Severity
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural


@rule(id="MK104", name="undeclared-tensor", severity=Severity.ERROR, stage=Stage.WIRING, since="0.1.0")
def undeclared_tensor(context: Context) -> Iterator[Result]:
    """A task names a tensor that the kernel does not declare.

    ## What it finds
    A `base_ptr` of the task graph that is no key of the kernel's `all_tensors`.

    ## Why it matters
    The loader looks every name up in that table and ends the process where it is missing. Mostly the
    two files come from two different runs of the generator.

    ## Example
    The builder was changed and only the kernel was generated again.

    ## How to fix it
    Generate both files in one run and keep them together.
    """
    for rank in context.ranks:
        consumption = context.consumption(rank)
        for name, usage in consumption.usages.items():
            if name in rank.declarations:
                continue
            slot = min(usage.slots)
            refs = plural(usage.input_refs + usage.output_refs, "task operand")
            yield undeclared_tensor.finding(
                tensor=name,
                operator=slot.operator,
                ranks=(rank.number,),
                message=f"{refs} name {name}, which the kernel does not declare (first: {slot})",
                consequence="the kernel's loader ends the process when it meets the name",
                fix="generate the kernel and the task graph in one run, and keep the two together",
            )
